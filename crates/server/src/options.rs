//! How the server behaves: what the configuration says.

use crate::backups::BackupPlan;
use crate::tls::Tls;
use ipnet::IpNet;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use store::shared::api_keys::ApiKey;

/// How often callers may ask, per second, and how many requests at once.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Requests of one API key.
    pub key_per_second: u32,
    /// Requests of one user through a frontend key or session.
    pub user_per_second: u32,
    /// Requests of one user for whom a backend or admin key vouches.
    pub backend_user_per_second: u32,
    /// Requests of one address (IPv6: of one /64) that no backend vouches for.
    pub address_per_second: u32,
    /// Connections at the same time.
    pub connections_max: usize,
    /// Connections of one address (IPv6: of one /64) at the same time; proxies may have as many as they like.
    pub address_connections_max: usize,
    /// How long the head of a request may take to arrive, and a new connection to send anything.
    pub header_timeout: Duration,
    /// How long a client may read nothing of an answer; its connection is closed after at most twice as long.
    pub write_stall_timeout: Duration,
    /// Bytes of a request body.
    pub body_bytes_max: usize,
    /// Bytes of an uploaded file.
    pub file_bytes_max: u64,
    /// How long a request may wait for its turn; whatever would wait longer is refused at once.
    pub wait_max: Duration,
    /// Seconds until a request must have arrived and been answered.
    pub request_seconds: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            key_per_second: 20_000,
            user_per_second: 50,
            backend_user_per_second: 500,
            address_per_second: 100,
            connections_max: 20_000,
            address_connections_max: 4000,
            header_timeout: Duration::from_secs(10),
            write_stall_timeout: Duration::from_secs(60),
            body_bytes_max: 128 * 1024,
            file_bytes_max: 16 << 30,
            wait_max: Duration::from_secs(1),
            request_seconds: 30,
        }
    }
}

/// How the server behaves.
#[derive(Clone, Debug, Default)]
pub struct ServerOptions {
    pub limits: Limits,
    /// Whether signatures without a date are refused.
    pub dated_signatures_only: bool,
    /// Origins that browsers may call from.
    pub origins: Vec<String>,
    /// Whether webhooks may lead to private addresses.
    pub private_webhooks: bool,
    /// Proxies that are believed when they say which address a request comes from.
    pub proxies: Vec<IpNet>,
    /// API keys that the configuration declares, by id. They are never stored.
    pub keys: BTreeMap<[u8; 8], ApiKey>,
    /// The certificate of the listener; without one it serves plain HTTP.
    pub tls: Option<Arc<Tls>>,
    /// What the URLs of this node begin with, where others are to use them.
    pub public_url: Option<String>,
    /// Scheduled backups, if there are any.
    pub backups: Option<BackupPlan>,
}
