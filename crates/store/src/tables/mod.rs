//! The tables, each a small contract. The data model told as a story:
//!
//! A blob that arrives gets the next number and one row in `events`, with its stage, the state of its content, what its
//! envelope says, and its inline content; `ids` finds the number by id. Spaces and authors get small numbers too.
//! What an event waits for is a list in its own row and a reverse row in `waiting`; `held` and `held_by_owner` know
//! until when and on whose account; `ready` is the queue of what was released. An applied event is one row in its
//! author's order and one in each view it contributes to, and an entry in the `journal`. Larger content has one row per
//! space in `contents`, with its count of references, and its bytes in `content_bytes` or in an object that `objects`
//! knows. Work that is cut into transactions is a row in `tasks`; groups to hunt for are rows in `schedule`.
//!
//! Keys are types of their own ([`crate::keys`]) that sort as what they mean. Four classes: **source** is what
//! everything follows from; **view** can be dropped and rebuilt, and is in the digest; **shared** is what all nodes that
//! serve a space must agree on and no event says, each row with a version; **local** is this node's own.

mod rows;
#[cfg(test)]
mod tests;

pub use crate::row_value::{Bytes, OwnedValue, RowValue, Stored};
pub use rows::{Row, RowData, RowRange, Rows};
pub(crate) use rows::{after_bound, is_repack_due};

use crate::encode::{ExpiredRow, JournalEntry, ReceivedAgain, RefusedRow, RoleCap, SharedValue, Usage};
use crate::errors::{guarded, guarded_write};
use crate::keys::*;
use engine::fetch::ScheduleRow;
use engine::reads::{StoreError, StoreResult};
use engine::rows::{ContentRow, Membership};
use model::files::WantedBytes;
use model::{AuthorKey, AuthorNo, EventId, FileId, KeyId, Nanos, Seq, SpaceId, SpaceNo};
use redb::{ReadOnlyTable, ReadTransaction, ReadableTable, Table, TableDefinition, WriteTransaction};
use rows::TableName;

