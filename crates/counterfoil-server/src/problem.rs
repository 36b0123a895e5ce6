//! Errors as RFC 9457 describes them: `application/problem+json`.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use counterfoil_engine::{Error, journal};
use schemars::JsonSchema;
use serde::Serialize;

/// An error of the server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(transparent)]
pub(crate) struct Problem(Box<Parts>);

/// An error, as RFC 9457 describes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Problem")]
struct Parts {
    /// A reference that names the kind of problem: `about:blank#CODE`.
    r#type: String,
    /// The status of HTTP in words.
    title: String,
    /// The status of HTTP.
    status: u16,
    /// What is wrong.
    detail: String,
    /// The kind of problem, in lower case with `-`.
    code: String,
    /// What can be done about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, code: &str, detail: impl Into<String>) -> Self {
        Self(Box::new(Parts {
            r#type: format!("about:blank#{code}"),
            title: status.canonical_reason().unwrap_or_default().to_owned(),
            status: status.as_u16(),
            detail: detail.into(),
            code: code.to_owned(),
            hint: None,
        }))
    }

    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// A request that cannot be understood.
    pub(crate) fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "request", detail)
    }

    /// Something that does not exist.
    pub(crate) fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not-found", detail)
    }

    /// What is wrong.
    pub(crate) fn detail(&self) -> &str {
        &self.0.detail
    }

    /// The status in words.
    pub(crate) fn title(&self) -> &str {
        &self.0.title
    }

    /// What can be done about it.
    pub(crate) fn hint(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    /// The status of HTTP.
    pub(crate) fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.0.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// The answer to a program.
    pub(crate) fn into_answer(self) -> Response {
        let body = serde_json::to_vec(&self).unwrap_or_default();
        let mut response = (self.status(), body).into_response();
        let kind = HeaderValue::from_static("application/problem+json");
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
        response
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let detail = error.to_string();
        match &error {
            Error::Journal(journal::Error::NoRun { .. }) => Self::not_found(detail),
            Error::Journal(journal::Error::Ambiguous { .. }) => {
                Self::new(StatusCode::CONFLICT, "ambiguous", detail)
            }
            Error::Journal(
                journal::Error::Broken { .. }
                | journal::Error::Altered { .. }
                | journal::Error::Damaged { .. }
                | journal::Error::Destroyed { .. },
            )
            | Error::Unreadable { .. } => {
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, "damaged", detail)
            }
            Error::Journal(_) => Self::new(StatusCode::INTERNAL_SERVER_ERROR, "journal", detail),
            _ => Self::new(StatusCode::CONFLICT, "refused", detail),
        }
    }
}

impl From<journal::Error> for Problem {
    fn from(error: journal::Error) -> Self {
        Error::from(error).into()
    }
}
