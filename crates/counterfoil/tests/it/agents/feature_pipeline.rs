//! The feature pipeline with the real command lines, default permissions and a project whose tests
//! have to run: honest agents finish, and nothing that they try is denied.

use crate::agents::project::{CliProject, VendorCli, for_each_cli};
use serde_json::{Value, json};

for_each_cli!(honest_agents_build_a_feature);

/// A planner, an executor, a reviewer and a merge gate that do what their prompts ask for.
pub(super) fn script(cli: VendorCli) -> Value {
    let (plan, build) = ("Plan one feature of this project", "Build phase 1 of 1 of the feature");
    let (review, gate) = ("Review the feature `greet`", "You are the last to look at the feature");
    let check = json!([{"mcp": "run_check", "input": {"name": "test"}}]);
    let hand_in = |when: &str, result: Value| cli.hand_in(when, &result);
    json!({"replies": [
        {"when": plan, "calls": [{"write": "feature-drafts/greet-TODO.md", "content": "# greet\n\n1. greet.sh, and a test\n"}]},
        hand_in(plan, json!({
            "path": "feature-drafts/greet-TODO.md", "dependencies": null, "priority": 1, "phases": 1,
            "complexity": "low"
        })),
        {"when": build, "calls": [{"write": "greet_test.sh", "content": "[ \"$(sh greet.sh Kim)\" = \"Hello, Kim\" ]\n"}]},
        {"when": build, "calls": [{"write": "greet.sh", "content": "echo \"Hello, $1\"\n"}]},
        {"when": build, "calls": check},
        hand_in(build, json!({
            "phase": "1/1", "phase_complete": true, "files_changed": [],
            "files_created": ["greet.sh", "greet_test.sh"], "tests_added": 1, "tests_passing": true,
            "test_failures": null, "blockers": null, "next_action": "review it"
        })),
        {"when": review, "calls": check},
        hand_in(review, json!({
            "approved": true, "issues_total": 1, "critical": null, "major": null,
            "minor": ["no name at all is greeted too"], "security": null, "test_coverage": "adequate",
            "recommendation": "approve"
        })),
        {"when": gate, "calls": check},
        hand_in(gate, json!({
            "ready_to_merge": true, "blocking_issues": null, "warnings": ["the greeting is English only"],
            "test_status": "all-pass", "files_reviewed": 2, "approval_confidence": "high",
            "final_recommendation": "merge"
        })),
        {"text": "Done.", "repeat": true},
    ]})
}

/// Makes a project whose tests are files.
pub(super) fn set_up(project: &CliProject) {
    let check =
        "[checks]\ntest = \"for one in *_test.sh; do [ ! -e $one ] || sh $one || exit 1; done\"\n";
    project.write("counterfoil.toml", check);
    project.commit_all("base");
}

fn honest_agents_build_a_feature(cli: VendorCli) {
    let Some(project) = CliProject::open(cli, &script(cli)) else { return };
    set_up(&project);
    project.play_honestly(&["feature-pipeline", "--task", "greet: Greet people"]);
    let files = project.git(&["show", "--name-only", "--format=%s", "HEAD"]);
    let expected = [
        "feat(greet): Greet people",
        "",
        ".claude/features/greet-TODO.md",
        "greet.sh",
        "greet_test.sh",
    ];
    assert_eq!(files.lines().collect::<Vec<_>>(), expected);
    let master = project.read_or_empty(".claude/features/MASTER.md");
    for remark in ["review, minor: no name at all", "merge gate: the greeting is English only"] {
        assert!(master.contains(remark), "{master}");
    }
}
