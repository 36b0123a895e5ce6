//! Codex: how `codex exec` is called for one prompt. [`parser`] reads its events.

mod calls;
mod config_files;
mod error_text;
mod parser;
mod record;
mod tools;

use super::call_events::CallEvent;
use super::record::{RecordParser, RecordPlace};
use super::{Adapter, Call, Conversation, PromptRequest, Server, StreamParser};
use counterfoil_contract::render::prompt::Delivery;
use counterfoil_contract::render::vendor::Target;
use counterfoil_flow::Access;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use toml::{Table, Value};

/// The adapter for Codex.
pub(crate) struct Codex;

/// The oldest supported version and the newest tested one.
const VERSIONS: (&str, &str) = ("0.144.6", "0.166.0");

/// Settings besides sandbox and model: no approval prompts, update checks, analytics or plugins.
/// Fetching plugins takes seconds without a network. They are settings rather than flags, because a
/// version that does not know a setting ignores it.
const SETTINGS: [&str; 4] = [
    r#"approval_policy="never""#,
    "check_for_update_on_startup=false",
    "analytics.enabled=false",
    "features.plugins=false",
];

impl Adapter for Codex {
    fn name(&self) -> &'static str {
        "codex"
    }

    fn install(&self) -> &'static str {
        "npm install -g @openai/codex"
    }

    fn versions(&self) -> (&'static str, &'static str) {
        VERSIONS
    }

    fn dialect(&self) -> Target {
        Target::Codex
    }

    fn structured_output(&self) -> Option<Delivery> {
        Some(Delivery::Message)
    }

    /// Single names instead of `CODEX_*`: variables that one run sets for its tools, such as
    /// `CODEX_THREAD_ID`, must not reach another run.
    fn permissions(&self, access: Access) -> &'static str {
        match access {
            Access::ReadOnly => {
                "reads files, and runs commands that cannot write (sandbox read-only)"
            }
            Access::WorkspaceWrite => {
                "writes files, and runs commands, in its folder and /tmp, without network (sandbox workspace-write)"
            }
        }
    }

    fn variables(&self) -> &'static [&'static str] {
        &[
            "CODEX_HOME",
            "CODEX_SQLITE_HOME",
            "CODEX_API_KEY",
            "CODEX_ACCESS_TOKEN",
            "CODEX_CA_CERTIFICATE",
            "CODEX_SANDBOX",
            "CODEX_SANDBOX_NETWORK_DISABLED",
            "OPENAI_API_KEY",
            "OPENAI_BASE_URL",
            "OPENAI_ORGANIZATION",
            "OPENAI_PROJECT",
        ]
    }

    fn configured_variables(&self, env: &dyn Fn(&str) -> Option<OsString>) -> Vec<String> {
        config_files::folder(env)
            .map(|folder| config_files::configured_variables(&folder))
            .unwrap_or_default()
    }

    fn configured_model(&self, env: &dyn Fn(&str) -> Option<OsString>) -> Option<String> {
        config_files::model(&config_files::folder(env)?)
    }

    fn call(&self, request: &PromptRequest<'_>) -> Call {
        let mut call = Call::default();
        let mut add =
            |argument: &dyn AsRef<OsStr>| call.arguments.push(argument.as_ref().to_owned());
        add(&"exec");
        add(&"--json");
        add(&"--skip-git-repo-check");
        // Without this flag the user's configuration decides, even for a resumed conversation.
        add(&match request.access {
            Access::ReadOnly => "--sandbox=read-only",
            Access::WorkspaceWrite => "--sandbox=workspace-write",
        });
        for setting in SETTINGS {
            add(&"-c");
            add(&setting);
        }
        if let Some(model) = request.model {
            add(&format!("--model={model}"));
        }
        if let Some(server) = request.server.and_then(server_setting) {
            add(&"-c");
            add(&server);
        }
        if let Some(schema) = request.schema {
            let file = request.scratch.join("schema.json");
            let mut flag = OsString::from("--output-schema=");
            flag.push(&file);
            add(&flag);
            call.files.push((file, schema.to_string().into_bytes()));
        }
        request.flags.iter().for_each(|flag| add(flag));
        // After the flags, because `resume` itself does not accept all of them.
        if let Conversation::Resume(id) = request.conversation {
            add(&"resume");
            add(&id);
        }
        add(&"-");
        call
    }

    fn parser(&self) -> Box<dyn StreamParser> {
        Box::new(parser::CodexParser::new(error_text::zone()))
    }

    fn call_events(&self, object: &[u8]) -> Option<Vec<CallEvent>> {
        calls::call_events(object)
    }

    fn record_files(&self, place: &RecordPlace<'_>) -> Vec<PathBuf> {
        record::files(place)
    }

    fn record_parser(&self) -> Box<dyn RecordParser> {
        Box::<record::CodexRecord>::default()
    }
}

/// The setting that attaches our server. Codex merges it with the user's settings for a server of
/// that name, so everything that could hide the tools is set too. Calls are approved automatically,
/// because nobody can approve them. The server is `required`, because only then does Codex wait for
/// it before the first request.
fn server_setting(server: &Server) -> Option<String> {
    let (program, arguments) = server.command.split_first()?;
    let tools = server.tools().into_iter().map(Value::from).collect();
    let mut settings = Table::from_iter([
        ("command".to_owned(), Value::from(program.as_str())),
        ("args".to_owned(), Value::from(arguments.to_vec())),
        ("enabled".to_owned(), Value::from(true)),
        ("required".to_owned(), Value::from(true)),
        ("startup_timeout_sec".to_owned(), Value::from(60)),
        ("enabled_tools".to_owned(), Value::Array(tools)),
        ("disabled_tools".to_owned(), Value::Array(Vec::new())),
        ("default_tools_approval_mode".to_owned(), Value::from("approve")),
    ]);
    if let Some(timeout) = server.call_timeout {
        let seconds = i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX);
        settings.insert("tool_timeout_sec".to_owned(), Value::from(seconds));
    }
    Some(format!("mcp_servers.{}={}", Server::NAME, Value::Table(settings)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_is_quoted_whatever_its_path_holds() {
        let command = ["/it's \"here\"/a b\\c\n", "mcp", "--session", "/é=}/s.json"]
            .map(str::to_owned)
            .to_vec();
        let server = Server { command: command.clone(), receives: true, call_timeout: None };
        let setting = server_setting(&server).unwrap();
        let read: Table = toml::from_str(&setting).unwrap();
        let server = &read["mcp_servers"]["counterfoil"];
        assert_eq!(server["command"].as_str(), Some(command[0].as_str()));
        assert_eq!(server["args"], Value::from(command[1..].to_vec()));
        assert_eq!(
            server_setting(&Server { command: Vec::new(), receives: true, call_timeout: None }),
            None
        );
    }
}
