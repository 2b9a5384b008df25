//! Authentication: every request passes here before a handler runs. It proves who asks, counts the request, and asks the
//! access function whether that caller may use the route.

pub mod keys;
pub mod sessions;
pub mod signature;

use crate::context::{RequestContext, RequestOrigin};
use crate::idempotency;
use crate::problem::Problem;
use crate::rate_limits;
use crate::routes::{RouteRule, RouteTable};
use crate::state::{ServerState, SharedState};
use axum::extract::{ConnectInfo, DefaultBodyLimit, MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use engine::access::{Action, Decision, Facts, KeyRole, Principal, UserStanding, decide};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use model::SpaceId;
use node::commands::{Caller, CallerKind, names};
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// Where live streams are: the one route that takes tickets.
pub const EVENTS_PATH: &str = "/v1/events";

/// Query parameters in which people put keys, where they would be logged by everything on the way.
const KEY_PARAMETERS: [&str; 7] = ["api_key", "apikey", "x-api-key", "key", "token", "access_token", "signature"];

const USER_ID: HeaderName = HeaderName::from_static("x-user-id");
const USER_SIGNATURE: HeaderName = HeaderName::from_static("x-user-signature");
const ON_BEHALF_OF_SPACE: HeaderName = HeaderName::from_static("x-space");

/// What a credential proves.
pub(crate) struct ProvenCredential {
    pub(crate) kind: CallerKind,
    pub(crate) space: Option<SpaceId>,
    pub(crate) account: [u8; 8],
    pub(crate) audit_name: String,
}

/// What may be added to the answer to a request that was refused because nobody was proven.
pub type OnRefused = fn(Request, Response) -> Pin<Box<dyn Future<Output = Response> + Send>>;

/// What authentication works with.
#[derive(Clone)]
pub(crate) struct Authentication {
    pub(crate) state: SharedState,
    pub(crate) routes: Arc<RouteTable>,
    pub(crate) on_refused: Option<OnRefused>,
}

/// Runs the handler for a request that may use its route, or answers why not; notes how long that took.
pub(crate) async fn authenticate(
    State(authentication): State<Authentication>,
    request: Request,
    next: Next,
) -> Response {
    let state = &authentication.state;
    let (began, method) = (state.node.now(), request.method().clone());
    let path = request.extensions().get::<MatchedPath>().cloned();
    let path = path.as_ref().map(MatchedPath::as_str).unwrap_or_default();
    let rule = authentication.routes.rule(&method, path);
    let mut response = match rule {
        Some(rule) => authentication.answer(rule, request, next).await,
        None => authentication.refuse_method(path),
    };
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    let took = state.node.now().0.saturating_sub(began.0);
    // A method that no route takes is whatever a client made up: it would make a family of its own each time.
    if rule.is_some() {
        state.request_metrics.answered(&method, path, response.status().as_u16(), took);
    }
    response
}

impl Authentication {
    async fn answer(&self, rule: &RouteRule, mut request: Request, next: Next) -> Response {
        if rule.body_factor > 1 {
            let limit = self.state.options.limits.body_bytes_max.saturating_mul(rule.body_factor);
            DefaultBodyLimit::max(limit).apply(&mut request);
        }
        request.extensions_mut().insert(rule.conditions);
        let timeout = Duration::from_secs(self.state.options.limits.request_seconds);
        let query = request.uri().query().unwrap_or_default();
        let admitted = self.state.load.admit(rule.action).and_then(|()| admit(&self.state, rule, &request));
        let admitted =
            admitted.and_then(|context| rule.check_query(query, context.session.is_some()).map(|()| context));
        match admitted {
            Ok(context) => {
                let timed = tokio::time::timeout(rule.timeout.unwrap_or(timeout), run_handler(context, request, next));
                let slow = || Problem::slow("the request was not read and answered in time").into_response();
                timed.await.unwrap_or_else(|_| slow())
            }
            Err(problem) => {
                let is_unproven = problem.status == StatusCode::UNAUTHORIZED;
                let response = problem.clone().into_response();
                match self.on_refused.filter(|_| is_unproven) {
                    // The address was counted, and its timeout is that of any request.
                    Some(on_refused) => tokio::time::timeout(timeout, on_refused(request, response))
                        .await
                        .unwrap_or_else(|_| problem.into_response()),
                    None => response,
                }
            }
        }
    }

    fn refuse_method(&self, path: &str) -> Response {
        let methods = self.routes.allowed_methods(path);
        let allow = HeaderValue::from_str(&methods);
        let mut response = Problem::method(format!("this path takes {methods}")).into_response();
        response.headers_mut().extend(allow.map(|allow| (header::ALLOW, allow)));
        response
    }
}

/// Runs the handler of a request that may use its route.
async fn run_handler(context: RequestContext, request: Request, next: Next) -> Response {
    match idempotency::read_key(&context, request).await {
        Ok((mut request, idempotency)) => {
            request.extensions_mut().insert(RequestContext { idempotency, ..context });
            next.run(request).await
        }
        Err(problem) => problem.into_response(),
    }
}

fn admit(state: &SharedState, rule: &RouteRule, request: &Request) -> Result<RequestContext, Problem> {
    let action = rule.action;
    refuse_keys_in_query(request.uri().query().unwrap_or_default())?;
    let address = address(state, request);
    let port = sessions::host(request.headers(), request.uri()).and_then(sessions::port);
    let via =
        RequestOrigin { network: rate_limits::network(address), is_secure: sessions::is_secure(state, request), port };
    let headers = request.headers();
    let proven = match caller_of_ticket(state, request)? {
        Some(context) => return Ok(RequestContext { action, via, ..context }),
        // What everybody may see needs no proof: a health check with a key that has expired is not refused.
        None if action == Action::Look => None,
        None => count_failures(state, address, keys::prove(state, headers))?,
    };
    let Some(proven) = proven else {
        state.rate_limiters.count_address(address)?;
        if let Some(context) = sessions::prove(state, request, action, via)? {
            state.rate_limiters.count_user(&context.account, "")?;
            return sessions::check_access(state, context);
        }
        let caller = Caller { kind: CallerKind::Operator, user: None, audit_name: "nobody".into() };
        return match decide(&Principal::Nobody, action, &Facts::default()) {
            Decision::Allow => Ok(RequestContext {
                space: None,
                caller,
                account: [0; 8],
                action,
                idempotency: None,
                expected: None,
                session: None,
                via,
            }),
            denied => Err(denied.into()),
        };
    };
    let user = count_failures(state, address, claimed_user(state, headers, &proven))?;
    state.rate_limiters.count_key(&proven.account)?;
    match (proven.kind, &user) {
        (CallerKind::Key(KeyRole::Frontend), _) => {
            state.rate_limiters.count_address(address)?;
            state.rate_limiters.count_user(&proven.account, user.as_deref().unwrap_or_default())?;
        }
        // Whoever vouches for users does not vouch for what they do with their scripts.
        (CallerKind::Key(_), Some(user)) => state.rate_limiters.count_vouched_user(&proven.account, user)?,
        _ => {}
    }
    let space = proven.space.map_or_else(|| space_for_operator(state, headers), |space| Ok(Some(space)))?;
    let space = sessions::space_in_path(state, request, space, proven.kind == CallerKind::Operator)?;
    let caller = Caller { kind: proven.kind, user, audit_name: proven.audit_name };
    let context = RequestContext {
        space,
        caller,
        account: proven.account,
        action,
        idempotency: None,
        expected: None,
        session: None,
        via,
    };
    match decide(&presumed(&context), action, &Facts::default()) {
        Decision::Allow => Ok(context),
        denied => Err(denied.into()),
    }
}

/// Failed attempts are counted by address, so that guessing keys or signatures soon meets the rate limit.
fn count_failures<T>(state: &SharedState, address: IpAddr, proof: Result<T, Problem>) -> Result<T, Problem> {
    if proof.is_err() {
        state.rate_limiters.count_address(address)?;
    }
    proof
}

/// What can be said of a caller before anything is read: the user may turn out to be new, or named in the body.
fn presumed(context: &RequestContext) -> Principal {
    let space = context.space.unwrap_or(SpaceId::ZERO);
    match context.caller.kind {
        CallerKind::Key(KeyRole::Frontend) => {
            let user = context.caller.user.as_ref().map(|_| UserStanding::New);
            Principal::Key { role: KeyRole::Frontend, space, user }
        }
        CallerKind::Key(role) => Principal::Key { role, space, user: Some(UserStanding::New) },
        CallerKind::Session => Principal::Session { space, user: UserStanding::New },
        // The operator names a user as a backend does.
        CallerKind::Operator if matches!(context.action, Action::Write | Action::Own) => {
            Principal::Key { role: KeyRole::Admin, space, user: Some(UserStanding::New) }
        }
        CallerKind::Operator => Principal::Operator,
    }
}

fn refuse_keys_in_query(query: &str) -> Result<(), Problem> {
    let names = query.split('&').map(|pair| pair.split('=').next().unwrap_or_default());
    match names.into_iter().find(|name| KEY_PARAMETERS.iter().any(|key| name.eq_ignore_ascii_case(key))) {
        Some(_) => Err(Problem::key_in_url("the query string carries a key or signature")),
        None => Ok(()),
    }
}

/// A single-use ticket stands for the caller who got it, for live streams only.
fn caller_of_ticket(state: &SharedState, request: &Request) -> Result<Option<RequestContext>, Problem> {
    let query = request.uri().query().unwrap_or_default();
    let ticket = query.split('&').find_map(|pair| pair.strip_prefix("ticket="));
    match ticket {
        None => Ok(None),
        Some(_) if request.uri().path() != EVENTS_PATH => Err(Problem::bad_request("tickets are for live streams")),
        Some(ticket) => match state.tickets.take(ticket, state.node.now()) {
            Some(context) => Ok(Some(context)),
            None => Err(Problem::unproven("the ticket is unknown, used, or older than 30 seconds")),
        },
    }
}

/// The one value of a header; several are nobody's.
pub(crate) fn single_value<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Result<Option<&'h str>, Problem> {
    let mut values = headers.get_all(name).iter();
    let (first, second) = (values.next(), values.next());
    if second.is_some() {
        return Err(Problem::unproven(format!("{name} was sent twice")));
    }
    match first.map(|value| value.to_str()) {
        None => Ok(None),
        Some(Ok(text)) => Ok(Some(text)),
        Some(Err(_)) => Err(Problem::unproven(format!("{name} is not plain text"))),
    }
}

