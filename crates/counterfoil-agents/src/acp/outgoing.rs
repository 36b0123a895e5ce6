//! The messages that we send, one line each.

use crate::adapters::Server;
use agent_client_protocol_schema::ProtocolVersion;
use agent_client_protocol_schema::rpc::{JsonRpcMessage, Notification, Request};
use agent_client_protocol_schema::v1::{
    AGENT_METHOD_NAMES, CancelNotification, ClientCapabilities, ContentBlock, Error,
    Implementation, InitializeRequest, McpServer, McpServerStdio, NewSessionRequest, PromptRequest,
    RequestId, RequestPermissionOutcome, RequestPermissionResponse, Response,
    SelectedPermissionOutcome, SetSessionModeRequest, TextContent,
};
use serde::Serialize;
use std::path::Path;

/// A message as a line, with its line ending.
fn line(message: impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(&JsonRpcMessage::wrap(message)).unwrap_or_default();
    line.push(b'\n');
    line
}

fn request(id: i64, method: &str, params: impl Serialize) -> Vec<u8> {
    line(Request { id: RequestId::Number(id), method: method.into(), params: Some(params) })
}

/// The first request. We offer no tools: the program uses its own, which its sandbox may contain.
pub(super) fn initialize(id: i64) -> Vec<u8> {
    let us = Implementation::new("counterfoil", env!("CARGO_PKG_VERSION"));
    let params = InitializeRequest::new(ProtocolVersion::V1)
        .client_capabilities(ClientCapabilities::new())
        .client_info(us);
    request(id, AGENT_METHOD_NAMES.initialize, params)
}

/// The request for a new conversation in a folder, with our server if it is attached.
pub(super) fn new_session(id: i64, cwd: &Path, server: Option<&Server>) -> Vec<u8> {
    let servers = server.and_then(|server| {
        let (program, arguments) = server.command.split_first()?;
        let stdio = McpServerStdio::new(Server::NAME, program).args(arguments.to_vec());
        Some(McpServer::Stdio(stdio))
    });
    let params = NewSessionRequest::new(cwd).mcp_servers(servers.into_iter().collect());
    request(id, AGENT_METHOD_NAMES.session_new, params)
}

/// The request to work in one of the modes of the program.
pub(super) fn set_mode(id: i64, session: &str, mode: &str) -> Vec<u8> {
    let params = SetSessionModeRequest::new(session.to_owned(), mode.to_owned());
    request(id, AGENT_METHOD_NAMES.session_set_mode, params)
}

/// A prompt.
pub(super) fn prompt(id: i64, session: &str, text: &str) -> Vec<u8> {
    // A leading slash would be a command of the program.
    let text = if text.starts_with('/') { format!("\n{text}") } else { text.to_owned() };
    let content = ContentBlock::Text(TextContent::new(text));
    let params = PromptRequest::new(session.to_owned(), vec![content]);
    request(id, AGENT_METHOD_NAMES.session_prompt, params)
}

/// Asks the program to end what it does for the current prompt.
pub(super) fn cancel(session: &str) -> Vec<u8> {
    line(Notification {
        method: AGENT_METHOD_NAMES.session_cancel.into(),
        params: Some(CancelNotification::new(session.to_owned())),
    })
}

/// The answer to a request for a permission: the chosen option, or that nothing was chosen.
pub(super) fn permission(id: RequestId, option: Option<&str>) -> Vec<u8> {
    let outcome = match option {
        Some(option) => {
            RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(option.to_owned()))
        }
        None => RequestPermissionOutcome::Cancelled,
    };
    line(Response::<_, Error>::new(id, Ok(RequestPermissionResponse::new(outcome))))
}

/// The answer to a request for something that we did not offer.
pub(super) fn not_offered(id: RequestId) -> Vec<u8> {
    line(Response::<(), _>::new(id, Err(Error::method_not_found())))
}

/// The answer to a request that cannot be read.
pub(super) fn invalid_params(id: RequestId) -> Vec<u8> {
    line(Response::<(), _>::new(id, Err(Error::invalid_params())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn read(line: &[u8]) -> Value {
        let (last, line) = line.split_last().unwrap();
        assert_eq!(*last, b'\n');
        assert!(!line.contains(&b'\n'), "one line");
        serde_json::from_slice(line).unwrap()
    }

    #[test]
    fn messages_have_the_form_of_the_protocol() {
        let sent = read(&initialize(1));
        assert_eq!((&sent["jsonrpc"], &sent["id"]), (&json!("2.0"), &json!(1)));
        assert_eq!(sent["method"], "initialize");
        assert_eq!(sent["params"]["protocolVersion"], 1);
        let offered = &sent["params"]["clientCapabilities"];
        assert_eq!(offered["fs"], json!({"readTextFile": false, "writeTextFile": false}));
        assert_eq!(offered["terminal"], false);
        assert_eq!(sent["params"]["clientInfo"]["name"], "counterfoil");

        let server = Server {
            command: vec!["/bin/counterfoil".into(), "mcp".into()],
            receives: true,
            call_timeout: None,
        };
        let sent = read(&new_session(2, Path::new("/repo"), Some(&server)));
        assert_eq!(
            sent["params"],
            json!({"cwd": "/repo", "mcpServers": [
                {"name": "counterfoil", "command": "/bin/counterfoil", "args": ["mcp"], "env": []}
            ]})
        );
        let sent = read(&new_session(2, Path::new("/repo"), None));
        assert_eq!(sent["params"]["mcpServers"], json!([]));

        let sent = read(&set_mode(2, "s1", "default"));
        assert_eq!(sent["method"], "session/set_mode");
        assert_eq!(sent["params"], json!({"sessionId": "s1", "modeId": "default"}));

        let sent = read(&prompt(3, "s1", "two\nlines"));
        assert_eq!(
            sent,
            json!({"jsonrpc": "2.0", "id": 3, "method": "session/prompt", "params": {
                "sessionId": "s1", "prompt": [{"type": "text", "text": "two\nlines"}],
            }})
        );
        assert_eq!(read(&prompt(3, "s1", "/init"))["params"]["prompt"][0]["text"], "\n/init");
        assert_eq!(
            read(&cancel("s1")),
            json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": "s1"}})
        );
    }

    #[test]
    fn answers_carry_the_id_of_the_request() {
        assert_eq!(
            read(&permission(RequestId::Number(0), Some("ok"))),
            json!({"jsonrpc": "2.0", "id": 0, "result": {
                "outcome": {"outcome": "selected", "optionId": "ok"},
            }})
        );
        let refused = read(&permission(RequestId::Str("x".into()), None));
        assert_eq!(refused["result"]["outcome"], json!({"outcome": "cancelled"}));
        assert_eq!(refused["id"], "x");
        assert_eq!(read(&not_offered(RequestId::Number(7)))["error"]["code"], -32601);
        assert_eq!(read(&invalid_params(RequestId::Null))["error"]["code"], -32602);
    }
}
