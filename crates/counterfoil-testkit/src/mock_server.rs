//! The mock of the vendors' APIs that answers the real command lines.

use crate::real_clis::testing_dir;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Python in the directory of the mock.
pub fn mock_server_command() -> Command {
    let mut command = Command::new("python3");
    command.arg("-B").current_dir(testing_dir().join("mock"));
    command
}

/// A mock server that answers from a script. It ends when the value is dropped, and also when the
/// test is killed, because that closes its standard input.
#[derive(Debug)]
pub struct MockServer {
    child: Child,
    log: PathBuf,
    variables: BTreeMap<String, String>,
}

/// A request to a model.
#[derive(Debug)]
pub struct ModelRequest {
    /// When it arrived, in seconds.
    pub at: f64,
    /// The API it was sent to.
    pub api: String,
    /// What was sent.
    pub body: Value,
}

impl ModelRequest {
    /// Whether a text is part of any string in the request.
    pub fn contains(&self, text: &str) -> bool {
        fn any_string_contains(value: &Value, text: &str) -> bool {
            match value {
                Value::String(string) => string.contains(text),
                Value::Array(items) => items.iter().any(|item| any_string_contains(item, text)),
                Value::Object(members) => {
                    members.values().any(|member| any_string_contains(member, text))
                }
                _ => false,
            }
        }
        any_string_contains(&self.body, text)
    }
}

impl MockServer {
    /// Starts a server that keeps its files in a directory.
    pub fn start(dir: &Path, script: &Value) -> Self {
        let script_file = dir.join("script.json");
        let log = dir.join("requests.jsonl");
        let home = dir.join("home");
        std::fs::write(&script_file, serde_json::to_vec(script).unwrap()).unwrap();
        let mut command = mock_server_command();
        command.arg(".").arg(&script_file).arg("--log").arg(&log).arg("--home").arg(&home);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("python3");
        let mut port = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut port).unwrap();
        assert!(port.trim().parse::<u16>().is_ok(), "the mock did not start: {:?}", child.wait());
        let environment = std::fs::read_to_string(home.join("env")).unwrap();
        let variables = environment.lines().map(|line| {
            let (name, value) = line.split_once('=').unwrap();
            (name.to_owned(), value.to_owned())
        });
        Self { child, log, variables: variables.collect() }
    }

    /// The environment that makes the command lines talk to this server.
    pub fn variables(&self) -> &BTreeMap<String, String> {
        &self.variables
    }

    /// The requests to models so far.
    pub fn requests(&self) -> Vec<ModelRequest> {
        let log = std::fs::read_to_string(&self.log).unwrap();
        let mut requests = Vec::new();
        // The last line may be incomplete while the server writes it.
        for line in log.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
            let mut entry: Value = serde_json::from_str(line).unwrap();
            if entry["model"] == true {
                requests.push(ModelRequest {
                    at: entry["at"].as_f64().unwrap(),
                    api: entry["api"].as_str().unwrap().to_owned(),
                    body: entry["body"].take(),
                });
            }
        }
        requests
    }
}

impl Drop for MockServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
