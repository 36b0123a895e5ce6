//! The gated team with the real command lines, default permissions and a project whose test has to
//! run: nine honest agents take a goal to done, and nothing that they try is denied.

use crate::agents::project::{CliProject, VendorCli, for_each_cli};
use serde_json::{Value, json};
use std::time::Duration;

for_each_cli!(honest_agents_take_a_goal_to_done);

const DAY: i64 = 24 * 60 * 60;

/// The day that a run which starts now gives to its session. Just before midnight it waits.
fn today() -> String {
    let left = DAY - jiff::Timestamp::now().as_second() % DAY;
    if left < 30 {
        std::thread::sleep(Duration::from_secs(left.unsigned_abs()));
    }
    jiff::Timestamp::now().strftime("%Y-%m-%d").to_string()
}

/// A file is read.
fn read(cli: VendorCli, path: &str) -> Value {
    match cli {
        VendorCli::Claude => json!({"tool": "Read", "input": {"file_path": path}}),
        VendorCli::Codex => json!({"shell": format!("cat {path}")}),
        VendorCli::Gemini => json!({"tool": "read_file", "input": {"file_path": path}}),
    }
}

/// A word is looked for.
fn search(cli: VendorCli, word: &str) -> Value {
    match cli {
        VendorCli::Claude | VendorCli::Codex => json!({"shell": format!("grep -rn {word} .")}),
        VendorCli::Gemini => json!({"tool": "grep_search", "input": {"pattern": word}}),
    }
}

/// A line of a file that was read is replaced.
fn edit(cli: VendorCli, path: &str, old: &str, new: &str) -> Value {
    match cli {
        VendorCli::Claude => {
            let input = json!({"file_path": path, "old_string": old, "new_string": new});
            json!({"tool": "Edit", "input": input})
        }
        VendorCli::Codex => {
            let update = format!("*** Update File: {path}\n@@\n-{old}\n+{new}\n");
            let patch = format!("*** Begin Patch\n{update}*** End Patch");
            json!({"tool": "apply_patch", "input": patch})
        }
        VendorCli::Gemini => json!({"tool": "replace", "input": {
            "file_path": path, "old_string": old, "new_string": new, "instruction": "Bring it up to date"
        }}),
    }
}

/// The result of an agent that is done.
fn ok(summary: &str, to: &str, artifacts: &Value) -> Value {
    json!({
        "status": "OK", "summary": summary, "artifacts": artifacts,
        "gates": {
            "meets_definition_of_done": true, "needs_review": to == "Reviewer", "needs_tests": false,
            "security_concerns": []
        },
        "next": {"recommended_agent": to, "recommended_task_id": "same", "reason": "It is ready"}
    })
}

