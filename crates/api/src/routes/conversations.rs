//! Routes of users and their applications.

use super::{ApiRoute, api_routes};
use crate::schemas::ChosenId;
#[cfg(feature = "search")]
use crate::search;
use crate::{
    export, external_signing, files, live, messages, people, presence, progressdb, reactions, read_markers, signing,
    threads,
};
use queries::files::File;
use queries::shapes::{Message, Thread};
use std::time::Duration;

pub(super) fn routes() -> Vec<ApiRoute> {
    let tables = [
        threads_routes(),
        messages_routes(),
        reactions_routes(),
        files_routes(),
        file_transfer_routes(),
        live_routes(),
        people_routes(),
        external_signing_routes(),
        signing_routes(),
        progressdb_routes(),
    ];
    tables.into_iter().flatten().collect()
}

fn threads_routes() -> Vec<ApiRoute> {
    api_routes! { "threads";
        get "/v1/threads" Read threads::list,
            "List threads, the latest first", query::<threads::ThreadQuery>(), answers::<threads::Threads>(200);
        post "/v1/threads" Write threads::create,
            "Open a thread", body::<threads::ThreadBody>(), answers::<Thread>(201),
            answers_when::<Thread>(200, "It was there already");
        get "/v1/threads/{thread}" Read threads::get,
            "Get a thread", answers::<Thread>(200);
        put "/v1/threads/{thread}" Change threads::update,
            "Change the title, metadata, participants or pins of a thread, or who sees it",
            body::<threads::ThreadBody>(), compares(), answers::<Thread>(200);
        delete "/v1/threads/{thread}" Change threads::delete,
            "Delete a thread softly: it is not listed any more", compares(), answers_nothing();
        put "/v1/threads/{thread}/read" Own read_markers::mark,
            "Mark a thread as read up to a message", body::<read_markers::ReadBody>(), answers_nothing();
    }
}

fn messages_routes() -> Vec<ApiRoute> {
    api_routes! { "messages";
        get "/v1/threads/{thread}/messages" Read messages::in_thread::list,
            "List messages of a thread: the latest, or those before, after or around one",
            query::<messages::MessageQuery>(), answers::<messages::Messages>(200);
        post "/v1/threads/{thread}/messages" Write messages::in_thread::create,
            "Post a message into a thread, which is opened if it does not exist", path::<ChosenId>("thread"),
            body::<messages::MessageBody>(), answers::<Message>(201),
            answers_when::<Message>(200, "It was there already");
        get "/v1/threads/{thread}/messages/{id}" Read messages::in_thread::get,
            "Get a message of a thread", answers::<Message>(200);
        put "/v1/threads/{thread}/messages/{id}" Change messages::in_thread::edit,
            "Write a new version of a message of a thread", body::<messages::EditBody>(), compares(),
            answers::<Message>(200);
        delete "/v1/threads/{thread}/messages/{id}" Change messages::in_thread::delete,
            "Delete a message of a thread softly", compares(), answers_nothing();
        get "/v1/threads/{thread}/messages/{id}/versions" Read messages::in_thread::versions,
            "All versions of a message of a thread", query::<messages::VersionQuery>(),
            answers::<messages::Versions>(200);
        get "/v1/threads/{thread}/messages/{id}/replies" Read messages::in_thread::replies,
            "The messages that answer a message of a thread", query::<crate::schemas::PageQuery>(),
            answers::<messages::Replies>(200);
        get "/v1/messages" Read messages::list,
            "List messages of a thread, or the latest of all threads",
            query::<messages::ThreadOf>(), query::<messages::MessageQuery>(), answers::<messages::Messages>(200);
        post "/v1/messages" Write messages::create,
            "Post a message; a thread that does not exist is opened", body::<messages::MessageBody>(),
            answers::<Message>(201), answers_when::<Message>(200, "It was there already");
        post "/v1/bulk/messages" Write messages::bulk::create,
            "Post up to 500 messages in one request, with one answer for each", body::<messages::bulk::BulkBody>(),
            larger_body(messages::bulk::BODY_FACTOR), answers::<messages::bulk::BulkResults>(200);
        get "/v1/messages/{id}" Read messages::get,
            "Get a message", answers::<Message>(200);
        put "/v1/messages/{id}" Change messages::edit,
            "Write a new version of a message", body::<messages::EditBody>(), compares(), answers::<Message>(200);
        delete "/v1/messages/{id}" Change messages::delete,
            "Delete a message softly: a version that says so", compares(), answers_nothing();
        get "/v1/messages/{id}/versions" Read messages::versions,
            "All versions of a message, the first one first", query::<messages::VersionQuery>(),
            answers::<messages::Versions>(200);
        get "/v1/messages/{id}/replies" Read messages::replies,
            "The messages that answer a message", query::<crate::schemas::PageQuery>(), answers::<messages::Replies>(200);
        #[cfg(feature = "search")]
        get "/v1/search" Read search::search,
            "Search messages", query::<search::SearchQuery>(), answers::<search::SearchResults>(200);
    }
}

