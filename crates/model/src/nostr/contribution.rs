//! Pull requests of contributors who have no repository here (GRASP-06): their commits are pushed to
//! `/prs/<npub>/<identifier>.git`, a repository of the contributor's that holds nothing else.

use super::event::NostrEvent;
use super::repository::{ServiceName, is_identifier, named_repositories, tip_of};
use crate::ids::NostrKey;
use crate::limits::IDENTIFIER_BYTES_MAX;
use bech32::{Bech32, Hrp};

/// What the identifiers of such repositories begin with. No announced repository is called so.
pub(super) const CONTRIBUTIONS: &str = "prs/";
/// Addresses of one pull request that are looked at.
const CLONES_MAX: usize = 16;
const NPUB: Hrp = Hrp::parse_unchecked("npub");

/// How a contributor's repository for pull requests to that identifier is called among all repositories; none if that is no
/// identifier, or too long.
pub fn contribution_identifier(identifier: &str) -> Option<String> {
    let fits = is_identifier(identifier) && CONTRIBUTIONS.len() + identifier.len() <= IDENTIFIER_BYTES_MAX;
    fits.then(|| format!("{CONTRIBUTIONS}{identifier}"))
}

/// Whether a repository is one for pull requests, by its identifier.
pub fn is_contribution(identifier: &str) -> bool {
    identifier.starts_with(CONTRIBUTIONS)
}

/// The identifier to which the pull requests of such a repository are; that of any other repository is its own.
pub fn announced_identifier(identifier: &str) -> &str {
    identifier.strip_prefix(CONTRIBUTIONS).unwrap_or(identifier)
}

/// The repositories for pull requests of its author that a pull request says its commit is in: those that its `clone` tag
/// has at this service, under an identifier that its `a` tags name.
pub fn contributed_repositories(event: &NostrEvent, service: ServiceName) -> Vec<String> {
    if tip_of(event).is_none() {
        return Vec::new();
    }
    let urls: Vec<url::Url> = event
        .tags_of("clone")
        .flatten()
        .filter(|url| url.contains("/prs/"))
        .take(CLONES_MAX)
        .filter(|url| ServiceName::of_url(url) == Some(service))
        .filter_map(|url| url::Url::parse(url).ok())
        .collect();
    if urls.is_empty() {
        return Vec::new();
    }
    let own = npub(&event.author);
    let is_listed = |identifier: &str| urls.iter().any(|url| names_contribution(url, &own, identifier));
    let mut found: Vec<String> = named_repositories(event, &["a"])
        .into_iter()
        .filter(|address| is_listed(&address.identifier))
        .filter_map(|address| contribution_identifier(&address.identifier))
        .collect();
    found.sort();
    found.dedup();
    found
}

fn names_contribution(url: &url::Url, npub: &str, identifier: &str) -> bool {
    let Some(mut parts) = url.path_segments() else { return false };
    let (first, owner, name, rest) = (parts.next(), parts.next(), parts.next(), parts.next());
    let mut expected = url.clone();
    // Written by the same library, so that both are percent-encoded alike.
    let is_written = expected.path_segments_mut().map(|mut path| {
        path.clear().push("prs").push(npub).push(&format!("{identifier}.git"));
    });
    let same = expected.path_segments().and_then(|mut parts| parts.nth(2)) == name;
    is_written.is_ok() && first == Some("prs") && owner == Some(npub) && same && matches!(rest, None | Some(""))
}

/// A public key as people write it.
pub fn npub(key: &NostrKey) -> String {
    // Thirty-two bytes always fit.
    bech32::encode::<Bech32>(NPUB, &key.0).unwrap_or_default()
}

/// The repository that somebody names: the public key of its owner, a slash and its identifier, perhaps with `.git`.
pub fn parse_repository(text: &str) -> Option<(NostrKey, String)> {
    let (owner, identifier) = text.split_once('/')?;
    let identifier = identifier.strip_suffix(".git").unwrap_or(identifier);
    let owner = parse_npub(owner).or_else(|| owner.parse().ok())?;
    (!identifier.is_empty()).then(|| (owner, identifier.to_owned()))
}

