//! A folder with journals written by hand, or a repository, and the binary to look at them.

use assert_cmd::Command;
use counterfoil::{ClaimKind, ClaimPolicy, ClaimReport, Evidence, Verdict};
use counterfoil_engine::journal::{Batch, Journal, NewRun, Row};
use counterfoil_flow::{
    AssignedAgent, AttemptOutcome, Budget, Cause, ChangedFiles, Ended, Event, Outcome, Reply,
    Started, Usage,
};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use tempfile::TempDir;

pub(crate) struct House {
    folder: TempDir,
}

/// 2026-01-02 03:04:05 UTC.
pub(crate) const MORNING: i64 = 1_767_323_045_000;

impl House {
    pub(crate) fn new() -> Self {
        let house = Self { folder: TempDir::new().unwrap() };
        std::fs::create_dir(house.path(".counterfoil")).unwrap();
        house
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn file(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Writes the journals of runs: the id, when it began, its events a second apart.
    pub(crate) fn runs(&self, runs: impl IntoIterator<Item = (String, i64, Vec<Event>)>) {
        let journal = Journal::open(&self.path(".counterfoil")).unwrap();
        for (id, at, events) in runs {
            let row = |(n, event): (usize, &Event)| Row {
                at: at + 1000 * i64::try_from(n).unwrap(),
                kind: event.kind().into(),
                body: serde_json::to_vec(event).unwrap(),
            };
            let rows = events.iter().enumerate().map(row).collect();
            let Event::RunStarted(started) = &events[0] else {
                panic!("a run begins with its start")
            };
            let new =
                NewRun { id: &id, workflow: &started.workflow, version: 1, bundle: b"none", at };
            journal.create(new, Batch { rows, ..Batch::default() }).unwrap().release().unwrap();
        }
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::cargo_bin("counterfoil").unwrap();
        command
            .env_clear()
            .env("NO_COLOR", "1")
            .env("LANG", "C.UTF-8")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_SYSTEM", "/dev/null")
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .current_dir(self.folder.path())
            .args(arguments);
        command
    }

    /// A readable block: the command, its exit code, what it printed.
    pub(crate) fn shown(&self, arguments: &[&str]) -> String {
        let output = self.command(arguments).output().unwrap();
        let code = output.status.code().map_or("by signal".to_owned(), |code| code.to_string());
        let mut text = format!("$ counterfoil {}\nexit {code}\n", arguments.join(" "));
        for (name, bytes) in [("stdout", output.stdout), ("stderr", output.stderr)] {
            let words = String::from_utf8(bytes).unwrap();
            if !words.is_empty() {
                let _ = write!(text, "--- {name}\n{words}");
            }
        }
        let folder = self.folder.path().canonicalize().unwrap();
        text.replace(&folder.display().to_string(), "FOLDER")
            .replace(&self.folder.path().display().to_string(), "FOLDER")
    }

    /// The exit code and the one JSON object that a command prints.
    pub(crate) fn json(&self, arguments: &[&str]) -> (i32, Value) {
        let output = self.command(arguments).output().unwrap();
        let value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
            panic!("{arguments:?}: {error}\n{}", String::from_utf8_lossy(&output.stderr))
        });
        (output.status.code().unwrap(), value)
    }
}

/// Who plays `worker`, and as which model.
pub(crate) fn began(run: &str, workflow: &str, spec: &str, model: Option<&str>) -> Event {
    let player = AssignedAgent {
        spec: spec.to_owned(),
        backs_off: false,
        model: model.map(str::to_owned),
        version: None,
    };
    Event::RunStarted(Box::new(Started {
        run: run.to_owned(),
        workflow: workflow.to_owned(),
        version: 1,
        bundle: String::new(),
        decide: 1,
        inputs: Map::new(),
        agents: BTreeMap::from([("worker".to_owned(), player)]),
        budget: Budget::default(),
        repo: "/".to_owned(),
        own: Vec::new(),
        base: None,
    }))
}

pub(crate) fn opened(state: &str) -> Event {
    Event::FrameOpened {
        frame: String::new(),
        parent: None,
        machine: String::new(),
        item: None,
        state: state.to_owned(),
        inputs: Map::new(),
        variables: Map::new(),
        counts: BTreeMap::new(),
        iteration: None,
    }
}

