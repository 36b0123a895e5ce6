//! Usage errors: exit code 2, and a message that names the cause and the fix.

use crate::runs::project::{GOOD, WorkflowProject, one_step, replies};

const INPUTS: &str = "
workflow: inputs
inputs:
  task: string
  size: { type: small | large, default: small }
  rounds: { type: count, default: 3 }
agents: { worker: { contract: scene/step, prompt: \"{{ task }} {{ size }} {{ rounds }}\" } }
contracts: [contracts]
start: work
states:
  work: { agent: worker, go: done }
  done: { end: done }
";

fn project() -> WorkflowProject {
    WorkflowProject::new(INPUTS, &replies(&[GOOD]))
}

#[test]
fn inputs_are_held_to_their_types() {
    let project = project();
    let base = ["run", "flow.yaml", "--agent", "script:script.yaml"];
    for (more, said) in [
        (&["--input", "size=large"][..], "needs the input 'task'; give it with --task TEXT"),
        (&["--task", "x", "--input", "sise=large"], "no input 'sise'; did you mean 'size'?"),
        (&["--task", "x", "--input", "size=huge"], "input 'size': "),
        (&["--task", "x", "--input", "rounds=many"], "input 'rounds': "),
        (&["--task", "x", "--input", "rounds"], "expected NAME=VALUE"),
        (&["--task", "@nowhere.md"], "nowhere.md"),
        (&["--task", "x", "--max-cost", "no"], "expected an amount such as 2.50"),
        (&["--task", "x", "--max-time", "soon"], "expected a duration such as 90s"),
    ] {
        let words = project.run_refused(&[&base[..], more].concat());
        assert!(words.contains(said), "{more:?}: {words}");
    }
    let listed = project.run_json(&["runs", "--format", "json"]);
    assert_eq!(listed.report, serde_json::json!([]), "nothing was started");
}

#[test]
fn inputs_reach_the_agents() {
    let project = project();
    project.write("task.md", "from a file");
    let ran = project.run_workflow_with(&[
        "--task",
        "@task.md",
        "--input",
        "size=large",
        "--input",
        "rounds=7",
    ]);
    assert!(project.prompt(&ran, "work_1.1").starts_with("from a file large 7\n"));
}

#[test]
fn agents_must_be_played_by_somebody() {
    let project = project();
    for (agents, said) in [
        (&[][..], "no program is assigned to agent `worker`; assign one with `--agent SPEC`"),
        (&["--agent", "wroker=script:script.yaml"], "no agent 'wroker'; did you mean 'worker'?"),
        (&["--agent", "skript:script.yaml"], "did you mean 'script'?"),
        (&["--agent", "command:"], "the program is missing"),
        (&["--agent", "command:sh 'agent.sh"], "a quote is not closed"),
        (&["--agent", "script:"], "the file is missing"),
        (&["--agent", "script:nowhere.yaml"], "nowhere.yaml"),
        (&["--agent", "script:a.yaml", "--agent", "script:b.yaml"], "--agent SPEC is given twice"),
        (
            &["--agent", "worker=script:a.yaml", "--agent", "worker=script:b.yaml"],
            "--agent worker=… is given twice",
        ),
    ] {
        let words = project.run_refused(&[&["run", "flow.yaml", "--task", "x"], agents].concat());
        assert!(words.contains(said), "{agents:?}: {words}");
    }
}

#[test]
fn a_script_with_a_mistake_is_refused_with_its_place() {
    let project = project();
    for (script, said) in [
        ("replies:\n  - { agent: worker, txt: hello }\n", "txt"),
        ("replies:\n  - { agent: worker }\n", "reply 1 has both a text and a failure, or neither"),
        ("replies:\n  - { agent: worker, fail: badly }\n", "badly"),
        ("replies: {", "script.yaml"),
    ] {
        project.write("script.yaml", script);
        let words = project.run_refused(&[
            "run",
            "flow.yaml",
            "--task",
            "x",
            "--agent",
            "script:script.yaml",
        ]);
        assert!(words.contains("script.yaml") && words.contains(said), "{script}: {words}");
    }
}

#[test]
fn a_workflow_that_is_not_there_or_does_not_pass_is_refused() {
    let project = project();
    let words = project.run_refused(&["run", "nowhere.yaml"]);
    assert!(words.contains("nowhere.yaml"), "{words}");
    let words = project.run_refused(&["run", "."]);
    assert!(words.contains("is a folder"), "{words}");
    project.write("wrong.yaml", one_step("").replace("go: done", "go: dnoe"));
    let words = project.run_refused(&["run", "wrong.yaml", "--agent", "script:script.yaml"]);
    assert!(words.contains("F0201") && words.contains("did you mean 'done'?"), "{words}");
    assert!(words.contains("wrong.yaml is not a valid workflow"), "{words}");
    let words = project.run_refused(&["run", "flow.yaml", "--repo", "nowhere"]);
    assert!(words.contains("nowhere"), "{words}");
}
