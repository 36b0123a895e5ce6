//! The MCP server: dispatches calls to the tools, and stores each submission before it is
//! acknowledged.

use super::response::ToolResponse;
use super::tools::{CHECK_RESULT, GET_CONTRACT, SubmissionTools};
use super::transport::StdioTransport;
use crate::output;
use anyhow::{Context, Result};
use counterfoil_agents::adapters;
use counterfoil_agents::check_service::CheckService;
use counterfoil_agents::submissions::{Submission, append};
use counterfoil_contract::text::display_path;
use counterfoil_engine::journal::make_folder;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest,
    CustomResult, ErrorCode, ErrorData, Implementation, JsonObject, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{RequestContext, ServerInitializeError, serve_server};
use rmcp::{RoleServer, ServerHandler};
use std::io::{self, BufReader};
use std::path::PathBuf;
use std::sync::Arc;

/// Where submissions are stored.
#[derive(Debug)]
pub(crate) enum SubmissionStore {
    /// A file in an existing folder.
    File(PathBuf),
    /// A state folder, which is created with the first submission.
    Folder(PathBuf),
}

impl SubmissionStore {
    fn append(&self, submission: &Submission) -> Result<(), String> {
        let path = match self {
            Self::File(path) => path.clone(),
            Self::Folder(folder) => {
                make_folder(folder)
                    .map_err(|error| format!("cannot create {}: {error}", display_path(folder)))?;
                folder.join("submissions.jsonl")
            }
        };
        append(&path, submission).map_err(|error| error.to_string())
    }
}

/// Serves until standard input ends or standard output is closed.
pub(crate) fn serve(
    tools: SubmissionTools,
    store: SubmissionStore,
    checks: Option<CheckService>,
) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .context("cannot start the server")?;
    let server = Arc::new(Server { definitions: tools.tools(), tools, store, checks });
    let result = runtime.block_on(async {
        let (transport, writer) =
            StdioTransport::open(|| Box::new(BufReader::new(io::stdin())), output::json_stdout())
                .context("cannot start the server")?;
        let result = serve_connection(&server, &transport).await;
        writer.finish(transport).await;
        result
    });
    // The reader thread may be blocked on standard input; do not wait for it.
    runtime.shutdown_background();
    result
}

async fn serve_connection(server: &Arc<Server>, transport: &StdioTransport) -> Result<()> {
    loop {
        match serve_server(server.clone(), transport.clone()).await {
            Ok(running) => {
                running.waiting().await.context("the server stopped unexpectedly")?;
                return Ok(());
            }
            // The client did not begin with a valid initialization. The connection is intact, so it
            // can try again.
            Err(
                ServerInitializeError::ExpectedInitializeRequest(_)
                | ServerInitializeError::InitializeFailed(_)
                | ServerInitializeError::UnexpectedInitializeResponse(_),
            ) => {}
            // The client disconnected.
            Err(_) => return Ok(()),
        }
    }
}

struct Server {
    tools: SubmissionTools,
    definitions: Vec<Tool>,
    store: SubmissionStore,
    /// Where checks of the project can be run.
    checks: Option<CheckService>,
}

impl Server {
    /// Has the engine run a check, and waits for it on a thread of its own.
    async fn run_check(&self, service: &CheckService, arguments: &JsonObject) -> ToolResponse {
        let name = match self.tools.check_name(arguments) {
            Ok(name) => name,
            Err(why) => return ToolResponse::invalid_arguments(&why),
        };
        let (service, check) = (service.clone(), name.clone());
        let answer = tokio::task::spawn_blocking(move || service.call(&check)).await;
        let answer = answer.map_err(|error| error.to_string());
        let answer = answer.and_then(|answer| answer.map_err(|error| error.to_string()));
        ToolResponse::check(&name, answer)
    }

    fn call(&self, name: &str, arguments: JsonObject) -> Result<ToolResponse, ErrorData> {
        let available: Vec<&str> = self.definitions.iter().map(|tool| &*tool.name).collect();
        match name {
            adapters::Server::TOOL if available.contains(&name) => Ok(self.submit(arguments)),
            GET_CONTRACT if available.contains(&name) => Ok(self.tools.get(arguments)),
            CHECK_RESULT if available.contains(&name) => Ok(self.tools.check(arguments)),
            _ => {
                let available = available.join(", ");
                Err(ErrorData::invalid_params(
                    format!("there is no tool '{name}'; available: {available}"),
                    None,
                ))
            }
        }
    }

    fn submit(&self, arguments: JsonObject) -> ToolResponse {
        match self.tools.submit(arguments) {
            Ok(submitted) => {
                let submission = Submission::now(submitted.value, &submitted.report);
                let stored = self.store.append(&submission);
                ToolResponse::submitted(submitted.contract, &submitted.report, stored)
            }
            Err(why) => ToolResponse::invalid_arguments(&why),
        }
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let name = Implementation::new(adapters::Server::NAME, env!("CARGO_PKG_VERSION"))
            .with_title("Counterfoil");
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(name)
            .with_instructions(self.tools.instructions())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.definitions.clone()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.definitions.iter().find(|tool| tool.name == name).cloned()
    }

    /// Handles a call without awaiting, so that submissions are stored in the order of arrival. Only
    /// a check is awaited: it takes long.
    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let response = match &self.checks {
            Some(service) if request.name == adapters::Server::RUN_CHECK => {
                self.run_check(service, &arguments).await
            }
            _ => self.call(&request.name, arguments)?,
        };
        let content = vec![ContentBlock::text(response.text)];
        let mut result = if response.is_error {
            CallToolResult::error(content)
        } else {
            CallToolResult::success(content)
        };
        result.structured_content = Some(response.data);
        Ok(result.into())
    }

    /// Handles methods that `rmcp` does not know, and known methods with invalid parameters.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        Err(match request.method.as_str() {
            "tools/call" => ErrorData::invalid_params(
                "the parameters of tools/call are `name`, a string, and `arguments`, an object",
                None,
            ),
            method @ ("initialize" | "tools/list" | "ping") => ErrorData::invalid_params(
                format!("the parameters of {method} do not match the protocol"),
                None,
            ),
            method => ErrorData::new(
                ErrorCode::METHOD_NOT_FOUND,
                format!("there is no method '{method}'"),
                None,
            ),
        })
    }
}
