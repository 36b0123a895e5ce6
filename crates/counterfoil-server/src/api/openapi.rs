//! The description of the API as `OpenAPI` 3.1. Its schemas are those of the types themselves: that
//! version uses JSON Schema as it is, and the types have one already.

use super::{across, check, events, read, write};
use crate::checking::CheckRequest;
use crate::control::{ResumeRequest, StartRequest};
use crate::problem::Problem;
use axum::response::Response;
use counterfoil_contract::Report;
use counterfoil_engine::Attempt;
use counterfoil_engine::lists::ClaimList;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

pub(super) async fn document() -> Response {
    super::json(Ok(describe()))
}

/// The operation that changes nothing although it is posted.
const CHECK: &str = "check";

/// What an operation answers with.
enum Answer {
    /// A value as JSON.
    Json(Value),
    /// Text, or a part of it.
    Text,
    /// A page of events, or a stream of them.
    Events(Value),
    /// A value as JSON, or a part of a page that shows it.
    JsonOrPage(Value),
}

/// One operation of the API.
struct Operation {
    path: &'static str,
    method: &'static str,
    id: &'static str,
    summary: &'static str,
    /// The schema of the query.
    query: Option<Value>,
    /// The schema of the body.
    body: Option<Value>,
    answer: Answer,
    /// The statuses of problems besides those of every operation.
    problems: &'static [u16],
}

/// The document.
pub(crate) fn describe() -> Value {
    let mut schemas = SchemaSettings::draft2020_12()
        .with(|settings| "/components/schemas".clone_into(settings.definitions_path.to_mut()))
        .into_generator();
    let problem = reference::<Problem>(&mut schemas);
    let mut paths: Map<String, Value> = Map::new();
    for operation in operations(&mut schemas) {
        let path = paths.entry(operation.path).or_insert_with(|| json!({}));
        if let Some(path) = path.as_object_mut() {
            path.insert(operation.method.to_owned(), describe_operation(&operation, &problem));
        }
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Counterfoil",
            "version": "1",
            "description": "Runs of coding agents: what they did, what they claimed, and what was verified.",
        },
        "servers": [{"url": "/api/v1"}],
        "security": [{"token": []}, {"session": []}],
        "paths": paths,
        "components": {
            "schemas": Value::Object(schemas.take_definitions(true)),
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "session": {"type": "apiKey", "in": "cookie", "name": "counterfoil-PORT"},
            },
        },
    })
}

