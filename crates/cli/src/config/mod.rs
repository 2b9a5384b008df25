//! The settings: one table that gives the defaults, the bounds, the names of environment variables and the sample file.
//!
//! Every setting in a section is a number with bounds. Its doc comment is its documentation, here and in
//! `anteroom config --sample`. [`load`] keeps the origin of each value beside it.

mod api_keys;
mod file;
mod load;
mod nostr_keys;
mod object_store;
mod parsing;
mod renditions;
mod sample;
mod suggestion;

pub(crate) use api_keys::DeclaredKey;
pub(crate) use load::{EffectiveSetting, SettingInputs, Settings, check_variable_name, load};
pub(crate) use sample::sample_file;

use engine::Policy;
use engine::fetch::{DomainLimits, HuntDelays};
use model::Nanos;
use node::NodeOptions;
use std::path::PathBuf;
use store::StoreOptions;

#[derive(Debug)]
pub(crate) struct Setting {
    /// Without the section.
    pub(crate) name: &'static str,
    pub(crate) doc: &'static [&'static str],
    pub(crate) default: u64,
    pub(crate) min: u64,
    pub(crate) max: u64,
}

/// A table of the configuration file.
#[derive(Debug)]
pub(crate) struct Section {
    pub(crate) name: &'static str,
    pub(crate) doc: &'static [&'static str],
    pub(crate) settings: &'static [Setting],
}