/// The user that a request acts for: named by a backend, proven for a frontend.
fn claimed_user(
    state: &SharedState,
    headers: &HeaderMap,
    proven: &ProvenCredential,
) -> Result<Option<String>, Problem> {
    let (id, signature) = (single_value(headers, &USER_ID)?, single_value(headers, &USER_SIGNATURE)?);
    let Some(id) = id else { return Ok(None) };
    if names::check_name(id).is_err() {
        return Err(match proven.kind {
            CallerKind::Key(KeyRole::Frontend) => Problem::unproven("X-User-ID is not a user id"),
            _ => Problem::bad_request("X-User-ID is not a user id"),
        });
    }
    let must_be_proven = proven.kind == CallerKind::Key(KeyRole::Frontend);
    match (signature, proven.space) {
        (Some(signature), Some(space)) => signature::check(state, &space, id, signature)?,
        (None, _) | (_, None) if must_be_proven => return Err(Problem::unproven("X-User-Signature is missing")),
        (None, _) | (_, None) => {}
    }
    Ok(Some(id.to_owned()))
}

/// The operator may name a space; without a name it is the first that the node keeps.
fn space_for_operator(state: &SharedState, headers: &HeaderMap) -> Result<Option<SpaceId>, Problem> {
    let spaces = state.node.snapshot()?.hosted_spaces()?;
    let Some(name) = single_value(headers, &ON_BEHALF_OF_SPACE)? else {
        return Ok(spaces.iter().find(|(_, kept)| kept.name == "home").or(spaces.first()).map(|(space, _)| *space));
    };
    let found = spaces.iter().find(|(space, kept)| kept.name == name || space.to_string() == name);
    found.map(|(space, _)| Some(*space)).ok_or_else(|| Problem::not_found("this node keeps no such space"))
}

/// Who is at the other end of the connection, and whether that is one of our proxies.
fn peer(state: &ServerState, request: &Request) -> (IpAddr, bool) {
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>().map(|info| info.0.ip());
    let peer = peer.unwrap_or(IpAddr::from([0, 0, 0, 0])).to_canonical();
    (peer, state.options.proxies.iter().any(|net| net.contains(&peer)))
}

/// Where a request comes from: the peer, or what a configured proxy says about it.
fn address(state: &SharedState, request: &Request) -> IpAddr {
    let (peer, is_told) = peer(state, request);
    let is_proxy = |address: &IpAddr| state.options.proxies.iter().any(|net| net.contains(address));
    if !is_told {
        return peer;
    }
    // Some proxies add to the header, some add another one: the last of all was said by the one that we trust.
    let told: Vec<&str> =
        request.headers().get_all("x-forwarded-for").iter().filter_map(|value| value.to_str().ok()).collect();
    let told = told.iter().rev().flat_map(|value| value.rsplit(','));
    // The last address that is not one of our proxies is the one they saw.
    let mut told = told.filter_map(|text| text.trim().parse::<IpAddr>().ok()).map(|ip| ip.to_canonical());
    told.find(|address| !is_proxy(address)).unwrap_or(peer)
}
