//! Settings that name people and repositories on Nostr.

use crate::failure::Failure;
use model::NostrKey;
use node::git::GitAccess;
use nostr::key::PublicKey;

/// The lists of the operator: owners, writers, those who are banned, and the operator.
pub(super) fn parse_git_access(
    owners: &[String],
    writers: &[String],
    banned: &[String],
    operator: &[String],
) -> Result<GitAccess, Failure> {
    let mut access = GitAccess::default();
    for text in owners {
        access.owners.insert(parse_key("git_owners", text)?);
    }
    for text in writers {
        access.writers.insert(parse_key("git_writers", text)?);
    }
    for text in banned {
        match text.split_once('/') {
            Some((owner, identifier)) => {
                let key = parse_key("git_banned", owner)?;
                access.banned_repositories.insert((key, identifier.trim_end_matches(".git").to_owned()))
            }
            None => access.banned.insert(parse_key("git_banned", text)?),
        };
    }
    access.operator = operator.first().map(|text| parse_key("git_operator", text)).transpose()?;
    Ok(access)
}

/// What is mirrored here, and the relays that are asked for it.
pub(super) fn parse_archive(archived: &[String], relays: &[String], access: &mut GitAccess) -> Result<(), Failure> {
    for text in archived {
        match text.split_once('/') {
            Some((owner, identifier)) => {
                let key = parse_key("git_archive", owner)?;
                access.archived_repositories.insert((key, identifier.trim_end_matches(".git").to_owned()))
            }
            None => access.archived.insert(parse_key("git_archive", text)?),
        };
    }
    for relay in relays {
        if !relay.starts_with("ws://") && !relay.starts_with("wss://") {
            let what = format!("git_archive_relays has {relay:?}, which is not the address of a Nostr relay");
            return Err(Failure::new(what, "write addresses such as wss://relay.example.org, separated by commas"));
        }
        access.archive_relays.insert(relay.trim_end_matches('/').to_owned());
    }
    if access.archives() && access.archive_relays.is_empty() {
        let what = "git_archive is set, and git_archive_relays is not";
        return Err(Failure::new(what, "name the Nostr relays that know what is to be mirrored"));
    }
    Ok(())
}

/// A key as people write it.
fn parse_key(name: &str, text: &str) -> Result<NostrKey, Failure> {
    PublicKey::parse(text).map(|key| NostrKey(key.to_bytes())).map_err(|_| {
        let shown: String = text.chars().take(80).collect();
        let what_to_do = "write keys as npub1… or as 64 hexadecimal digits, separated by commas";
        Failure::new(format!("{name} has {shown:?}, which is not the public key of anybody on Nostr"), what_to_do)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NPUB: &str = "npub1zde0qdyzrhkgu6ww0k59lytfwpu40wdjhejxhjkasrcpkujjd42qkh57pl";

    #[test]
    fn keys_and_repositories_are_told_apart() {
        let list = |text: &str| vec![text.to_owned()];
        let hex = hex::encode(parse_key("x", NPUB).expect("a key").0);
        let banned = [list(NPUB), list(&format!("{hex}/tool.git"))].concat();
        let access = parse_git_access(&list(&hex), &list(NPUB), &banned, &list(NPUB)).expect("lists");
        let key = parse_key("x", &hex).expect("a key");
        assert_eq!((access.owners, access.writers, access.banned), ([key].into(), [key].into(), [key].into()));
        assert_eq!((access.banned_repositories, access.operator), ([(key, "tool".to_owned())].into(), Some(key)));
        let bad = parse_git_access(&list("alice"), &[], &[], &[]);
        assert!(bad.is_err_and(|why| format!("{why:?}").contains("git_owners has")));
    }
}
