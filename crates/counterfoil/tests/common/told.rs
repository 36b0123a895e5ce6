//! What the binary said about a run.

use serde_json::Value;
use std::process::Output;

/// A run that was driven: the exit code, the report on stdout, the words on stderr.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    pub(crate) code: i32,
    pub(crate) report: Value,
    pub(crate) words: String,
}

impl Told {
    /// What a command said that prints one JSON object.
    pub(crate) fn of(output: Output, arguments: &[&str]) -> Self {
        let words = String::from_utf8(output.stderr).unwrap();
        let report = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
            panic!("{arguments:?}: {error}\n{}\n{words}", String::from_utf8_lossy(&output.stdout))
        });
        Self { code: output.status.code().unwrap(), report, words }
    }

    /// Outcome, cause and exit code.
    pub(crate) fn ended(&self) -> (&str, Option<&str>, i32) {
        (self.report["outcome"].as_str().unwrap(), self.report["cause"].as_str(), self.code)
    }

    pub(crate) fn reason(&self) -> &str {
        self.report["reason"].as_str().unwrap()
    }

    pub(crate) fn id(&self) -> &str {
        self.report["run"].as_str().unwrap()
    }

    /// Each attempt as `path#n outcome`, in the order they started.
    pub(crate) fn attempts(&self) -> Vec<String> {
        told(&self.report["attempts"])
    }

    /// Each command as `path#n outcome`.
    pub(crate) fn commands(&self) -> Vec<String> {
        told(&self.report["commands"])
    }

    /// Each transition as `from>to`, those of sub-workflows with their frame.
    pub(crate) fn moves(&self) -> Vec<String> {
        let one = |step: &Value| {
            let frame = step["frame"].as_str().unwrap();
            let frame = if frame.is_empty() { String::new() } else { format!("{frame}: ") };
            format!("{frame}{}>{}", step["from"].as_str().unwrap(), step["to"].as_str().unwrap())
        };
        self.report["path"].as_array().unwrap().iter().map(one).collect()
    }
}

fn told(attempts: &Value) -> Vec<String> {
    let one = |attempt: &Value| {
        let path: Vec<&str> =
            attempt["path"].as_array().unwrap().iter().map(|p| p.as_str().unwrap()).collect();
        format!(
            "{}#{} {}",
            path.join("/"),
            attempt["n"],
            attempt["outcome"].as_str().unwrap_or("running")
        )
    };
    attempts.as_array().unwrap().iter().map(one).collect()
}
