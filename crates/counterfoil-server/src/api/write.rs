//! What changes runs: answers, cancelling, continuing and starting. Only JSON is accepted, which a
//! form of another site cannot send.

use super::json;
use super::path::PathParts;
use crate::commands;
use crate::control::{ResumeRequest, RunControl, StartRequest};
use crate::folders::RunPlace;
use crate::idempotency::Done;
use crate::problem::Problem;
use crate::site::Site;
use axum::body::Bytes;
use axum::extract::{FromRequest, Request, State};
use axum::http::Uri;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use counterfoil_engine::Error;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::sync::{Arc, PoisonError};
use std::time::Instant;

/// An answer to a question.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AnswerRequest {
    /// The answer.
    answer: String,
}

/// A request without options.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct EmptyRequest {}

/// A request that changes something.
pub(super) struct WriteRequest {
    uri: Uri,
    headers: HeaderMap,
    bytes: Bytes,
}

impl<S: Send + Sync> FromRequest<S> for WriteRequest {
    type Rejection = Response;

    async fn from_request(request: Request, state: &S) -> Result<Self, Response> {
        let (uri, headers) = (request.uri().clone(), request.headers().clone());
        // Longer bodies are refused by the limit that every route has.
        let bytes = Bytes::from_request(request, state).await.map_err(|error| {
            Problem::new(error.status(), "body", error.body_text()).into_answer()
        })?;
        Ok(Self { uri, headers, bytes })
    }
}

impl WriteRequest {
    /// The headers.
    pub(super) fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// The body.
    pub(super) fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Performs the request, once for a key.
    async fn perform(
        self,
        site: Arc<Site>,
        work: impl FnOnce(&Site, &HeaderMap, &Bytes) -> Result<Done, Problem> + Send + 'static,
    ) -> Response {
        let Self { uri, headers, bytes } = self;
        let perform = move |site: &Arc<Site>| {
            site.repeats.once(&headers, uri.path(), &bytes, || work(site, &headers, &bytes))
        };
        json(site.blocking(perform).await)
    }
}

/// Reads the body of a request.
pub(super) fn body<T: DeserializeOwned>(headers: &HeaderMap, bytes: &Bytes) -> Result<T, Problem> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let is_json = kind.is_some_and(|kind| {
        let essence = kind.split(';').next().unwrap_or_default();
        essence.trim().eq_ignore_ascii_case("application/json")
    });
    if !is_json {
        return Err(Problem::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "media-type",
            "the body must be `application/json`",
        ));
    }
    serde_json::from_slice(bytes)
        .map_err(|error| Problem::bad_request(format!("the body: {error}")))
}

fn control(site: &Site) -> Result<Arc<dyn RunControl>, Problem> {
    site.control.clone().ok_or_else(|| {
        Problem::new(StatusCode::FORBIDDEN, "read-only", "this server only shows runs")
    })
}

pub(super) async fn answer(
    State(site): State<Arc<Site>>,
    PathParts((run, question)): PathParts<(String, String)>,
    request: WriteRequest,
) -> Response {
    let work = move |site: &Site, headers: &HeaderMap, bytes: &Bytes| {
        let AnswerRequest { answer } = body(headers, bytes)?;
        let named = headers.get(header::IF_MATCH).map(HeaderValue::to_str);
        let Some(Ok(named)) = named else {
            return Err(Problem::new(
                StatusCode::PRECONDITION_REQUIRED,
                "if-match",
                "an answer names the question that it is for in `If-Match`",
            ));
        };
        let control = control(site)?;
        let place = site.folders.find(&run)?;
        let report = site.folders.view(&place)?;
        let report = report.lock().unwrap_or_else(PoisonError::into_inner).report()?;
        let open = report.questions.iter().find(|open| open.id == question);
        let Some(open) = open else {
            return Err(Problem::new(
                StatusCode::GONE,
                "not-open",
                format!("question '{question}' is not open any more"),
            )
            .with_hint("look at the run: somebody may have answered it"));
        };
        if named.trim_matches('"') != open.digest(&place.run) {
            return Err(Problem::new(
                StatusCode::PRECONDITION_FAILED,
                "changed",
                "the question is another one now",
            )
            .with_hint("read it again before you answer it"));
        }
        let state = place.engine.journal().folder();
        // It may have gone on, and ended, before the message is made.
        let is_awaited = control.waits_for(&place.run);
        control.answer(state, &place.run, &open.id, &answer).map_err(refused)?;
        Ok(Done { message: recorded(&place, is_awaited, control.may_resume()) })
    };
    request.perform(site, work).await
}

