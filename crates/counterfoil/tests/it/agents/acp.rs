//! Real programs that speak the Agent Client Protocol: Gemini CLI itself, and the adapters for Claude
//! Code and Codex.

use crate::agents::execution_loop::honest_script;
use crate::agents::project::{CliProject, RUN_TIMEOUT, VendorCli};
use crate::agents::{feature_pipeline, review_fix};
use counterfoil_testkit::{CommandOutput, TestCommand, installed_clis};
use serde_json::{Value, json};

/// A program of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AcpProgram {
    Claude,
    Codex,
    Gemini,
}

/// Defines a test for each program from a function that takes the program.
macro_rules! for_each_program {
    ($($rule:ident),+) => {
        $(
            mod $rule {
                use super::AcpProgram;

                #[test]
                fn claude() {
                    super::$rule(AcpProgram::Claude);
                }

                #[test]
                fn codex() {
                    super::$rule(AcpProgram::Codex);
                }

                #[test]
                fn gemini() {
                    super::$rule(AcpProgram::Gemini);
                }
            }
        )+
    };
}

for_each_program!(
    a_wrong_submission_is_corrected_within_the_turn,
    a_repair_continues_the_conversation,
    an_error_of_the_server_is_no_success,
    read_only_is_read_only,
    workspace_write_denies_nothing,
    honest_agents_finish_the_execution_loop
);

impl AcpProgram {
    fn spec(self) -> &'static str {
        match self {
            Self::Claude => "acp:claude-agent-acp",
            Self::Codex => "acp:codex-acp",
            // Without a model it asks another one which to take.
            Self::Gemini => "acp:gemini --acp -m gemini-3-flash",
        }
    }

    /// The command line whose API it talks to.
    fn vendor(self) -> VendorCli {
        match self {
            Self::Claude => VendorCli::Claude,
            Self::Codex => VendorCli::Codex,
            Self::Gemini => VendorCli::Gemini,
        }
    }

    fn project(self, script: &Value) -> Option<AcpProject> {
        Some(AcpProject { project: CliProject::open(self.vendor(), script)?, program: self })
    }
}

struct AcpProject {
    project: CliProject,
    program: AcpProgram,
}

impl AcpProject {
    fn command(&self, arguments: &[&str]) -> TestCommand {
        let mut command = self.project.command(arguments);
        let claude = installed_clis().unwrap().join("bin/claude");
        command
            // Its own copy of Claude Code is not installed.
            .env("CLAUDE_CODE_EXECUTABLE", claude)
            // It attaches no servers in a folder that it does not trust.
            .env("GEMINI_CLI_TRUST_WORKSPACE", "true");
        command
    }

    /// Runs the workflow, or a pack, to its end.
    fn run(&self, what: &[&str]) -> (CommandOutput, Value) {
        let options = ["--agent", self.program.spec(), "--format", "json"];
        let mut command = self.command(&[&["run"], what, &options].concat());
        let output = self.project.start_command(&mut command).wait_for(RUN_TIMEOUT);
        let report = output.json();
        self.project.assert_nothing_runs(&report);
        (output, report)
    }

    /// Runs a pack whose agents do what they are asked to, and asserts that it is done: no result was
    /// asked for again, and nothing was denied.
    #[track_caller]
    fn ends_honestly(&self, what: &[&str]) {
        let (output, report) = self.run(what);
        let ended = (output.code, report["outcome"].as_str());
        assert_eq!(ended, (Some(0), Some("done")), "{}", self.project.describe(&output));
        for attempt in report["attempts"].as_array().unwrap() {
            assert_eq!(attempt["repairs_asked"], 0, "{attempt:#}");
            for reply in attempt["replies"].as_array().unwrap() {
                assert_eq!(reply["channel"], "submitted", "{attempt:#}");
                assert!(reply.get("denied").is_none(), "{attempt:#}");
            }
        }
    }

    /// Runs the workflow and asserts that it is done after one attempt; returns the attempt.
    #[track_caller]
    fn accepted(&self) -> Value {
        let (output, report) = self.run(&["repo/flow.yaml"]);
        let ended = (output.code, report["outcome"].as_str());
        assert_eq!(ended, (Some(0), Some("done")), "{}", self.project.describe(&output));
        let attempts = report["attempts"].as_array().unwrap();
        assert_eq!(attempts.len(), 1, "{}", self.project.describe(&output));
        attempts[0].clone()
    }
}

