//! The parts of a path, with an error that is a problem like every other one.

use crate::problem::Problem;
use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use axum::response::Response;
use serde::de::DeserializeOwned;

/// The parts of a path.
pub(super) struct PathParts<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for PathParts<T> {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Response> {
        let Path(found) = Path::from_request_parts(parts, state).await.map_err(|error| {
            Problem::bad_request(format!("the address: {}", error.body_text())).into_answer()
        })?;
        Ok(Self(found))
    }
}
