//! What a command printed, and the report of a run.

use serde_json::Value;
use std::fmt::Write as _;
use std::ops::Deref;
use std::process::Output;

/// A command that ended: its exit code and what it printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandOutput {
    /// The exit code, if no signal ended the process.
    pub code: Option<i32>,
    /// Standard output; bytes that are not UTF-8 are replaced.
    pub stdout: String,
    /// Standard error; bytes that are not UTF-8 are replaced.
    pub stderr: String,
}

impl From<Output> for CommandOutput {
    fn from(output: Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self {
            code: output.status.code(),
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
        }
    }
}

impl CommandOutput {
    /// Whether the exit code is zero.
    pub fn is_success(&self) -> bool {
        self.code == Some(0)
    }

    /// The JSON document on standard output.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("stdout is not JSON ({error}): {self:?}"))
    }

    /// The JSON documents on standard output, one per line.
    pub fn json_lines(&self) -> Vec<Value> {
        let parse = |line| {
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}: {self:?}"))
        };
        self.stdout.lines().map(parse).collect()
    }

    /// Asserts the exit code, and that each text is part of the output.
    #[track_caller]
    pub fn expect(&self, code: i32, texts: &[&str]) {
        assert_eq!(self.code, Some(code), "{self:?}");
        for text in texts {
            assert!(
                self.stdout.contains(text) || self.stderr.contains(text),
                "'{text}' is missing: {self:?}"
            );
        }
    }

    /// One readable block for snapshots: the exit code, then what is on each stream.
    pub fn to_block(&self) -> String {
        let code = self.code.map_or("by signal".to_owned(), |code| code.to_string());
        let mut block = format!("exit {code}\n");
        for (name, text) in [("stdout", &self.stdout), ("stderr", &self.stderr)] {
            if !text.is_empty() {
                let _ = write!(block, "--- {name}\n{text}");
            }
        }
        block
    }

    /// Like [`Self::to_block`], with the command in the first line.
    pub fn to_block_with_command(&self, arguments: &[&str]) -> String {
        format!("$ counterfoil {}\n{}", arguments.join(" "), self.to_block())
    }
}

/// A command that printed the report of a run as JSON.
#[derive(Clone)]
pub struct RunOutput {
    /// The command itself.
    pub output: CommandOutput,
    /// The report on standard output.
    pub report: Value,
}

impl From<CommandOutput> for RunOutput {
    fn from(output: CommandOutput) -> Self {
        let report = output.json();
        Self { output, report }
    }
}

impl Deref for RunOutput {
    type Target = CommandOutput;

    fn deref(&self) -> &CommandOutput {
        &self.output
    }
}

impl std::fmt::Debug for RunOutput {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "exit {:?}\n{:#}\n{}", self.code, self.report, self.stderr)
    }
}

impl RunOutput {
    /// Outcome, cause and exit code.
    pub fn ended(&self) -> (&str, Option<&str>, i32) {
        let code = self.code.unwrap_or(-1);
        (self.report["outcome"].as_str().unwrap(), self.report["cause"].as_str(), code)
    }

    /// Why the run ended so.
    pub fn reason(&self) -> &str {
        self.report["reason"].as_str().unwrap()
    }

    /// The id of the run.
    pub fn run_id(&self) -> &str {
        self.report["run"].as_str().unwrap()
    }

    /// Each agent attempt as `path#n outcome`, in the order they started.
    pub fn attempts(&self) -> Vec<String> {
        summarize_attempts(&self.report["attempts"])
    }

    /// Each command as `path#n outcome`.
    pub fn commands(&self) -> Vec<String> {
        summarize_attempts(&self.report["commands"])
    }

    /// Each transition as `from>to`; those of sub-workflows begin with their frame.
    pub fn transitions(&self) -> Vec<String> {
        let summarize = |step: &Value| {
            let frame = step["frame"].as_str().unwrap();
            let frame = if frame.is_empty() { String::new() } else { format!("{frame}: ") };
            format!("{frame}{}>{}", step["from"].as_str().unwrap(), step["to"].as_str().unwrap())
        };
        self.report["path"].as_array().unwrap().iter().map(summarize).collect()
    }
}

fn summarize_attempts(attempts: &Value) -> Vec<String> {
    let summarize = |attempt: &Value| {
        let path = attempt["path"].as_array().unwrap();
        let path: Vec<&str> = path.iter().map(|part| part.as_str().unwrap()).collect();
        let outcome = attempt["outcome"].as_str().unwrap_or("running");
        format!("{}#{} {outcome}", path.join("/"), attempt["n"])
    };
    attempts.as_array().unwrap().iter().map(summarize).collect()
}
