//! Which URLs and addresses may be connected to: those that anybody could reach.

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use reqwest::Url;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Which addresses may be connected to: public ones, and those of the private networks that the operator lists. Where any are
/// listed, every port is allowed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AllowedNetworks {
    private: Vec<IpNet>,
}

impl AllowedNetworks {
    /// Public addresses, and these networks.
    pub fn with_private(private: Vec<IpNet>) -> AllowedNetworks {
        AllowedNetworks { private }
    }

    /// Public addresses only.
    pub fn public() -> AllowedNetworks {
        AllowedNetworks::default()
    }

    /// Every address, this machine's included.
    pub fn all() -> AllowedNetworks {
        AllowedNetworks { private: vec![IpNet::V4(Ipv4Net::default()), IpNet::V6(Ipv6Net::default())] }
    }

    /// Whether an address may be connected to.
    pub fn contain(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        is_public(address) || self.private.iter().any(|network| network.contains(&address))
    }

    fn is_public_only(&self) -> bool {
        self.private.is_empty()
    }
}

/// Ports of the web: a service on another port may take a request for something else.
const PORTS: [u16; 4] = [80, 443, 8080, 8443];
const URL_BYTES_MAX: usize = 2048;

/// Why nothing is sent to a URL.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadUrl {
    /// It does not parse, or is too long.
    #[error("it is not a URL of at most 2048 bytes")]
    Malformed,
    /// Another scheme than https or http.
    #[error("only https and http are supported")]
    Scheme,
    /// It carries a user name or a password.
    #[error("a URL must not carry a user name or password")]
    Userinfo,
    /// A port that is not one of the web.
    #[error("only the ports 80, 443, 8080 and 8443 are allowed")]
    Port,
    /// A host that is not public.
    #[error("it names this machine, a private network, or another place that is not public")]
    Private,
}