fn a_wrong_submission_is_corrected_within_the_turn(program: AcpProgram) {
    // A note that is no text is refused by Gemini CLI itself, before our server sees it.
    let script = json!([
        {"calls": [{"mcp": "submit_result", "input": {"ok": "probably"}}]},
        {"calls": [{"mcp": "submit_result", "input": {"ok": true, "note": "submitted"}}]},
        {"text": "I have handed in {\"ok\": true}."},
    ]);
    let Some(project) = program.project(&script) else { return };
    let attempt = project.accepted();
    assert_eq!(attempt["value"], json!({"ok": true, "note": "submitted"}));
    assert_eq!(attempt["repairs_asked"], 0);
    let reply = &attempt["replies"][0];
    assert_eq!(reply["channel"], "submitted");
    assert!(reply["conversation"].as_str().is_some_and(|id| !id.is_empty()), "{reply:#}");
    assert!(reply.get("denied").is_none(), "{reply:#}");
    let asked = project.project.requests();
    assert_eq!(asked.len(), 3, "all in one turn");
    assert!(asked[1].contains("boolean"), "it was told what is wrong: {:#}", asked[1].body);
    // The mock counts 10 and 5 for each request.
    let usage = &attempt["usage"];
    assert_eq!((&usage["input_tokens"], &usage["output_tokens"]), (&json!(30), &json!(15)));
    assert_eq!(usage["cost_usd"].as_f64().unwrap() > 0.0, program == AcpProgram::Claude);
}

fn a_repair_continues_the_conversation(program: AcpProgram) {
    let script = json!([
        {"text": "The plants are watered."},
        {"when": ["The plants are watered.", "Your answer contained no result"], "text": "{\"ok\": true}"},
    ]);
    let Some(project) = program.project(&script) else { return };
    let attempt = project.accepted();
    assert_eq!(attempt["repairs_asked"], 1);
    let replies = attempt["replies"].as_array().unwrap();
    assert_eq!(replies.len(), 2);
    assert_eq!(replies[0]["conversation"], replies[1]["conversation"]);
    let usage = &attempt["usage"];
    assert_eq!((&usage["input_tokens"], &usage["output_tokens"]), (&json!(20), &json!(10)));
}

fn an_error_of_the_server_is_no_success(program: AcpProgram) {
    let script = json!([
        {"status": 500, "error": "boom"},
        {"calls": [{"mcp": "submit_result", "input": {"ok": true}}]},
        {"text": "Done.", "repeat": true},
    ]);
    let Some(project) = program.project(&script) else { return };
    let (output, report) = project.run(&["repo/flow.yaml"]);
    let outcomes: Vec<&str> = report["attempts"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|attempt| attempt["outcome"].as_str())
        .collect();
    assert_eq!(outcomes, ["transport", "accepted"], "{}", project.project.describe(&output));
}

/// What a model does that writes a file, runs a command, and submits its result.
fn busy() -> Value {
    json!([
        {"calls": [{"write": "new.txt", "content": "new\n"}]},
        {"calls": [{"shell": "touch made-by-shell"}]},
        {"calls": [{"mcp": "submit_result", "input": {"ok": true}}]},
        {"text": "Done.", "repeat": true},
    ])
}

fn read_only_is_read_only(program: AcpProgram) {
    let Some(project) = program.project(&busy()) else { return };
    project.project.write_workflow("access: read-only");
    let attempt = project.accepted();
    let denied = attempt["replies"][0]["denied"].as_array().map_or(0, Vec::len);
    // Codex is refused by its own sandbox, and asks for what its sandbox refuses.
    assert!(denied >= 1, "{attempt:#}");
    for file in ["new.txt", "made-by-shell"] {
        assert!(!project.project.repo().join(file).exists(), "{file}: {attempt:#}");
    }
}

fn workspace_write_denies_nothing(program: AcpProgram) {
    let Some(project) = program.project(&busy()) else { return };
    project.project.write_workflow("access: workspace-write");
    let attempt = project.accepted();
    assert!(attempt["replies"][0].get("denied").is_none(), "{attempt:#}");
    for file in ["new.txt", "made-by-shell"] {
        assert!(project.project.repo().join(file).exists(), "{file}: {attempt:#}");
    }
    assert_eq!(project.project.requests().len(), 4, "no request but the model's own");
}

fn honest_agents_finish_the_execution_loop(program: AcpProgram) {
    // Results come through the tool, as with Gemini CLI.
    let Some(project) = program.project(&honest_script(VendorCli::Gemini)) else { return };
    project.project.write("counterfoil.toml", "[checks]\ntest = \"sh greet_test.sh\"\n");
    project.project.write("greet_test.sh", "[ \"$(sh greet.sh Kim)\" = \"Hello, Kim\" ]\n");
    project.project.commit_all("base");
    project.ends_honestly(&["execution-loop", "--task", "Greet people"]);
}

#[test]
fn honest_agents_build_a_feature() {
    let program = AcpProgram::Gemini;
    let script = feature_pipeline::script(program.vendor());
    let Some(project) = program.project(&script) else { return };
    feature_pipeline::set_up(&project.project);
    project.ends_honestly(&["feature-pipeline", "--task", "greet: Greet people"]);
}

#[test]
fn honest_agents_review_a_branch_and_fix_it() {
    let program = AcpProgram::Gemini;
    let script = review_fix::review_script(program.vendor());
    let Some(project) = program.project(&script) else { return };
    review_fix::make_branch(&project.project);
    project.ends_honestly(&["review-fix"]);
    review_fix::assert_fixed(&project.project);
}
