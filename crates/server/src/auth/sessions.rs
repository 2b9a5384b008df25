//! Sessions of the pages: a cookie proves a user, and whatever changes something must come from a page of this node.

use crate::context::{PageSession, RequestContext, RequestOrigin};
use crate::problem::Problem;
use crate::secrets::{Secret, read_secret};
use crate::state::{ServerState, SharedState};
use axum::extract::Request;
use engine::access::{Action, Decision, Facts, decide};
use engine::reads::StoreError;
use http::uri::Authority;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, header};
use model::{Nanos, SpaceId};
use node::commands::accounts::{AccountCommand, AccountRequest, SESSION_NANOS};
use node::commands::{Caller, CallerKind, principal};
use store::shared::accounts::{Session, SessionId, session_id, space_of};

/// The cookie, over plain HTTP and over HTTPS; a port follows where one is named, because browsers keep one jar for all
/// ports of a host.
const NAME: &str = "anteroom";
const SECURE_NAME: &str = "__Host-anteroom";
/// How often the use of a session is noted.
const NOTED_EVERY: u64 = 600 * Nanos::SECOND;
/// As long as browsers keep one; the node ends it earlier if it is not used.
const MAX_AGE_SECONDS: u64 = 400 * 24 * 3600;

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const SPACE: HeaderName = HeaderName::from_static("x-space");

/// Whether the browser came over HTTPS, to this node or to a proxy that says so.
pub(super) fn is_secure(state: &ServerState, request: &Request) -> bool {
    let told = request.headers().get("x-forwarded-proto").is_some_and(|value| value == "https");
    state.options.tls.is_some() || told && super::peer(state, request).1
}

/// The host that a browser asked for: HTTP/2 has it in the address.
pub fn host<'r>(headers: &'r HeaderMap, uri: &'r Uri) -> Option<&'r str> {
    let told = headers.get(header::HOST).and_then(|value| value.to_str().ok());
    told.or_else(|| uri.authority().map(Authority::as_str))
}

/// The port in what a browser asked for.
pub(super) fn port(host: &str) -> Option<u16> {
    host.rsplit_once(':').and_then(|(_, port)| port.parse().ok())
}

/// What a browser that came this way calls its session.
fn cookie_name(via: &RequestOrigin) -> String {
    let name = if via.is_secure { SECURE_NAME } else { NAME };
    via.port.map_or_else(|| name.to_owned(), |port| format!("{name}-{port}"))
}

/// The `Set-Cookie` header of a session; an empty value ends it.
pub fn cookie(via: &RequestOrigin, value: &str) -> Result<HeaderValue, Problem> {
    let age = if value.is_empty() { 0 } else { MAX_AGE_SECONDS };
    let (name, secure) = (cookie_name(via), if via.is_secure { "; Secure" } else { "" });
    let text = format!("{name}={value}; Path=/; HttpOnly; SameSite=Lax; Max-Age={age}{secure}");
    HeaderValue::from_str(&text).map_err(|_| Problem::broken("a cookie could not be written"))
}

/// What a browser was given before. Under HTTPS only the name counts that no other host can set.
fn presented_secret(headers: &HeaderMap, via: &RequestOrigin) -> Option<([u8; 32], Secret)> {
    let wanted = cookie_name(via);
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|text| text.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find_map(|(name, value)| if name == wanted { read_secret(value) } else { None })
}

/// Whether a request was made by a page of this node.
pub fn is_from_here(headers: &HeaderMap, uri: &Uri) -> bool {
    if let Some(site) = headers.get(FETCH_SITE) {
        return site == "same-origin" || site == "none";
    }
    let origin = headers.get(header::ORIGIN).and_then(|value| value.to_str().ok());
    match (origin, host(headers, uri)) {
        (Some(origin), Some(host)) => origin.split_once("://").is_some_and(|(_, from)| from == host),
        _ => false,
    }
}

/// A session, if it is good.
pub(crate) fn session(state: &ServerState, id: &SessionId) -> Result<Option<Session>, StoreError> {
    let now = state.node.now();
    let found = state.node.snapshot()?.session(id)?;
    Ok(found.filter(|session| now < session.seen.plus(SESSION_NANOS)))
}

/// Proves the user of a session. Without a good cookie there is nobody.
pub(super) fn prove(
    state: &SharedState,
    request: &Request,
    action: Action,
    via: RequestOrigin,
) -> Result<Option<RequestContext>, Problem> {
    let headers = request.headers();
    let Some((user_key, secret)) = presented_secret(headers, &via) else { return Ok(None) };
    let id = session_id(&user_key, &secret.hash);
    let Some(session) = session(state, &id)? else { return Ok(None) };
    let is_read = [Method::GET, Method::HEAD].contains(request.method());
    if !is_read && !is_from_here(headers, request.uri()) {
        return Err(Problem::foreign("the request comes from another site"));
    }
    note_use(state, &id, &session);
    let home = space_of(&id);
    let space = match space_in_path(state, request, Some(home), session.is_operator)? {
        Some(space) if space == home && session.is_operator => named_space(state, request)?.unwrap_or(home),
        space => space.unwrap_or(home),
    };
    let is_for_the_operator = matches!(action, Action::Administer | Action::Operate | Action::Vouch);
    let caller = match session.is_operator && is_for_the_operator {
        true => Caller { kind: CallerKind::Operator, user: None, audit_name: format!("operator as {}", session.user) },
        false => {
            let audit_name = format!("session of {}", session.user);
            Caller { kind: CallerKind::Session, user: Some(session.user.clone()), audit_name }
        }
    };
    let mut account = [0; 8];
    account.copy_from_slice(&secret.hash[..8]);
    let page_session = PageSession {
        id,
        home,
        user: session.user,
        is_operator: session.is_operator,
        hosts_git: state.git().is_some(),
    };
    Ok(Some(RequestContext {
        space: Some(space),
        caller,
        account,
        action,
        idempotency: None,
        expected: None,
        session: Some(page_session),
        via,
    }))
}

