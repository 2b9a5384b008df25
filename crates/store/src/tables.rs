//! The tables, each a small contract. The data model told as a story:
//!
//! A blob that arrives gets the next number and one row in `events`, with its stage, the state of its content, what its
//! envelope says, and its inline content; `ids` finds the number by id. Spaces and identities get small numbers too.
//! What an event waits for is a list in its own row and a reverse row in `waiting`; `held` and `held_by_owner` know
//! since when and on whose account; `ready` is the queue of what was released. An applied event is one row in its
//! author's order and one in each view it contributes to, and an entry in the `journal`. Larger content has one row per
//! space in `contents`, with its count of references, and its bytes in `content_bytes` or in a file. Work that is cut
//! into transactions is a row in `tasks`; groups to hunt for are rows in `schedule`.
//!
//! Keys are big-endian and fixed in length, so that they sort as what they mean. Three classes: **source** is what
//! everything follows from; **view** can be dropped and rebuilt, and is in the digest; **local** is this node's own.

use redb::{ReadOnlyTable, ReadTransaction, ReadableTable, Table, TableDefinition, TableError, WriteTransaction};

/// A key of stamp order: a number of eight bytes, then a stamp.
pub type NumberStamp = [u8; 32];
/// A key of stamp order within a space: its number, then a stamp.
pub type SpaceStamp = [u8; 28];
/// A key of stamp order under an event id.
pub type IdStamp = [u8; 40];