fn reactions_routes() -> Vec<ApiRoute> {
    api_routes! { "reactions";
        get "/v1/threads/{thread}/messages/{id}/reactions" Read reactions::list_in_thread,
            "Who reacted to a message of a thread, and how", answers::<reactions::Reactions>(200);
        post "/v1/threads/{thread}/messages/{id}/reactions" Write reactions::add_in_thread,
            "React to a message of a thread", body::<reactions::ReactionBody>(), answers::<Message>(200);
        delete "/v1/threads/{thread}/messages/{id}/reactions/{identity}" Write reactions::remove_in_thread,
            "Take a reaction to a message of a thread back", answers_nothing();
        get "/v1/messages/{id}/reactions" Read reactions::list,
            "Who reacted to a message, and how", answers::<reactions::Reactions>(200);
        post "/v1/messages/{id}/reactions" Write reactions::add,
            "React to a message; an earlier reaction of the same user is replaced", body::<reactions::ReactionBody>(),
            answers::<Message>(200);
        delete "/v1/messages/{id}/reactions/{identity}" Write reactions::remove,
            "Take a reaction back", answers_nothing();
    }
}

/// How long an upload may take.
const UPLOAD: Duration = Duration::from_secs(24 * 3600);

fn files_routes() -> Vec<ApiRoute> {
    api_routes! { "files";
        get "/v1/files" Read files::list,
            "List files, the latest first: the caller's, or all with a key that acts for nobody",
            query::<files::FileQuery>(), answers::<files::FilesPage>(200);
        post "/v1/files" Write files::upload [UPLOAD],
            "Upload a file: its bytes are the body, or a file of a form", query::<files::UploadQuery>(),
            digest_header(),
            any_body("The bytes of the file"), answers::<File>(201), problem("413");
        get "/v1/files/{file}" Read files::get,
            "Get everything about a file, and whether it is ready", answers::<File>(200);
        put "/v1/files/{file}" Change files::change,
            "Rename a file, change its metadata, put it away or bring it back", body::<files::FileBody>(),
            answers::<File>(200), problem("409");
        delete "/v1/files/{file}" Change files::delete,
            "Hide a file, show it again, or delete it with everything derived from it for ever",
            query::<files::DeleteQuery>(), answers_nothing(), problem("409");
        post "/v1/files/{file}/retry" Change files::retry,
            "Process a file again whose processing has failed", answers_nothing();
        put "/v1/files/{file}/content" Write files::replace [UPLOAD],
            "Upload a new version of a file; the older ones are kept",
            digest_header(),
            any_body("The bytes of the file"), answers::<File>(200), problem("409"), problem("413"), uncompressed();
        get "/v1/files/{file}/versions" Read files::list_versions,
            "The versions of a file, and where their bytes are", answers::<files::FileVersions>(200);
        get "/v1/files/{file}/content" Read files::content,
            "Download a file or one of its renditions, or a range of it", query::<files::ContentQuery>(),
            answers_media("The bytes", "*/*"), problem("409"), problem("416"), uncompressed();
    }
}

