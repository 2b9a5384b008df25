//! How many connections there may be: in total, and from one address.

use crate::options::ServerOptions;
use crate::rate_limits::network;
use ipnet::IpNet;
use queries::sync::lock;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

/// Who may have how many connections.
#[derive(Debug)]
pub(super) struct ConnectionLimiter {
    all_max: usize,
    address_max: usize,
    /// These bring connections of many; only the total counts for them.
    proxies: Vec<IpNet>,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    /// Only addresses that have a connection.
    addresses: HashMap<u64, usize>,
}

/// Permission for one connection, until it is dropped.
#[derive(Debug)]
pub(super) struct ConnectionPermit {
    limiter: Arc<ConnectionLimiter>,
    network: Option<u64>,
}

impl ConnectionLimiter {
    pub(super) fn new(options: &ServerOptions) -> Arc<ConnectionLimiter> {
        let (limits, proxies) = (&options.limits, options.proxies.clone());
        let (all_max, address_max) = (limits.connections_max, limits.address_connections_max);
        Arc::new(ConnectionLimiter { all_max, address_max, proxies, taken: Mutex::default() })
    }

    /// Room for so many, wherever they come from.
    pub(super) fn of(connections_max: usize) -> Arc<ConnectionLimiter> {
        let (all_max, address_max) = (connections_max, connections_max);
        Arc::new(ConnectionLimiter { all_max, address_max, proxies: Vec::new(), taken: Mutex::default() })
    }

    /// Permission for a connection from an address, if there is room.
    pub(super) fn enter(self: &Arc<ConnectionLimiter>, address: IpAddr) -> Option<ConnectionPermit> {
        let address = address.to_canonical();
        let is_proxy = self.proxies.iter().any(|net| net.contains(&address));
        let network = (!is_proxy).then(|| network(address));
        let mut taken = lock(&self.taken);
        if taken.all >= self.all_max {
            return None;
        }
        if let Some(network) = network {
            let here = taken.addresses.get(&network).copied().unwrap_or_default();
            if here >= self.address_max {
                return None;
            }
            taken.addresses.insert(network, here + 1);
        }
        taken.all += 1;
        Some(ConnectionPermit { limiter: self.clone(), network })
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut taken = lock(&self.limiter.taken);
        taken.all = taken.all.saturating_sub(1);
        let Some(network) = self.network else { return };
        match taken.addresses.get(&network).copied() {
            Some(here) if here > 1 => {
                taken.addresses.insert(network, here - 1);
            }
            Some(_) | None => {
                taken.addresses.remove(&network);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Limits;

    fn limiter(connections_max: usize, address_connections_max: usize) -> Arc<ConnectionLimiter> {
        let limits = Limits { connections_max, address_connections_max, ..Limits::default() };
        let proxies = vec!["192.0.2.9/32".parse().expect("a net")];
        ConnectionLimiter::new(&ServerOptions { limits, proxies, ..ServerOptions::default() })
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn an_address_has_its_share_and_others_have_theirs() {
        let limiter = limiter(100, 2);
        let first = limiter.enter(ip("192.0.2.1"));
        let _second = limiter.enter(ip("::ffff:192.0.2.1")).expect("a place");
        assert!(limiter.enter(ip("192.0.2.1")).is_none());
        assert!(limiter.enter(ip("192.0.2.2")).is_some());
        drop(first);
        assert!(limiter.enter(ip("192.0.2.1")).is_some());
    }

    #[test]
    fn a_network_of_the_sixth_version_is_one_address() {
        let limiter = limiter(100, 1);
        let _place = limiter.enter(ip("2001:db8::1")).expect("a place");
        assert!(limiter.enter(ip("2001:db8::2")).is_none());
        assert!(limiter.enter(ip("2001:db8:0:1::1")).is_some());
    }

    #[test]
    fn a_proxy_brings_many_and_the_total_still_counts() {
        let limiter = limiter(3, 1);
        let places: Vec<_> = (0..3).map(|_| limiter.enter(ip("192.0.2.9")).expect("a place")).collect();
        assert!(limiter.enter(ip("192.0.2.9")).is_none());
        assert!(limiter.enter(ip("192.0.2.1")).is_none());
        drop(places);
        let taken = limiter.taken.lock().expect("a lock");
        assert_eq!((taken.all, taken.addresses.len()), (0, 0));
    }
}
