//! Sessions of the pages: a cookie proves a user, and whatever changes something must come from a page of this node.

use crate::ask::fresh;
use crate::caller::{Guest, Signed};
use crate::problem::Problem;
use crate::state::{House, Shared};
use axum::extract::Request;
use engine::access::{Action, Decision, Facts, decide};
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use model::{Nanos, SpaceId};
use node::Request as Order;
use node::acts::entering::{Entering, Entrance, SESSION_NANOS};
use node::acts::{Caller, Means, principal};
use store::accounts::{SecretHash, Session};

/// The cookie, over plain HTTP and over HTTPS.
const NAME: &str = "anteroom";
const SECURE_NAME: &str = "__Host-anteroom";
/// How often the use of a session is noted.
const NOTED_EVERY: u64 = 600 * Nanos::SECOND;
const MAX_AGE_SECONDS: u64 = SESSION_NANOS / Nanos::SECOND;

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const SPACE: HeaderName = HeaderName::from_static("x-space");

/// A secret that a browser is given, and the hash that is kept of it.
pub(crate) struct Secret {
    pub(crate) text: String,
    pub(crate) hash: SecretHash,
}

impl Secret {
    pub(crate) fn fresh() -> Result<Secret, Problem> {
        Ok(Secret::of(hex::encode(fresh::<32>()?)))
    }

    pub(crate) fn of(text: String) -> Secret {
        let hash = *blake3::hash(text.as_bytes()).as_bytes();
        Secret { text, hash }
    }
}

/// The space and the secret in a text that [`written`] wrote.
pub(crate) fn read(text: &str) -> Option<(SpaceId, Secret)> {
    let (space, secret) = text.split_at_checked(32)?;
    let is_secret = secret.len() == 64 && secret.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_secret.then(|| Some((space.parse().ok()?, Secret::of(secret.to_owned()))))?
}

/// A secret of a space as one text.
pub(crate) fn written(space: &SpaceId, secret: &Secret) -> String {
    format!("{space}{}", secret.text)
}

/// Whether the browser came over HTTPS, to this node or to a proxy that says so.
pub(crate) fn is_secure(house: &House, headers: &HeaderMap) -> bool {
    let told = headers.get("x-forwarded-proto").is_some_and(|value| value == "https");
    house.options.tls.is_some() || told && !house.options.proxies.is_empty()
}

/// What tells a browser to remember a session.
pub(crate) fn cookie(is_secure: bool, value: &str) -> Result<HeaderValue, Problem> {
    let age = if value.is_empty() { 0 } else { MAX_AGE_SECONDS };
    let (name, secure) = if is_secure { (SECURE_NAME, "; Secure") } else { (NAME, "") };
    let text = format!("{name}={value}; Path=/; HttpOnly; SameSite=Lax; Max-Age={age}{secure}");
    HeaderValue::from_str(&text).map_err(|_| Problem::broken("a cookie could not be written"))
}

fn presented(headers: &HeaderMap) -> Option<(SpaceId, Secret)> {
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|text| text.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find_map(|(name, value)| if [NAME, SECURE_NAME].contains(&name) { read(value) } else { None })
}

/// Whether a request was made by a page of this node.
pub(crate) fn is_from_here(headers: &HeaderMap) -> bool {
    if let Some(site) = headers.get(FETCH_SITE) {
        return site == "same-origin" || site == "none";
    }
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    match (text(header::ORIGIN), text(header::HOST)) {
        (Some(origin), Some(host)) => origin.split_once("://").is_some_and(|(_, from)| from == host),
        _ => false,
    }
}

/// The session behind a cookie, if it is good.
pub(crate) fn session(house: &House, space: &SpaceId, hash: &SecretHash) -> Result<Option<Session>, Problem> {
    let now = house.node.now();
    let found = house.node.snapshot()?.session(space, hash)?;
    Ok(found.filter(|session| now < session.seen.plus(SESSION_NANOS)))
}

