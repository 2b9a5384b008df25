//! Links to files: a URL that allows one thing to whoever has it, until it expires or somebody ends it.
//!
//! The URL names the link (its key id: space, file and link), when it expires and, for an upload, how long the bytes are; an
//! HMAC-SHA256 over method, path, length, expiry and key id proves that this node made it so. The secret is the link's own and
//! rests in its row, so that a link ends with its row.

use crate::problem::Problem;
use crate::secrets::random_bytes;
use crate::state::ServerState;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use engine::access::Action;
use hmac::{Hmac, KeyInit as _, Mac as _};
use model::{FileId, LinkId, Nanos, SpaceId};
use node::commands::{Caller, CallerKind};
use queries::Viewer;
use sha2::Sha256;
use store::Db;
use store::shared::files::{FileLink, FileRecord};
use store::tables::Snapshot;

/// Where links lead.
pub const LINKS_PATH: &str = "/v1/links/";

/// Which link it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkName {
    pub space: SpaceId,
    pub file: FileId,
    pub link: LinkId,
}

impl LinkName {
    /// A link that is to be made.
    pub fn draw(space: SpaceId, file: FileId) -> Result<LinkName, Problem> {
        Ok(LinkName { space, file, link: LinkId(random_bytes()?) })
    }

    /// As URLs have it.
    pub fn key_id(&self) -> String {
        BASE64_URL_SAFE_NO_PAD.encode([self.space.0, self.file.0, self.link.0].concat())
    }

    pub fn from_key_id(text: &str) -> Option<LinkName> {
        let bytes: [u8; 48] = BASE64_URL_SAFE_NO_PAD.decode(text).ok()?.try_into().ok()?;
        let part = |number: usize| bytes[16 * number..].first_chunk::<16>().copied();
        Some(LinkName { space: SpaceId(part(0)?), file: FileId(part(1)?), link: LinkId(part(2)?) })
    }
}

/// What the query of a link's URL says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SignedQuery {
    /// Unix seconds.
    pub expires: u64,
    /// How many bytes are uploaded, exactly.
    pub length: Option<u64>,
    pub signature: String,
}

/// Unix seconds at which a link is not good any more.
fn expiry(link: &FileLink) -> u64 {
    link.until.0 / Nanos::SECOND
}

fn mac(name: &LinkName, link: &FileLink) -> Option<Hmac<Sha256>> {
    let length = link.purpose.size().map(|size| size.to_string()).unwrap_or_default();
    let (method, key_id) = (link.purpose.method(), name.key_id());
    let signed = format!("{method}\n{LINKS_PATH}{key_id}\n{length}\n{}\n{key_id}", expiry(link));
    let mut mac = Hmac::<Sha256>::new_from_slice(&link.secret).ok()?;
    mac.update(signed.as_bytes());
    Some(mac)
}

/// Path and query of the URL of a link.
pub fn link_url(name: &LinkName, link: &FileLink) -> Result<String, Problem> {
    let mac = mac(name, link).ok_or_else(|| Problem::broken("the link could not be signed"))?;
    let signature = hex::encode(mac.finalize().into_bytes());
    let length = link.purpose.size().map(|size| format!("&length={size}")).unwrap_or_default();
    Ok(format!("{LINKS_PATH}{}?expires={}{length}&sign={signature}", name.key_id(), expiry(link)))
}

/// A link that somebody has, and what it is about.
#[derive(Debug)]
pub struct OpenedLink {
    pub db: std::sync::Arc<Db<Snapshot>>,
    pub name: LinkName,
    pub link: FileLink,
    pub record: FileRecord,
}

impl OpenedLink {
    /// In whose name bytes are uploaded.
    pub fn caller(&self) -> Caller {
        let user = self.link.user.clone();
        Caller { kind: CallerKind::Session, user, audit_name: format!("link {}", self.link_short_name()) }
    }

    fn link_short_name(&self) -> String {
        hex::encode(&self.name.link.0[..4])
    }
}

impl ServerState {
    /// The link that a URL names, if this node made it so for such requests and it is still good. All others look alike.
    pub fn open_link(&self, key_id: &str, query: &SignedQuery, method: &str) -> Result<OpenedLink, Problem> {
        let unknown = || Problem::not_found("this link is not good: it has expired, was ended, or is not complete");
        let name = LinkName::from_key_id(key_id).ok_or_else(unknown)?;
        let db = self.node.snapshot()?;
        let link = db.file_link(&name.space, name.file, name.link)?.ok_or_else(unknown)?;
        let signature = hex::decode(&query.signature).map_err(|_| unknown())?;
        mac(&name, &link).ok_or_else(unknown)?.verify_slice(&signature).map_err(|_| unknown())?;
        let is_for = link.purpose.method() == method && link.purpose.size() == query.length;
        if !is_for || query.expires != expiry(&link) || link.until <= self.node.now() {
            return Err(unknown());
        }
        let record =
            db.file(&name.space, name.file)?.filter(|record| record.deleted_at.is_none()).ok_or_else(unknown)?;
        // A link is good as long as whoever made it may read.
        if let Some(user) = &link.user {
            let caller = Caller { kind: CallerKind::Session, user: Some(user.clone()), audit_name: String::new() };
            Viewer::resolve(&*db, name.space, &caller, Action::Read, self.node.now()).map_err(|_| unknown())?;
        }
        Ok(OpenedLink { db, name, link, record })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Identity;
    use store::shared::files::LinkPurpose;

    #[test]
    fn a_key_id_is_read_back_and_nothing_else_is_one() {
        let name = LinkName { space: SpaceId([1; 16]), file: FileId([2; 16]), link: LinkId([3; 16]) };
        assert_eq!(LinkName::from_key_id(&name.key_id()), Some(name));
        for bad in ["", "a", "AQEB", &format!("{}A", name.key_id()), &name.key_id()[..63]] {
            assert_eq!(LinkName::from_key_id(bad), None, "{bad}");
        }
    }

    #[test]
    fn everything_that_a_url_says_is_signed() {
        let name = LinkName { space: SpaceId([1; 16]), file: FileId([2; 16]), link: LinkId([3; 16]) };
        let link = FileLink {
            secret: [4; 32],
            purpose: LinkPurpose::Upload { size: Some(10) },
            until: Nanos(50 * Nanos::SECOND),
            created_at: Nanos(0),
            user: None,
            made_by: Identity([5; 32]),
        };
        let url = |name: &LinkName, link: &FileLink| {
            let url = link_url(name, link).expect("signed");
            url.rsplit_once("sign=").map(|(_, signature)| signature.to_owned()).expect("a signature")
        };
        let signature = url(&name, &link);
        let others = [
            url(&LinkName { file: FileId([9; 16]), ..name }, &link),
            url(&name, &FileLink { purpose: LinkPurpose::Download { variant: None }, ..link.clone() }),
            url(&name, &FileLink { purpose: LinkPurpose::Upload { size: Some(11) }, ..link.clone() }),
            url(&name, &FileLink { until: Nanos(51 * Nanos::SECOND), ..link.clone() }),
            url(&name, &FileLink { secret: [6; 32], ..link.clone() }),
        ];
        assert!(others.iter().all(|other| *other != signature), "{others:?}");
        assert!(link_url(&name, &link).expect("signed").contains("?expires=50&length=10&sign="));
    }
}
