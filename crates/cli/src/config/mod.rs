//! The settings, told once: from here come the defaults, the checks, the environment's names and the sample file.
//!
//! Every setting is a number with bounds, in a section of related ones. Its doc comment is its documentation, here and
//! in `anteroom config --sample`. Where a setting came from is kept beside it.

mod api_keys;
mod file;
mod load;
mod sample;
mod suggestion;

pub(crate) use api_keys::DeclaredKey;
pub(crate) use load::{Given, Loaded, Value, load, unknown_variable};
pub(crate) use sample::sample;

use engine::Policy;
use engine::fetch::DomainLimits;
use model::Nanos;
use node::NodeOptions;
use std::path::PathBuf;
use store::StoreOptions;

/// A setting, as the sample and the checks need it.
#[derive(Debug)]
pub(crate) struct Setting {
    /// Its name in its section.
    pub(crate) name: &'static str,
    /// What it means.
    pub(crate) doc: &'static [&'static str],
    /// What it is if nobody says otherwise.
    pub(crate) default: u64,
    /// The least it may be.
    pub(crate) least: u64,
    /// The most it may be.
    pub(crate) most: u64,
}

/// Settings that belong together.
#[derive(Debug)]
pub(crate) struct Section {
    /// Its name in the file.
    pub(crate) name: &'static str,
    /// What it is about.
    pub(crate) doc: &'static [&'static str],
    /// What is in it.
    pub(crate) settings: &'static [Setting],
}

