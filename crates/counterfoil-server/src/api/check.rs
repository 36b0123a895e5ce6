//! Contracts, and texts that are checked against them.

use super::json;
use super::path::PathParts;
use super::write::{WriteRequest, body};
use crate::checking::{CheckRequest, Checked, Client, perform};
use crate::contracts::{KnownContract, Origin};
use crate::pages;
use crate::problem::Problem;
use crate::site::Site;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use counterfoil_contract::Report;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::sync::Arc;

/// The contracts that the server knows.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ContractsAnswer {
    /// The contracts in the order of their ids, the newest version of each first.
    contracts: Vec<ListedContract>,
}

/// A contract in a list.
#[derive(Debug, Serialize, JsonSchema)]
struct ListedContract {
    /// The id with the version.
    contract: String,
    /// What the result is, in one line.
    summary: String,
    /// The agent that returns the result.
    agent: Option<String>,
    /// Why it is deprecated, and what to use instead.
    deprecated: Option<String>,
    /// Where it comes from: `program` or `run`.
    origin: &'static str,
}

/// A contract.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ContractAnswer {
    #[serde(flatten)]
    listed: ListedContract,
    /// The definition.
    definition: Value,
    /// The definition as YAML.
    yaml: String,
}

fn listed(contract: &KnownContract) -> ListedContract {
    let definition = &contract.definition;
    ListedContract {
        contract: contract.reference(),
        summary: definition.summary.clone(),
        agent: definition.agent.clone(),
        deprecated: definition.deprecated.clone(),
        origin: match contract.origin {
            Origin::Program => "program",
            Origin::Run => "run",
        },
    }
}

pub(super) async fn contracts(State(site): State<Arc<Site>>) -> Response {
    let made = site.blocking(|site| {
        let known = site.contracts.all(&site.folders)?;
        let contracts = known.iter().map(|contract| listed(contract)).collect();
        Ok(ContractsAnswer { contracts })
    });
    json(made.await)
}

pub(super) async fn contract(
    State(site): State<Arc<Site>>,
    PathParts(id): PathParts<String>,
) -> Response {
    let made = site.blocking(move |site| {
        let known = site.contracts.find(&site.folders, &id)?;
        let unwritable = |why: String| {
            let detail = format!("contract {id} cannot be written: {why}");
            Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", detail)
        };
        Ok(ContractAnswer {
            definition: serde_json::to_value(&known.definition)
                .map_err(|error| unwritable(error.to_string()))?,
            yaml: known.definition.to_yaml().map_err(|error| unwritable(error.to_string()))?,
            listed: listed(&known),
        })
    });
    json(made.await)
}

/// Checks a text. A page asks for the part of it that shows the answer.
pub(super) async fn check(State(site): State<Arc<Site>>, request: WriteRequest) -> Response {
    let wants_page = wants_page(request.headers());
    let read: Result<CheckRequest, Problem> = body(request.headers(), request.bytes());
    let checked = match read {
        Ok(read) => perform_check(site, read).await,
        Err(problem) => Err(problem),
    };
    if wants_page {
        let status = match &checked {
            Ok((Checked::Report(..), _)) => StatusCode::OK,
            Ok((Checked::NoContract(_), _)) => StatusCode::UNPROCESSABLE_ENTITY,
            Err(problem) => problem.status(),
        };
        return match pages::checked(checked) {
            Ok(html) => (status, Html(html)).into_response(),
            Err(problem) => problem.into_answer(),
        };
    }
    let report: Result<Box<Report>, Problem> = match checked {
        Ok((Checked::Report(report, _), _)) => Ok(report),
        Ok((Checked::NoContract(error), _)) => {
            Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "contract", error.to_string()))
        }
        Err(problem) => Err(problem),
    };
    json(report)
}

/// Checks a text. Returns the text, too, to show places in it.
async fn perform_check(
    site: Arc<Site>,
    request: CheckRequest,
) -> Result<(Checked, String), Problem> {
    let permit = site.checks.admit(&request)?;
    // Dropped when the client has gone, which ends the check.
    let client = Client::default();
    let watch = client.watch();
    let checked = site.blocking(move |site| {
        // Held until the work ends, also if the client has gone.
        let _permit = permit;
        perform(&site.contracts, &site.folders, request, watch)
    });
    let checked = checked.await;
    drop(client);
    checked
}

/// Whether the client asks for HTML.
fn wants_page(headers: &HeaderMap) -> bool {
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    accept.is_some_and(|accept| accept.contains("text/html"))
}
