//! Prompts: the rendered prompt, the required result, and the repair prompt.

use crate::runs::project::{BAD, GOOD, WorkflowProject, one_step, replies};

const DELIVER: &str = "
workflow: deliver
inputs: { task: string }
variables: { fix_info: string? }
agents:
  worker: { contract: scene/step, prompt: prompt.md }
contracts: [contracts]
limits: { rounds: { max: 5, then: exhausted } }
start: work
states:
  work: { agent: worker, go: check }
  check:
    agent: worker
    prompt: \"Check it.\"
    next:
      - { when: result.ok, set: { fix_info: null }, go: last }
      - { set: { fix_info: result.note }, go: work, counts: rounds }
  last: { agent: worker, go: done }
  done: { end: done }
  exhausted: { end: exhausted }
";
const PROMPT: &str =
    "Implement this: {{ task }}\n{% if fix_info %}\nFix this first: {{ fix_info }}\n{% endif %}\n";

fn suffix(project: &WorkflowProject) -> String {
    let output =
        project.command(&["contract", "prompt", "scene/step", "--contracts", "contracts"]).output();
    output.stdout.trim_end().to_owned()
}

#[test]
fn what_is_to_be_fixed_is_there_and_then_gone() {
    let no = r#"text: '{"ok": false, "note": "the button is missing"}'"#;
    let project = WorkflowProject::new(DELIVER, &replies(&[GOOD, no, GOOD, GOOD, GOOD]));
    project.write("prompt.md", PROMPT);
    let ran = project.run_workflow_with(&["--task", "a login page"]);
    assert_eq!(ran.ended(), ("done", None, 0), "{}", ran.reason());
    let (first, second, last) = (
        project.prompt(&ran, "work_1.1"),
        project.prompt(&ran, "work_2.1"),
        project.prompt(&ran, "last_1.1"),
    );
    assert!(first.starts_with("Implement this: a login page\n"), "{first}");
    assert!(!first.contains("Fix this first"), "{first}");
    assert!(second.contains("Fix this first: the button is missing\n"), "{second}");
    assert_eq!(last, first, "once it is fixed, nothing of it is left");
}

#[test]
fn the_contract_speaks_at_the_end_of_the_prompt() {
    let project = WorkflowProject::new(&one_step(""), &replies(&[GOOD]));
    let ran = project.run_workflow();
    let suffix = suffix(&project);
    assert!(suffix.contains("note"), "{suffix}");
    assert_eq!(project.prompt(&ran, "work_1.1").trim_end(), format!("Do it.\n\n{suffix}"));
}

#[test]
fn a_repair_names_what_was_wrong_and_nothing_else() {
    let project = WorkflowProject::new(&one_step(""), &replies(&["text: 'I am done.'", BAD, GOOD]));
    let ran = project.run_workflow();
    let (absent, rejected) = (project.prompt(&ran, "work_1.2"), project.prompt(&ran, "work_1.3"));
    assert!(!absent.contains("Do it."), "the work is not asked for again:\n{absent}");
    assert!(
        rejected.contains("/note (line 1): `note` is required when `!result.ok`"),
        "{rejected}"
    );
    assert!(!rejected.contains("Do it."), "{rejected}");
}

#[test]
fn a_command_that_remembers_nothing_is_told_again() {
    let project = WorkflowProject::new(&one_step(""), "replies: []");
    project.write(
        "agent.sh",
        "n=$(ls heard.* 2>/dev/null | wc -l); cat > heard.$n\n\
         if [ $n = 0 ]; then echo 'I looked at it: {\"ok\": false}'; else echo '{\"ok\": true}'; fi\n",
    );
    let ran = project.run_json(&[
        "run",
        "flow.yaml",
        "--format",
        "json",
        "--agent",
        "command:sh agent.sh",
    ]);
    assert_eq!(ran.ended(), ("done", None, 0), "{}", ran.reason());
    assert_eq!(ran.attempts(), ["work#1 accepted"]);
    assert_eq!(ran.report["attempts"][0]["repairs_asked"], 1);
    let heard = project.read("heard.1");
    assert!(heard.contains("Do it."), "the first prompt:\n{heard}");
    assert!(heard.contains("I looked at it: {\"ok\": false}"), "what it answered:\n{heard}");
    assert!(heard.contains("/note"), "what was wrong:\n{heard}");
    for (n, name) in [(0, "work_1.1"), (1, "work_1.2")] {
        assert_eq!(
            project.prompt(&ran, name),
            project.read(format!("heard.{n}")),
            "what is kept is what it heard"
        );
    }
}

#[test]
fn a_broken_connection_is_not_the_agents_business() {
    let script = replies(&[
        "fail: transport, reason: ECONNRESET by peer",
        "fail: timeout, reason: too slow",
        GOOD,
    ]);
    let project = WorkflowProject::new(&one_step(""), &script);
    project.init_git();
    let ran = project.run_workflow();
    assert_eq!(ran.ended(), ("done", None, 0));
    // Nothing was changed, and that is known: there is nothing to tell.
    let first = project.prompt(&ran, "work_1.1");
    for name in ["work_2.1", "work_3.1"] {
        assert_eq!(project.prompt(&ran, name), first, "{name}");
    }
}

#[test]
fn a_text_from_outside_is_not_a_template() {
    let project = WorkflowProject::new(DELIVER, &replies(&[GOOD, GOOD, GOOD]));
    project.write("prompt.md", PROMPT);
    let ran = project.run_workflow_with(&["--task", "{{ fix_info }} {% if %}"]);
    assert!(
        project.prompt(&ran, "work_1.1").starts_with("Implement this: {{ fix_info }} {% if %}\n")
    );
}