macro_rules! sections {
    ($(
        $(#[doc = $section_doc:literal])*
        $section:ident: $type:ident {
            $($(#[doc = $doc:literal])* $name:ident = $default:literal in $min:literal..=$max:literal;)*
        }
    )*) => {
        $(
            $(#[doc = $section_doc])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            pub(crate) struct $type { $($(#[doc = $doc])* pub(crate) $name: u64,)* }
        )*

        /// The values of all settings in sections.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) struct Config { $($(#[doc = $section_doc])* pub(crate) $section: $type,)* }

        impl Config {
            /// Calls the function with section and name for the value of each setting.
            fn from_values(value: impl Fn(&str, &str) -> u64) -> Config {
                Config { $($section: $type { $($name: value(stringify!($section), stringify!($name)),)* },)* }
            }
        }

        /// In the order of the sample file.
        pub(crate) const SECTIONS: &[Section] = &[$(Section {
            name: stringify!($section),
            doc: &[$($section_doc),*],
            settings: &[$(Setting {
                name: stringify!($name),
                doc: &[$($doc),*],
                default: $default,
                min: $min,
                max: $max,
            },)*],
        },)*];
    };
}

sections! {
    /// Memory, disk space and retention.
    store: StoreSettings {
        /// Memory for the page cache of the database, in MiB.
        cache_mib = 128 in 8..=1_048_576;
        /// The node becomes read-only when less disk space than this is free, in MiB.
        min_free_disk_mib = 64 in 0..=1_048_576;
        /// How long to keep content after nothing refers to it any more, in hours.
        unreferenced_content_hours = 24 in 0..=87_600;
        /// How long to keep journal entries, in days. A live stream or webhook can resume within this time.
        journal_retention_days = 30 in 1..=36_500;
    }
    /// Limits on held events: those that wait for something that has not arrived yet. When a limit is reached, the
    /// oldest held event of the same author or peer is dropped; if there is none, the new event is not accepted.
    held: HeldSettings {
        /// How long an event is held before it expires, in days.
        timeout_days = 30 in 1..=36_500;
        /// Held events per author.
        per_author_max = 250_000 in 1..=1_000_000_000;
        /// Held events that cannot be decrypted yet, per peer that sent them.
        per_peer_max = 500_000 in 1..=1_000_000_000;
        /// Held events in total.
        total_max = 4_000_000 in 1..=1_000_000_000;
        /// Events carried for other nodes, per space.
        carried_per_space_max = 100_000 in 0..=1_000_000_000;
    }
    /// Storage quotas for users of the API and the web page. 0 means no limit.
    quota: QuotaSettings {
        /// Content per user and space, in MiB.
        user_mib = 16_384 in 0..=1_048_576;
        /// Content per space, in MiB.
        space_mib = 0 in 0..=1_048_576;
    }
    /// Uploaded files.
    files: FileSettings {
        /// Size of one file, in MiB.
        size_mib_max = 16_384 in 1..=16_384;
        /// Images that are processed at once, each in a process of its own. 0: none on this machine.
        workers = 1 in 0..=64;
    }
    /// How this node fetches what is missing from others: events, content and git data.
    sync: SyncSettings {
        /// Concurrent requests in total.
        concurrent = 32 in 1..=10_000;
        /// Concurrent requests per domain: a host name or a peer.
        domain_concurrent = 5 in 1..=1000;
        /// Requests per domain and minute.
        domain_per_minute = 30 in 1..=100_000;
        /// 1: gather events about repositories here from the Nostr relays that their announcements name.
        gather = 1 in 0..=1;
        /// How long to wait before fetching what an event of a local user needs, in seconds: they will probably push it.
        default_delay_secs = 180 in 0..=86_400;
        /// How long to wait before fetching what an event from elsewhere needs, in milliseconds: such events come in bursts.
        immediate_delay_ms = 500 in 0..=3_600_000;
    }
    /// Limits of the HTTP server.
    http: HttpSettings {
        /// Requests per second for each API key.
        key_requests_per_second = 20_000 in 1..=10_000_000;
        /// Requests per second for each user of a frontend key or of the web page.
        user_requests_per_second = 50 in 1..=1_000_000;
        /// Requests per second for each user that a backend or admin key names.
        backend_user_requests_per_second = 500 in 1..=1_000_000;
        /// Requests per second for each client address without a backend or admin key. IPv6 addresses count by /64.
        address_requests_per_second = 100 in 1..=1_000_000;
        /// Open connections in total.
        connections_max = 20_000 in 1..=1_000_000;
        /// Open connections per client address. IPv6 addresses count by /64; trusted proxies are exempt.
        connections_per_address_max = 4000 in 1..=1_000_000;
        /// How long a request may wait for its turn, in milliseconds. If it would wait longer, it gets a 503 at once.
        wait_max_ms = 1000 in 10..=600_000;
        /// Size of a request body, in KiB.
        body_kib_max = 128 in 1..=65_536;
        /// Timeout for receiving and answering a request, in seconds.
        request_timeout_seconds = 30 in 1..=3600;
        /// 1: refuse user signatures without a timestamp.
        dated_signatures_only = 0 in 0..=1;
    }
    /// Scheduled backups. They are made only if `backup_dir` is set.
    backup: BackupSettings {
        /// Hours between two backups.
        interval_hours = 24 in 1..=87_600;
        /// How many backups to keep. Older ones are removed after a new one is complete.
        keep = 7 in 1..=100_000;
    }
    /// Where webhooks may be sent.
    webhooks: WebhookSettings {
        /// 1: also allow loopback and private addresses, and any port. Anyone with an admin key can then send requests
        /// into your network.
        allow_private_addresses = 0 in 0..=1;
    }
    /// Git repositories that Nostr events authorise, and the Nostr relay for events about them.
    git: GitSettings {
        /// 1: contributors without a repository here may push commits of pull requests to `/prs/` (GRASP-06).
        contributions = 0 in 0..=1;
        /// 1: serve a Nostr relay at `/`, and host git repositories of whoever announces one there.
        enabled = 0 in 0..=1;
        /// Size of the data that one push may send, in MiB.
        push_mib_max = 2048 in 1..=1_048_576;
        /// Objects (files, folders, commits) that one push may send.
        push_objects_max = 5_000_000 in 1..=4_000_000_000;
        /// Size of one file or other git object, in MiB.
        object_mib_max = 128 in 1..=4096;
        /// Size of a push of commits of pull requests, which anybody may push, in MiB.
        pull_request_mib_max = 64 in 1..=1_048_576;
        /// Size of one repository, in MiB. A repository that is as large takes no pushes.
        repository_mib_max = 4096 in 1..=1_048_576;
        /// Size of all repositories of one owner, in MiB.
        owner_mib_max = 16_384 in 1..=16_777_216;
        /// Repositories of one owner. Pushes to more are refused.
        owner_repositories_max = 100 in 1..=1_000_000;
    }
    /// The writer, which makes all changes to the database.
    writer: WriterSettings {
        /// Requests per transaction.
        batch_requests_max = 4096 in 1..=1_000_000;
        /// Requests in the queue. When it is full, further requests are answered with 503.
        queue_requests_max = 16_384 in 1..=1_000_000;
    }
}

const HOUR: u64 = 3600 * Nanos::SECOND;
const DAY: u64 = 24 * HOUR;

impl Config {
    pub(crate) fn store_options(&self) -> StoreOptions {
        let policy = Policy {
            hold_nanos: self.held.timeout_days.saturating_mul(DAY),
            held_per_author_max: self.held.per_author_max,
            held_per_peer_max: self.held.per_peer_max,
            held_max: self.held.total_max,
            carried_per_space_max: self.held.carried_per_space_max,
            grace_nanos: self.store.unreferenced_content_hours.saturating_mul(HOUR),
            journal_nanos: self.store.journal_retention_days.saturating_mul(DAY),
            user_bytes_max: Some(self.quota.user_mib << 20).filter(|bytes| *bytes > 0),
            space_bytes_max: Some(self.quota.space_mib << 20).filter(|bytes| *bytes > 0),
            takes_contributions: self.git.contributions == 1,
            hunt_delays: HuntDelays {
                local_user: self.sync.default_delay_secs.saturating_mul(Nanos::SECOND),
                peer_or_relay: self.sync.immediate_delay_ms.saturating_mul(Nanos::SECOND / 1000),
            },
            ..Policy::default()
        };
        StoreOptions {
            policy,
            cache_bytes: usize::try_from(self.store.cache_mib << 20).unwrap_or(usize::MAX),
            reserve_bytes: self.store.min_free_disk_mib << 20,
            ..StoreOptions::default()
        }
    }

    /// The part of the server's options that comes from sections.
    fn server_limits(&self) -> server::ServerOptions {
        let (http, small) = (&self.http, |number: u64| u32::try_from(number).unwrap_or(u32::MAX));
        let limits = server::Limits {
            key_per_second: small(http.key_requests_per_second),
            user_per_second: small(http.user_requests_per_second),
            backend_user_per_second: small(http.backend_user_requests_per_second),
            address_per_second: small(http.address_requests_per_second),
            wait_max: std::time::Duration::from_millis(http.wait_max_ms),
            connections_max: http.connections_max as usize,
            address_connections_max: http.connections_per_address_max as usize,
            body_bytes_max: (http.body_kib_max << 10) as usize,
            file_bytes_max: self.files.size_mib_max << 20,
            request_seconds: http.request_timeout_seconds,
            ..Default::default()
        };
        server::ServerOptions {
            limits,
            dated_signatures_only: http.dated_signatures_only == 1,
            private_webhooks: self.webhooks.allow_private_addresses == 1,
            ..Default::default()
        }
    }

    /// What a push may bring.
    pub(crate) fn git_limits(&self) -> git::GitLimits {
        git::GitLimits {
            pack_bytes_max: self.git.push_mib_max << 20,
            object_bytes_max: self.git.object_mib_max << 20,
            objects_max: u32::try_from(self.git.push_objects_max).unwrap_or(u32::MAX),
            pull_request_bytes_max: self.git.pull_request_mib_max << 20,
            repository_bytes_max: self.git.repository_mib_max << 20,
            owner_bytes_max: self.git.owner_mib_max << 20,
            owner_repositories_max: usize::try_from(self.git.owner_repositories_max).unwrap_or(usize::MAX),
        }
    }

    fn backup_plan(&self, folder: PathBuf) -> server::BackupPlan {
        let every_nanos = self.backup.interval_hours.saturating_mul(HOUR);
        server::BackupPlan { folder, every_nanos, keep: self.backup.keep as usize }
    }

    pub(crate) fn node_options(&self) -> NodeOptions {
        let small = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        NodeOptions {
            batch_max: self.writer.batch_requests_max as usize,
            queue_max: self.writer.queue_requests_max as usize,
            fetches_max: self.sync.concurrent as usize,
            domains: DomainLimits {
                in_flight_max: small(self.sync.domain_concurrent),
                starts_per_window_max: small(self.sync.domain_per_minute),
                window: 60 * Nanos::SECOND,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_those_of_the_library() {
        let value = |section: &str, name: &str| {
            let section = SECTIONS.iter().find(|other| other.name == section).expect("a section");
            section.settings.iter().find(|setting| setting.name == name).expect("a setting").default
        };
        let config = Config::from_values(value);
        let (options, library) = (config.store_options(), StoreOptions::default());
        assert_eq!(options.policy, library.policy);
        assert_eq!((options.cache_bytes, options.reserve_bytes), (library.cache_bytes, library.reserve_bytes));
        let (options, library) = (config.node_options(), NodeOptions::default());
        assert_eq!((options.batch_max, options.queue_max), (library.batch_max, library.queue_max));
        assert_eq!(options.fetches_max, library.fetches_max);
        assert_eq!(options.domains, library.domains);
        assert_eq!(config.git_limits(), git::GitLimits::default());
    }

    #[test]
    fn every_default_is_within_its_bounds_and_every_setting_is_documented() {
        for setting in SECTIONS.iter().flat_map(|section| section.settings) {
            assert!((setting.min..=setting.max).contains(&setting.default), "{}", setting.name);
            assert!(!setting.doc.is_empty(), "{}", setting.name);
        }
    }
}
