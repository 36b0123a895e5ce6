//! A scripted agent of the Agent Client Protocol with the real binary and its server. It needs no
//! installation but Python, so these tests always run.

use crate::shell_project::{ShellProject, agent_workflow, assert_no_processes};
use counterfoil_testkit::testing_dir;
use serde_json::{Value, json};

/// A project whose agent plays a script.
struct Scripted {
    project: ShellProject,
    spec: String,
}

impl Scripted {
    fn new(keys: &str, script: &Value) -> Self {
        let project = ShellProject::new();
        project.write("flow.yaml", agent_workflow(keys));
        // Beside the repository: what a read-only agent writes there is restored.
        let (file, log) = (project.root().join("script.json"), project.root().join("log.jsonl"));
        std::fs::write(&file, script.to_string()).unwrap();
        let agent = testing_dir().join("acp_agent.py");
        let spec =
            format!("acp:python3 -B {} {} {}", agent.display(), file.display(), log.display());
        Self { project, spec }
    }

    /// Runs the workflow, and asserts how it ends. Returns the report.
    #[track_caller]
    fn ends(&self, outcome: &str) -> Value {
        let output = self.project.run_workflow("flow.yaml", &self.spec);
        let report = output.json();
        assert_eq!(report["outcome"], outcome, "{output:#?}");
        assert_no_processes(&report);
        report
    }

    /// What the agent logged under a name.
    fn logged(&self, name: &str) -> Vec<Value> {
        let log = std::fs::read_to_string(self.project.root().join("log.jsonl")).unwrap();
        let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.filter_map(|mut line| Some(line.get_mut(name)?.take())).collect()
    }
}

fn submit(input: &Value) -> Value {
    json!({"tool": "submit_result", "input": input})
}

fn end_turn() -> Value {
    json!({"answer": {"stopReason": "end_turn"}})
}

#[test]
fn a_result_is_refused_and_then_accepted_by_the_tool() {
    let agent = Scripted::new(
        "access: read-only",
        &json!({"turns": [[
            submit(&json!({"ok": "probably"})),
            {"permission": {"toolCallId": "t", "kind": "edit", "title": "Write a"}},
            submit(&json!({"ok": true, "note": "submitted"})),
            end_turn(),
        ]]}),
    );
    let report = agent.ends("done");
    let attempt = &report["attempts"][0];
    assert_eq!(attempt["value"], json!({"ok": true, "note": "submitted"}));
    let reply = &attempt["replies"][0];
    assert_eq!((&reply["channel"], &reply["conversation"]), (&json!("submitted"), &json!("s1")));
    assert_eq!(reply["denied"], json!(["Write a: its access is read-only"]));
    let answers = agent.logged("tool");
    assert_eq!(answers[0]["result"]["isError"], true, "{answers:#?}");
    assert_ne!(answers[1]["result"]["isError"], true, "{answers:#?}");
    let prompt = &agent.logged("got").remove(2)["params"]["prompt"][0]["text"];
    assert!(prompt.as_str().unwrap().contains("`submit_result`"), "{prompt}");
}

#[test]
fn a_repair_is_a_prompt_of_the_same_conversation() {
    let agent = Scripted::new(
        "",
        &json!({"turns": [
            [{"text": "Done."}, end_turn()],
            [{"text": "{\"ok\": true}"}, end_turn()],
        ]}),
    );
    let report = agent.ends("done");
    let attempt = &report["attempts"][0];
    assert_eq!((&attempt["repairs_asked"], &attempt["value"]), (&json!(1), &json!({"ok": true})));
    let methods: Vec<Value> =
        agent.logged("got").into_iter().map(|mut got| got["method"].take()).collect();
    assert_eq!(methods, ["initialize", "session/new", "session/prompt", "session/prompt"]);
}

#[test]
fn checks_run_through_the_tool() {
    let agent = Scripted::new(
        "access: read-only",
        &json!({"turns": [[
            {"tool": "run_check", "input": {"name": "test"}},
            submit(&json!({"ok": true})),
            end_turn(),
        ]]}),
    );
    agent.project.write("counterfoil.toml", "[checks]\ntest = \"echo checked\"\n");
    agent.project.init_git();
    agent.ends("done");
    let answer = agent.logged("tool").remove(0).to_string();
    assert!(answer.contains("checked"), "{answer}");
    let prompt = agent.logged("got").remove(2)["params"]["prompt"][0]["text"].to_string();
    assert!(prompt.contains("`run_check`"), "{prompt}");
}

#[test]
fn a_failure_has_its_outcome_and_is_shown_safely() {
    let error = json!({"answer": {"error": {"code": 401, "message": "no\u{1b}[2J key"}}});
    let agent = Scripted::new("", &json!({"turns": [[error]]}));
    let report = agent.ends("failed");
    assert_eq!(report["cause"], "permission");
    let output = agent.project.run(&["show", "last"]);
    assert!(output.stdout.contains("log in with `python3` itself"), "{}", output.stdout);
    assert!(!output.stdout.contains('\u{1b}'), "{:?}", output.stdout);
}

#[test]
fn a_spec_without_a_program_is_refused() {
    let project = ShellProject::new();
    project.write("flow.yaml", agent_workflow(""));
    for spec in ["acp:", "acp:'gemini", "acp:''"] {
        let output = project.run_workflow("flow.yaml", spec);
        output.expect(2, &["is not an agent", "acp:CMDLINE"]);
    }
}