/// What to say of an answer that is recorded: whether the run goes on now. `is_awaited`: this process
/// waited for it.
fn recorded(place: &RunPlace, is_awaited: bool, may_resume: bool) -> String {
    let rest = match place.engine.journal().run(&place.run) {
        Ok(run) if run.is_driven() => "the process that drives the run goes on with it".to_owned(),
        Ok(run) if run.outcome() == "waiting" => "the run waits for another one".to_owned(),
        Ok(_) if is_awaited => "the process that waits for it goes on with the run".to_owned(),
        Ok(_) if may_resume => {
            "no process drives the run: it goes on when it is resumed".to_owned()
        }
        Ok(_) => {
            format!("no process drives the run: it goes on with `{}`", commands::resume(place))
        }
        // The answer is recorded nevertheless.
        Err(error) => format!("but the run cannot be read: {error}"),
    };
    format!("the answer is recorded; {rest}")
}

pub(super) async fn cancel(
    State(site): State<Arc<Site>>,
    PathParts(run): PathParts<String>,
    request: WriteRequest,
) -> Response {
    let work = move |site: &Site, headers: &HeaderMap, bytes: &Bytes| {
        let EmptyRequest {} = body(headers, bytes)?;
        let (control, place) = (control(site)?, site.folders.find(&run)?);
        let message =
            control.cancel(place.engine.journal().folder(), &place.run).map_err(refused)?;
        Ok(Done { message })
    };
    request.perform(site, work).await
}

pub(super) async fn resume(
    State(site): State<Arc<Site>>,
    PathParts(run): PathParts<String>,
    request: WriteRequest,
) -> Response {
    let work = move |site: &Site, headers: &HeaderMap, bytes: &Bytes| {
        let request: ResumeRequest = body(headers, bytes)?;
        if let Some(wrong) = request.wrong_limit() {
            return Err(Problem::bad_request(wrong));
        }
        let (control, place) = (control(site)?, site.folders.find(&run)?);
        let message = control
            .resume(place.engine.journal().folder(), &place.run, &request)
            .map_err(refused)?;
        Ok(Done { message })
    };
    request.perform(site, work).await
}

pub(super) async fn start(State(site): State<Arc<Site>>, request: WriteRequest) -> Response {
    let work = move |site: &Site, headers: &HeaderMap, bytes: &Bytes| {
        let request: StartRequest = body(headers, bytes)?;
        let control = control(site)?;
        let state = site.folders.paths().next().map(std::path::Path::to_owned);
        let state = state.ok_or_else(|| Problem::not_found("there is no state folder"))?;
        let message = control.start(&state, &request).map_err(refused)?;
        Ok(Done { message })
    };
    request.perform(site, work).await
}

/// What could not be done, as the control said it.
fn refused(error: crate::control::ControlError) -> Problem {
    use crate::control::ControlError;
    match error {
        ControlError::Engine(error) => match &error {
            Error::Refused(_) => {
                Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "answer", error.to_string())
            }
            _ => error.into(),
        },
        ControlError::NotAllowed(why) => Problem::new(StatusCode::FORBIDDEN, "not-allowed", why),
        ControlError::Failed(why) => {
            Problem::new(StatusCode::CONFLICT, "refused", without_usage(&why))
        }
    }
}

/// What a command said was wrong, without how its help is printed: nobody typed a command.
fn without_usage(said: &str) -> String {
    let said = said.strip_prefix("error: ").unwrap_or(said);
    let lines = said.lines().filter(|line| !line.starts_with("For more information, try"));
    lines.collect::<Vec<_>>().join("\n").trim().to_owned()
}

/// A link for a browser.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct SignInLink {
    /// The path that signs a browser in. It works once, for ten minutes.
    path: String,
}

/// Makes a link with which a browser signs in: for a person who may not read the terminal of the
/// server.
pub(super) async fn sign_in_link(State(site): State<Arc<Site>>, request: WriteRequest) -> Response {
    let made = body(request.headers(), request.bytes()).and_then(|EmptyRequest {}| {
        let code = site.sessions.new_code(Instant::now()).map_err(|error| {
            tracing::error!(%error, "there are no random numbers");
            Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "no link can be made")
        })?;
        Ok(SignInLink { path: format!("/sign-in?code={code}") })
    });
    json(made)
}