/// Asks the access function about a user who is known by now.
pub(super) fn check_access(state: &ServerState, context: RequestContext) -> Result<RequestContext, Problem> {
    let space = context.space()?;
    let (principal, _) = principal(&*state.node.snapshot()?, &space, &context.caller, state.node.now())?;
    match decide(&principal, context.action, &Facts::default()) {
        Decision::Allow => Ok(context),
        denied => Err(denied.into()),
    }
}

/// The space that the address of a page names: the caller's own, or for the operator any that is kept.
pub(super) fn space_in_path(
    state: &ServerState,
    request: &Request,
    own: Option<SpaceId>,
    is_operator: bool,
) -> Result<Option<SpaceId>, Problem> {
    let Some(name) = request.uri().path().strip_prefix("/s/").and_then(|rest| rest.split('/').next()) else {
        return Ok(own);
    };
    let name = percent_decode(name);
    let db = state.node.snapshot()?;
    let found = match (is_operator, own) {
        (true, _) => db.hosted_spaces()?.into_iter().find(|(_, kept)| kept.name == name).map(|(space, _)| space),
        (false, Some(own)) => db.hosted_space(&own)?.filter(|kept| kept.name == name).map(|_| own),
        (false, None) => None,
    };
    found.map(Some).ok_or_else(|| Problem::not_found("there is no such space for you"))
}

/// The space that the operator's page names for the API, which has it in no path.
fn named_space(state: &ServerState, request: &Request) -> Result<Option<SpaceId>, Problem> {
    let query = request.uri().query().unwrap_or_default();
    let query = query.split('&').find_map(|pair| pair.strip_prefix("space="));
    let header = request.headers().get(SPACE).and_then(|value| value.to_str().ok());
    if request.uri().path().starts_with("/s/") {
        return Ok(None);
    }
    let Some(name) = header.or(query).map(percent_decode).filter(|name| !name.is_empty()) else { return Ok(None) };
    let spaces = state.node.snapshot()?.hosted_spaces()?;
    let found = spaces.into_iter().find(|(_, kept)| kept.name == name).map(|(space, _)| space);
    found.map(Some).ok_or_else(|| Problem::not_found("there is no such space for you"))
}

/// A part of an address without its percent signs.
pub fn percent_decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        let code = after.get(..2).and_then(|digits| hex::decode(digits).ok());
        match (byte, code) {
            (b'%', Some(code)) => {
                bytes.extend(code);
                rest = &after[2..];
            }
            _ => {
                bytes.push(*byte);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Notes now and then that a session is used, without waiting for it.
fn note_use(state: &ServerState, id: &SessionId, session: &Session) {
    if session.seen.plus(NOTED_EVERY) < state.node.now() {
        let request = AccountRequest { space: space_of(id), what: AccountCommand::Touch(*id) };
        let _ = state.node.submit(request, |_| ());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secrets::write_secret;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &str)| {
            (HeaderName::from_static(name), HeaderValue::from_str(value).expect("a value"))
        };
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn a_cookie_reads_back_among_others_under_the_name_for_its_scheme() {
        let (user_key, secret) = ([7; 32], Secret::of("ab".repeat(32)));
        let text = write_secret(&user_key, &secret);
        let via = |is_secure, port| RequestOrigin { network: 0, is_secure, port };
        let ways =
            [via(false, None), via(true, None), via(false, Some(7117)), via(true, Some(8443)), via(false, Some(80))];
        for (number, way) in ways.iter().enumerate() {
            let sent = headers(&[("cookie", &format!("a=b; {}={text}; c=d", cookie_name(way)))]);
            let found = presented_secret(&sent, way);
            assert!(found.is_some_and(|(found, other)| found == user_key && other.hash == secret.hash), "{way:?}");
            let others = ways.iter().enumerate().filter(|(other, _)| *other != number);
            assert!(
                others.clone().count() == 4
                    && others.into_iter().all(|(_, way)| presented_secret(&sent, way).is_none())
            );
        }
        for bad in ["", "x", &text[1..], &format!("{text}0"), &"é".repeat(64), &"zz".repeat(64)] {
            assert!(read_secret::<32>(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn names_in_addresses_are_decoded() {
        for (text, expected) in [("home", "home"), ("team%40x", "team@x"), ("%", "%"), ("%zz", "%zz"), ("a%4", "a%4")] {
            assert_eq!(percent_decode(text), expected);
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
            assert_eq!(is_from_here(&headers(pairs), &Uri::from_static("/")), expected, "{pairs:?}");
        }
    }
}
