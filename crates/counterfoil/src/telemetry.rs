//! Sends the spans of runs to an OpenTelemetry collector, as the standard variables `OTEL_*` say.
//! Spans hold names, numbers and outcomes, redacted like the log; no text that an agent wrote.

mod collector;
mod spans;

use crate::redaction;
use collector::CollectorClient;
use counterfoil_agents::redact::{RedactionLevel, Redactor};
use counterfoil_agents::trace_context::{TRACE_PARENT, TraceContext};
use counterfoil_engine::RunObserver;
use counterfoil_flow::{Event, RunState};
use opentelemetry::{StringValue, Value};
use opentelemetry_otlp::{
    OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, WithHttpConfig as _,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{
    BatchConfig, BatchSpanProcessor, SpanData, SpanExporter, SpanProcessor as _,
};
use spans::RunSpans;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The standard variable that turns telemetry off.
const DISABLED: &str = "OTEL_SDK_DISABLED";
/// The standard variable with the name of the service.
const SERVICE_NAME: &str = "OTEL_SERVICE_NAME";
/// How long the end of the process waits for the collector.
const PATIENCE: Duration = Duration::from_secs(10);

/// Sends a span for each attempt and for the run.
pub(crate) struct Telemetry {
    spans: Mutex<RunSpans>,
    redactor: Mutex<Redactor>,
    processor: BatchSpanProcessor,
    problem: Arc<Mutex<Option<String>>>,
}

impl Telemetry {
    /// The telemetry of a run, if the environment names a collector.
    ///
    /// # Errors
    ///
    /// The settings of the collector cannot be used.
    pub(crate) fn start() -> Result<Option<Arc<Self>>, String> {
        if !is_wanted(|name| std::env::var(name).ok()) {
            return Ok(None);
        }
        let exporter = opentelemetry_otlp::SpanExporter::builder()
            .with_http()
            .with_http_client(CollectorClient::new())
            .build();
        let exporter = exporter.map_err(|error| error.to_string())?;
        let redactor = redaction::copy().ok_or("the secrets in them cannot be redacted")?;
        let problem = Arc::<Mutex<Option<String>>>::default();
        let exporter = ReportingExporter { inner: exporter, problem: problem.clone() };
        let mut processor = BatchSpanProcessor::new(exporter, BatchConfig::default());
        // What comes later decides.
        let resource = Resource::builder_empty()
            .with_service_name("counterfoil")
            .with_detector(Box::new(opentelemetry_sdk::resource::EnvResourceDetector::new()));
        let resource = match std::env::var(SERVICE_NAME) {
            Ok(name) if !name.is_empty() => resource.with_service_name(name),
            _ => resource,
        };
        processor.set_resource(&resource.build());
        let parent = std::env::var(TRACE_PARENT).ok();
        let parent = parent.and_then(|text| TraceContext::parse(&text));
        Ok(Some(Arc::new(Self {
            spans: Mutex::new(RunSpans::new(parent)),
            redactor: Mutex::new(redactor),
            processor,
            problem,
        })))
    }

    /// Sends what is left. Returns why spans were lost, if some were.
    pub(crate) fn finish(&self) -> Option<String> {
        let sent = self.processor.shutdown_with_timeout(PATIENCE);
        let problem = lock(&self.problem).take();
        problem.or_else(|| sent.err().map(|error| error.to_string()))
    }

    fn redact(&self, span: &mut SpanData) {
        let mut redactor = lock(&self.redactor);
        let mut clean = |text: &str| redactor.redact_text(text, RedactionLevel::Full);
        span.name = clean(&span.name).into();
        for attribute in &mut span.attributes {
            if let Value::String(text) = &attribute.value {
                attribute.value = Value::String(StringValue::from(clean(text.as_str())));
            }
        }
    }
}

/// Whether the environment asks for spans.
fn is_wanted(variable: impl Fn(&str) -> Option<String>) -> bool {
    let is_set = |name| variable(name).is_some_and(|value| !value.is_empty());
    let is_disabled = variable(DISABLED).is_some_and(|value| value.eq_ignore_ascii_case("true"));
    !is_disabled
        && (is_set(OTEL_EXPORTER_OTLP_TRACES_ENDPOINT) || is_set(OTEL_EXPORTER_OTLP_ENDPOINT))
}

/// Remembers why spans could not be sent.
#[derive(Debug)]
struct ReportingExporter {
    inner: opentelemetry_otlp::SpanExporter,
    problem: Arc<Mutex<Option<String>>>,
}

impl SpanExporter for ReportingExporter {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let sent = self.inner.export(batch).await;
        if let Err(error) = &sent {
            *lock(&self.problem) = Some(error.to_string());
        }
        sent
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.inner.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.inner.set_resource(resource);
    }
}

impl RunObserver for Telemetry {
    fn on_event(&self, event: &Event, at: i64, run: &RunState) {
        let ended = lock(&self.spans).on_event(event, at, run);
        if let Some(mut span) = ended {
            self.redact(&mut span);
            self.processor.on_end(span);
        }
    }

    fn on_activity(&self, _: &str, _: &str) {}
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_sent_only_if_a_collector_is_named() {
        let wanted = |set: &[(&str, &str)]| {
            is_wanted(|name| {
                set.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
            })
        };
        let endpoint = (OTEL_EXPORTER_OTLP_ENDPOINT, "http://127.0.0.1:4318");
        assert!(!wanted(&[]));
        assert!(!wanted(&[(OTEL_EXPORTER_OTLP_ENDPOINT, "")]));
        assert!(wanted(&[endpoint]));
        assert!(wanted(&[(OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, "http://127.0.0.1:4318/v1/traces")]));
        assert!(wanted(&[endpoint, (DISABLED, "false")]));
        assert!(!wanted(&[endpoint, (DISABLED, "TRUE")]));
    }
}
