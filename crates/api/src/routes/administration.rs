//! Routes of those who administer a space, and of the operator.

use super::{ApiRoute, api_routes};
use crate::schemas::ChosenId;
use crate::{admin, export, threads};
use server::metrics::scrape;
use std::time::Duration;

/// How long a backup or a check of the store may take: as long as it takes to read a great node from a slow disk.
const LONG_TIMEOUT: Duration = Duration::from_secs(24 * 3600);

pub(super) fn routes() -> Vec<ApiRoute> {
    let tables = [access_routes(), space_routes(), operator_routes()];
    tables.into_iter().flatten().collect()
}

/// Keys, users and identities of a space.
fn access_routes() -> Vec<ApiRoute> {
    api_routes! { "admin";
        get "/admin/api-keys" Administer admin::keys::list,
            "List the API keys of the space", answers::<admin::keys::ApiKeys>(200);
        post "/admin/api-keys" Administer admin::keys::create,
            "Make an API key", body::<admin::keys::KeyBody>(), answers::<admin::keys::MadeKey>(201);
        delete "/admin/api-keys/{id}" Administer admin::keys::end,
            "End an API key", query::<admin::keys::EndQuery>(), answers_nothing();
        post "/admin/api-keys/{id}/rotate" Administer admin::keys::rotate,
            "Make another key like this one, which ends after a while", query::<admin::keys::EndQuery>(),
            answers::<admin::keys::MadeKey>(201);
        get "/admin/signing-keys" Administer admin::signing_keys::list,
            "List the keys that sign for users", answers::<admin::signing_keys::SigningKeys>(200);
        post "/admin/signing-keys" Administer admin::signing_keys::create,
            "Make another key that signs for users; it signs from now on, the others are still accepted",
            answers::<admin::signing_keys::MadeSigningKey>(201);
        delete "/admin/signing-keys/{number}" Administer admin::signing_keys::end,
            "End a key that signs for users: its signatures are not accepted any more",
            query::<admin::keys::EndQuery>(), answers_nothing();
        get "/admin/threads" Administer threads::list,
            "List the threads of the space, the latest first", query::<threads::ThreadQuery>(),
            answers::<threads::Threads>(200);
        get "/admin/users" Administer admin::users::list,
            "List the users of the space, in no particular order", query::<admin::users::UserQuery>(),
            answers::<admin::users::Users>(200);
        put "/admin/users/{user}" Administer admin::users::put,
            "Give a user a role, admitting them if they were never here", path::<ChosenId>("user"),
            body::<admin::users::RoleBody>(), answers::<admin::users::UserEntry>(200);
        delete "/admin/users/{user}" Administer admin::users::remove,
            "Remove a user from the space", answers_nothing();
        put "/admin/identities/{identity}" Administer admin::identities::put,
            "Give an identity whose key is elsewhere a role, in place of the one it has",
            body::<admin::users::RoleBody>(), answers::<admin::identities::MembershipEntry>(200);
        delete "/admin/identities/{identity}" Administer admin::identities::remove,
            "Remove an identity whose key is elsewhere from the space", answers_nothing();
        get "/admin/keys" Administer admin::explorer::list,
            "List keys of the store, by family and then in the order of the rows",
            query::<admin::explorer::KeyQuery>(), answers::<admin::explorer::KeyPage>(200);
        get "/admin/keys/{key}" Administer admin::explorer::get,
            "What rests under a key, as it is stored", answers::<admin::explorer::KeyRow>(200);
        get "/admin/users/{user}/export" Administer export::of_user,
            "Everything that a user wrote in the space, page by page", query::<crate::schemas::PageQuery>(),
            answers::<export::Export>(200);
        post "/admin/users/{user}/erase" Administer admin::upkeep::erase,
            "Remove a user and purge everything they wrote; a job does it", answers::<admin::jobs::Begun>(202);
    }
}