fn file_transfer_routes() -> Vec<ApiRoute> {
    api_routes! { "files";
        get "/v1/files/{file}/links" Read files::links::list,
            "List the links to a file that are still good", answers::<files::links::FileLinks>(200);
        post "/v1/files/{file}/links" Change files::links::create,
            "Make a link by which whoever has it downloads a file until it expires or is ended",
            body::<files::links::LinkBody>(), answers::<files::links::FileLinkShown>(201), problem("409");
        post "/v1/files/{file}/upload-links" Change files::links::create_for_upload,
            "Make a link by which whoever has it uploads the bytes of a file, or of a new version of it, once",
            body::<files::links::UploadLinkBody>(), answers::<files::links::FileLinkShown>(201), problem("409");
        delete "/v1/files/{file}/links/{link}" Change files::links::end,
            "End a link to a file", answers_nothing();
        post "/v1/presigned-uploads" Write files::links::presign,
            "Begin a file, and make a link by which its bytes are uploaded without a key",
            body::<files::links::PresignedBody>(), answers::<files::links::PresignedUpload>(201);
        get "/v1/links/{key}" Look files::links::download [UPLOAD],
            "Download a file, or a range of it, by a link", query::<files::links::LinkQuery>(),
            answers_media("The bytes", "*/*"), problem("400"), problem("404"), problem("416"), problem("429"),
            problem("503"), uncompressed(), without_key();
        put "/v1/links/{key}" Look files::links::upload [UPLOAD],
            "Upload the bytes of a file by a link", query::<files::links::LinkQuery>(),
            digest_header(),
            any_body("The bytes of the file"), answers::<files::links::UploadedByLink>(200), problem("400"),
            problem("403"), problem("404"), problem("408"), problem("409"), problem("413"), problem("422"), problem("429"), problem("503"),
            uncompressed(), without_key();
        post "/v1/uploads" Write files::resumable::create [UPLOAD],
            "Begin an upload that may come in several goes (tus 1.0)",
            header("Tus-Resumable", "The version of tus: 1.0.0"),
            number_header("Upload-Length", "How many bytes there will be"),
            header("Upload-Metadata", "`filename` and `filetype`, each with its value in base64"),
            answers::<files::resumable::ResumableUpload>(201), problem("412"), problem("413");
        get "/v1/uploads/{file}" Write files::resumable::get,
            "How far an upload has come; a HEAD says it in headers",
            header("Tus-Resumable", "The version of tus: 1.0.0"),
            answers::<files::resumable::ResumableUpload>(200), any_query();
        patch "/v1/uploads/{file}" Write files::resumable::append [UPLOAD],
            "Send more bytes of an upload, as `application/offset+octet-stream`",
            header("Tus-Resumable", "The version of tus: 1.0.0"),
            number_header("Upload-Offset", "How far it has come"),
            body_of("application/offset+octet-stream", "The next bytes"), answers_nothing(), problem("409"), problem("412"), problem("413");
        delete "/v1/uploads/{file}" Write files::resumable::end,
            "Give an upload up", header("Tus-Resumable", "The version of tus: 1.0.0"), answers_nothing(),
            problem("409");
    }
}

fn live_routes() -> Vec<ApiRoute> {
    api_routes! { "live";
        post "/v1/threads/{thread}/typing" Own presence::typing,
            "Publish to the subscribers of a thread that the caller is typing", answers_nothing();
        put "/v1/presence" Own presence::presence,
            "Publish the presence of the caller to the subscribers of the space", body::<presence::PresenceBody>(),
            answers_nothing();
        get "/v1/events" Read live::events,
            "Listen to what happens, as server-sent events", query::<live::EventQuery>(),
            header("Last-Event-ID", "Resume after this position"),
            answers_media("A stream; each id is a journal position", "text/event-stream");
        post "/v1/tickets" Read live::ticket,
            "Get a ticket for one live stream, for browsers, which cannot send headers there",
            answers::<live::StreamTicket>(201);
    }
}

