//! The scripts and styles of the pages, embedded in the program. `assets/vendor` has those of others
//! with their licences.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use include_dir::{Dir, include_dir};
use sha2::{Digest as _, Sha256};
use std::sync::LazyLock;

static FILES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/assets");

/// Changes with every asset, so that browsers may keep what they have for as long as they like.
static VERSION: LazyLock<String> = LazyLock::new(|| {
    let mut hash = Sha256::new();
    for file in [
        "app.css",
        "app.js",
        "events.js",
        "playground.js",
        "vendor/htmx-4.0.1.min.js",
        "vendor/hx-sse-4.0.1.min.js",
    ] {
        hash.update(FILES.get_file(file).map(include_dir::File::contents).unwrap_or_default());
    }
    let hash = hex::encode(hash.finalize());
    hash.get(..12).unwrap_or(&hash).to_owned()
});

/// A text that changes when an asset changes.
pub(crate) fn version() -> &'static str {
    &VERSION
}

/// The answer with an asset.
pub(crate) fn asset(path: &str) -> Response {
    let Some(file) = FILES.get_file(path) else {
        return (StatusCode::NOT_FOUND, "there is no such file").into_response();
    };
    let kind = match path.rsplit_once('.') {
        Some((_, "css")) => "text/css; charset=utf-8",
        Some((_, "js")) => "text/javascript; charset=utf-8",
        Some((_, "svg")) => "image/svg+xml",
        _ => "text/plain; charset=utf-8",
    };
    let mut response = file.contents().into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    let kept = HeaderValue::from_static("public, max-age=31536000, immutable");
    headers.insert(header::CACHE_CONTROL, kept);
    response
}