/// Proves the user of a session. Without a good cookie there is nobody.
pub(super) fn prove(house: &Shared, request: &Request, action: Action) -> Result<Option<Guest>, Problem> {
    let headers = request.headers();
    let Some((space, secret)) = presented(headers) else { return Ok(None) };
    let Some(session) = session(house, &space, &secret.hash)? else { return Ok(None) };
    let is_read = [Method::GET, Method::HEAD].contains(request.method());
    if !is_read && !is_from_here(headers) {
        return Err(Problem::foreign("the request comes from another site"));
    }
    note_use(house, &space, &secret.hash, &session);
    let home = space;
    let space = chosen(house, request, space, &session)?;
    let is_for_the_operator = matches!(action, Action::Administer | Action::Operate | Action::Vouch);
    let caller = match session.is_operator && is_for_the_operator {
        true => Caller { means: Means::Operator, user: None, called: format!("operator as {}", session.user) },
        false => {
            let called = format!("session of {}", session.user);
            Caller { means: Means::Session, user: Some(session.user.clone()), called }
        }
    };
    let mut account = [0; 8];
    account.copy_from_slice(&secret.hash[..8]);
    let signed = Signed { home, hash: secret.hash, user: session.user, is_operator: session.is_operator };
    Ok(Some(Guest { space: Some(space), caller, account, action, once: None, signed: Some(signed) }))
}

/// Asks the access function about a user who is known by now.
pub(super) fn allowed(house: &House, guest: Guest) -> Result<Guest, Problem> {
    let space = guest.space()?;
    let (principal, _) = principal(&*house.node.snapshot()?, &space, &guest.caller, house.node.now())?;
    match decide(&principal, guest.action, &Facts::default()) {
        Decision::Allow => Ok(guest),
        denied => Err(denied.into()),
    }
}

/// The space that a request is about: the session's, or for the operator the one that is named.
fn chosen(house: &House, request: &Request, own: SpaceId, session: &Session) -> Result<SpaceId, Problem> {
    let path = request.uri().path().strip_prefix("/s/").and_then(|rest| rest.split('/').next());
    let query = request.uri().query().unwrap_or_default();
    let query = query.split('&').find_map(|pair| pair.strip_prefix("space="));
    let header = request.headers().get(SPACE).and_then(|value| value.to_str().ok());
    let Some(name) = path.or(header).or(query).filter(|name| !name.is_empty()) else { return Ok(own) };
    let db = house.node.snapshot()?;
    let found = match session.is_operator {
        true => db.kept_spaces()?.into_iter().find(|(_, kept)| kept.name == name).map(|(space, _)| space),
        false => db.kept_space(&own)?.filter(|kept| kept.name == name).map(|_| own),
    };
    found.ok_or_else(|| Problem::not_found("there is no such space for you"))
}

/// Notes now and then that a session is used, without waiting for it.
fn note_use(house: &House, space: &SpaceId, hash: &SecretHash, session: &Session) {
    if session.seen.plus(NOTED_EVERY) < house.node.now() {
        let entrance = Entrance { space: *space, what: Entering::Touch(*hash) };
        let _ = house.node.submit(Order::Enter(Box::new(entrance)), |_| ());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &str)| {
            (HeaderName::from_static(name), HeaderValue::from_str(value).expect("a value"))
        };
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn a_cookie_reads_back_among_others_and_nothing_else_does() {
        let (space, secret) = (SpaceId([7; 16]), Secret::of("ab".repeat(32)));
        let text = written(&space, &secret);
        for name in [NAME, SECURE_NAME] {
            let found = presented(&headers(&[("cookie", &format!("a=b; {name}={text}; c=d"))]));
            assert!(found.is_some_and(|(found, other)| found == space && other.hash == secret.hash), "{name}");
        }
        for bad in ["", "x", &text[1..], &format!("{text}0"), &"é".repeat(48), &"zz".repeat(48)] {
            assert!(read(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn only_pages_of_this_node_change_anything() {
        let cases: [(&[(&'static str, &str)], bool); 7] = [
            (&[], false),
            (&[("sec-fetch-site", "same-origin")], true),
            (&[("sec-fetch-site", "cross-site"), ("origin", "http://a"), ("host", "a")], false),
            (&[("sec-fetch-site", "same-site")], false),
            (&[("origin", "http://127.0.0.1:7117"), ("host", "127.0.0.1:7117")], true),
            (&[("origin", "http://evil.example"), ("host", "127.0.0.1:7117")], false),
            (&[("origin", "null"), ("host", "null")], false),
        ];
        for (pairs, expected) in cases {
            assert_eq!(is_from_here(&headers(pairs)), expected, "{pairs:?}");
        }
    }
}
