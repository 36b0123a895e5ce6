//! Spans for an OpenTelemetry collector, and the trace context that agents are given.

use crate::runs::project::{WorkflowProject, one_step};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc;
use std::time::Duration;

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const SECRET: &str = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";

/// A collector on loopback.
struct Collector {
    address: SocketAddr,
    requests: mpsc::Receiver<ExportTraceServiceRequest>,
}

const SERVICE: &str = "nightly";

impl Collector {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, requests) = mpsc::channel();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let _ = sender.send(answer(stream));
            }
        });
        Self { address, requests }
    }

    /// The spans that arrived, by name.
    fn spans(&self) -> BTreeMap<String, Span> {
        let mut spans = BTreeMap::new();
        while let Ok(request) = self.requests.recv_timeout(Duration::from_secs(1)) {
            for resource in request.resource_spans {
                let service = resource.resource.unwrap().attributes;
                let name = service.iter().find(|pair| pair.key == "service.name").unwrap();
                assert!(format!("{name:?}").contains(SERVICE), "{service:?}");
                let found = resource.scope_spans.into_iter().flat_map(|scope| scope.spans);
                spans.extend(found.map(|span| (span.name.clone(), span)));
            }
        }
        spans
    }
}

/// Reads a request, and answers that everything was taken.
fn answer(stream: TcpStream) -> ExportTraceServiceRequest {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    let mut line = String::new();
    while reader.read_line(&mut line).unwrap() > 2 {
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        line.clear();
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let taken = ExportTraceServiceResponse::default().encode_to_vec();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/x-protobuf\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        taken.len()
    );
    let mut stream = reader.into_inner();
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(&taken).unwrap();
    ExportTraceServiceRequest::decode(&*body).unwrap()
}

fn text(span: &Span, key: &str) -> Option<String> {
    let pair = span.attributes.iter().find(|pair| pair.key == key)?;
    match pair.value.as_ref()?.value.as_ref()? {
        Value::StringValue(text) => Some(text.clone()),
        Value::IntValue(number) => Some(number.to_string()),
        Value::DoubleValue(number) => Some(number.to_string()),
        other => panic!("{key} is {other:?}"),
    }
}

/// A project whose agent is a program that keeps the trace context it was given.
fn project() -> WorkflowProject {
    let project = WorkflowProject::new(&one_step(""), "replies: []\n");
    let agent = "#!/bin/sh\nprintf %s \"$TRACEPARENT\" > given\necho '{\"ok\": true}'\n";
    project.write("agent.sh", agent);
    project
}

const RUN: [&str; 4] = ["run", "flow.yaml", "--agent", "command:sh agent.sh"];

#[test]
fn spans_of_a_run_reach_the_collector_and_agents_belong_to_them() {
    let (project, collector) = (project(), Collector::start());
    let output = project
        .command(&RUN)
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://{}", collector.address))
        .env("OTEL_RESOURCE_ATTRIBUTES", "service.name=other,deployment.environment.name=ci")
        .env("OTEL_SERVICE_NAME", SERVICE)
        .env("TRACEPARENT", PARENT)
        .output();
    assert!(output.is_success(), "{}", output.stderr);
    let spans = collector.spans();
    let names: Vec<&str> = spans.keys().map(String::as_str).collect();
    let [attempt, run] = *names else { panic!("{names:?}") };
    assert!(attempt.starts_with("invoke_agent worker"), "{attempt}");
    assert!(run.starts_with("invoke_workflow "), "{run}");
    let (attempt, run) = (&spans[attempt], &spans[run]);
    let parts: Vec<&str> = PARENT.split('-').collect();
    assert_eq!(hex::encode(&run.trace_id), parts[1]);
    assert_eq!(hex::encode(&run.parent_span_id), parts[2]);
    assert_eq!(attempt.trace_id, run.trace_id);
    assert_eq!(attempt.parent_span_id, run.span_id);
    let given = project.read("given");
    assert_eq!(given, format!("00-{}-{}-01", parts[1], hex::encode(&attempt.span_id)));
    for (key, value) in [
        ("gen_ai.operation.name", "invoke_agent"),
        ("gen_ai.agent.name", "worker"),
        ("gen_ai.provider.name", "sh"),
        ("counterfoil.state", "work"),
        ("counterfoil.outcome", "accepted"),
        ("counterfoil.attempt", "1"),
        ("gen_ai.usage.input_tokens", "0"),
    ] {
        assert_eq!(text(attempt, key).as_deref(), Some(value), "{key}: {attempt:#?}");
    }
    assert_eq!(text(run, "gen_ai.operation.name").as_deref(), Some("invoke_workflow"));
    assert_eq!(text(run, "counterfoil.outcome").as_deref(), Some("done"));
    assert!(attempt.end_time_unix_nano >= attempt.start_time_unix_nano);
}

#[test]
fn without_a_collector_agents_are_given_a_trace_of_the_run() {
    let project = project();
    let output = project.command(&RUN).output();
    assert!(output.is_success(), "{}", output.stderr);
    let given = project.read("given");
    assert!(given.starts_with("00-") && given.ends_with("-01") && given.len() == 55, "{given}");
}

#[test]
fn a_failed_attempt_is_an_error_and_spans_hold_no_secret() {
    let (project, collector) = (project(), Collector::start());
    // The name of the program is an attribute.
    project.write(SECRET, "#!/bin/sh\necho nothing\n");
    let program = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(project.path(SECRET), program).unwrap();
    let output = project
        .command(&["run", "flow.yaml", "--agent", &format!("command:./{SECRET}")])
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://{}", collector.address))
        .env("OTEL_RESOURCE_ATTRIBUTES", format!("service.name={SERVICE}"))
        .output();
    assert!(!output.is_success());
    let spans = collector.spans();
    let failed = spans.values().find(|span| text(span, "gen_ai.agent.name").is_some()).unwrap();
    assert_eq!(text(failed, "error.type").as_deref(), Some("contract"), "{failed:#?}");
    assert_eq!(failed.status.as_ref().unwrap().code, 2);
    let told = text(failed, "counterfoil.program").unwrap();
    assert!(!told.is_empty() && !format!("{spans:?}").contains(SECRET), "{told}");
}

#[test]
fn a_collector_that_does_not_answer_changes_nothing_but_is_said() {
    let project = project();
    // Nobody listens on this port any more.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let output = project
        .command(&RUN)
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://{address}"))
        .output();
    assert!(output.is_success(), "{}", output.stderr);
    assert!(
        output.stderr.contains("were not sent to the OpenTelemetry collector"),
        "{}",
        output.stderr
    );
}
