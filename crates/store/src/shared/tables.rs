//! The shared tables: a closed list, each with its key, its value, and how the value rests.

use crate::at_rest::Protection;
use crate::encode::SharedValue;
use crate::keys::*;
use crate::shared::accounts::{Account, Invitation, Session};
use crate::shared::api_keys::{ApiKey, AuditRow, IdempotencyRecord, SigningSecret};
use crate::shared::files::{DerivedFile, FileJob, FileLink, FileRecord, FileVersion, OpenUpload};
use crate::shared::jobs::Job;
use crate::shared::moderation::{BlockKind, UserReport};
use crate::shared::retention::Retention;
use crate::shared::users::{HostedSpace, User};
use crate::shared::webhooks::WebhookSettings;
use crate::tables::{Rows, Stored, TableReads, Tables};
use model::SpaceId;
use redb::{ReadableTable, Table};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// How the values of a shared table rest.
pub(crate) enum Sealing {
    /// As they are: they name nothing that is secret or personal.
    Plain,
    /// Under the storage key of a space, bound to the key of the row.
    Space(SpaceId),
    /// Under the master key, bound to this name.
    Master(Vec<u8>),
}

/// A shared table.
pub(crate) trait SharedTable {
    type Key: TableKey + for<'a> redb::Value<SelfType<'a> = Self::Key> + Copy + std::fmt::Debug;
    type Value: Serialize + DeserializeOwned;

    /// What a row is, for errors.
    const WHAT: &'static str;

    fn rows<V: TableReads>(
        view: &V,
    ) -> &Rows<impl ReadableTable<Self::Key, Stored<SharedValue>>, Self::Key, SharedValue>;

    fn rows_mut<'b, 't>(
        tables: &'b mut Tables<'t>,
    ) -> &'b mut Rows<Table<'t, Self::Key, Stored<SharedValue>>, Self::Key, SharedValue>;

    fn sealing(key: &Self::Key) -> Sealing;
}

macro_rules! shared_tables {
    ($($(#[$doc:meta])* $name:ident: $field:ident, $key:ty => $value:ty, $what:literal, $sealing:expr;)*) => {$(
        $(#[$doc])*
        pub(crate) struct $name;

        impl SharedTable for $name {
            type Key = $key;
            type Value = $value;
            const WHAT: &'static str = $what;

            fn rows<V: TableReads>(
                view: &V,
            ) -> &Rows<impl ReadableTable<$key, Stored<SharedValue>>, $key, SharedValue> {
                view.$field()
            }

            fn rows_mut<'b, 't>(
                tables: &'b mut Tables<'t>,
            ) -> &'b mut Rows<Table<'t, $key, Stored<SharedValue>>, $key, SharedValue> {
                &mut tables.$field
            }

            fn sealing(key: &$key) -> Sealing {
                let sealing: fn(&$key) -> Sealing = $sealing;
                sealing(key)
            }
        }
    )*};
}

shared_tables! {
    HostedSpaces: hosted_spaces, SpaceIdKey => HostedSpace, "a hosted space", |key| Sealing::Space(key.id());
    Protections: protections, SpaceIdKey => Protection, "a protection", |_| Sealing::Plain;
    Users: users, UserKey => User, "a user", |key| Sealing::Space(key.space());
    UserNames: user_names, UserNameKey => String, "a user's name", |key| Sealing::Space(key.space());
    Custodians: custodians, IdentityKey => [u8; 32], "a custodial key",
        |key| Sealing::Master([b"custodian".as_slice(), key.as_bytes()].concat());
    ApiKeys: api_keys, ApiKeyName => ApiKey, "an API key", |_| Sealing::Plain;
    SigningKeys: signing_keys, SigningKeyName => SigningSecret, "a signing key", |key| Sealing::Space(key.space());
    Requests: idempotency, RequestKey => IdempotencyRecord, "an idempotency row", |_| Sealing::Plain;
    Audit: audit, AuditNo => AuditRow, "an audit entry",
        |key| Sealing::Master([b"audit".as_slice(), key.as_bytes()].concat());
    Webhooks: webhooks, WebhookKey => WebhookSettings, "a webhook", |key| Sealing::Space(key.space());
    Files: file_records, FileKey => FileRecord, "a file", |key| Sealing::Space(key.space());
    FileVersions: file_versions, FileVersionKey => FileVersion, "a version of a file",
        |key| Sealing::Space(key.space());
    DerivedFiles: derived_files, DerivedKey => DerivedFile, "a derived file", |key| Sealing::Space(key.space());
    FileJobs: file_jobs, FileKey => FileJob, "work for a file", |key| Sealing::Space(key.space());
    OpenUploads: open_uploads, FileKey => OpenUpload, "an open upload",
        |key| Sealing::Space(key.space());
    FileLinks: file_links, FileLinkKey => FileLink, "a link to a file", |key| Sealing::Space(key.space());
    Jobs: jobs, JobNo => Job, "a job", |_| Sealing::Plain;
    Retentions: retentions, SpaceIdKey => Retention, "a retention", |_| Sealing::Plain;
    ThreadRetentions: thread_retentions, ThreadIdKey => Retention, "a retention", |_| Sealing::Plain;
    Blocks: blocks, BlockKey => BlockKind, "a block", |_| Sealing::Plain;
    Reports: reports, ReportNo => UserReport, "a report", |key| Sealing::Space(key.space());
    ReportNumbers: report_numbers, SpaceIdKey => u64, "the number of the last report", |_| Sealing::Plain;
    Accounts: accounts, UserKey => Account, "an account", |key| Sealing::Space(key.space());
    Sessions: sessions, SessionKey => Session, "a session", |key| Sealing::Space(key.space());
    Invitations: invitations, InvitationKey => Invitation, "an invitation", |key| Sealing::Space(key.space());
}