fn operations(schemas: &mut SchemaGenerator) -> Vec<Operation> {
    let get = |path, id, summary, answer| Operation {
        path,
        method: "get",
        id,
        summary,
        query: None,
        body: None,
        answer,
        problems: &[404],
    };
    let done = reference::<crate::idempotency::Done>(schemas);
    let post = |path, id, summary, body, problems| Operation {
        path,
        method: "post",
        id,
        summary,
        query: None,
        body: Some(body),
        answer: Answer::Json(done.clone()),
        problems,
    };
    let mut all = vec![
        Operation {
            query: Some(inline::<read::RunsQuery>(schemas)),
            problems: &[400],
            ..get(
                "/runs",
                "listRuns",
                "A page of the runs",
                Answer::Json(reference::<read::RunsPage>(schemas)),
            )
        },
        post(
            "/runs",
            "startRun",
            "Start a run, if the server may",
            reference::<StartRequest>(schemas),
            &[400, 403, 409, 415],
        ),
        Operation {
            answer: Answer::Json(reference::<write::SignInLink>(schemas)),
            ..post(
                "/sign-in-links",
                "makeSignInLink",
                "A path with which a browser signs in, once, within ten minutes",
                reference::<write::EmptyRequest>(schemas),
                &[400, 415],
            )
        },
        get(
            "/runs/{run}/bundle",
            "getBundle",
            "The workflow of a run with its contracts, as the run keeps them",
            Answer::Json(json!({"type": "object"})),
        ),
        get(
            "/runs/{run}",
            "getRun",
            "The report of a run",
            Answer::Json(reference::<read::RunAnswer>(schemas)),
        ),
        Operation {
            query: Some(inline::<events::EventsQuery>(schemas)),
            problems: &[400, 404],
            ..get(
                "/runs/{run}/events",
                "listEvents",
                "The events of a run. With `Accept: text/event-stream` they are sent as they are \
                 recorded: the id of a message is the number of its event, so that a client that \
                 was cut off continues with `Last-Event-ID`; the message `end` is the last one",
                Answer::Events(reference::<events::EventsAnswer>(schemas)),
            )
        },
        get(
            "/runs/{run}/claims",
            "listClaims",
            "The claims of a run and their verdicts",
            Answer::Json(reference::<ClaimList>(schemas)),
        ),
        get(
            "/runs/{run}/questions",
            "listQuestions",
            "The open questions of a run",
            Answer::Json(reference::<read::QuestionsAnswer>(schemas)),
        ),
        post(
            "/runs/{run}/questions/{question}/answer",
            "answerQuestion",
            "Answer a question. `If-Match` has the `etag` of the question",
            reference::<write::AnswerRequest>(schemas),
            &[400, 403, 404, 409, 410, 412, 415, 422, 428],
        ),
        post(
            "/runs/{run}/cancel",
            "cancelRun",
            "Cancel a run",
            reference::<write::EmptyRequest>(schemas),
            &[400, 403, 404, 409, 415],
        ),
        post(
            "/runs/{run}/resume",
            "resumeRun",
            "Continue a run in a process of its own",
            reference::<ResumeRequest>(schemas),
            &[400, 403, 404, 409, 415],
        ),
        get(
            "/runs/{run}/attempts/{attempt}",
            "getAttempt",
            "An attempt: its path and number, as `implement#2`",
            Answer::Json(reference::<Attempt>(schemas)),
        ),
        Operation {
            problems: &[404, 410, 416],
            ..get(
                "/runs/{run}/attempts/{attempt}/replies/{reply}/text",
                "getReply",
                "What the agent replied, or a range of its bytes",
                Answer::Text,
            )
        },
        Operation {
            problems: &[404, 410, 416],
            ..get(
                "/runs/{run}/attempts/{attempt}/replies/{reply}/prompt",
                "getPrompt",
                "What the agent was asked, or a range of its bytes",
                Answer::Text,
            )
        },
        Operation {
            problems: &[404, 410, 416],
            ..get(
                "/runs/{run}/attempts/{attempt}/replies/{reply}/transcript",
                "getTranscript",
                "The output of the agent as it wrote it, or a range of its bytes. That of an attempt \
                 at work has the number after the last reply, and grows",
                Answer::Text,
            )
        },
        Operation {
            problems: &[404, 410, 416],
            ..get(
                "/runs/{run}/attempts/{attempt}/diff",
                "getDiff",
                "What an attempt changed in the files, as `patch` reads it",
                Answer::Text,
            )
        },
    ];
    all.extend(operations_over_runs(schemas));
    all
}

/// The operations that belong to no single run.
fn operations_over_runs(schemas: &mut SchemaGenerator) -> Vec<Operation> {
    let get = |path, id, summary, query, answer, problems| Operation {
        path,
        method: "get",
        id,
        summary,
        query,
        body: None,
        answer: Answer::Json(answer),
        problems,
    };
    let health = inline::<across::HealthQuery>(schemas);
    let claims = inline::<across::ClaimsQuery>(schemas);
    vec![
        get(
            "/health",
            "getHealth",
            "Rates of violations and of refuted claims over all runs, with costs and weeks",
            Some(health),
            reference::<across::HealthAnswer>(schemas),
            &[400],
        ),
        get(
            "/claims",
            "listAllClaims",
            "The claims of all runs by field, and the latest claims of a field",
            Some(claims),
            reference::<across::AllClaimsAnswer>(schemas),
            &[400],
        ),
        get(
            "/contracts",
            "listContracts",
            "The contracts against which texts can be checked",
            None,
            reference::<check::ContractsAnswer>(schemas),
            &[],
        ),
        get(
            "/contracts/{id}",
            "getContract",
            "A contract, as `ID` or `ID@VERSION`. The slash of an id is written `%2F`",
            None,
            reference::<check::ContractAnswer>(schemas),
            &[404],
        ),
        Operation {
            path: "/check",
            method: "post",
            id: CHECK,
            summary: "Check a text against a contract, as `counterfoil check --format json` does. \
                      With `Accept: text/html` the answer is a part of a page",
            query: None,
            body: Some(reference::<CheckRequest>(schemas)),
            answer: Answer::JsonOrPage(reference::<Report>(schemas)),
            problems: &[400, 404, 413, 415, 422, 429],
        },
    ]
}