const TASKS: &str = "tasks:
  - id: T-001
    title: Greet people
    goal: greet.sh NAME greets NAME
    non_goals: []
    depends_on: []
    acceptance_checks: [\"cmd: sh all_tests.sh\"]
    done_when: [\"Kim is greeted\"]
    risk_flags: [none]
";

/// What each agent does, step by step, and what it hands in.
fn script(cli: VendorCli, folder: &str) -> Value {
    let file = |name: &str| format!("{folder}/{name}");
    let read = |path: &str| read(cli, path);
    let write = |path: &str, content: &str| json!({"write": path, "content": content});
    let check = || json!({"mcp": "run_check", "input": {"name": "test"}});
    let acceptance = json!({
        "criteria": [{"id": "AC-1", "description": "Kim is greeted", "checks": ["cmd: sh all_tests.sh"]}],
        "non_goals": ["other languages"]
    });
    let remark = json!({
        "severity": "low", "file": "greet.sh", "line": 1, "comment": "no name at all is greeted too"
    });
    let team: Vec<(&str, Vec<Value>, Value)> = vec![
        (
            "You are SpecAgent",
            vec![
                json!([search(cli, "greet")]),
                json!([
                    write(&file("spec.md"), "# Greet\n\nPeople are greeted by name.\n"),
                    write(&file("acceptance.json"), &acceptance.to_string()),
                ]),
            ],
            ok(
                "What is wanted can be checked.",
                "Architect",
                &json!({"files_to_create_or_update": ["greet.sh", "greet_test.sh"], "notes": ["a name is one word"]}),
            ),
        ),
        (
            "You are Architect",
            vec![
                json!([read(&file("spec.md")), read(&file("acceptance.json"))]),
                json!([write(&file("architecture.md"), "# Greet\n\n`greet.sh NAME` greets.\n")]),
            ],
            ok("One script.", "Planner", &json!({"notes": ["one script is enough"]})),
        ),
        (
            "You are Planner",
            vec![
                json!([read(&file("architecture.md"))]),
                json!([write(&file("tasks.yaml"), TASKS)]),
            ],
            ok("One task.", "Coder", &json!({})),
        ),
        (
            "You are Coder",
            vec![
                json!([read(&file("tasks.yaml"))]),
                json!([
                    write("greet_test.sh", "[ \"$(sh greet.sh Kim)\" = \"Hello, Kim\" ]\n"),
                    write("greet.sh", "echo \"Hello, $1\"\n"),
                ]),
                json!([check()]),
            ],
            ok(
                "greet.sh greets, with a test.",
                "Reviewer",
                &json!({
                    "files_changed": ["greet.sh", "greet_test.sh"], "tests_added_or_updated": ["greet_test.sh"],
                    "manual_steps": ["put greet.sh on the PATH"]
                }),
            ),
        ),
        (
            "You are Reviewer",
            vec![json!([read("greet.sh"), search(cli, "Hello"), check()])],
            ok("It does what the task says.", "QA", &json!({"review_comments": [remark]})),
        ),
        (
            "You are QA",
            vec![json!([read(&file("acceptance.json")), check()])],
            ok(
                "T-001 works.",
                "Security",
                &json!({"test_results": {"ran": "run_check test", "total": 1, "passed": 1, "failed": 0}}),
            ),
        ),
        (
            "You are Security",
            vec![json!([read("greet.sh")])],
            ok(
                "Nothing that an attacker could use.",
                "Orchestrator",
                &json!({"notes": ["looked at what becomes of the name"]}),
            ),
        ),
        (
            "You are Integrator. You put the work together",
            vec![json!([check()])],
            ok("The parts work together.", "Docs", &json!({})),
        ),
        (
            "You are Docs",
            vec![
                json!([read("README.md")]),
                json!([
                    edit(cli, "README.md", "Nothing yet.", "`sh greet.sh NAME` greets NAME."),
                    write(&file("report.md"), "# Report\n\nPeople are greeted.\n"),
                ]),
            ],
            ok("It is documented.", "Integrator", &json!({"files_changed": ["README.md"]})),
        ),
        (
            "You are Integrator. You close the session",
            vec![
                json!([read(&file("report.md"))]),
                json!([edit(
                    cli,
                    &file("report.md"),
                    "People are greeted.",
                    "AC-1: Kim is greeted, by sh all_tests.sh."
                )]),
            ],
            ok("Every criterion is met.", "Orchestrator", &json!({})),
        ),
    ];
    let replies = team.into_iter().flat_map(|(when, steps, result)| {
        let does = steps.into_iter().map(move |calls| json!({"when": when, "calls": calls}));
        does.chain([cli.hand_in(when, &result)])
    });
    let rest = json!({"text": "Done.", "repeat": true});
    json!({"replies": replies.chain([rest]).collect::<Vec<_>>()})
}

fn honest_agents_take_a_goal_to_done(cli: VendorCli) {
    let folder = format!(".agents-work/{}_greet", today());
    let Some(project) = CliProject::open(cli, &script(cli, &folder)) else { return };
    project.write("counterfoil.toml", "[checks]\ntest = \"sh all_tests.sh\"\n");
    // Without a test there is none that passes.
    project.write("all_tests.sh", "for one in *_test.sh; do sh \"$one\" || exit 1; done\n");
    project.write("README.md", "# Greetings\n\nNothing yet.\n");
    project.commit_all("base");
    let arguments = ["gated-team", "--task", "Greet people", "--input", "slug=greet"];
    let report = project.play_honestly(&arguments);
    assert_eq!(report["reason"], "every criterion is met");
    let attempts = report["attempts"].as_array().unwrap();
    let states: Vec<&str> =
        attempts.iter().map(|attempt| attempt["path"][0].as_str().unwrap()).collect();
    let expected = [
        "INTAKE",
        "DESIGN",
        "PLAN",
        "IMPLEMENT",
        "REVIEW",
        "QA",
        "SECURITY",
        "INTEGRATE",
        "RELEASE",
        "RELEASE_REPORT",
    ];
    assert_eq!(states, expected);

    // Nothing is committed, and only what the agents wrote is there.
    let changed = project.git(&["status", "--porcelain", "-uall"]);
    let mut session: Vec<String> = changed
        .lines()
        .filter_map(|line| line.split_once(&format!("{folder}/")))
        .map(|(_, name)| name.to_owned())
        .collect();
    session.sort();
    let documents = [
        ".run",
        "acceptance.json",
        "architecture.md",
        "report.md",
        "spec.md",
        "status.json",
        "tasks.yaml",
    ];
    assert_eq!(session, documents, "{changed}");
    let work: Vec<&str> = changed.lines().filter(|line| !line.contains(&folder)).collect();
    assert_eq!(work, [" M README.md", "?? greet.sh", "?? greet_test.sh"]);
    assert_eq!(
        project.read_or_empty("README.md"),
        "# Greetings\n\n`sh greet.sh NAME` greets NAME.\n"
    );

    let status: Value =
        serde_json::from_str(&project.read_or_empty(format!("{folder}/status.json"))).unwrap();
    let shown = ["current_state", "completed_tasks", "last_ci_result", "retry_counts"]
        .map(|field| status[field].clone());
    assert_eq!(shown, [json!("DONE"), json!(["T-001"]), json!("green"), json!({})], "{status:#}");
    assert_eq!(status["assumptions"], json!(["a name is one word", "one script is enough"]));

    // The report is the Integrator's, and ends with what the engine knows.
    let written = project.read_or_empty(format!("{folder}/report.md"));
    let own = "# Report\n\nAC-1: Kim is greeted, by sh all_tests.sh.\n\n<!-- recorded by the engine -->\n";
    assert!(written.starts_with(own), "{written}");
    for kept in [
        "- CI: green\n- Tasks: T-001\n",
        "- Fixes: none\n\n### Known issues\n\nNone.\n",
        "- IMPLEMENT, T-001: by hand: put greet.sh on the PATH\n",
        "\"comment\":\"no name at all is greeted too\"",
        "- SECURITY, T-001: looked at what becomes of the name\n",
    ] {
        assert!(written.contains(kept), "{kept:?} is not in {written}");
    }
}
