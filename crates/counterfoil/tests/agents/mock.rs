//! The mock of the vendors' APIs, at work for one test, and what it was asked.

use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The folder of what the tests work with.
pub(crate) fn testing() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testing").canonicalize().unwrap()
}

fn python() -> Command {
    let mut command = Command::new("python3");
    command.arg("-B").current_dir(testing().join("mock"));
    command
}

/// A mock that plays a script. It ends when it is dropped, and also when the test is killed: its
/// stdin is closed then.
pub(crate) struct Mock {
    child: Child,
    log: PathBuf,
    /// What a program has to see so that the command lines talk to this mock.
    pub(crate) variables: BTreeMap<String, String>,
}

/// One request to a model.
#[derive(Debug)]
pub(crate) struct Asked {
    /// When it came, in seconds.
    pub(crate) at: f64,
    /// Whose API it was for.
    pub(crate) api: String,
    /// What was sent.
    pub(crate) body: Value,
}

impl Asked {
    /// Whether a text stands somewhere in it, as it was written.
    pub(crate) fn holds(&self, words: &str) -> bool {
        fn within(value: &Value, words: &str) -> bool {
            match value {
                Value::String(text) => text.contains(words),
                Value::Array(items) => items.iter().any(|item| within(item, words)),
                Value::Object(members) => members.values().any(|member| within(member, words)),
                _ => false,
            }
        }
        within(&self.body, words)
    }
}

impl Mock {
    /// Starts one, with its files in a folder.
    pub(crate) fn start(folder: &Path, script: &Value) -> Self {
        let (file, log, home) =
            (folder.join("script.json"), folder.join("asked.jsonl"), folder.join("home"));
        std::fs::write(&file, serde_json::to_vec(script).unwrap()).unwrap();
        let mut command = python();
        command.arg(".").arg(&file).arg("--log").arg(&log).arg("--home").arg(&home);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("python3");
        let mut port = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut port).unwrap();
        assert!(port.trim().parse::<u16>().is_ok(), "the mock did not start: {:?}", child.wait());
        let listed = std::fs::read_to_string(home.join("env")).unwrap();
        let pair = |line: &str| {
            let (name, value) = line.split_once('=').unwrap();
            (name.to_owned(), value.to_owned())
        };
        Self { child, log, variables: listed.lines().map(pair).collect() }
    }

    /// The requests to models so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        let text = std::fs::read_to_string(&self.log).unwrap();
        let mut found = Vec::new();
        for line in text.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
            let mut line: Value = serde_json::from_str(line).unwrap();
            if line["model"] == true {
                found.push(Asked {
                    at: line["at"].as_f64().unwrap(),
                    api: line["api"].as_str().unwrap().to_owned(),
                    body: line["body"].take(),
                });
            }
        }
        found
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_mock_passes_its_own_tests() {
    let output = python().args(["-m", "unittest"]).stdin(Stdio::null()).output().expect("python3");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