fn describe_operation(operation: &Operation, problem: &Value) -> Value {
    let names = operation
        .path
        .split('/')
        .filter_map(|part| part.strip_prefix('{').and_then(|part| part.strip_suffix('}')));
    let mut parameters: Vec<Value> = names
        .map(|name| {
            let kind = if name == "reply" { "integer" } else { "string" };
            json!({"name": name, "in": "path", "required": true, "schema": {"type": kind}})
        })
        .collect();
    let properties = operation.query.as_ref().and_then(|query| query.get("properties"));
    for (name, schema) in properties.and_then(Value::as_object).into_iter().flatten() {
        parameters.push(json!({"name": name, "in": "query", "schema": schema}));
    }
    if operation.id == "answerQuestion" {
        parameters.push(json!({
            "name": "If-Match", "in": "header", "required": true, "schema": {"type": "string"}
        }));
    }
    if operation.method == "post" && operation.id != CHECK {
        parameters.push(json!({
            "name": "Idempotency-Key", "in": "header", "schema": {"type": "string"},
            "description": "A request that is repeated with the same key gets the same answer",
        }));
    }
    let content = match &operation.answer {
        Answer::Json(schema) => json!({"application/json": {"schema": schema}}),
        Answer::Text => json!({"text/plain": {"schema": {"type": "string"}}}),
        Answer::Events(schema) => json!({
            "application/json": {"schema": schema},
            "text/event-stream": {"schema": {"type": "string"}},
        }),
        Answer::JsonOrPage(schema) => json!({
            "application/json": {"schema": schema},
            "text/html": {"schema": {"type": "string"}},
        }),
    };
    let mut responses = Map::new();
    responses.insert("200".to_owned(), json!({"description": "As asked", "content": content}));
    let mut statuses: Vec<u16> =
        [401, 421, 500].into_iter().chain(operation.problems.iter().copied()).collect();
    if operation.path.starts_with("/runs/{run}") {
        // Several runs may have the name.
        statuses.push(409);
    }
    statuses.sort_unstable();
    statuses.dedup();
    for status in statuses {
        let title = axum::http::StatusCode::from_u16(status).ok();
        let title = title.and_then(|status| status.canonical_reason()).unwrap_or_default();
        responses.insert(
            status.to_string(),
            json!({
                "description": title,
                "content": {"application/problem+json": {"schema": problem}},
            }),
        );
    }
    let mut described = json!({
        "operationId": operation.id,
        "summary": operation.summary,
        "parameters": parameters,
        "responses": responses,
    });
    if let Some(body) = &operation.body {
        described["requestBody"] =
            json!({"required": true, "content": {"application/json": {"schema": body}}});
    }
    described
}

/// A reference to the schema of a type.
fn reference<T: JsonSchema>(schemas: &mut SchemaGenerator) -> Value {
    schemas.subschema_for::<T>().to_value()
}

/// The schema of a type itself.
fn inline<T: JsonSchema>(schemas: &mut SchemaGenerator) -> Value {
    T::json_schema(schemas).to_value()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The routes of the API, as the source of its router writes them.
    #[test]
    fn every_route_is_described_and_the_other_way_round() {
        let source = include_str!("../api.rs");
        let mut routed: Vec<(String, String)> = Vec::new();
        for line in source.lines().filter_map(|line| line.trim().strip_prefix(".route(\"")) {
            let (path, methods) = line.split_once("\", ").unwrap();
            for method in ["get", "post"] {
                if methods.contains(&format!("{method}(")) {
                    routed.push((path.to_owned(), method.to_owned()));
                }
            }
        }
        routed.retain(|(path, _)| path != "/openapi.json");
        routed.sort();
        let document = describe();
        let mut described: Vec<(String, String)> = Vec::new();
        for (path, methods) in document["paths"].as_object().unwrap() {
            for method in methods.as_object().unwrap().keys() {
                described.push((path.clone(), method.clone()));
            }
        }
        described.sort();
        assert_eq!(described, routed);
    }

    /// What programs rely on. A change of it is a change of the API.
    #[test]
    fn the_document_is_the_one_that_was_agreed() {
        insta::assert_json_snapshot!("openapi", describe());
    }

    #[test]
    fn every_reference_leads_somewhere() {
        let document = describe();
        let text = document.to_string();
        let mut found = 0;
        for part in text.split("\"$ref\":\"").skip(1) {
            let target = part.split('"').next().unwrap();
            let pointer = target.strip_prefix('#').unwrap();
            assert!(document.pointer(pointer).is_some(), "{target}");
            found += 1;
        }
        assert!(found > 20, "{found}");
    }
}