/// What a space holds, and how long.
fn space_routes() -> Vec<ApiRoute> {
    api_routes! { "admin";
        get "/metrics" Operate scrape,
            "Metrics in the text format of Prometheus", answers_media("Metrics", "text/plain");
        get "/admin/health" Vouch admin::health,
            "Health and version of the node", answers::<admin::NodeHealth>(200);
        get "/admin/stats" Vouch admin::stats,
            "What the space holds", answers::<admin::Stats>(200);
        get "/admin/files" Administer admin::files::status,
            "How the files of the space stand: counts by status, what is stuck, has failed, or does not fit",
            answers::<queries::files_status::FilesStatus>(200);
        get "/admin/audit" Administer admin::audit,
            "Who administered what, the latest first", query::<admin::AuditQuery>(), answers::<admin::Audit>(200);
        get "/admin/webhooks" Administer admin::webhooks::list,
            "List the webhooks of the space", answers::<admin::webhooks::Webhooks>(200);
        post "/admin/webhooks" Administer admin::webhooks::create,
            "Create a webhook, which receives events from now on", body::<admin::webhooks::WebhookBody>(),
            answers::<admin::webhooks::WebhookSecret>(201);
        delete "/admin/webhooks/{id}" Administer admin::webhooks::end,
            "End a webhook", answers_nothing();
        post "/admin/webhooks/{id}/test" Administer admin::webhooks::test,
            "Send a `test` event now; one that is taken enables a webhook that was disabled",
            answers::<admin::webhooks::Tested>(200);
        post "/admin/webhooks/{id}/rotate" Administer admin::webhooks::rotate,
            "Make another secret; the one before signs beside it for a day",
            answers::<admin::webhooks::WebhookSecret>(200);
        get "/admin/jobs" Administer admin::jobs::list,
            "List jobs, the latest first", query::<admin::jobs::JobQuery>(), answers::<admin::jobs::Jobs>(200);
        post "/admin/jobs" Administer admin::jobs::create,
            "Begin a job for the space; the same one is not begun twice", body::<admin::jobs::WorkBody>(),
            answers::<admin::jobs::Begun>(202);
        get "/admin/jobs/{number}" Administer admin::jobs::get,
            "A job and how far it has come", path_number("number"), answers::<admin::jobs::JobEntry>(200);
        get "/admin/retention" Administer admin::retention::list,
            "List the rules of the space", answers::<admin::retention::Rules>(200);
        put "/admin/retention" Administer admin::retention::put,
            "Say how long messages of the space or of a thread are kept; a rule without limits keeps everything, \
            also in a space that has some", body::<admin::retention::Rule>(), answers_nothing();
        delete "/admin/retention" Administer admin::retention::lift,
            "Lift the rule of the space or of a thread", query::<admin::retention::RuleQuery>(), answers_nothing();
        get "/admin/retention/preview" Administer admin::retention::preview,
            "What the rules of the space would purge now; nothing is changed",
            answers::<admin::retention::Preview>(200);
        post "/admin/purge" Administer admin::upkeep::purge,
            "Purge the content of events for ever: body, versions, search entries", body::<admin::upkeep::PurgeBody>(),
            answers::<admin::upkeep::PurgeReceipt>(200);
        get "/admin/reports" Administer admin::upkeep::reports,
            "List what users reported, the latest first", query::<admin::upkeep::ReportQuery>(),
            answers::<admin::upkeep::Reports>(200);
        put "/admin/reports/{number}" Administer admin::upkeep::settle,
            "Settle a report", path_number("number"), body::<admin::upkeep::SettleBody>(), answers_nothing();
    }
}

fn operator_routes() -> Vec<ApiRoute> {
    api_routes! { "operator";
        post "/admin/retry" Operate admin::upkeep::retry,
            "Look again at an event that waits, or hunt for a need or the data of a git repository now", body::<admin::upkeep::RetryBody>(),
            answers_nothing();
        post "/admin/verify" Operate admin::upkeep::verify [LONG_TIMEOUT],
            "Check the whole store while it serves: everything but that the views follow from the events, which \
            `anteroom verify` does", answers::<admin::upkeep::VerifySummary>(200);
        delete "/admin/spaces/{space}" Operate admin::upkeep::end_space,
            "Delete a space: nobody gets in, its keys are destroyed, a job drops its content",
            answers::<admin::jobs::Begun>(202);
        delete "/admin/spaces/{space}/keys" Operate admin::upkeep::destroy_keys,
            "Destroy the keys of a space: its content cannot be read here any more, nor in backups made without keys",
            answers_nothing();
        put "/admin/spaces/{space}/protection" Operate admin::upkeep::protect,
            "Say what of a space's content is encrypted at rest; a job brings what rests already into that form",
            body::<admin::upkeep::ProtectionBody>(), answers::<admin::jobs::Begun>(202);
        get "/admin/spaces" Operate admin::spaces::list,
            "List the spaces that the node keeps", answers::<admin::spaces::Spaces>(200);
        post "/admin/spaces" Operate admin::spaces::found,
            "Found a space", body::<admin::spaces::SpaceBody>(), answers::<admin::spaces::SpaceEntry>(201);
        post "/admin/links" Operate admin::links::create,
            "Make a link by which the operator signs in to the pages, once", answers::<admin::links::MadeLink>(201);
        get "/admin/backups" Operate admin::backups::status,
            "What is known of backups: the one that is being written, the last, the last failure",
            answers::<admin::backups::BackupStatus>(200);
        post "/admin/backups" Operate admin::backups::create [LONG_TIMEOUT],
            "Write a backup to a new file, and read it back; the answer comes when it is whole",
            body::<admin::backups::BackupBody>(), answers::<admin::backups::BackupMade>(201);
        post "/admin/commands" Operate admin::commands::run [LONG_TIMEOUT],
            "Run a command of the command line inside the node, such as `status` or `import`; the answer comes when it \
            has ended", body::<admin::commands::CommandBody>(), answers::<admin::commands::CommandResult>(200);
    }
}
