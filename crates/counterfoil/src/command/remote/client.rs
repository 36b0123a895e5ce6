//! The HTTP client: requests with a token, bounded answers, and errors that say what to do.

use super::address::{Address, TokenSource, VARIABLE};
use crate::render::shell_quote;
use anyhow::{Context as _, Result, anyhow};
use counterfoil_server::Token;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::io::ErrorKind;
use std::time::Duration;
use ureq::http::{Response, StatusCode};
use ureq::{Body, BodyReader};

/// How long it may take to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the server may take until it answers, and between two parts of its answer.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a whole answer may take.
const BODY_TIMEOUT: Duration = Duration::from_mins(5);
/// How long a stream may be silent. The server sends something every 15 seconds.
const SILENCE: Duration = Duration::from_secs(45);
/// The longest answer.
pub(super) const MAX_BODY: u64 = 64 << 20;
/// The longest error.
const MAX_PROBLEM: u64 = 64 << 10;

/// A part of a path or a query, in which nothing has a meaning of its own.
pub(super) fn segment(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

/// An error that the server reported.
#[derive(Debug, Deserialize, thiserror::Error)]
#[error("{detail}{}", .hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default())]
pub(super) struct Problem {
    detail: String,
    code: String,
    hint: Option<String>,
}

impl Problem {
    /// Whether the journal of the server is damaged.
    pub(super) fn is_damage(&self) -> bool {
        self.code == "damaged"
    }

    /// Whether the server could not do what it was asked for, as a process that it started says.
    pub(super) fn is_refusal(&self) -> bool {
        self.code == "refused"
    }

    /// Whether the server does not do this at all, such as the dashboard of a run that resumes none.
    pub(super) fn is_not_allowed(&self) -> bool {
        self.code == "not-allowed"
    }

    /// Whether the server has no such thing.
    pub(super) fn is_not_found(&self) -> bool {
        self.code == "not-found"
    }
}

/// The server did not answer, or its answer was cut off. It may be there a moment later.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Lost(pub(super) String);

/// What came of a request that changes something.
#[derive(Deserialize)]
struct Done {
    message: String,
}

/// Asks a server.
pub(super) struct Client {
    agent: ureq::Agent,
    address: Address,
}

impl Client {
    /// A client of the server at an address.
    pub(super) fn new(url: &str) -> Result<Self> {
        let address = Address::find(url)?;
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            // The token is for this server alone: no other address and no proxy gets it.
            .max_redirects(0)
            .proxy(None)
            .user_agent(concat!("counterfoil/", env!("CARGO_PKG_VERSION")))
            .timeout_resolve(Some(CONNECT_TIMEOUT))
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .timeout_recv_response(Some(RESPONSE_TIMEOUT))
            .build();
        Ok(Self { agent: config.into(), address })
    }

    /// The options with which a command asks this server.
    pub(super) fn flags(&self) -> String {
        format!(" --server {}", shell_quote(&self.address.shown))
    }

    fn url(&self, path: &str) -> String {
        format!("{}/api/v1{path}", self.address.base)
    }

    fn bearer(&self) -> Option<String> {
        let (token, _) = self.address.token.as_ref()?;
        Some(format!("Bearer {}", token.reveal()))
    }

    /// What the server has at a path.
    pub(super) fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        let bytes = self.get_bytes(path)?;
        self.read(&bytes)
    }

    /// What the server has at a path, as it is.
    pub(super) fn get_bytes(&self, path: &str) -> Result<Vec<u8>> {
        let mut request = self
            .agent
            .get(self.url(path))
            .config()
            .timeout_per_read(Some(RESPONSE_TIMEOUT))
            .timeout_recv_body(Some(BODY_TIMEOUT))
            .build();
        if let Some(bearer) = self.bearer() {
            request = request.header("authorization", bearer);
        }
        let response = request.header("accept", "application/json").call();
        self.body(response)
    }

    /// Changes something. The request is repeated once if its answer is lost: the server performs it
    /// once for a key. Returns what the server says about it.
    pub(super) fn post(&self, path: &str, body: &Value, etag: Option<&str>) -> Result<String> {
        // Any random text is a key.
        let key = Token::random().context("there are no random numbers")?;
        let send = || {
            let mut request = self
                .agent
                .post(self.url(path))
                .config()
                .timeout_per_read(Some(RESPONSE_TIMEOUT))
                .timeout_recv_body(Some(BODY_TIMEOUT))
                .build();
            if let Some(bearer) = self.bearer() {
                request = request.header("authorization", bearer);
            }
            if let Some(etag) = etag {
                request = request.header("if-match", etag);
            }
            let response = request
                .header("accept", "application/json")
                .header("content-type", "application/json")
                .header("idempotency-key", key.reveal())
                .send(body.to_string());
            self.body(response)
        };
        let sent = send();
        let is_lost = sent.as_ref().is_err_and(anyhow::Error::is::<Lost>);
        let bytes = if is_lost { send()? } else { sent? };
        Ok(self.read::<Done>(&bytes)?.message)
    }

    /// The stream of the events of a run after a number.
    pub(super) fn stream(&self, path: &str, after: u64) -> Result<BodyReader<'static>> {
        let mut request = self
            .agent
            .get(self.url(path))
            .config()
            .timeout_per_read(Some(SILENCE))
            .timeout_recv_body(None)
            .build();
        if let Some(bearer) = self.bearer() {
            request = request.header("authorization", bearer);
        }
        let response = request
            .header("accept", "text/event-stream")
            .header("last-event-id", after.to_string())
            .call()
            .map_err(|error| self.lost(&error))?;
        Ok(self.accepted(response)?.into_body().into_reader())
    }

    fn read<T: DeserializeOwned>(&self, bytes: &[u8]) -> Result<T> {
        serde_json::from_slice(bytes).with_context(|| {
            format!(
                "the answer of {} cannot be read; is it a Counterfoil server of the version {}?",
                self.address.shown,
                env!("CARGO_PKG_VERSION")
            )
        })
    }

    fn body(&self, response: Result<Response<Body>, ureq::Error>) -> Result<Vec<u8>> {
        let response = response.map_err(|error| self.lost(&error))?;
        let mut response = self.accepted(response)?;
        let read = response.body_mut().with_config().limit(MAX_BODY).read_to_vec();
        read.map_err(|error| match error {
            ureq::Error::BodyExceedsLimit(_) => anyhow!(
                "the answer of {} is longer than {} MiB, which is not read; look at the run where it is",
                self.address.shown,
                MAX_BODY >> 20
            ),
            error => self.lost(&error),
        })
    }

    /// An answer that is no error.
    fn accepted(&self, mut response: Response<Body>) -> Result<Response<Body>> {
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let shown = &self.address.shown;
        if status.is_redirection() {
            return Err(anyhow!(
                "{shown} leads to another address, which is not followed; give the address that \
                 `counterfoil serve` printed"
            ));
        }
        if status == StatusCode::UNAUTHORIZED {
            return Err(self.unauthorized());
        }
        let body = response.body_mut().with_config().limit(MAX_PROBLEM).read_to_vec();
        let problem = body.ok().and_then(|body| serde_json::from_slice::<Problem>(&body).ok());
        Err(match problem {
            Some(problem) => anyhow::Error::new(problem),
            None => anyhow!(
                "{shown} answered with the status {}; is it a Counterfoil server?",
                status.as_u16()
            ),
        })
    }

    fn unauthorized(&self) -> anyhow::Error {
        let shown = &self.address.shown;
        match self.address.token.as_ref().map(|(_, source)| source) {
            None => anyhow!(
                "the server at {shown} needs a token; set {VARIABLE} to the one of its --token-file"
            ),
            Some(TokenSource::Variable) => anyhow!(
                "the server at {shown} does not accept the token in {VARIABLE}; set it to the one of its \
                 --token-file"
            ),
            Some(TokenSource::File(file)) => anyhow!(
                "the server at {shown} does not accept the token in {file}; a server that was killed may \
                 have left that file: remove it, and set {VARIABLE} or start the server again"
            ),
        }
    }

    /// Why there is no answer.
    fn lost(&self, error: &ureq::Error) -> anyhow::Error {
        let shown = &self.address.shown;
        let why = match error {
            ureq::Error::Io(error) if error.kind() == ErrorKind::ConnectionRefused => {
                format!("no server answers at {shown}; start one with `counterfoil serve`")
            }
            ureq::Error::ConnectionFailed => {
                format!("no server answers at {shown}; start one with `counterfoil serve`")
            }
            ureq::Error::HostNotFound => format!("the host of {shown} is not known"),
            ureq::Error::Timeout(_) => format!("the server at {shown} does not answer in time"),
            error => format!("the connection to {shown} failed: {error}"),
        };
        anyhow::Error::new(Lost(why))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_path_cannot_leave_its_place() {
        assert_eq!(segment("last"), "last");
        assert_eq!(segment("../a?b#c%/ä"), "%2E%2E%2Fa%3Fb%23c%25%2F%C3%A4");
    }

    #[test]
    fn a_problem_is_printed_with_its_hint() {
        let text = r#"{"type":"x","title":"x","status":412,"detail":"changed","code":"damaged"}"#;
        let mut problem: Problem = serde_json::from_str(text).unwrap();
        assert_eq!(problem.to_string(), "changed");
        assert!(problem.is_damage());
        problem.hint = Some("read it again".to_owned());
        assert_eq!(problem.to_string(), "changed; read it again");
    }
}
