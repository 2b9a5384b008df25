//! Answers to requests that fail: short texts, which git shows.

use axum::response::{IntoResponse, Response};
use http::{StatusCode, header};

/// Why a request is not answered.
#[derive(Debug)]
pub(crate) struct GitProblem(pub(crate) StatusCode, pub(crate) String);

impl GitProblem {
    pub(crate) fn not_found() -> GitProblem {
        let why = "this repository is not hosted here: no announcement of it that lists this service is known";
        GitProblem(StatusCode::NOT_FOUND, why.to_owned())
    }

    pub(crate) fn bad_request(why: impl Into<String>) -> GitProblem {
        GitProblem(StatusCode::BAD_REQUEST, why.into())
    }

    /// Something is broken here: the log says what.
    pub(crate) fn broken(what: &str, why: impl std::fmt::Display) -> GitProblem {
        tracing::error!(%why, "{what}");
        GitProblem(StatusCode::INTERNAL_SERVER_ERROR, format!("{what}; the log of the node has details"))
    }
}

impl IntoResponse for GitProblem {
    fn into_response(self) -> Response {
        let headers = [(header::CONTENT_TYPE, "text/plain; charset=utf-8"), (header::CACHE_CONTROL, "no-cache")];
        (self.0, headers, format!("{}\n", self.1)).into_response()
    }
}
