//! Errors as RFC 9457 problems: what was wrong, and what to do.

use axum::response::{IntoResponse, Response};
use engine::access::Decision;
use engine::create::CreateError;
use engine::reads::StoreError;
use http::{HeaderValue, StatusCode, header};
use node::commands::accounts::AccountError;
use node::commands::{AdminError, BadName, CommandError};
use node::{AskError, RequestError};
use queries::QueryError;
use serde::Serialize;
use utoipa::ToSchema;

/// What went wrong, as `application/problem+json`.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({
    "type": "/problems/not-found", "title": "Not found", "status": 404, "detail": "there is no such thread",
    "action": "check the id and the space of the key"
}))]
pub struct Problem {
    /// A stable name for this kind of problem.
    #[serde(rename = "type")]
    pub kind: String,
    /// A short description of this kind of problem.
    pub title: &'static str,
    /// The HTTP status.
    pub status: u16,
    /// What was wrong with this request.
    pub detail: String,
    /// What to do.
    pub action: &'static str,
    /// After how many seconds a retry may succeed.
    #[serde(skip)]
    pub retry_after: Option<u64>,
}

macro_rules! problems {
    ($($(#[$doc:meta])* $name:ident = $status:ident, $slug:literal, $title:literal, $action:literal;)*) => {
        impl Problem {
            $($(#[$doc])*
            pub fn $name(detail: impl Into<String>) -> Problem {
                Problem {
                    kind: concat!("/problems/", $slug).to_owned(),
                    title: $title,
                    status: StatusCode::$status.as_u16(),
                    detail: detail.into(),
                    action: $action,
                    retry_after: None,
                }
            })*

            /// Every kind of problem: its name, status, title and what to do.
            pub const ALL: &'static [(&'static str, StatusCode, &'static str, &'static str)] =
                &[$(($slug, StatusCode::$status, $title, $action),)*];
        }
    };
}

problems! {
    /// The request is not what the path takes.
    bad_request = BAD_REQUEST, "bad-request", "The request is malformed",
        "compare the request with the reference at /docs";
    /// A credential was sent where it would be logged.
    key_in_url = BAD_REQUEST, "key-in-url", "Credentials must not be sent in a URL",
        "send the key as X-API-Key or Authorization: Bearer; consider this one leaked and rotate it";
    /// No credential was accepted.
    unproven = UNAUTHORIZED, "unproven", "Authentication is required",
        "send a valid key as X-API-Key, and for a frontend key X-User-ID with its X-User-Signature";
    /// Authenticated, but not allowed.
    forbidden = FORBIDDEN, "forbidden", "Not allowed", "use a key or a user with the right that the detail names";
    /// The request was not made by a page of this node.
    foreign = FORBIDDEN, "foreign", "The request comes from another site",
        "open the page of this node itself, and try again there";
    /// A quota is used up.
    over_quota = FORBIDDEN, "over-quota", "The storage quota is used up",
        "purge content that is no longer needed, or ask the operator for a larger quota";
    /// It does not exist, or the caller may not know of it.
    not_found = NOT_FOUND, "not-found", "Not found", "check the id and the space of the key";
    /// The path exists, the method does not.
    method = METHOD_NOT_ALLOWED, "method", "The method is not allowed", "see the reference at /docs";
    /// The request did not arrive in time.
    slow = REQUEST_TIMEOUT, "slow", "The request took too long", "send the whole request at once";
    /// It conflicts with existing data.
    conflict = CONFLICT, "conflict", "The request conflicts with existing data", "choose another id, or read the existing data first";
    /// The status of a file does not allow it.
    status_conflict = CONFLICT, "status", "The status does not allow this", "read the status, and wait or choose another step";
    /// No part of the file is in the range.
    range = RANGE_NOT_SATISFIABLE, "range", "The range is not in the file", "ask for a range within the file, or for all of it";
    /// It is declared in the configuration, which requests cannot change.
    declared = CONFLICT, "declared", "It is declared in the configuration",
        "remove it from the node's configuration file, then restart the node";
    /// The space has no key that signs for users.
    no_signing_key = CONFLICT, "no-signing-key", "The space has no signing key",
        "create one with POST /admin/signing-keys or anteroom admin new-signing-key";
    /// What the caller expects to find is not what there is.
    precondition = PRECONDITION_FAILED, "precondition", "It was changed since it was read",
        "read it again, and send the change with the new ETag";
    /// Another version of a protocol is spoken.
    protocol_version = PRECONDITION_FAILED, "protocol-version", "This version of the protocol is not spoken here",
        "send the version that the detail names";
    /// An id is taken.
    id_taken = CONFLICT, "id-taken", "The id is taken", "choose another id, or read what has this one";
    /// An idempotency key was used for another request.
    key_reused = CONFLICT, "key-reused", "The Idempotency-Key was used for another request",
        "make a new key for each request, and repeat it only with the same request";
    /// The body is too large.
    too_large = PAYLOAD_TOO_LARGE, "too-large", "The request is too large", "attach large things as files";
    /// A content type that is not supported.
    media_type = UNSUPPORTED_MEDIA_TYPE, "media-type", "The content type is not supported",
        "send JSON as application/json";
    /// It is well formed, but not acceptable.
    unprocessable = UNPROCESSABLE_ENTITY, "unprocessable", "A value is not accepted",
        "change what the detail names";
    /// A text is too long, a list too large.
    over_limit = UNPROCESSABLE_ENTITY, "over-limit", "A limit is not kept", "keep to the limit that the detail names";
    /// An id or name breaks the rules for names.
    bad_name = UNPROCESSABLE_ENTITY, "bad-name", "A name is not allowed",
        "use 1 to 128 letters, digits and punctuation, as /docs says";
    /// A body cannot be kept as it is.
    bad_body = UNPROCESSABLE_ENTITY, "bad-body", "The body cannot be kept", "change the body as the detail says";
    /// The caller exceeds a rate limit.
    too_often = TOO_MANY_REQUESTS, "too-often", "Too many requests", "wait as long as Retry-After says";
    /// The node is overloaded, or cannot write.
    overloaded = SERVICE_UNAVAILABLE, "overloaded", "The node cannot handle the request now", "try again after Retry-After";
    /// Something is broken on this node.
    broken = INTERNAL_SERVER_ERROR, "broken", "Internal error",
        "read the log of the node, and run anteroom verify";
}

impl Problem {
    /// The same, with a time after which a retry may succeed.
    pub fn after(mut self, seconds: u64) -> Problem {
        self.retry_after = Some(seconds);
        self
    }
}

/// What the content type of a problem is.
const PROBLEM_JSON: HeaderValue = HeaderValue::from_static("application/problem+json");

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = serde_json::to_vec(&self).unwrap_or_default();
        let mut response = (status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, PROBLEM_JSON);
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response.extensions_mut().insert(self.clone());
        let headers = response.headers_mut();
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

impl From<Decision> for Problem {
    fn from(decision: Decision) -> Problem {
        match decision {
            Decision::Unproven => Problem::unproven("the request carries no accepted credential"),
            Decision::Forbidden(why) => Problem::forbidden(why),
            Decision::Hidden => Problem::not_found("there is no such thread or message in this space"),
            Decision::Allow => Problem::broken("a request was refused although it is allowed"),
        }
    }
}

impl From<QueryError> for Problem {
    fn from(why: QueryError) -> Problem {
        let detail = why.to_string();
        match why {
            QueryError::NotFound(_) => Problem::not_found(detail),
            QueryError::Malformed(_) => Problem::bad_request(detail),
            QueryError::Denied(decision) => decision.into(),
            QueryError::CredentialEnded(_) => Problem::unproven(detail),
            QueryError::NotReady => Problem::overloaded(detail).after(5),
            QueryError::Stopping => Problem::overloaded(detail).after(5),
            QueryError::Broken(_) => Problem::broken(detail),
            QueryError::Store(fault) => fault.into(),
        }
    }
}

impl From<CommandError> for Problem {
    fn from(why: CommandError) -> Problem {
        let detail = why.to_string();
        match why {
            CommandError::Denied(decision) => decision.into(),
            CommandError::Unknown(_) | CommandError::NotHosted | CommandError::OtherSpace => Problem::not_found(detail),
            CommandError::NotInForce => Problem::forbidden(detail),
            CommandError::Nobody(_) => {
                Problem { action: "check how the name is written", ..Problem::not_found(detail) }
            }
            CommandError::OverQuota(_) => Problem::over_quota(detail),
            CommandError::Taken(_) => Problem::id_taken(detail),
            CommandError::OtherRequest => Problem::key_reused(detail),
            CommandError::Changed => Problem::precondition(detail),
            CommandError::Deleted => Problem { action: "write a new message", ..Problem::conflict(detail) },
            CommandError::Name(_) => Problem::bad_name(detail),
            CommandError::TooMany(_) | CommandError::TooManyPins(_) => Problem::over_limit(detail),
            CommandError::TooManyBlocked(_) | CommandError::TooManyInDirect(_) => Problem::over_limit(detail),
            CommandError::Body(model::body::BadBody::Long) => Problem::too_large(detail),
            CommandError::Body(_) => Problem::bad_body(detail),
            CommandError::NoKey | CommandError::Direct => Problem::conflict(detail),
            CommandError::Create(CreateError::NoRight) => Problem::forbidden(detail),
            CommandError::Create(CreateError::Reference(_)) => Problem::not_found(detail),
            CommandError::Create(_) => Problem::unprocessable(detail),
            CommandError::Store(fault) => fault.into(),
        }
    }
}

impl From<AdminError> for Problem {
    fn from(why: AdminError) -> Problem {
        let detail = why.to_string();
        match why {
            AdminError::Command(why) => why.into(),
            AdminError::Store(fault) => fault.into(),
            AdminError::NameTaken(_) | AdminError::Ended => Problem::conflict(detail),
            AdminError::NoSuchKey | AdminError::NoSuchUser | AdminError::NoSuchIdentity => Problem::not_found(detail),
            AdminError::IsUser(_) | AdminError::IsKeeper => Problem::conflict(detail),
            AdminError::NoSuchWebhook | AdminError::NoSuchReport => Problem::not_found(detail),
            AdminError::TooManyWebhooks => Problem::over_limit(detail),
        }
    }
}

impl From<BadName> for Problem {
    fn from(why: BadName) -> Problem {
        Problem::bad_name(why.to_string())
    }
}

impl From<model::body::BadBody> for Problem {
    fn from(why: model::body::BadBody) -> Problem {
        CommandError::Body(why).into()
    }
}

impl<E: Into<Problem>> From<AskError<E>> for Problem {
    fn from(why: AskError<E>) -> Problem {
        match why {
            AskError::NotRun(why) => why.into(),
            AskError::Refused(why) => why.into(),
        }
    }
}

impl From<RequestError> for Problem {
    fn from(why: RequestError) -> Problem {
        let detail = why.to_string();
        match why {
            RequestError::Busy => Problem::overloaded(detail).after(1),
            RequestError::Full => Problem::overloaded(detail).after(60),
            RequestError::Objects(_) => Problem::overloaded(detail).after(5),
            RequestError::Dropped(_) => Problem::unprocessable(detail),
            RequestError::Parked(_) => Problem::broken("the writer parked this request"),
            RequestError::Stopped | RequestError::Failed(_) => Problem::overloaded("the node is stopping").after(5),
        }
    }
}

impl From<StoreError> for Problem {
    fn from(fault: StoreError) -> Problem {
        tracing::error!(%fault, "a read failed");
        match fault {
            StoreError::Full => Problem::overloaded("the disk is full").after(60),
            StoreError::Store(_) | StoreError::Broken(_) => Problem::broken("the store could not be read"),
        }
    }
}

impl From<AccountError> for Problem {
    fn from(why: AccountError) -> Problem {
        let detail = why.to_string();
        match why {
            AccountError::Command(why) => why.into(),
            AccountError::Store(fault) => fault.into(),
            AccountError::InvitationEnded | AccountError::Unknown(_) => Problem::not_found(detail),
            AccountError::NameTaken(_) => Problem { action: "choose another name", ..Problem::conflict(detail) },
            AccountError::LastWay => Problem {
                action: "go back, and set a password or add another passkey first",
                ..Problem::conflict(detail)
            },
            AccountError::TooMany(..) => Problem::over_limit(detail),
        }
    }
}

impl From<CreateError> for Problem {
    fn from(why: CreateError) -> Problem {
        CommandError::Create(why).into()
    }
}
