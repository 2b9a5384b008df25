//! The keys of fixed width. After the parts come the ranges of keys that share their first parts.

use super::{KeyField, TableKey, UserHash, fixed_keys};
use engine::rows::Owner;
use model::{
    AuthorKey, AuthorNo, AuxKey, ContentHash, EventId, FileId, Identity, KeyId, LinkId, Nanos, ObjectName, PrekeyId,
    Seq, SpaceId, SpaceNo, Stamp, TransitId,
};

fixed_keys! {
    /// An event by its local number.
    EventNo { seq: Seq };
    /// An event by its id.
    EventIdKey { id: EventId };
    /// A space by its id.
    SpaceIdKey { id: SpaceId };
    /// A space by its local number.
    SpaceNoKey { number: SpaceNo };
    /// An identity by its public key.
    IdentityKey { identity: Identity };
    /// An author by their key.
    AuthorName { protocol: u8, key: [u8; 32] };
    /// An author by their local number.
    AuthorNoKey { number: AuthorNo };
    /// Larger content of a space.
    ContentKey { space: SpaceNo, hash: ContentHash } of_space(space: SpaceNo);
    /// A space key.
    SpaceKeyName { space: SpaceId, key: KeyId } of_space(space: SpaceId);
    /// A storage key: its number within the space, from 1.
    StorageKeyName { space: SpaceId, number: u32 } of_space(space: SpaceId);
    /// The secret of a prekey.
    PrekeyName { id: PrekeyId };
    /// A transit secret.
    TransitName { id: TransitId };

    /// Something of a space in the order of stamps.
    SpaceStamp { space: SpaceNo, stamp: Stamp } of_space(space: SpaceNo);
    /// Something of an event, such as its versions, in the order of stamps.
    EventStamp { event: Seq, stamp: Stamp } of_event(event: Seq);
    /// Something that names an event which need not be here, in the order of stamps.
    TargetStamp { target: EventId, stamp: Stamp } of_target(target: EventId);
    /// An author's events in a space, in order.
    AuthorStamp { space: SpaceNo, author: AuthorNo, stamp: Stamp }
        of_space(space: SpaceNo) of_author(space: SpaceNo, author: AuthorNo);
    /// What somebody was given in a space, in order.
    MemberKey { space: SpaceNo, member: Identity, stamp: Stamp } of_member(space: SpaceNo, member: Identity);
    /// Somebody who alone, with others, sees a thread; they are named by their public space.
    DirectKey { thread: Seq, who: SpaceId } of_thread(thread: Seq);
    /// Messages of a space that mention somebody, who is named by their public space.
    MentionKey { space: SpaceNo, who: SpaceId, stamp: Stamp };
    /// Reactions to a message, by author.
    ReactionKey { target: Seq, author: AuthorNo, stamp: Stamp }
        of_target(target: Seq) of_author(target: Seq, author: AuthorNo);
    /// Answers within a space to an event that need not be here.
    ReplyKey { space: SpaceNo, target: EventId, stamp: Stamp } of_target(space: SpaceNo, target: EventId);
    /// Follows of a public space, by follower.
    FollowerKey { followed: SpaceId, follower: AuthorNo, stamp: Stamp } of_followed(followed: SpaceId);
    /// Threads and messages under an id that a client chose.
    ChosenKey { space: SpaceNo, key: AuxKey, stamp: Stamp } of_key(space: SpaceNo, key: AuxKey);
    /// Threads of a space by what happened last.
    RecentKey { space: SpaceNo, updated: Nanos, thread: Seq } of_space(space: SpaceNo);

    /// Held events by when their wait ends.
    HeldKey { until: Nanos, seq: Seq };
    /// Held events by who answers for them.
    HeldByOwnerKey { owner: Owner, seq: Seq } of_owner(owner: Owner);
    /// Somebody who answers for held events.
    OwnerKey { owner: Owner };
    /// Events of a space that are carried for others.
    CarriedKey { space: SpaceId, seq: Seq };
    /// Applied events whose content is missing.
    ContentWaitingKey { space: SpaceNo, hash: ContentHash, seq: Seq };
    /// A parent that is known to be missing.
    GapKey { space: SpaceNo, author: AuthorNo, parent: EventId } of_author(space: SpaceNo, author: AuthorNo);
    /// An entry of the journal.
    JournalNo { number: u64 };
    /// A block of journal numbers in which a space has entries.
    JournalBlockKey { space: SpaceNo, block: u64 };
    /// Ids that are remembered for a while, in the order in which they came.
    OrderNo { order: u64 };
    /// What an author uses in a space.
    UsageKey { space: SpaceNo, author: AuthorNo } of_space(space: SpaceNo);
    /// An object by its name.
    ObjectKeyName { name: ObjectName };
    /// An object by a time.
    ObjectDueKey { at: Nanos, name: ObjectName };
    /// Content without a reference, by since when.
    UnusedContentKey { since: Nanos, space: SpaceNo, hash: ContentHash };
    /// Messages of a thread by the journal number of the first of their block.
    ArrivalsKey { thread: Seq, first: u64 };

    /// A file of a space.
    FileKey { space: SpaceId, file: FileId } of_space(space: SpaceId);
    /// A version of a file.
    FileVersionKey { space: SpaceId, file: FileId, version: u32 }
        of_space(space: SpaceId) of_file(space: SpaceId, file: FileId);
    /// A derived file by what it is derived from and a hash of its variant.
    DerivedKey { space: SpaceId, parent: FileId, variant: [u8; 16] }
        of_space(space: SpaceId) of_parent(space: SpaceId, parent: FileId);
    /// A file by what is asked of lists: whether it is derived and deleted, its status, and its age.
    FileIndexKey { space: SpaceId, group: u8, status: u8, created: Nanos, file: FileId } of_space(space: SpaceId);
    /// A file that is hidden, by since when.
    HiddenFileKey { space: SpaceId, since: Nanos, file: FileId } of_space(space: SpaceId);
    /// A link by which whoever has it downloads or uploads a file.
    FileLinkKey { space: SpaceId, file: FileId, link: LinkId }
        of_space(space: SpaceId) of_file(space: SpaceId, file: FileId);
    /// A file by when work for it is due.
    FileJobDueKey { at: Nanos, space: SpaceId, file: FileId };
    /// A user of a space.
    UserKey { space: SpaceId, user: UserHash } of_space(space: SpaceId);
    /// A user of a space by their identity.
    UserNameKey { space: SpaceId, identity: Identity } of_space(space: SpaceId);
    /// An API key by its public id.
    ApiKeyName { id: [u8; 8] };
    /// A key that signs for the users of a space.
    SigningKeyName { space: SpaceId, number: u64 } of_space(space: SpaceId);
    /// A request that may be repeated: the hash of who asked and their idempotency key.
    RequestKey { hash: [u8; 32] };
    /// The same, by when it was asked.
    RequestOrderKey { at: Nanos, hash: [u8; 32] };
    /// An entry of the audit log.
    AuditNo { number: u64 };
    /// A webhook of a space.
    WebhookKey { space: SpaceId, id: [u8; 8] } of_space(space: SpaceId);
    /// A job.
    JobNo { number: u64 };
    /// A thread by its event id, within a space.
    ThreadIdKey { space: SpaceId, thread: EventId } of_space(space: SpaceId);
    /// Whom somebody blocks or mutes in a space.
    BlockKey { space: SpaceId, owner: Identity, other: Identity }
        of_space(space: SpaceId) of_owner(space: SpaceId, owner: Identity);
    /// A report of a space.
    ReportNo { space: SpaceId, number: u64 } of_space(space: SpaceId);
    /// A browser that a user signed in with: half the hash of its secret.
    SessionKey { space: SpaceId, user: UserHash, secret: [u8; 16] }
        of_space(space: SpaceId) of_user(space: SpaceId, user: UserHash);
    /// An invitation by the hash of its secret.
    InvitationKey { space: SpaceId, secret: [u8; 32] } of_space(space: SpaceId);
}

impl AuthorName {
    /// The key under which an author stands.
    pub fn of(author: AuthorKey) -> AuthorName {
        let (protocol, key) = author.to_code();
        AuthorName::new(protocol, key)
    }
}

impl DerivedKey {
    /// The key of a variant.
    pub fn of(space: &SpaceId, parent: FileId, variant: &str) -> DerivedKey {
        let hash = blake3::hash(variant.as_bytes());
        let mut name = [0; 16];
        name.copy_from_slice(&hash.as_bytes()[..16]);
        DerivedKey::new(*space, parent, name)
    }
}

macro_rules! stamped_keys {
    ($($name:ident),*) => {$(
        impl super::StampedKey for $name {
            fn stamp_of(key: &$name) -> Stamp {
                key.stamp()
            }
        }
    )*};
}

stamped_keys!(
    SpaceStamp,
    EventStamp,
    TargetStamp,
    AuthorStamp,
    MemberKey,
    MentionKey,
    ReactionKey,
    ReplyKey,
    ChosenKey
);
