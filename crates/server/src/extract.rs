//! Extractors that answer with problems.

use crate::problem::Problem;
use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, FormRejection, PathRejection, QueryRejection};
use axum::extract::{FromRequest, FromRequestParts, Request};
use http::StatusCode;

/// The query string.
#[derive(Debug, FromRequestParts)]
#[from_request(via(axum::extract::Query), rejection(Problem))]
pub struct Query<T>(pub T);

/// What the path names.
#[derive(Debug, FromRequestParts)]
#[from_request(via(axum::extract::Path), rejection(Problem))]
pub struct Path<T>(pub T);

/// A form that was filled in.
#[derive(Debug, FromRequest)]
#[from_request(via(axum::extract::Form), rejection(Problem))]
pub struct FormFields<T>(pub T);

impl From<FormRejection> for Problem {
    fn from(why: FormRejection) -> Problem {
        match why.status() {
            StatusCode::PAYLOAD_TOO_LARGE => Problem::too_large("the form is larger than this node takes"),
            StatusCode::UNSUPPORTED_MEDIA_TYPE => Problem::media_type("this page takes forms"),
            _ => Problem::unprocessable(format!("the form does not fit: {}", why.body_text())),
        }
    }
}

/// The body.
#[derive(Debug)]
pub struct RequestBody(pub Bytes);

impl<S: Send + Sync> FromRequest<S> for RequestBody {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<RequestBody, Problem> {
        Ok(RequestBody(Bytes::from_request(request, state).await?))
    }
}

impl From<QueryRejection> for Problem {
    fn from(why: QueryRejection) -> Problem {
        Problem::bad_request(format!("the query string does not fit: {}", why.body_text()))
    }
}

impl From<PathRejection> for Problem {
    fn from(why: PathRejection) -> Problem {
        Problem::not_found(format!("the path does not fit: {}", why.body_text()))
    }
}

impl From<BytesRejection> for Problem {
    fn from(why: BytesRejection) -> Problem {
        match why.status() {
            StatusCode::PAYLOAD_TOO_LARGE => Problem::too_large("the body is larger than this node takes"),
            _ => Problem::bad_request("the body could not be read"),
        }
    }
}