fn people_routes() -> Vec<ApiRoute> {
    api_routes! { "people";
        get "/v1/mentions" Own people::mentions,
            "List the messages that mention the caller, the latest first", query::<crate::schemas::PageQuery>(),
            answers::<people::Mentions>(200);
        get "/v1/blocks" Own people::blocks,
            "List whom the caller blocks or mutes", answers::<people::Blocks>(200);
        put "/v1/blocks/{user}" Own people::block,
            "Block or mute a user", body::<people::BlockBody>(), answers_nothing();
        delete "/v1/blocks/{user}" Own people::unblock,
            "No longer block or mute a user", answers_nothing();
        post "/v1/reports" Own people::report,
            "Report a message to the moderators", body::<people::ReportBody>(), answers_nothing();
        delete "/v1/members/{user}" Own people::leave,
            "Leave the space; what was written stays", answers_nothing();
        get "/v1/export" Own export::own,
            "Everything that the caller wrote in the space, page by page", query::<crate::schemas::PageQuery>(),
            answers::<export::Export>(200);
    }
}

fn external_signing_routes() -> Vec<ApiRoute> {
    api_routes! { "external signing";
        post "/v1/prepare" Read external_signing::prepare,
            "Prepare an event for a key that is elsewhere", body::<external_signing::PrepareBody>(),
            answers::<external_signing::Prepared>(200);
        post "/v1/submit" Submit external_signing::submit,
            "Submit an event that was signed elsewhere", body::<external_signing::SubmitBody>(),
            answers_when::<external_signing::Submitted>(201, "It is applied"),
            answers_when::<external_signing::Submitted>(202, "It waits for what it names"),
            answers_when::<external_signing::Submitted>(200, "It was here already");
    }
}

fn signing_routes() -> Vec<ApiRoute> {
    api_routes! { "access";
        post "/v1/_sign" Vouch signing::sign,
            "Sign for a user", body::<signing::SignBody>(), answers::<signing::SignedUser>(200);
    }
}

/// The interface of ProgressDB 0.2.
fn progressdb_routes() -> Vec<ApiRoute> {
    api_routes! { "ProgressDB 0.2";
        get "/frontend/v1/threads" Read progressdb::list_threads,
            "List threads, the newest first", query::<progressdb::PartQuery>(), any_query(),
            answers::<progressdb::ThreadData>(200);
        post "/frontend/v1/threads" Write progressdb::create_thread,
            "Open a thread", body::<threads::ThreadBody>(), any_query(), answers::<progressdb::KeyedThread>(201),
            answers_when::<progressdb::KeyedThread>(200, "It was there already");
        get "/frontend/v1/threads/{thread_key}" Read progressdb::get_thread,
            "Get a thread", any_query(), answers::<progressdb::KeyedThread>(200);
        put "/frontend/v1/threads/{thread_key}" Change progressdb::update_thread,
            "Change a thread", body::<threads::ThreadBody>(), any_query(), answers::<progressdb::KeyedThread>(200);
        delete "/frontend/v1/threads/{thread_key}" Change progressdb::delete_thread,
            "Delete a thread softly", any_query(), answers::<progressdb::Deleted>(200);
        get "/frontend/v1/threads/{thread_key}/messages" Read progressdb::list_messages,
            "List messages of a thread, the newest last", query::<progressdb::PartQuery>(), any_query(),
            answers::<progressdb::MessageData>(200);
        post "/frontend/v1/threads/{thread_key}/messages" Write progressdb::create_message,
            "Post a message into a thread", path::<ChosenId>("thread_key"), body::<messages::MessageBody>(),
            any_query(), answers::<progressdb::KeyedMessage>(201),
            answers_when::<progressdb::KeyedMessage>(200, "It was there already");
        get "/frontend/v1/threads/{thread_key}/messages/{message_key}" Read progressdb::get_message,
            "Get a message", any_query(), answers::<progressdb::KeyedMessage>(200);
        put "/frontend/v1/threads/{thread_key}/messages/{message_key}" Change progressdb::update_message,
            "Write a new version of a message", body::<messages::EditBody>(), any_query(),
            answers::<progressdb::KeyedMessage>(200);
        delete "/frontend/v1/threads/{thread_key}/messages/{message_key}" Change progressdb::remove_message,
            "Delete a message softly", any_query(), answers::<progressdb::Deleted>(200);
        post "/backend/v1/sign" Vouch signing::sign,
            "Sign for a user", body::<signing::SignBody>(), any_query(), answers::<signing::SignedUser>(200);
    }
}