pub(crate) fn started(state: &str, n: u32) -> Event {
    Event::AttemptStarted {
        attempt: format!("{state}#{n}"),
        frame: String::new(),
        path: vec![state.to_owned()],
        agent: Some("worker".to_owned()),
        n,
        contract: Some("scene/fix@1".to_owned()),
        builtin: None,
    }
}

fn reply(status: &str, codes: &[&str]) -> Reply {
    let codes = codes.iter().map(|code| (*code).to_owned()).collect();
    Reply {
        transcript: "transcripts/none".to_owned(),
        status: status.to_owned(),
        codes,
        ..Reply::default()
    }
}

/// Asked again because of its contract, or of these claims.
pub(crate) fn asked(state: &str, n: u32, claims: Vec<ClaimReport>) -> Event {
    let reply =
        if claims.is_empty() { reply("rejected", &["C0301"]) } else { reply("accepted", &[]) };
    Event::RepairAsked { attempt: format!("{state}#{n}"), reply, usage: Usage::default(), claims }
}

pub(crate) fn ended(
    state: &str,
    n: u32,
    outcome: AttemptOutcome,
    claims: Vec<ClaimReport>,
    changed: &[&str],
) -> Event {
    let modified: Vec<String> = changed.iter().map(|path| (*path).to_owned()).collect();
    let accepted = outcome == AttemptOutcome::Accepted;
    Event::AttemptEnded(Box::new(Ended {
        attempt: format!("{state}#{n}"),
        outcome,
        value: accepted.then(|| json!({"ok": true})),
        partial: None,
        reason: if accepted {
            String::new()
        } else {
            "a claim that had to hold was refuted".to_owned()
        },
        violations: Vec::new(),
        claims,
        changed: Some(ChangedFiles {
            total: modified.len() as u64,
            modified,
            ..ChangedFiles::default()
        }),
        reply: Some(reply("accepted", &[])),
        usage: Usage::default(),
        reset_at: None,
        tree: None,
    }))
}

pub(crate) fn over(outcome: Outcome, cause: Option<Cause>) -> Event {
    Event::RunEnded { outcome, cause, reason: String::new(), state: "done".to_owned() }
}

pub(crate) fn claim(name: &str, kind: ClaimKind, verdict: Verdict) -> ClaimReport {
    ClaimReport {
        claim: name.to_owned(),
        field: name.to_owned(),
        kind,
        policy: ClaimPolicy::Require,
        verdict,
        claimed: json!(true),
        observed: Value::Null,
        reason: String::new(),
        evidence: Vec::new(),
        tree: None,
    }
}

pub(crate) fn files(claimed: &[&str], observed: &[&str], reason: &str) -> ClaimReport {
    let verdict = if reason.is_empty() { Verdict::Verified } else { Verdict::Refuted };
    ClaimReport {
        claimed: json!(claimed),
        observed: json!(observed),
        reason: reason.to_owned(),
        evidence: vec![Evidence::new("diff", format!("{} files changed", observed.len()))],
        ..claim("files_changed", ClaimKind::FilesChanged, verdict)
    }
}

pub(crate) fn tests(verdict: Verdict) -> ClaimReport {
    let failed = verdict == Verdict::Refuted;
    ClaimReport {
        observed: json!(!failed),
        reason: if failed {
            "success is claimed, and the check fails".to_owned()
        } else {
            String::new()
        },
        evidence: vec![Evidence {
            exit_code: Some(i32::from(failed)),
            output: "running 2 tests\ntest result: 1 failed\n".to_owned(),
            ..Evidence::new("command", "`cargo test`")
        }],
        ..claim("tests_passing", ClaimKind::Command, verdict)
    }
}

/// Asks git in the folder, with nothing of the user's.
pub(crate) fn git(house: &House, arguments: &[&str]) -> String {
    let output = std::process::Command::new("git")
        .args(["-c", "user.name=Kim", "-c", "user.email=kim@example.com"])
        .args(arguments)
        .current_dir(house.path(""))
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .env("GIT_AUTHOR_DATE", "2026-01-01T00:00:00Z")
        .env("GIT_COMMITTER_DATE", "2026-01-01T00:00:00Z")
        .env_remove("GIT_DIR")
        .env_remove("GIT_INDEX_FILE")
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
