//! Which path leads where.

mod guard;

use crate::access::{add_headers, cookie_name};
use crate::live::LivePages;
use crate::problem::Problem;
use crate::site::Site;
use crate::{api, assets, pages};
use axum::Router;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::{from_fn_with_state, map_response};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use guard::{require_host, require_identity};
use serde::Deserialize;
use std::sync::Arc;
use std::time::Instant;
use tower_http::csrf::CsrfLayer;

pub(crate) fn routes(site: Arc<Site>, live: Arc<LivePages>) -> Router {
    let known = Router::new()
        .nest("/api/v1", api::routes())
        .merge(live.routes())
        .route("/fragments/runs/{run}/attempts/{attempt}/diff", get(pages::diff_fragment))
        .route("/runs/{run}/events/rows", get(pages::event_rows))
        .fallback(pages::page)
        .layer(from_fn_with_state(Arc::clone(&site), require_identity));
    Router::new()
        .route("/sign-in", get(sign_in))
        .route("/assets/{version}/{*path}", get(asset))
        // Of a page that names no icon, such as a raw text.
        .route("/favicon.ico", get(|| async { assets::asset("icon.svg") }))
        .merge(known)
        .layer(CsrfLayer::new().with_rejection_response(|_| {
            Problem::new(
                StatusCode::FORBIDDEN,
                "cross-site",
                "a page of another site sent this request",
            )
            .into_answer()
        }))
        .layer(from_fn_with_state(Arc::clone(&site), require_host))
        .layer(map_response(add_headers))
        .with_state(site)
}

async fn asset(Path((_version, path)): Path<(String, String)>) -> Response {
    assets::asset(&path)
}

/// The part of a query that signs a browser in.
#[derive(Deserialize)]
struct SignIn {
    code: String,
    /// The run whose page is shown then. Without it, the list of runs is.
    run: Option<String>,
}

/// Gives a browser a session for a code. The page then goes on by itself, because a browser that came
/// from another site does not send the cookie along with a redirect.
async fn sign_in(
    State(site): State<Arc<Site>>,
    method: Method,
    query: Result<Query<SignIn>, QueryRejection>,
) -> Response {
    let Ok(Query(SignIn { code, run })) = query else { return pages::sign_in() };
    // A program that only looks at the link does not use it up.
    if method != Method::GET {
        return StatusCode::OK.into_response();
    }
    match site.sessions.open(&code, Instant::now()) {
        Ok(Some(session)) => {
            let name = cookie_name(site.port);
            let cookie = format!("{name}={session}; Path=/; HttpOnly; SameSite=Strict");
            let mut headers = HeaderMap::new();
            if let Ok(cookie) = HeaderValue::from_str(&cookie) {
                headers.insert(header::SET_COOKIE, cookie);
            }
            (headers, pages::signed_in(run.as_deref())).into_response()
        }
        Ok(None) => pages::sign_in(),
        Err(error) => {
            tracing::error!(%error, "there are no random numbers");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}
