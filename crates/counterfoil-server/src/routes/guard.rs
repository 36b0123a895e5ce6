//! What a request has to pass before it reaches a route: its host, and who sends it.

use crate::access::session_of;
use crate::pages;
use crate::problem::Problem;
use crate::site::Site;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use std::sync::Arc;

/// Refuses a request for another host.
pub(super) async fn require_host(
    State(site): State<Arc<Site>>,
    request: Request,
    next: Next,
) -> Response {
    if site.hosts.allow(request.uri(), request.headers()) {
        return next.run(request).await;
    }
    Problem::new(
        StatusCode::MISDIRECTED_REQUEST,
        "host",
        "the server does not answer for this host name",
    )
    .with_hint("use the address that the server printed, or allow the name with `--name`")
    .into_answer()
}

/// Refuses a request that carries neither the token nor the cookie of a session.
pub(super) async fn require_identity(
    State(site): State<Arc<Site>>,
    request: Request,
    next: Next,
) -> Response {
    let headers = request.headers();
    let is_known = match bearer(headers) {
        Some(token) => site.token.is(token),
        None => session_of(headers, site.port).is_some_and(|id| site.sessions.has(id)),
    };
    if is_known {
        return next.run(request).await;
    }
    let wants_page = headers
        .get(header::ACCEPT)
        .and_then(|accept| accept.to_str().ok())
        .is_some_and(|accept| accept.contains("text/html"));
    if wants_page { pages::sign_in() } else { unauthorized() }
}

fn unauthorized() -> Response {
    Problem::new(StatusCode::UNAUTHORIZED, "sign-in", "the request has no valid token")
        .with_hint("send the token of the server as `Authorization: Bearer TOKEN`")
        .into_answer()
}

/// The token in the header `Authorization`.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}
