//! What clients send about messages.

use crate::schemas::{ChosenId, EventIdText, NameOrIdText, body_to_send_back};
use queries::messages::MessageRange;
use serde::Deserialize;
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

body_to_send_back! { message []
    /// A message to post. What only the node says of a message may be sent along, and changes nothing.
    #[derive(Debug, Deserialize, ToSchema)]
    #[serde(deny_unknown_fields)]
    #[schema(example = json!({ "id": "msg-1", "thread": "tea", "body": { "text": "Who wants some?" }, "mentions": ["bob"] }))]
    pub(crate) struct MessageBody {
        /// An id of your own: unique in the space, 1 to 128 characters.
        #[schema(value_type = Option<ChosenId>)]
        pub(super) id: Option<String>,
        /// The thread, where the path does not name it. One that does not exist is opened.
        #[schema(value_type = Option<NameOrIdText>)]
        pub(super) thread: Option<String>,
        /// The user who writes, where a backend key names no user in a header.
        #[schema(value_type = Option<ChosenId>)]
        pub(super) author: Option<String>,
        /// As what they write it, for example `assistant`; `user` where nothing is said.
        #[schema(min_length = 1, max_length = 64)]
        pub(super) role: Option<String>,
        /// What it says: any JSON, at most 64 KiB.
        pub(super) body: Value,
        /// The message it answers.
        #[schema(value_type = Option<NameOrIdText>)]
        pub(super) reply_to: Option<String>,
        /// The users it mentions.
        #[schema(value_type = Option<Vec<ChosenId>>, max_items = 61)]
        pub(super) mentions: Option<Vec<String>>,
        /// Ids of the files it carries.
        #[schema(value_type = Option<Vec<EventIdText>>)]
        pub(super) attachments: Option<Vec<String>>,
    }
}

body_to_send_back! { message [role id thread reply_to mentions attachments]
    /// A new version of a message. The other fields of a message may be sent along, and change nothing.
    #[derive(Debug, Deserialize, ToSchema)]
    #[serde(deny_unknown_fields)]
    #[schema(example = json!({ "body": { "text": "Who wants some tea?" } }))]
    pub(crate) struct EditBody {
        /// What it says now: any JSON, at most 64 KiB.
        pub(super) body: Value,
        /// The user who edits, where a backend key names no user in a header.
        #[schema(value_type = Option<ChosenId>)]
        pub(super) author: Option<String>,
    }
}

/// Which messages to list.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct MessageQuery {
    /// At most so many.
    #[param(minimum = 1, maximum = 500, default = 50)]
    pub(super) limit: Option<usize>,
    /// Those before this message.
    before: Option<String>,
    /// Those after this message.
    after: Option<String>,
    /// Those on either side of this message, and itself.
    around: Option<String>,
    /// Where another page ended: its `next` or `previous`.
    #[param(pattern = "^((before|after)-[0-9]{1,19}-[0-9a-f]{32})?$")]
    cursor: Option<String>,
    /// Also those that were deleted.
    include_deleted: Option<bool>,
}

impl MessageQuery {
    pub(super) fn range(self) -> MessageRange {
        let MessageQuery { limit, before, after, around, cursor, include_deleted } = self;
        MessageRange { limit, before, after, around, cursor, include_deleted: include_deleted == Some(true) }
    }
}

/// Whose messages to list.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ThreadOf {
    /// The thread; without one the latest messages of all threads are listed.
    pub(super) thread: Option<String>,
}