macro_rules! tables {
    ($($(#[$doc:meta])* $class:ident $field:ident: $key:ty => $value:ty = $name:literal;)*) => {
        /// Every table, open for writing.
        #[allow(missing_docs)]
        pub struct Tables<'t> { $(pub $field: Table<'t, $key, $value>,)* }

        /// Every table, as of one moment.
        #[allow(missing_docs)]
        pub struct Snapshot { $(pub $field: ReadOnlyTable<$key, $value>,)* }

        /// What can be read from either.
        pub trait TableReads {
            $($(#[$doc])* fn $field(&self) -> &impl ReadableTable<$key, $value>;)*
        }

        impl TableReads for Tables<'_> {
            $(fn $field(&self) -> &impl ReadableTable<$key, $value> { &self.$field })*
        }

        impl TableReads for Snapshot {
            $(fn $field(&self) -> &impl ReadableTable<$key, $value> { &self.$field })*
        }

        impl<'t> Tables<'t> {
            /// Opens every table, creating those that are not there yet.
            pub fn open(transaction: &'t WriteTransaction) -> Result<Tables<'t>, TableError> {
                Ok(Tables { $($field: transaction.open_table(TableDefinition::new($name))?,)* })
            }
        }

        impl Snapshot {
            /// Opens every table as of this transaction.
            pub fn open(transaction: &ReadTransaction) -> Result<Snapshot, TableError> {
                Ok(Snapshot { $($field: transaction.open_table(TableDefinition::new($name))?,)* })
            }
        }

        /// Every table with its class, name, and number of rows.
        pub fn census(view: &impl TableReads) -> Result<Vec<(TableClass, &'static str, u64)>, redb::StorageError> {
            use redb::ReadableTableMetadata as _;
            Ok(vec![$((TableClass::$class, $name, view.$field().len()?),)*])
        }

        /// Hands every row of every table to a function: the table's name, the bytes of the key and of the value.
        pub fn export_rows<E: From<redb::StorageError>>(
            view: &impl TableReads,
            out: &mut dyn FnMut(&'static str, &[u8], &[u8]) -> Result<(), E>,
        ) -> Result<(), E> {
            $(for entry in view.$field().iter()? {
                let (key, value) = entry?;
                let (key, value) = (key.value(), value.value());
                let key = <$key as redb::Value>::as_bytes(&key);
                out($name, key.as_ref(), <$value as redb::Value>::as_bytes(&value).as_ref())?;
            })*
            Ok(())
        }

        /// Puts back a row that [`export_rows`] handed out. Says whether there is such a table with such rows.
        pub fn import_row(
            tables: &mut Tables<'_>,
            name: &str,
            key: &[u8],
            value: &[u8],
        ) -> Result<bool, redb::StorageError> {
            match name {
                $($name if can_hold::<$key>(key) && can_hold::<$value>(value) => {
                    let key = <$key as redb::Value>::from_bytes(key);
                    tables.$field.insert(key, <$value as redb::Value>::from_bytes(value))?;
                    Ok(true)
                })*
                _ => Ok(false),
            }
        }

        /// Drops every view. Whoever rebuilds opens the tables again afterwards.
        pub fn drop_views(transaction: &WriteTransaction) -> Result<(), TableError> {
            $(if TableClass::$class == TableClass::View {
                let definition: TableDefinition<'_, $key, $value> = TableDefinition::new($name);
                transaction.delete_table(definition)?;
            })*
            Ok(())
        }
    };
}

/// Whether these bytes can be a key or value of that type; the engine would panic on others.
fn can_hold<T: redb::Value>(bytes: &[u8]) -> bool {
    let is_text = T::type_name() == <&str as redb::Value>::type_name();
    T::fixed_width().is_none_or(|width| width == bytes.len()) && (!is_text || std::str::from_utf8(bytes).is_ok())
}

/// What becomes of a table in a backup, a rebuild and a digest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TableClass {
    /// What everything follows from.
    Source,
    /// Rebuilt from source; in the digest.
    View,
    /// This node's own; backed up, never rebuilt.
    Local,
}

tables! {
    /// Number to event: stage, content state, envelope's data, blob, inline content. Appends. Written by every step.
    Source events: u64 => &'static [u8] = "events_v1";
    /// Event id to number: the one row in random order. Agrees with `events` both ways.
    Source ids: [u8; 16] => u64 = "ids_v1";
    /// Space id to number.
    Source spaces: [u8; 16] => u32 = "spaces_v1";
    /// Number to space id.
    Source space_ids: u32 => [u8; 16] = "space_ids_v1";
    /// Identity to number.
    Source authors: [u8; 32] => u32 = "authors_v1";
    /// Number to identity.
    Source author_ids: u32 => [u8; 32] = "author_ids_v1";
    /// (space, hash) to count of references, length and place. Agrees with the states in `events`.
    Source contents: [u8; 36] => &'static [u8] = "contents_v1";
    /// (space, hash) to bytes, for content that needs no file of its own.
    Source content_bytes: [u8; 36] => &'static [u8] = "content_bytes_v1";
    /// (space, key id) to space key, wrapped under the master key.
    Source keys: [u8; 32] => &'static [u8] = "keys_v1";
    /// (space id, number) to storage key, wrapped: the greatest number writes. Number 0: keys below its value are gone.
    Source storage_keys: [u8; 20] => &'static [u8] = "storage_keys_v1";
    /// Prekey id to secret, wrapped.
    Source prekeys: [u8; 16] => &'static [u8] = "prekeys_v1";

    /// (space, author, stamp) to number: an author's applied events in order.
    View by_author: NumberStamp => u64 = "by_author_v1";
    /// Number of a space or member event to the membership it gives.
    View memberships: u64 => &'static [u8] = "memberships_v1";
    /// (membership, stamp) to the role that remains, zero for none: counting limits only.
    View limits: NumberStamp => u8 = "limits_v1";
    /// (space, stamp) to number of a thread.
    View threads: SpaceStamp => u64 = "threads_v1";
    /// (thread, stamp) to number of a message, hints on what else there is of it, and a copy of what it says.
    View timeline: NumberStamp => &'static [u8] = "timeline_v2";
    /// (space, public space of somebody, stamp) to number of a message that mentions them.
    View mentions: [u8; 44] => u64 = "mentions_v1";
    /// (message or post, stamp) to number of a later version.
    View versions: NumberStamp => u64 = "versions_v1";
    /// (message or post, stamp) to number of an edit, counting or not.
    View edits: NumberStamp => u64 = "edits_v1";
    /// (message, author, stamp) to number of a reaction or its removal.
    View reactions: [u8; 36] => u64 = "reactions_v1";
    /// (space, id answered, stamp) to number of an answer in that space.
    View replies: [u8; 44] => u64 = "replies_v1";
    /// (space, register, stamp) to number of a candidate.
    View registers: [u8; 49] => u64 = "registers_v1";
    /// (followed space, follower, stamp) to number of a follow or unfollow.
    View followers: [u8; 44] => u64 = "followers_v1";
    /// (space, stamp) to number of a post.
    View posts: SpaceStamp => u64 = "posts_v1";
    /// (space, chosen key, stamp) to number of a thread or message.
    View chosen: [u8; 44] => u64 = "chosen_v1";
    /// (space, stamp) to number of a file event.
    View files: SpaceStamp => u64 = "files_v1";
    /// (target id, stamp) to number of a delete, counting or not.
    View tombstones: IdStamp => u64 = "tombstones_v1";
    /// Number of a thread to the greatest time among its updates and messages.
    View updated: u64 => u64 = "updated_v1";
    /// (space, that time, number of the thread): threads by what happened last. Agrees with `updated`.
    View recent: [u8; 20] => () = "recent_v1";

    /// (need, number): who waits for what. Agrees with the lists in `events`.
    Local waiting: &'static [u8] => () = "waiting_v1";
    /// (space, need) to how many of its events wait for it: what hunts of that space ask for. Agrees with `waiting`.
    Local hunted: &'static [u8] => u64 = "hunted_v1";
    /// (deadline, number): held events by when their wait ends.
    Local held: [u8; 16] => () = "held_v1";
    /// (owner, number): held events by who answers for them.
    Local held_by_owner: [u8; 13] => () = "held_by_owner_v1";
    /// Owner to how many of theirs are held.
    Local held_counts: [u8; 5] => u64 = "held_counts_v1";
    /// Numbers of events that POST will look at.
    Local ready: u64 => () = "ready_v1";
    /// (space id, number): events carried for others.
    Local carried: [u8; 24] => () = "carried_v1";
    /// Number of a carried event to its space id: the oldest goes first. Agrees with `carried`.
    Local carried_order: u64 => [u8; 16] = "carried_order_v1";
    /// Space id to how many of its events are carried.
    Local carried_counts: [u8; 16] => u64 = "carried_counts_v1";
    /// (space, hash, number): applied events whose content is missing.
    Local content_waiting: [u8; 44] => () = "content_waiting_v1";
    /// (space, author, parent): parents known to be missing.
    Local gaps: [u8; 24] => () = "gaps_v1";
    /// Work that goes on in later transactions.
    Local tasks: &'static [u8] => () = "tasks_v1";
    /// Journal number to entry.
    Local journal: u64 => [u8; 21] = "journal_v1";
    /// (space, block of journal numbers): where a space has entries.
    Local journal_blocks: [u8; 12] => () = "journal_blocks_v1";
    /// Group to attempts and times.
    Local schedule: &'static [u8] => [u8; 21] = "schedule_v1";
    /// (due, group): the schedule in order. Agrees with `schedule`.
    Local schedule_due: &'static [u8] => () = "schedule_due_v1";
    /// Refused id to reason and order.
    Local refused: [u8; 16] => [u8; 9] = "refused_v1";
    /// Order to refused id, oldest first.
    Local refused_order: u64 => [u8; 16] = "refused_order_v1";
    /// Expired id to when and order.
    Local expired: [u8; 16] => [u8; 16] = "expired_v1";
    /// Order to expired id, oldest first.
    Local expired_order: u64 => [u8; 16] = "expired_order_v1";
    /// (space, author) to what they use, by state.
    Local usage: [u8; 8] => &'static [u8] = "usage_v1";
    /// Number of a known event to who brought it again last, and when.
    Local received_again: u64 => [u8; 13] = "received_again_v1";
    /// Content files that were forgotten and may be deleted after a moment.
    Local forgotten_files: [u8; 44] => () = "forgotten_files_v1";
    /// (unused since, space, hash): content without a reference, by age. Agrees with `contents`.
    Local unused: [u8; 44] => () = "unused_v1";
    /// Space ids that somebody here is in.
    Local joined: [u8; 16] => () = "joined_v1";
    /// Transit id to secret, space and peer, wrapped.
    Local transits: [u8; 16] => &'static [u8] = "transits_v1";
    /// Identity to custodial signing key, wrapped.
    Local custodians: [u8; 32] => &'static [u8] = "custodians_v1";
    /// Space id to the id of the key that new events are sealed under.
    Local current_keys: [u8; 16] => [u8; 16] = "current_keys_v1";
    /// (thread, first journal number) to up to 32 journal numbers with their authors: the messages of a thread in the
    /// order in which they were applied here.
    Local arrivals: [u8; 16] => &'static [u8] = "arrivals_v2";
    /// Space id to its name, the identity of its keeper and the founding event, protected: the spaces this node keeps.
    Local kept_spaces: [u8; 16] => &'static [u8] = "kept_spaces_v1";
    /// Space id to what of its content is encrypted at rest; without a row all of it.
    Local protections: [u8; 16] => &'static [u8] = "protections_v1";
    /// (space id, keyed hash of a user id) to the identity and membership behind it, protected.
    Local users: [u8; 32] => &'static [u8] = "users_v1";
    /// (space id, identity) to user id, protected. Agrees with `users`.
    Local user_names: [u8; 48] => &'static [u8] = "user_names_v1";
    /// API key id to role, space, hash of the secret and times.
    Local api_keys: [u8; 8] => &'static [u8] = "api_keys_v1";
    /// (space id, number) to a key that signs for users, protected.
    Local signing_keys: [u8; 24] => &'static [u8] = "signing_keys_v1";
    /// Hash of who asked and their idempotency key to what was asked and what came of it.
    Local idempotency: [u8; 32] => &'static [u8] = "idempotency_v1";
    /// (when, hash): the same, oldest first. Agrees with `idempotency`.
    Local idempotency_order: [u8; 40] => () = "idempotency_order_v1";
    /// Number to an act of administration: who, what, when; protected.
    Local audit: u64 => &'static [u8] = "audit_v1";
    /// (space id, id of a webhook) to where it tells, what signs, and how far it has told; protected.
    Local webhooks: [u8; 24] => &'static [u8] = "webhooks_v1";
    /// Number to work that goes on in the background, and what came of it.
    Local jobs: u64 => &'static [u8] = "jobs_v1";
    /// The numbers of those that are under way.
    Local open_jobs: u64 => () = "open_jobs_v1";
    /// (space id, thread id or zero) to how long messages are kept.
    Local retentions: [u8; 32] => &'static [u8] = "retentions_v1";
    /// (space id, identity, identity) to how the first keeps the second at a distance.
    Local distances: [u8; 80] => u8 = "distances_v1";
    /// (space id, number) to what a user reported, protected.
    Local reports: [u8; 24] => &'static [u8] = "reports_v1";
    /// (space id, keyed hash of a user id) to how they prove themselves on the pages, protected.
    Local accounts: [u8; 32] => &'static [u8] = "accounts_v1";
    /// (space id, keyed hash of a user id, hash of a secret) to a browser that they signed in with, protected.
    Local sessions: [u8; 48] => &'static [u8] = "sessions_v1";
    /// (space id, hash of a secret) to a link by which somebody may come in, protected.
    Local invitations: [u8; 48] => &'static [u8] = "invitations_v1";
    /// Word to how often it happened.
    Local counts: &'static str => u64 = "counts_v1";
    /// Numbers and bytes that describe the data folder itself: format version, epoch, key check.
    Local about: &'static str => &'static [u8] = "about_v1";
}

impl std::fmt::Debug for Tables<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tables")
    }
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Snapshot")
    }
}
