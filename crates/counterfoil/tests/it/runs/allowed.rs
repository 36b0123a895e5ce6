//! Commands that stand in a result: only what the workflow allows is run.

use crate::runs::project::{WorkflowProject, replies};
use serde_json::Value;

const CONTRACT: &str = "
contract: scene/commands
version: 1
fields: { checks: [string] }
claims: { checks: { kind: commands } }
examples: [{ checks: [] }]
";

fn flow(claims: &str) -> String {
    format!(
        "workflow: allowed\n\
         agents: {{ worker: {{ contract: scene/commands, prompt: Do it. }} }}\n\
         contracts: [contracts]\n\
         start: work\n\
         states:\n  \
           work: {{ agent: worker{claims}, go: done }}\n  \
           done: {{ end: done }}\n"
    )
}

/// The verdict and the reason of the claim, and whether its commands were run.
fn outcome(claims: &str, config: &str) -> (String, String, bool, bool) {
    let reply = r#"text: '{"checks": ["cmd: touch ran1", "cmd: touch other"]}'"#;
    let project = WorkflowProject::new(&flow(claims), &replies(&[reply]));
    project.write("contracts/commands.yaml", CONTRACT);
    project.write("counterfoil.toml", config);
    let ran = project.run_workflow();
    assert_eq!(ran.ended(), ("done", None, 0));
    let claim = ran.report["attempts"][0]["claims"]
        .as_array()
        .and_then(|all| all.iter().find(|claim| claim["claim"] == "checks"))
        .cloned()
        .unwrap_or(Value::Null);
    let text = |key: &str| claim[key].as_str().unwrap_or_default().to_owned();
    let left = |name: &str| project.path(name).exists();
    (text("verdict"), text("reason"), left("ran1"), left("other"))
}

#[test]
fn nothing_is_run_that_nobody_allowed() {
    let (verdict, reason, ran, other) = outcome("", "");
    assert_eq!((verdict.as_str(), ran, other), ("unverifiable", false, false), "{reason}");
    assert!(reason.contains("2 commands are not allowed"), "{reason}");
}

#[test]
fn a_state_allows_by_pattern() {
    let (verdict, reason, ran, other) =
        outcome(", claims: { checks: { allow: [\"touch ran*\"] } }", "");
    assert_eq!((verdict.as_str(), ran, other), ("unverifiable", true, false), "{reason}");
    assert!(
        reason.contains("1 command is not allowed") && reason.contains("touch other"),
        "{reason}"
    );
}

#[test]
fn the_project_allows_too() {
    let (_, reason, ran, other) = outcome("", "[claims]\nallow = [\"touch *\"]\n");
    assert!(ran && other, "{reason}");
}