/// Whether an address is public: one that anybody could reach.
pub fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let is_special = match (a, b, c) {
        (0 | 10 | 127, ..) | (224.., ..) => true,
        (100, 64..=127, _) | (169, 254, _) | (172, 16..=31, _) | (192, 168, _) => true,
        (192, 0, 0 | 2) | (192, 88, 99) | (198, 18 | 19, _) | (198, 51, 100) | (203, 0, 113) => true,
        // A cloud's own address that is no private one.
        (168, 63, 129) => true,
        _ => false,
    };
    !is_special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    let v4 = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match segments {
        // What stands for an IPv4 address is as public as that one: NAT64, 6to4.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => v4(high, low),
        [0x2002, high, low, ..] => v4(high, low),
        // Local NAT64, discarding, Teredo and other protocol assignments, documentation.
        [0x64, 0xff9b, ..] | [0x100, ..] | [0x2001, 0..=0x1ff, ..] | [0x2001, 0xdb8, ..] | [0x3fff, ..] => false,
        // Everything that is given out lies in 2000::/3.
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

/// A URL that something may be sent to, as far as can be said before its name is resolved.
pub fn vet(text: &str, allowed: &AllowedNetworks) -> Result<Url, BadUrl> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    if text.len() > URL_BYTES_MAX || !is_plain {
        return Err(BadUrl::Malformed);
    }
    let url = Url::parse(text).map_err(|_| BadUrl::Malformed)?;
    if !matches!(url.scheme(), "https" | "http") {
        return Err(BadUrl::Scheme);
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(BadUrl::Userinfo);
    }
    let port = url.port_or_known_default().unwrap_or_default();
    if allowed.is_public_only() && !PORTS.contains(&port) {
        return Err(BadUrl::Port);
    }
    let host = url.host_str().ok_or(BadUrl::Malformed)?.trim_end_matches('.');
    // What other programs could take for more than a name, such as a leading hyphen.
    let is_name = |host: &str| {
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
        host.bytes().all(is_letter) && host.bytes().next().is_some_and(|first| first.is_ascii_alphanumeric())
    };
    if !host.starts_with('[') && !is_name(host) {
        return Err(BadUrl::Malformed);
    }
    let literal = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().ok();
    let is_local_name = ["localhost", "local", "internal", "home.arpa"]
        .iter()
        .any(|name| host == *name || host.strip_suffix(name).is_some_and(|rest| rest.ends_with('.')));
    let is_allowed = match literal {
        Some(address) => allowed.contain(address),
        // What a name leads to is looked at when it is connected to.
        None => !is_local_name || !allowed.is_public_only(),
    };
    if is_allowed { Ok(url) } else { Err(BadUrl::Private) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_public_is_refused_however_it_is_written() {
        for host in [
            "127.0.0.1",
            "127.1",
            "0",
            "0x7f000001",
            "2130706433",
            "0177.0.0.1",
            "[::1]",
            "[::]",
            "[::ffff:127.0.0.1]",
            "[64:ff9b::7f00:1]",
            "[2002:7f00:1::]",
            "[2002:a00:1::1]",
            "[2001:0:7f00:1::]",
            "[::127.0.0.1]",
            "169.254.169.254",
            "[fd00:ec2::254]",
            "metadata.google.internal",
            "100.100.100.200",
            "168.63.129.16",
            "10.0.0.1",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "100.64.0.1",
            "100.127.255.255",
            "198.18.0.1",
            "198.19.255.255",
            "192.0.0.1",
            "192.0.2.1",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "0.0.0.0",
            "[fc00::1]",
            "[fdff::1]",
            "[fe80::1]",
            "[febf::1]",
            "[fec0::1]",
            "[ff02::1]",
            "[2001:db8::1]",
            "[64:ff9b:1::1]",
            "[100::1]",
            "localhost",
            "localhost.",
            "a.localhost",
            "printer.local",
            "127.0.0.1.",
            "LOCALHOST",
            "[::ffff:10.0.0.1]",
            "[::ffff:a9fe:a9fe]",
        ] {
            let url = format!("https://{host}/hook");
            assert_eq!(vet(&url, &AllowedNetworks::public()), Err(BadUrl::Private), "{url}");
            assert!(vet(&url, &AllowedNetworks::all()).is_ok(), "{url}");
        }
    }

    #[test]
    fn only_plain_web_addresses_are_taken() {
        for (text, why) in [
            ("file:///etc/passwd", BadUrl::Scheme),
            ("gopher://example.org/", BadUrl::Scheme),
            ("ftp://example.org/", BadUrl::Scheme),
            ("data:text/plain,x", BadUrl::Scheme),
            ("ext::sh", BadUrl::Scheme),
            ("ssh://example.org/", BadUrl::Scheme),
            ("git://example.org/", BadUrl::Scheme),
            ("unix:/run/x", BadUrl::Scheme),
            ("https://good@evil.example/", BadUrl::Userinfo),
            ("https://:x@evil.example/", BadUrl::Userinfo),
            ("https://evil.example\\@good/", BadUrl::Malformed),
            ("https://evil.example/\t", BadUrl::Malformed),
            ("https://evil.example/\n", BadUrl::Malformed),
            ("https://ev\u{456}l.example/", BadUrl::Malformed),
            ("https://", BadUrl::Malformed),
            ("http://-evil.example/", BadUrl::Malformed),
            ("http://+evil.example/", BadUrl::Malformed),
            ("http://*/", BadUrl::Malformed),
            ("http://a,b.example/", BadUrl::Malformed),
            ("", BadUrl::Malformed),
        ] {
            assert_eq!(vet(text, &AllowedNetworks::all()), Err(why), "{text:?}");
        }
        for text in
            ["https://example.org/hook", "http://example.org:8080/x?y=z", "https://8.8.8.8/", "https://[2606:4700::1]/"]
        {
            assert!(vet(text, &AllowedNetworks::public()).is_ok(), "{text}");
        }
    }

    #[test]
    fn only_ports_of_the_web_are_spoken_to() {
        for port in [22, 25, 6379, 5432, 1] {
            let url = format!("http://example.org:{port}/");
            assert_eq!(vet(&url, &AllowedNetworks::public()), Err(BadUrl::Port), "{port}");
        }
    }

    #[test]
    fn listed_networks_are_allowed_and_no_others() {
        let listed = AllowedNetworks::with_private(vec!["10.1.0.0/16".parse().expect("a network")]);
        for (url, is_allowed) in [
            ("http://10.1.2.3:3000/", true),
            ("http://[::ffff:10.1.2.3]/", true),
            ("http://10.2.0.1/", false),
            ("http://127.0.0.1/", false),
            ("http://[::1]/", false),
            ("https://8.8.8.8/", true),
        ] {
            assert_eq!(vet(url, &listed).is_ok(), is_allowed, "{url}");
        }
    }
}
