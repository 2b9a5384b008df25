//! Threads and messages as clients see them. Bodies are passed through as the bytes that were signed for.

use model::calendar::Rfc3339;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// A message.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "id": "msg-1", "thread": "tea", "author": "alice", "role": "user", "created_at": "2026-03-21T17:04:09.000000001Z",
    "ts": 1_774_112_649_000_000_001_u64, "body": { "text": "Who wants some?" }, "reply_to": null,
    "reactions": { "bob": "👍" }, "replies": 1, "deleted": false, "attachments": [], "version": 1,
    "updated_at": "2026-03-21T17:04:09.000000001Z", "state": "here", "event": "3be9f54074dbd655150de80e02aedb4e"
}))]
pub struct Message {
    /// The id that the client chose, or the event id.
    pub id: String,
    /// The thread it is in.
    pub thread: String,
    /// The user who wrote it, or the public key of an identity from elsewhere.
    pub author: String,
    /// As what they wrote it, for example `assistant`; `user` where nothing was said.
    pub role: String,
    /// When it was written.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Rfc3339,
    /// The same in Unix nanoseconds, which JavaScript rounds: for clients of ProgressDB.
    pub ts: u64,
    /// What it says: any JSON; null where it is not here.
    #[schema(value_type = Value)]
    pub body: Option<Box<RawValue>>,
    /// The message it answers.
    pub reply_to: Option<String>,
    /// Who reacted, and how.
    pub reactions: BTreeMap<String, String>,
    /// How many messages answer it.
    pub replies: u64,
    /// Who wrote the version that is shown, if that is somebody else than its author. Only pages show it.
    #[serde(skip)]
    pub edited_by: Option<String>,
    /// Whether it was deleted.
    pub deleted: bool,
    /// The files it carries.
    pub attachments: Vec<String>,
    /// Which version this is, from one.
    pub version: u64,
    /// When this version was written.
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Rfc3339,
    /// Whether its content is `here`, still `missing`, `invalid` or `deleted`.
    pub state: &'static str,
    /// The id of the event, under which `explain` knows it.
    pub event: String,
}

/// A thread.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "id": "tea", "title": "Tea", "slug": "tea", "author": "alice", "created_at": "2026-03-21T17:00:00.000000000Z",
    "updated_at": "2026-03-21T17:04:09.000000001Z", "created_ts": 1_774_112_400_000_000_000_u64,
    "updated_ts": 1_774_112_649_000_000_001_u64, "metadata": { "topic": "drinks" }, "participants": ["alice", "bob"],
    "pins": [], "private": false, "direct": false, "deleted": false, "last_message": null, "unread": 0,
    "event": "91d3a0c8f7b2e64d5a1c0f9e8b7d6a53"
}))]
pub struct Thread {
    /// The id that the client chose, or the event id.
    pub id: String,
    /// Its title.
    pub title: String,
    /// Its name in addresses.
    pub slug: String,
    /// The user who opened it, or the public key of an identity from elsewhere.
    pub author: String,
    /// When it was opened.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Rfc3339,
    /// When something last happened in it.
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Rfc3339,
    /// The same as `created_at` in Unix nanoseconds, which JavaScript rounds: for clients of ProgressDB.
    pub created_ts: u64,
    /// The same as `updated_at` in Unix nanoseconds: for clients of ProgressDB.
    pub updated_ts: u64,
    /// What the application keeps with it.
    pub metadata: Value,
    /// Who takes part, where that was said.
    pub participants: Vec<String>,
    /// The messages that are pinned.
    pub pins: Vec<String>,
    /// Whether only participants see it.
    pub private: bool,
    /// Whether it is a direct conversation, which stays private.
    pub direct: bool,
    /// Whether it was deleted.
    pub deleted: bool,
    /// Its latest message.
    pub last_message: Option<Message>,
    /// How many messages of others arrived since the caller last marked it as read, up to 1,000.
    pub unread: Option<u64>,
    /// The id of the event.
    pub event: String,
}
