//! Codex: how `codex exec` is called for one prompt.

mod home;
mod said;
mod stream;
mod tools;

use super::adapter::{Adapter, Call, Conversation, Reader, Server, Turn};
use counterfoil_contract::render::vendor::Target;
use counterfoil_flow::Access;
use std::ffi::{OsStr, OsString};
use toml::{Table, Value};

/// The program of `OpenAI`.
pub(crate) struct Codex;

/// The oldest version that takes our calls, and the newest that they were tried with.
const VERSIONS: (&str, &str) = ("0.144.0", "0.166.0");

/// What is set beside sandbox and model: it asks nobody, looks for no update, reports nothing, and
/// fetches no plugins, which takes seconds where there is no network. As settings rather than
/// flags, since a version that does not know one goes on.
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

    fn takes_schema(&self) -> bool {
        true
    }

    fn answers_in_text(&self) -> bool {
        true
    }

    /// By name: what one run of it sets for its tools, such as `CODEX_THREAD_ID`, is not for
    /// another.
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

    fn named_variables(&self, ours: &dyn Fn(&str) -> Option<OsString>) -> Vec<String> {
        home::folder(ours).map(|folder| home::named_variables(&folder)).unwrap_or_default()
    }

    fn call(&self, turn: &Turn<'_>) -> Call {
        let mut call = Call::default();
        let mut add =
            |argument: &dyn AsRef<OsStr>| call.arguments.push(argument.as_ref().to_owned());
        add(&"exec");
        add(&"--json");
        add(&"--skip-git-repo-check");
        // Always said: without it, the user's own file decides, also for a conversation that began
        // otherwise.
        add(&match turn.access {
            Access::ReadOnly => "--sandbox=read-only",
            Access::WorkspaceWrite => "--sandbox=workspace-write",
        });
        for setting in SETTINGS {
            add(&"-c");
            add(&setting);
        }
        if let Some(model) = turn.model {
            add(&format!("--model={model}"));
        }
        if let Some(server) = turn.server.and_then(attached) {
            add(&"-c");
            add(&server);
        }
        if let Some(schema) = turn.schema {
            let file = turn.scratch.join("schema.json");
            let mut flag = OsString::from("--output-schema=");
            flag.push(&file);
            add(&flag);
            call.files.push((file, schema.to_string().into_bytes()));
        }
        turn.flags.iter().for_each(|flag| add(flag));
        // Behind the flags: `resume` itself does not take all of them.
        if let Conversation::On(id) = turn.conversation {
            add(&"resume");
            add(&id);
        }
        add(&"-");
        call
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::new(stream::Stream::new(said::zone()))
    }
}

/// The setting that attaches our server. It is merged with what the user's file says of a server by
/// that name, so whatever could hide the tools is set as well. Nobody is there to approve a call of
/// them. It is required, since only then Codex waits for it: a server that comes up behind the
/// first request has no tools in it.
fn attached(server: &Server) -> Option<String> {
    let (program, arguments) = server.command.split_first()?;
    let tools = Server::TOOLS.map(Value::from).to_vec();
    let settings = Table::from_iter([
        ("command".to_owned(), Value::from(program.as_str())),
        ("args".to_owned(), Value::from(arguments.to_vec())),
        ("enabled".to_owned(), Value::from(true)),
        ("required".to_owned(), Value::from(true)),
        ("startup_timeout_sec".to_owned(), Value::from(60)),
        ("enabled_tools".to_owned(), Value::Array(tools)),
        ("disabled_tools".to_owned(), Value::Array(Vec::new())),
        ("default_tools_approval_mode".to_owned(), Value::from("approve")),
    ]);
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
        let setting = attached(&Server { command: command.clone() }).unwrap();
        let read: Table = toml::from_str(&setting).unwrap();
        let server = &read["mcp_servers"]["counterfoil"];
        assert_eq!(server["command"].as_str(), Some(command[0].as_str()));
        assert_eq!(server["args"], Value::from(command[1..].to_vec()));
        assert_eq!(attached(&Server { command: Vec::new() }), None);
    }
}
