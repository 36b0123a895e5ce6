//! Between the protocol and the desk: calls come in, answers go out, and what was handed in is kept
//! before it is acknowledged.

use super::answer::Answer;
use super::desk::Desk;
use super::wire::Wire;
use anyhow::{Context, Result};
use counterfoil_agents::agent::adapter;
use counterfoil_agents::submit::{Submission, append};
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

/// Where submissions are kept.
#[derive(Debug)]
pub(crate) enum Store {
    /// In a file whose folder is there.
    File(PathBuf),
    /// In a state folder, which is made when there is something to keep.
    Folder(PathBuf),
}

impl Store {
    fn keep(&self, submission: &Submission) -> Result<(), String> {
        let path = match self {
            Self::File(path) => path.clone(),
            Self::Folder(folder) => {
                make_folder(folder)
                    .map_err(|error| format!("{} cannot be made: {error}", folder.display()))?;
                folder.join("submissions.jsonl")
            }
        };
        append(&path, submission).map_err(|error| error.to_string())
    }
}

/// Serves until standard input ends or nobody reads standard output any more.
pub(crate) fn serve(desk: Desk, store: Store) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .context("the server cannot be started")?;
    let server = Arc::new(Server { tools: desk.tools(), desk, store });
    let served = runtime.block_on(async {
        let (wire, writing) = Wire::open(|| Box::new(BufReader::new(io::stdin())), io::stdout())
            .context("the server cannot be started")?;
        let served = attend(&server, &wire).await;
        writing.end(wire).await;
        served
    });
    // A reader that still waits for a line must not be waited for.
    runtime.shutdown_background();
    served
}

async fn attend(server: &Arc<Server>, wire: &Wire) -> Result<()> {
    loop {
        match serve_server(server.clone(), wire.clone()).await {
            Ok(running) => {
                running.waiting().await.context("the server broke off")?;
                return Ok(());
            }
            // Whoever says something else first may still say it rightly: the connection is as it
            // was.
            Err(
                ServerInitializeError::ExpectedInitializeRequest(_)
                | ServerInitializeError::InitializeFailed(_)
                | ServerInitializeError::UnexpectedInitializeResponse(_),
            ) => {}
            // The client is gone.
            Err(_) => return Ok(()),
        }
    }
}

struct Server {
    desk: Desk,
    tools: Vec<Tool>,
    store: Store,
}

impl Server {
    fn call(&self, name: &str, arguments: JsonObject) -> Result<Answer, ErrorData> {
        let [submit, get, check] = adapter::Server::TOOLS;
        if name == submit {
            Ok(self.submit(arguments))
        } else if name == get {
            Ok(self.desk.get(arguments))
        } else if name == check {
            Ok(self.desk.check(arguments))
        } else {
            let there = adapter::Server::TOOLS.join(", ");
            Err(ErrorData::invalid_params(
                format!("there is no tool '{name}'; there are {there}"),
                None,
            ))
        }
    }

    fn submit(&self, arguments: JsonObject) -> Answer {
        match self.desk.submit(arguments) {
            Ok(handed) => {
                let kept = self.store.keep(&Submission::now(handed.value, &handed.report));
                Answer::submitted(handed.contract, &handed.report, kept)
            }
            Err(why) => Answer::unusable(&why),
        }
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let name = Implementation::new(adapter::Server::NAME, env!("CARGO_PKG_VERSION"))
            .with_title("Counterfoil");
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(name)
            .with_instructions(self.desk.instructions())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.tools.clone()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.tools.iter().find(|tool| tool.name == name).cloned()
    }

    /// Without a wait in between, so that results are kept in the order in which they came.
    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let answer = self.call(&request.name, request.arguments.unwrap_or_default())?;
        let content = vec![ContentBlock::text(answer.text)];
        let mut result = if answer.failed {
            CallToolResult::error(content)
        } else {
            CallToolResult::success(content)
        };
        result.structured_content = Some(answer.data);
        Ok(result.into())
    }

    /// What the protocol's crate does not know; also what it knows with parameters that it cannot
    /// read.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        Err(match request.method.as_str() {
            "tools/call" => ErrorData::invalid_params(
                "the parameters of tools/call are `name`, a text, and `arguments`, an object",
                None,
            ),
            method @ ("initialize" | "tools/list" | "ping") => ErrorData::invalid_params(
                format!("the parameters of {method} are not as the protocol has them"),
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
