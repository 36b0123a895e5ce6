//! The HTTP client that sends spans to a collector. The thread that sends them may wait, so a client
//! that blocks is enough.

use async_trait::async_trait;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{
    OTEL_EXPORTER_OTLP_TIMEOUT, OTEL_EXPORTER_OTLP_TIMEOUT_DEFAULT,
    OTEL_EXPORTER_OTLP_TRACES_TIMEOUT,
};
use std::time::Duration;

/// The longest response that is read.
const MAX_RESPONSE_BYTES: u64 = 4 << 20;

#[derive(Debug)]
pub(super) struct CollectorClient(ureq::Agent);

impl CollectorClient {
    /// A client with the time limit that the environment sets.
    pub(super) fn new() -> Self {
        let timeout = timeout(|name| std::env::var(name).ok());
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(timeout))
            // The exporter decides which answers it tries again.
            .http_status_as_error(false)
            .build();
        Self(config.into())
    }
}

#[async_trait]
impl HttpClient for CollectorClient {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (head, mut body) = self.0.run(request.map(Vec::from))?.into_parts();
        let body = body.with_config().limit(MAX_RESPONSE_BYTES).read_to_vec()?;
        Ok(Response::from_parts(head, body.into()))
    }
}

/// The time that one request may take.
fn timeout(variable: impl Fn(&str) -> Option<String>) -> Duration {
    [OTEL_EXPORTER_OTLP_TRACES_TIMEOUT, OTEL_EXPORTER_OTLP_TIMEOUT]
        .into_iter()
        .find_map(|name| variable(name)?.parse().ok())
        .map_or(OTEL_EXPORTER_OTLP_TIMEOUT_DEFAULT, Duration::from_millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_for_traces_comes_before_the_general_one() {
        let set = |known: &'static [(&'static str, &'static str)]| {
            timeout(|name| {
                known.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
            })
        };
        assert_eq!(set(&[]), OTEL_EXPORTER_OTLP_TIMEOUT_DEFAULT);
        assert_eq!(set(&[(OTEL_EXPORTER_OTLP_TIMEOUT, "70")]), Duration::from_millis(70));
        assert_eq!(
            set(&[(OTEL_EXPORTER_OTLP_TIMEOUT, "70"), (OTEL_EXPORTER_OTLP_TRACES_TIMEOUT, "9")]),
            Duration::from_millis(9)
        );
        assert_eq!(
            set(&[(OTEL_EXPORTER_OTLP_TIMEOUT, "soon")]),
            OTEL_EXPORTER_OTLP_TIMEOUT_DEFAULT
        );
    }
}
