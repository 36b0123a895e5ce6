//! A client that writes JSON-RPC messages, and the server process.

use counterfoil_agents::submissions::{SessionFile, Submission, read};
use counterfoil_contract::render::vendor::Target;
use counterfoil_contract::{Contract, Definition};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use tempfile::TempDir;

/// A server process and the pipes to it.
pub(crate) struct Client {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    next: i64,
}

impl Client {
    /// Starts a server without initializing it.
    pub(crate) fn start(arguments: &[&str], folder: &Path) -> Self {
        let mut child = Command::new(crate::PROGRAM)
            .arg("mcp")
            .args(arguments)
            .current_dir(folder)
            .env_clear()
            .env("COUNTERFOIL_STATE", ".counterfoil")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, input, output, next: 1 }
    }

    /// Starts a server and initializes it with the current protocol version.
    pub(crate) fn greet(arguments: &[&str], folder: &Path) -> Self {
        let mut client = Self::start(arguments, folder);
        client.initialize();
        client
    }

    pub(crate) fn initialize(&mut self) -> Value {
        let hello = json!({
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"},
        });
        let result = self.request("initialize", &hello)["result"].clone();
        self.write(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        result
    }

    /// Writes a line.
    pub(crate) fn write(&mut self, line: &[u8]) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line).unwrap();
        input.write_all(b"\n").unwrap();
        input.flush().unwrap();
    }

    /// Writes bytes without a line break.
    pub(crate) fn write_part(&mut self, bytes: &[u8]) {
        self.input.as_mut().unwrap().write_all(bytes).unwrap();
    }

    /// Reads a message. Anything else on standard output is a failure.
    pub(crate) fn read(&mut self) -> Value {
        let mut line = String::new();
        assert!(self.output.read_line(&mut line).unwrap() > 0, "the server is gone");
        let frame: Value =
            serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert_eq!(frame["jsonrpc"], "2.0", "{line}");
        frame
    }

    /// Sends a request and reads the response.
    pub(crate) fn request(&mut self, method: &str, params: &Value) -> Value {
        let id = self.next;
        self.next += 1;
        let frame = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.write(frame.to_string().as_bytes());
        let answer = self.read();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    /// Calls a tool and returns its result.
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let answer = self.request("tools/call", &json!({"name": tool, "arguments": arguments}));
        assert!(answer["error"].is_null(), "{answer}");
        answer["result"].clone()
    }

    pub(crate) fn submit(&mut self, arguments: &Value) -> Value {
        self.call("submit_result", arguments)
    }

    /// Whether the server still responds.
    pub(crate) fn is_there(&mut self) -> bool {
        self.request("ping", &json!({}))["result"].is_object()
    }

    /// Stops reading the output of the server.
    pub(crate) fn stop_reading(self) -> (Child, ChildStdin) {
        (self.child, self.input.unwrap())
    }

    /// Closes the input; returns the remaining messages and the exit status.
    pub(crate) fn end(mut self) -> (Vec<Value>, ExitStatus) {
        drop(self.input.take());
        let rest =
            self.output.lines().map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
        (rest, self.child.wait().unwrap())
    }
}

/// The text of an answer.
pub(crate) fn words(answer: &Value) -> &str {
    answer["content"][0]["text"].as_str().unwrap()
}

/// The session file of an attempt, as the engine writes it.
pub(crate) struct Session {
    pub(crate) folder: TempDir,
}

impl Session {
    pub(crate) fn new(contract: Definition, target: Target) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let session = Self { folder };
        let file = SessionFile {
            contract,
            target,
            submissions: session.submissions(),
            context: None,
            receives: true,
            checks: None,
        };
        file.save(&session.path()).unwrap();
        session
    }

    /// For a contract of the packs.
    pub(crate) fn of(id: &str, target: Target) -> Self {
        Self::new(packed(id), target)
    }

    /// For a contract in its short form.
    pub(crate) fn written(yaml: &str, target: Target) -> Self {
        Self::new(Contract::from_yaml(yaml).unwrap().definition().clone(), target)
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("session.json")
    }

    pub(crate) fn submissions(&self) -> PathBuf {
        self.folder.path().join("submissions.jsonl")
    }

    pub(crate) fn start(&self) -> Client {
        Client::start(&["--session", self.path().to_str().unwrap()], self.folder.path())
    }

    pub(crate) fn greet(&self) -> Client {
        Client::greet(&["--session", self.path().to_str().unwrap()], self.folder.path())
    }

    /// A server for people, with the same contract. It has more tools than that of an attempt.
    pub(crate) fn consult(&self) -> Client {
        let session = SessionFile::load(&self.path()).unwrap();
        let id = &session.contract.contract;
        let mut arguments = vec!["--contract", id, "--target", session.target.name()];
        if counterfoil_packs::registry_for(id).find(id).is_err() {
            let folder = self.folder.path().join("contracts");
            std::fs::create_dir_all(&folder).unwrap();
            let text = session.contract.to_yaml().unwrap();
            std::fs::write(folder.join("contract.yaml"), text).unwrap();
            arguments.extend(["--contracts", "contracts"]);
        }
        Client::greet(&arguments, self.folder.path())
    }

    /// The stored submissions.
    pub(crate) fn kept(&self) -> Vec<Submission> {
        read(&self.submissions(), 0).unwrap().0
    }
}

/// The definition of a contract of the packs.
pub(crate) fn packed(id: &str) -> Definition {
    counterfoil_packs::registry_for(id).find(id).unwrap().definition().clone()
}
