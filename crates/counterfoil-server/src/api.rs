//! The HTTP API, version 1. Answers are the types that the command line prints as JSON; errors are
//! those of RFC 9457.

mod across;
mod check;
mod events;
mod openapi;
mod path;
mod plain;
mod raw;
mod read;
mod write;

use crate::checking::MAX_BODY;
use crate::problem::Problem;
use crate::site::Site;
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde::Serialize;
use std::sync::Arc;

/// The routes below `/api/v1`. [`openapi`] describes them; a test compares both.
pub(crate) fn routes() -> Router<Arc<Site>> {
    Router::new()
        .route("/openapi.json", get(openapi::document))
        .route("/runs", get(read::runs).post(write::start))
        .route("/sign-in-links", post(write::sign_in_link))
        .route("/runs/{run}", get(read::run))
        .route("/runs/{run}/bundle", get(read::bundle))
        .route("/runs/{run}/events", get(events::events))
        .route("/runs/{run}/claims", get(read::claims))
        .route("/runs/{run}/questions", get(read::questions))
        .route("/runs/{run}/questions/{question}/answer", post(write::answer))
        .route("/runs/{run}/cancel", post(write::cancel))
        .route("/runs/{run}/resume", post(write::resume))
        .route("/runs/{run}/attempts/{attempt}", get(read::attempt))
        .route("/runs/{run}/attempts/{attempt}/replies/{reply}/text", get(read::reply_text))
        .route("/runs/{run}/attempts/{attempt}/replies/{reply}/prompt", get(read::reply_prompt))
        .route("/runs/{run}/attempts/{attempt}/replies/{reply}/transcript", get(raw::transcript))
        .route("/runs/{run}/attempts/{attempt}/diff", get(raw::diff))
        .route("/claims", get(across::claims))
        .route("/health", get(across::health))
        .route("/contracts", get(check::contracts))
        .route("/contracts/{id}", get(check::contract))
        .route("/check", post(check::check).layer(DefaultBodyLimit::max(MAX_BODY)))
        .method_not_allowed_fallback(|| async {
            Problem::new(
                StatusCode::METHOD_NOT_ALLOWED,
                "method",
                "the resource does not have this method",
            )
            .into_answer()
        })
        .fallback(|| async { Problem::not_found("there is no such resource").into_answer() })
}

/// The answer with a value as JSON, or with what went wrong.
fn json<T: Serialize>(made: Result<T, Problem>) -> Response {
    let bytes = made.and_then(|value| {
        serde_json::to_vec(&value).map_err(|error| {
            tracing::error!(%error, "an answer cannot be written");
            Problem::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "internal",
                "the answer cannot be written",
            )
        })
    });
    match bytes {
        Ok(bytes) => {
            let kind = HeaderValue::from_static("application/json");
            ([(header::CONTENT_TYPE, kind)], bytes).into_response()
        }
        Err(problem) => problem.into_answer(),
    }
}