macro_rules! tables {
    ($($(#[$meta:meta])* $class:ident $field:ident: $key:ty => $value:ty = $name:literal;)*) => {
        /// Every table, open for writing.
        #[allow(missing_docs)]
        pub struct Tables<'t> { $($(#[$meta])* pub $field: Rows<Table<'t, $key, Stored<$value>>, $key, $value>,)* }

        /// Every table, as of one moment.
        #[allow(missing_docs)]
        pub struct Snapshot { $($(#[$meta])* pub $field: Rows<ReadOnlyTable<$key, Stored<$value>>, $key, $value>,)* }

        /// What can be read from either.
        pub trait TableReads {
            $($(#[$meta])* fn $field(&self) -> &Rows<impl ReadableTable<$key, Stored<$value>>, $key, $value>;)*
        }

        impl TableReads for Tables<'_> {
            $($(#[$meta])* fn $field(&self) -> &Rows<impl ReadableTable<$key, Stored<$value>>, $key, $value> { &self.$field })*
        }

        impl TableReads for Snapshot {
            $($(#[$meta])* fn $field(&self) -> &Rows<impl ReadableTable<$key, Stored<$value>>, $key, $value> { &self.$field })*
        }

        impl<'t> Tables<'t> {
            /// Opens every table, creating those that are not there yet.
            #[allow(unused_doc_comments)]
        pub fn open(transaction: &'t WriteTransaction) -> StoreResult<Tables<'t>> {
                Ok(Tables {
                    $($(#[$meta])* $field: Rows::new(guarded(|| transaction.open_table(TableDefinition::new($name)))?, NAMES.$field),)*
                })
            }
        }

        impl Snapshot {
            /// Opens every table as of this transaction.
            #[allow(unused_doc_comments)]
        pub fn open(transaction: &ReadTransaction) -> StoreResult<Snapshot> {
                Ok(Snapshot {
                    $($(#[$meta])* $field: Rows::new(guarded(|| transaction.open_table(TableDefinition::new($name)))?, NAMES.$field),)*
                })
            }
        }

        /// The names of the tables, with what is computed from them once.
        struct TableNames { $($(#[$meta])* $field: TableName,)* }
        #[allow(unused_doc_comments)]
        const NAMES: TableNames = TableNames { $($(#[$meta])* $field: TableName::new($name),)* };

        /// Every table with its class, name, and number of rows.
        #[allow(unused_doc_comments)]
        pub fn census(view: &impl TableReads) -> StoreResult<Vec<(TableClass, &'static str, u64)>> {
            Ok([$($(#[$meta])* (TableClass::$class, $name, view.$field().len()?),)*].to_vec())
        }

        #[cfg(test)]
        #[allow(unused_doc_comments)]
        fn check_that_damage_is_noticed(tables: &mut Tables<'_>) {
            $($(#[$meta])* tables.$field.check_that_damage_is_noticed();)*
        }

        /// Hands every row of every table to a function: the table's name, the bytes of the key, and of the value with
        /// its checksum; none if the checksum does not fit, or the key or the value cannot be read.
        #[allow(unused_doc_comments)]
        pub fn export_rows<E: From<StoreError>>(
            view: &impl TableReads,
            out: &mut dyn FnMut(&'static str, &[u8], Option<&[u8]>) -> Result<(), E>,
        ) -> Result<(), E> {
            $($(#[$meta])* view.$field().export(out)?;)*
            Ok(())
        }

        /// Puts back a row that [`export_rows`] handed out. Says whether there is such a table with such rows.
        #[allow(unused_doc_comments)]
        pub fn import_row(tables: &mut Tables<'_>, name: &str, key: &[u8], value: &[u8]) -> StoreResult<bool> {
            match name {
                $($(#[$meta])* $name => tables.$field.import(key, value),)*
                _ => Ok(false),
            }
        }

        /// Sets the value of a row, or removes it: what only tests do, to see who notices.
        #[cfg(feature = "simulation")]
        #[allow(unused_doc_comments)]
        pub(crate) fn tamper_row(
            tables: &mut Tables<'_>,
            name: &str,
            key: &[u8],
            value: Option<&[u8]>,
        ) -> StoreResult<bool> {
            match name {
                $($(#[$meta])* $name => tables.$field.tamper(key, value),)*
                _ => Ok(false),
            }
        }

        /// Copies every row of every table into tables without any, as it is.
        #[allow(unused_doc_comments)]
        pub(crate) fn copy_rows(from: &impl TableReads, to: &mut Tables<'_>) -> StoreResult<()> {
            $($(#[$meta])* to.$field.copy_from(from.$field())?;)*
            Ok(())
        }

        /// Drops every view. Whoever rebuilds opens the tables again afterwards.
        #[allow(unused_doc_comments)]
        pub fn drop_views(transaction: &WriteTransaction) -> StoreResult<()> {
            $($(#[$meta])* if TableClass::$class == TableClass::View {
                let definition: TableDefinition<'_, $key, Stored<$value>> = TableDefinition::new($name);
                guarded_write(|| transaction.delete_table(definition))?;
            })*
            Ok(())
        }
    };
}

/// What becomes of a table in a backup, a rebuild and a digest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TableClass {
    /// What everything follows from.
    Source,
    /// Rebuilt from source; in the digest.
    View,
    /// What all nodes of a space must agree on and no event says; backed up, never rebuilt, written by [`crate::shared::rows`].
    Shared,
    /// This node's own; backed up, never rebuilt.
    Local,
}

tables! {
    /// Number to event: stage, content state, envelope's data, blob, inline content. Appends. Written by every step.
    Source events: EventNo => Bytes = "events_v1";
    /// Event id to number: the one row in random order. Agrees with `events` both ways.
    Source ids: EventIdKey => Seq = "ids_v1";
    /// Space id to number.
    Source spaces: SpaceIdKey => SpaceNo = "spaces_v1";
    /// Number to space id.
    Source space_ids: SpaceNoKey => SpaceId = "space_ids_v1";
    /// Key of an author to number.
    Source authors: AuthorName => AuthorNo = "authors_v1";
    /// Number to key of an author.
    Source author_ids: AuthorNoKey => AuthorKey = "author_ids_v1";
    /// (space, hash) to count of references, length and place. Agrees with the states in `events`.
    Source contents: ContentKey => ContentRow = "contents_v1";
    /// Number of a file event whose content is here to the bytes that it speaks of, with a reference in `contents`.
    Source file_bytes: EventNo => WantedBytes = "file_bytes_v1";
    /// (space, hash) to bytes, for content that needs no object.
    Source content_bytes: ContentKey => Bytes = "content_bytes_v1";
    /// (space, key id) to space key, wrapped under the master key.
    Source keys: SpaceKeyName => Bytes = "keys_v1";
    /// (space id, number from 1) to storage key, wrapped: the greatest number writes.
    Source storage_keys: StorageKeyName => Bytes = "storage_keys_v1";
    /// Space id to the greatest number that a storage key had when all of its keys were destroyed. Without a row none
    /// were; with one, what rested under them reads as absent.
    Source destroyed_keys: SpaceIdKey => u32 = "destroyed_keys_v1";
    /// Prekey id to secret, wrapped.
    Source prekeys: PrekeyName => Bytes = "prekeys_v1";

    /// (space, author, stamp) to number: an author's applied events in order.
    View by_author: AuthorStamp => Seq = "by_author_v1";
    /// Number of a space or member event to the membership it gives.
    View memberships: EventNo => Membership = "memberships_v1";
    /// (space, member, stamp) to number of the space or member event that gives them a membership.
    View members: MemberKey => Seq = "members_v1";
    /// (membership, stamp) to the role that remains, if one does: counting limits only.
    View limits: EventStamp => RoleCap = "limits_v1";
    /// (space, stamp) to number of a thread.
    View threads: SpaceStamp => Seq = "threads_v1";
    /// (thread, public space of somebody): who alone sees a direct conversation.
    View direct: DirectKey => () = "direct_v1";
    /// (thread, stamp) to number of a message, hints on what else there is of it, and a copy of what it says.
    View timeline: EventStamp => Bytes = "timeline_v1";
    /// (space, public space of somebody, stamp) to number of a message that mentions them.
    View mentions: MentionKey => Seq = "mentions_v1";
    /// (message or post, stamp) to number of a later version.
    View versions: EventStamp => Seq = "versions_v1";
    /// (message or post, stamp) to number of an edit, counting or not.
    View edits: EventStamp => Seq = "edits_v1";
    /// (message, author, stamp) to number of a reaction or its removal.
    View reactions: ReactionKey => Seq = "reactions_v1";
    /// (space, id answered, stamp) to number of an answer in that space.
    View replies: ReplyKey => Seq = "replies_v1";
    /// (space, register, stamp) to number of a candidate.
    View registers: RegisterStamp<'static> => Seq = "registers_v1";
    /// (followed space, follower, stamp) to number of a follow or unfollow.
    View followers: FollowerKey => Seq = "followers_v1";
    /// (space, stamp) to number of a post.
    View posts: SpaceStamp => Seq = "posts_v1";
    /// (space, chosen key, stamp) to number of a thread or message.
    View chosen: ChosenKey => Seq = "chosen_v1";
    /// (space, stamp) to number of a file event.
    View files: SpaceStamp => Seq = "files_v1";
    /// (target id, stamp) to number of a delete, counting or not.
    View tombstones: TargetStamp => Seq = "tombstones_v1";
    /// Number of a thread to the greatest time among its updates and messages.
    View updated: EventNo => Nanos = "updated_v1";
    /// (space, that time, number of the thread): threads by what happened last. Agrees with `updated`.
    View recent: RecentKey => () = "recent_v1";

    /// (kind, name, author, place) to number of a Nostr event at that address: the last wins.
    View nostr_addresses: NostrAddressKey => Seq = "nostr_addresses_v1";
    /// (stamp) to number of a Nostr event.
    View nostr_times: NostrTimeKey => Seq = "nostr_times_v1";
    /// (kind, stamp) to number of a Nostr event.
    View nostr_kinds: NostrKindKey => Seq = "nostr_kinds_v1";
    /// (letter, value, stamp) to number of a Nostr event with that tag.
    View nostr_tags: NostrTagKey => Seq = "nostr_tags_v1";
    /// (author, target, stamp) to number of a Nostr event that deletes.
    View nostr_deletes: NostrDeleteKey => Seq = "nostr_deletes_v1";

    /// (author, name, place) to number of a value of the probe protocol.
    #[cfg(feature = "simulation")]
    View probe_values: ProbeValueKey => Seq = "probe_values_v1";
    /// (author, name, stamp) to number of a clear of the probe protocol.
    #[cfg(feature = "simulation")]
    View probe_clears: ProbeClearKey => Seq = "probe_clears_v1";

    /// Space id to its name, the identity that owns it and the founding event, protected: the spaces this node hosts.
    Shared hosted_spaces: SpaceIdKey => SharedValue = "hosted_spaces_v1";
    /// Space id to what of its content is encrypted at rest; without a row all of it.
    Shared protections: SpaceIdKey => SharedValue = "protections_v1";
    /// (space id, keyed hash of a user id) to the identity and membership behind it, protected.
    Shared users: UserKey => SharedValue = "users_v1";
    /// (space id, identity) to user id, protected. Agrees with `users`.
    Shared user_names: UserNameKey => SharedValue = "user_names_v1";
    /// Identity to custodial signing key, wrapped.
    Shared custodians: IdentityKey => SharedValue = "custodians_v1";
    /// (space id, keyed hash of a user id) to how they prove themselves on the pages, protected.
    Shared accounts: UserKey => SharedValue = "accounts_v1";
    /// (space id, keyed hash of a user id, hash of a secret) to a browser that they signed in with, protected.
    Shared sessions: SessionKey => SharedValue = "sessions_v1";
    /// (space id, hash of a secret) to a link by which somebody may come in, protected.
    Shared invitations: InvitationKey => SharedValue = "invitations_v1";
    /// API key id to role, space, hash of the secret and times.
    Shared api_keys: ApiKeyName => SharedValue = "api_keys_v1";
    /// (space id, number) to a key that signs for users, protected.
    Shared signing_keys: SigningKeyName => SharedValue = "signing_keys_v1";
    /// Hash of who asked and their idempotency key to what was asked and what came of it.
    Shared idempotency: RequestKey => SharedValue = "idempotency_v1";
    /// (space id, id of a webhook) to where it tells and what signs; protected. How far it has told is `webhook_progress`.
    Shared webhooks: WebhookKey => SharedValue = "webhooks_v1";
    /// Space id to how long its messages are kept.
    Shared retentions: SpaceIdKey => SharedValue = "retentions_v1";
    /// (space id, thread id) to how long the messages of that thread are kept, in place of the rule of its space.
    Shared thread_retentions: ThreadIdKey => SharedValue = "thread_retentions_v1";
    /// (space id, identity, identity) to whether the first blocks or mutes the second.
    Shared blocks: BlockKey => SharedValue = "blocks_v1";
    /// (space id, number) to what a user reported, protected.
    Shared reports: ReportNo => SharedValue = "reports_v1";
    /// Space id to the number of its last report, which is not given again when the report is forgotten.
    Shared report_numbers: SpaceIdKey => SharedValue = "report_numbers_v1";
    /// (space id, file) to its record, protected.
    Shared file_records: FileKey => SharedValue = "file_records_v1";
    /// (space id, file, version) to where its bytes are and stand, protected. Renditions take a reference in `contents`.
    Shared file_versions: FileVersionKey => SharedValue = "file_versions_v1";
    /// (space id, file, hash of a variant) to a derived file that is expected, protected.
    Shared derived_files: DerivedKey => SharedValue = "derived_files_v1";
    /// (space id, file) to work that waits for it, or that somebody does, protected.
    Shared file_jobs: FileKey => SharedValue = "file_jobs_v1";
    /// (space id, file) to an upload whose bytes are coming into an object, protected.
    Shared open_uploads: FileKey => SharedValue = "open_uploads_v1";
    /// (space id, file, link) to what a link allows, until when, and the secret that it is signed with; protected.
    Shared file_links: FileLinkKey => SharedValue = "file_links_v1";
    /// Number to work that goes on in the background, and what came of it.
    Shared jobs: JobNo => SharedValue = "jobs_v1";
    /// Number to an act of administration: who, what, when; protected.
    Shared audit: AuditNo => SharedValue = "audit_v1";

    /// (need, number): who waits for what. Agrees with the lists in `events`.
    Local waiting: WaitingKey<'static> => () = "waiting_v1";
    /// (need, space) to how many events of that space wait for it. Agrees with `waiting`.
    Local hunters: HunterKey<'static> => u64 = "hunters_v1";
    /// (space, need): what events of that space wait for and is not here, which is what hunts ask for. Agrees with
    /// `hunters` and `ids`.
    Local hunted: HuntedKey<'static> => () = "hunted_v1";
    /// (deadline, number): held events by when their wait ends.
    Local held: HeldKey => () = "held_v1";
    /// (owner, number): held events by who answers for them.
    Local held_by_owner: HeldByOwnerKey => () = "held_by_owner_v1";
    /// Owner to how many of theirs are held.
    Local held_counts: OwnerKey => u64 = "held_counts_v1";
    /// Numbers of events that POST will look at.
    Local ready: EventNo => () = "ready_v1";
    /// Numbers of events on which a step broke an invariant, with what was wrong.
    Local parked: EventNo => Bytes = "parked_v1";
    /// (space id, number): events carried for others.
    Local carried: CarriedKey => () = "carried_v1";
    /// Number of a carried event to its space id: the oldest goes first. Agrees with `carried`.
    Local carried_order: EventNo => SpaceId = "carried_order_v1";
    /// Space id to how many of its events are carried.
    Local carried_counts: SpaceIdKey => u64 = "carried_counts_v1";
    /// (space, hash, number): applied events whose content is missing, and file events whose bytes are.
    Local content_waiting: ContentWaitingKey => () = "content_waiting_v1";
    /// (space, author, parent): parents known to be missing.
    Local gaps: GapKey => () = "gaps_v1";
    /// Work that goes on in later transactions.
    Local tasks: TaskKey<'static> => () = "tasks_v1";
    /// Journal number to entry.
    Local journal: JournalNo => JournalEntry = "journal_v1";
    /// (space, block of journal numbers): where a space has entries.
    Local journal_blocks: JournalBlockKey => () = "journal_blocks_v1";
    /// Group to attempts and times.
    Local schedule: GroupKey<'static> => ScheduleRow = "schedule_v1";
    /// (due, group): the schedule in order. Agrees with `schedule`.
    Local schedule_due: DueKey<'static> => () = "schedule_due_v1";
    /// Refused id to reason and order.
    Local refused: EventIdKey => RefusedRow = "refused_v1";
    /// Order to refused id, oldest first.
    Local refused_order: OrderNo => EventId = "refused_order_v1";
    /// Expired id to when and order.
    Local expired: EventIdKey => ExpiredRow = "expired_v1";
    /// Order to expired id, oldest first.
    Local expired_order: OrderNo => EventId = "expired_order_v1";
    /// (space, author) to what they use, by state.
    Local usage: UsageKey => Usage = "usage_v1";
    /// Author to the number of spaces in which they use something. Agrees with `usage`.
    Local author_spaces: AuthorNoKey => u64 = "author_spaces_v1";
    /// Number of a known event to who brought it again last, and when.
    Local received_again: EventNo => ReceivedAgain = "received_again_v1";
    /// Name of an object to its space, where it stands, and its secret, protected. Agrees with `contents`.
    Local objects: ObjectKeyName => Bytes = "objects_v1";
    /// (until when, name): objects that somebody writes. Agrees with `objects`.
    Local unfinished_objects: ObjectDueKey => () = "unfinished_objects_v1";
    /// (since, name): objects that nobody speaks of, and that are to be removed. Agrees with `objects`.
    Local forgotten_objects: ObjectDueKey => () = "forgotten_objects_v1";
    /// (unused since, space, hash): content without a reference, by age. Agrees with `contents`.
    Local unused: UnusedContentKey => () = "unused_v1";
    /// Space ids that somebody here is in.
    Local joined: SpaceIdKey => () = "joined_v1";
    /// Transit id to secret, space and peer, wrapped.
    Local transits: TransitName => Bytes = "transits_v1";
    /// Space id to the id of the key that new events are sealed under.
    Local current_keys: SpaceIdKey => KeyId = "current_keys_v1";
    /// (thread, first journal number) to up to 32 journal numbers with their authors: the messages of a thread in the
    /// order in which they were applied here.
    Local arrivals: ArrivalsKey => Bytes = "arrivals_v1";
    /// (when, hash): the rows of `idempotency`, oldest first.
    Local idempotency_order: RequestOrderKey => () = "idempotency_order_v1";
    /// (space id, derived and deleted or not, status, created, file): the lists of files. Agrees with `file_records`.
    Local file_index: FileIndexKey => () = "file_index_v1";
    /// (space id, file, version) to the content to which that row holds a reference. Agrees with `file_versions`.
    Local file_references: FileVersionKey => WantedBytes = "file_references_v1";
    /// Event id to the file whose latest version it speaks of. Agrees with `file_records`.
    Local file_events: EventIdKey => FileId = "file_events_v1";
    /// (space id, since when, file): hidden originals. Agrees with `file_records`.
    Local hidden_files: HiddenFileKey => () = "hidden_files_v1";
    /// File events whose records are to be looked at: what they say of bytes, or whether these are here, has changed.
    Local file_events_due: EventNo => () = "file_events_due_v1";
    /// (when, space id, file): work for files by when it is due, or its lease ends. Agrees with `file_jobs`.
    Local file_jobs_due: FileJobDueKey => () = "file_jobs_due_v1";
    /// The numbers of the jobs that are under way. Agrees with `jobs`.
    Local open_jobs: JobNo => () = "open_jobs_v1";
    /// (space id, id of a webhook) to how far it has told; protected.
    Local webhook_progress: WebhookKey => Bytes = "webhook_progress_v1";
    /// (owner, name, object): objects that are in a repository with all that they reach.
    Local git_present: GitObjectKey => () = "git_present_v1";
    /// (owner, name) to identifier: repositories that have their first authorised refs.
    Local git_data: GitRepositoryKey => Bytes = "git_data_v1";
    /// (owner, name) to the name of the object store in which a repository is.
    Local git_stores: GitRepositoryKey => Bytes = "git_stores_v1";
    /// (owner, name, pull request) to a counter and the identifier: refs that have to be made what events say.
    Local git_align: GitAlignKey => Bytes = "git_align_v1";
    /// (owner, name, pull request) to a commit that was pushed before its event, until when, and the identifier.
    Local git_pushed: GitAlignKey => Bytes = "git_pushed_v1";
    /// Word to how often it happened.
    Local counts: &'static str => u64 = "counts_v1";
    /// Numbers and bytes that describe the data folder itself: format version, epoch, key check.
    Local about: &'static str => Bytes = "about_v1";
}