macro_rules! sections {
    ($(
        $(#[doc = $section_doc:literal])*
        $section:ident: $type:ident {
            $($(#[doc = $doc:literal])* $name:ident = $default:literal in $least:literal..=$most:literal;)*
        }
    )*) => {
        $(
            $(#[doc = $section_doc])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            pub(crate) struct $type { $($(#[doc = $doc])* pub(crate) $name: u64,)* }
        )*

        /// Every setting.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) struct Config { $($(#[doc = $section_doc])* pub(crate) $section: $type,)* }

        impl Config {
            /// The settings, each as the function says.
            fn of(value: impl Fn(&str, &str) -> u64) -> Config {
                Config { $($section: $type { $($name: value(stringify!($section), stringify!($name)),)* },)* }
            }
        }

        /// Every section, in the order of the sample.
        pub(crate) const SECTIONS: &[Section] = &[$(Section {
            name: stringify!($section),
            doc: &[$($section_doc),*],
            settings: &[$(Setting {
                name: stringify!($name),
                doc: &[$($doc),*],
                default: $default,
                least: $least,
                most: $most,
            },)*],
        },)*];
    };
}

sections! {
    /// Memory, disk, and how long things are kept.
    store: StoreSettings {
        /// Memory that the database may use for its pages, in MiB.
        cache_mib = 256 in 8..=1_048_576;
        /// Below this much free disk, in MiB, the node only reads.
        reserve_mib = 64 in 0..=1_048_576;
        /// How long content that nobody refers to any more is kept, in hours.
        grace_hours = 24 in 0..=87_600;
        /// How long journal entries are kept, in days. Who follows the journal must come back within that time.
        journal_days = 30 in 1..=36_500;
    }
    /// How much may wait in the anteroom, and for how long. The offender's own go first.
    held: HeldSettings {
        /// How long an event waits for what it needs, in days.
        hold_days = 30 in 1..=36_500;
        /// Held events of one author.
        per_author_max = 250_000 in 1..=1_000_000_000;
        /// Held blobs that cannot be opened yet, of the peer that brought them.
        per_peer_max = 500_000 in 1..=1_000_000_000;
        /// Held events in total.
        total_max = 4_000_000 in 1..=1_000_000_000;
        /// Events carried for others, per space.
        carried_per_space_max = 100_000 in 0..=1_000_000_000;
    }
    /// How much content users of the API may keep. Zero sets no limit.
    quota: QuotaSettings {
        /// Content of one user in one space, in MiB.
        user_mib = 4_096 in 0..=1_048_576;
        /// Content of one space, in MiB.
        space_mib = 0 in 0..=1_048_576;
    }
    /// Politeness towards those who are asked for what is missing.
    fetch: FetchSettings {
        /// Requests under way at the same time, to whomever.
        requests_max = 32 in 1..=10_000;
        /// Requests to one domain at the same time.
        domain_in_flight_max = 5 in 1..=1000;
        /// Requests to one domain within a minute.
        domain_starts_per_minute_max = 30 in 1..=100_000;
    }
    /// The HTTP API: how often somebody may ask, and how much at a time.
    http: HttpSettings {
        /// Requests of one API key, per second.
        key_per_second = 20_000 in 1..=10_000_000;
        /// Requests of one user through a frontend key, per second.
        user_per_second = 50 in 1..=1_000_000;
        /// Requests of one address that no backend vouches for, per second; IPv6 addresses count by /64.
        address_per_second = 100 in 1..=1_000_000;
        /// Connections at the same time.
        connections_max = 20_000 in 1..=1_000_000;
        /// Connections of one address at the same time; IPv6 addresses count by /64, proxies do not count.
        address_connections_max = 4000 in 1..=1_000_000;
        /// The greatest body of a request, in KiB.
        body_kib_max = 128 in 1..=65_536;
        /// Until when a request must have arrived and been answered, in seconds.
        request_seconds = 30 in 1..=3600;
        /// 1: signatures of users without a date are refused.
        dated_signatures_only = 0 in 0..=1;
    }
    /// Backups by the clock, into `backup_dir`; none are made without it.
    backup: BackupSettings {
        /// How many hours are between them.
        every_hours = 24 in 1..=87_600;
        /// How many are kept: the oldest beyond that are removed when a new one is whole.
        keep = 7 in 1..=100_000;
    }
    /// Where webhooks may lead.
    webhooks: WebhookSettings {
        /// 1: also to this machine and the network around it. Whoever has an admin key can then reach both.
        allow_private = 0 in 0..=1;
    }
    /// The one writer.
    writer: WriterSettings {
        /// How many requests one transaction takes at most.
        batch_max = 4096 in 1..=1_000_000;
        /// How many requests may wait before more are turned away.
        queue_max = 16_384 in 1..=1_000_000;
    }
}

const HOUR: u64 = 3600 * Nanos::SECOND;
const DAY: u64 = 24 * HOUR;

impl Config {
    /// How to open the store.
    pub(crate) fn store_options(&self) -> StoreOptions {
        let policy = Policy {
            hold_nanos: self.held.hold_days.saturating_mul(DAY),
            held_per_author_max: self.held.per_author_max,
            held_per_peer_max: self.held.per_peer_max,
            held_max: self.held.total_max,
            carried_per_space_max: self.held.carried_per_space_max,
            grace_nanos: self.store.grace_hours.saturating_mul(HOUR),
            journal_nanos: self.store.journal_days.saturating_mul(DAY),
            user_bytes_max: Some(self.quota.user_mib << 20).filter(|bytes| *bytes > 0),
            space_bytes_max: Some(self.quota.space_mib << 20).filter(|bytes| *bytes > 0),
            ..Policy::default()
        };
        StoreOptions {
            policy,
            cache_bytes: usize::try_from(self.store.cache_mib << 20).unwrap_or(usize::MAX),
            reserve_bytes: self.store.reserve_mib << 20,
            ..StoreOptions::default()
        }
    }

    /// How the server behaves.
    fn server_limits(&self) -> server::ServerOptions {
        let (http, small) = (&self.http, |number: u64| u32::try_from(number).unwrap_or(u32::MAX));
        let limits = server::Limits {
            key_per_second: small(http.key_per_second),
            user_per_second: small(http.user_per_second),
            address_per_second: small(http.address_per_second),
            connections_max: http.connections_max as usize,
            address_connections_max: http.address_connections_max as usize,
            body_bytes_max: (http.body_kib_max << 10) as usize,
            request_seconds: http.request_seconds,
            ..Default::default()
        };
        server::ServerOptions {
            limits,
            dated_signatures_only: http.dated_signatures_only == 1,
            private_webhooks: self.webhooks.allow_private == 1,
            ..Default::default()
        }
    }

    /// When backups are made by the clock, and how many are kept.
    fn backup_plan(&self, folder: PathBuf) -> server::BackupPlan {
        let every_nanos = self.backup.every_hours.saturating_mul(HOUR);
        server::BackupPlan { folder, every_nanos, keep: self.backup.keep as usize }
    }

    /// How to run the node.
    pub(crate) fn node_options(&self) -> NodeOptions {
        let small = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        NodeOptions {
            batch_max: self.writer.batch_max as usize,
            queue_max: self.writer.queue_max as usize,
            fetches_max: self.fetch.requests_max as usize,
            domains: DomainLimits {
                in_flight_max: small(self.fetch.domain_in_flight_max),
                starts_per_window_max: small(self.fetch.domain_starts_per_minute_max),
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
        let config = Config::of(value);
        let (options, library) = (config.store_options(), StoreOptions::default());
        assert_eq!(options.policy, library.policy);
        assert_eq!((options.cache_bytes, options.reserve_bytes), (library.cache_bytes, library.reserve_bytes));
        let (options, library) = (config.node_options(), NodeOptions::default());
        assert_eq!((options.batch_max, options.queue_max), (library.batch_max, library.queue_max));
        assert_eq!(options.fetches_max, library.fetches_max);
        assert_eq!(options.domains, library.domains);
    }

    #[test]
    fn every_default_is_within_its_bounds_and_every_setting_is_documented() {
        for setting in SECTIONS.iter().flat_map(|section| section.settings) {
            assert!((setting.least..=setting.most).contains(&setting.default), "{}", setting.name);
            assert!(!setting.doc.is_empty(), "{}", setting.name);
        }
    }
}