/// The public key that a text which begins with `npub1` stands for.
pub fn parse_npub(text: &str) -> Option<NostrKey> {
    let checked = bech32::primitives::decode::CheckedHrpstring::new::<Bech32>(text).ok()?;
    let is_one = checked.hrp() == NPUB && text.starts_with("npub1");
    let bytes: Vec<u8> = checked.byte_iter().collect();
    bytes.try_into().ok().filter(|_| is_one).map(NostrKey)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nostr::key::PublicKey;
    use nostr::nips::nip19::{FromBech32 as _, ToBech32 as _};

    fn pull_request(clone: &str, identifiers: &[&str]) -> crate::nostr::VerifiedNostr {
        let owner = NostrEvent::sign(&[2; 32], 1, 1, Vec::new(), "").unwrap().author;
        let mut tags = vec![vec!["c".to_owned(), "11".repeat(20)], vec!["clone".to_owned(), clone.to_owned()]];
        tags.extend(identifiers.iter().map(|name| vec!["a".to_owned(), format!("30617:{owner}:{name}")]));
        NostrEvent::sign(&[1; 32], 1, 1618, tags, "").unwrap()
    }

    #[test]
    fn addresses_elsewhere_do_not_crowd_out_the_one_here() {
        let service = ServiceName::of_url("https://node.example").unwrap();
        let author = NostrEvent::sign(&[1; 32], 1, 1, Vec::new(), "").unwrap().author;
        let mut clone = vec!["clone".to_owned()];
        clone.extend((0..CLONES_MAX).map(|number| format!("https://elsewhere.example/{number}/tool.git")));
        clone.push(format!("https://node.example/prs/{}/tool.git", npub(&author)));
        let of = |name: &str, value: String| vec![name.to_owned(), value];
        let tags = vec![of("c", "11".repeat(20)), clone, of("a", format!("30617:{author}:tool"))];
        let event = NostrEvent::sign(&[1; 32], 1, 1618, tags, "").unwrap();
        assert_eq!(contributed_repositories(&event, service), ["prs/tool"]);
    }

    #[test]
    fn a_pull_request_names_the_repository_of_its_own_author_at_this_service() {
        let service = ServiceName::of_url("https://node.example").unwrap();
        let author = NostrEvent::sign(&[1; 32], 1, 1, Vec::new(), "").unwrap().author;
        let (own, other) = (npub(&author), npub(&NostrKey([7; 32])));
        let found = |clone: &str| contributed_repositories(&pull_request(clone, &["tool", "my tool/x"]), service);
        assert_eq!(found(&format!("https://node.example/prs/{own}/tool.git")), ["prs/tool"]);
        assert_eq!(found(&format!("https://node.example/prs/{own}/my%20tool%2Fx.git")), ["prs/my tool/x"]);
        for wrong in [
            format!("https://elsewhere.example/prs/{own}/tool.git"),
            format!("https://node.example/prs/{other}/tool.git"),
            format!("https://node.example/prs/{own}/another.git"),
            format!("https://node.example/prs/{own}/tool.git/more"),
            format!("https://node.example/{own}/tool.git"),
            format!("https://node.example/x/{own}/tool.git"),
            format!("https://node.example/prs/{own}/tool"),
        ] {
            assert_eq!(found(&wrong), [""; 0], "{wrong}");
        }
    }

    #[test]
    fn no_announced_repository_is_called_as_those_for_pull_requests_are() {
        assert_eq!(contribution_identifier("tool").as_deref(), Some("prs/tool"));
        assert_eq!(contribution_identifier(&"x".repeat(253)), None);
        assert_eq!(contribution_identifier("prs/tool"), None);
        assert!(!is_identifier("prs/tool") && is_identifier("prs") && is_identifier("my/prs/tool"));
    }

    #[test]
    fn npubs_are_those_of_the_nostr_crate() {
        for seed in 1..20_u8 {
            let key = NostrEvent::sign(&[seed; 32], 1, 1, Vec::new(), "").unwrap().author;
            let other = PublicKey::from_hex(&key.to_string()).unwrap();
            assert_eq!(npub(&key), other.to_bech32().unwrap());
            assert_eq!(parse_npub(&npub(&key)), Some(key));
        }
        for wrong in ["", "npub1", "npub1qqqq", "nsec1vl029mgpspedva04g90vltkh6fvh240zqtv9k0t9af8935ke9laqsnlfe5"] {
            assert_eq!(parse_npub(wrong), None, "{wrong}");
            assert!(PublicKey::from_bech32(wrong).is_err());
        }
    }
}
