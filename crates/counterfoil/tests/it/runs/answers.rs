//! Questions to people: waiting, answering, refusing an answer.

use crate::runs::project::WorkflowProject;
use serde_json::json;

const APPROVE: &str = "
workflow: approve
agents: { worker: { contract: scene/step, prompt: Do it. } }
contracts: [contracts]
start: approve
states:
  approve:
    ask: { question: \"Shall it go out?\", choices: [proceed, reject] }
    next:
      - { when: result.answer == \"proceed\", go: work }
      - { go: rejected, reason: \"'somebody said no'\" }
  work: { agent: worker, go: done }
  done: { end: done }
  rejected: { end: blocked }
";
const WORKS: &str = "replies: [{ agent: worker, text: '{\"ok\": true}' }]\n";

#[test]
fn an_answer_in_the_script_is_taken() {
    let script = format!("{WORKS}answers: [{{ question: approve, answer: proceed }}]\n");
    let ran = WorkflowProject::new(APPROVE, &script).run_workflow();
    assert_eq!(ran.ended(), ("done", None, 0));
    assert_eq!(ran.transitions(), ["approve>work", "work>done"]);
    let script = "answers: [{ question: approve, answer: reject }]\n";
    let ran = WorkflowProject::new(APPROVE, script).run_workflow();
    assert_eq!(ran.ended(), ("blocked", None, 7));
    assert_eq!(ran.reason(), "somebody said no");
}

/// A sub-workflow that asks twice.
const INNER: &str = "
workflow: inner
agents: { worker: { contract: scene/step, prompt: Do it. } }
contracts: [contracts]
start: clear
states:
  clear: { run: ask, next: [{ when: 'result == \"left, slowly\"', go: work }, { go: odd }] }
  work: { agent: worker, go: done }
  done: { end: done }
  odd: { end: blocked }
workflows:
  ask:
    variables: { way: { type: string, initial: '' }, pace: { type: string, initial: '' } }
    result: string
    start: way
    states:
      way: { ask: { question: Which way? }, next: [{ set: { way: result.answer }, go: pace }] }
      pace: { ask: { question: How fast? }, next: [{ set: { pace: result.answer }, go: told }] }
      told: { end: done, result: \"way + ', ' + pace\" }
";

#[test]
fn a_script_answers_a_sub_workflow_by_the_state_that_runs_it() {
    let script = format!(
        "{WORKS}answers:\n  - {{ question: clear, answer: left }}\n  - {{ question: clear, answer: slowly }}\n"
    );
    let ran = WorkflowProject::new(INNER, &script).run_workflow();
    assert_eq!(ran.ended(), ("done", None, 0), "{}", ran.stderr);
    // The name of a question that only begins so is another one.
    let ran =
        WorkflowProject::new(INNER, "answers: [{ question: clea, answer: left }]\n").run_workflow();
    assert_eq!(ran.ended(), ("waiting", None, 4));
}

#[test]
fn a_person_answers_a_sub_workflow_by_the_state_that_runs_it() {
    let project = WorkflowProject::new(INNER, WORKS);
    assert_eq!(project.run_workflow().ended(), ("waiting", None, 4));
    for (answer, outcome) in [("left", "waiting"), ("slowly", "done")] {
        let ran =
            project.run_json(&["answer", "last", "clear", answer, "--resume", "--format", "json"]);
        assert_eq!(ran.report["outcome"], outcome, "{}", ran.reason());
    }
}

#[test]
fn without_an_answer_it_waits() {
    let ran = WorkflowProject::new(APPROVE, WORKS).run_workflow();
    assert_eq!(ran.ended(), ("waiting", None, 4));
    assert_eq!(ran.report["state"], "approve");
    assert_eq!(ran.reason(), "Shall it go out?");
    let question = &ran.report["questions"][0];
    assert_eq!(question["id"], "approve");
    assert_eq!(question["question"], "Shall it go out?");
    assert_eq!(question["choices"], json!(["proceed", "reject"]));
}

#[test]
fn an_answer_is_only_recorded_and_resume_goes_on() {
    let project = WorkflowProject::new(APPROVE, WORKS);
    project.run_workflow();
    let output = project.command(&["answer", "last", "approve", "proceed"]).output();
    assert_eq!(output.code, Some(0));
    let words = output.stderr;
    assert!(words.contains("counterfoil resume"), "{words}");
    let shown = project.run_json(&["show", "last", "--format", "json"]);
    assert!(shown.attempts().is_empty(), "nobody worked yet");
    assert_eq!(shown.report["questions"], json!([]));
    let ran = project.run_json(&["resume", "last", "--format", "json"]);
    assert_eq!(ran.ended(), ("done", None, 0));
    assert_eq!(ran.attempts(), ["work#1 accepted"]);
}

#[test]
fn answering_and_going_on_can_be_one_command() {
    let project = WorkflowProject::new(APPROVE, WORKS);
    project.run_workflow();
    let ran =
        project.run_json(&["answer", "last", "approve", "proceed", "--resume", "--format", "json"]);
    assert_eq!(ran.ended(), ("done", None, 0));
}

#[test]
fn resuming_without_an_answer_waits_on() {
    let project = WorkflowProject::new(APPROVE, WORKS);
    project.run_workflow();
    let ran = project.run_json(&["resume", "last", "--format", "json"]);
    assert_eq!(ran.ended(), ("waiting", None, 4));
    assert_eq!(ran.report["questions"][0]["id"], "approve");
}

#[test]
fn an_answer_that_is_none_is_refused_with_the_choices() {
    let project = WorkflowProject::new(APPROVE, WORKS);
    project.run_workflow();
    let words = project.run_refused(&["answer", "last", "approve", "procede"]);
    assert!(words.contains("'procede'") && words.contains("one of proceed, reject"), "{words}");
    assert!(words.contains("did you mean"), "{words}");
    let words = project.run_refused(&["answer", "last", "aprove", "proceed"]);
    assert!(words.contains("'aprove' is not open") && words.contains("open: approve"), "{words}");
    assert_eq!(
        project.run_json(&["show", "last", "--format", "json"]).report["outcome"],
        "waiting"
    );
}

#[test]
fn a_second_answer_is_refused() {
    let project = WorkflowProject::new(APPROVE, WORKS);
    project.run_workflow();
    assert!(project.command(&["answer", "last", "approve", "reject"]).output().is_success());
    let words = project.run_refused(&["answer", "last", "approve", "proceed"]);
    assert!(words.contains("'approve' is not open"), "{words}");
    let ran = project.run_json(&["resume", "last", "--format", "json"]);
    assert_eq!(ran.ended(), ("blocked", None, 7), "the first answer stands");
    let words = project.run_refused(&["answer", "last", "approve", "proceed"]);
    assert!(words.contains("ended as blocked"), "{words}");
}

#[test]
fn a_wrong_answer_in_the_script_waits_and_says_why() {
    let script = format!("{WORKS}answers: [{{ question: approve, answer: perhaps }}]\n");
    let project = WorkflowProject::new(APPROVE, &script);
    let output = project.command(&["run", "flow.yaml", "--agent", "script:script.yaml"]).output();
    let words = output.stderr;
    assert_eq!(output.code, Some(4), "{words}");
    assert!(words.contains("'perhaps'") && words.contains("proceed, reject"), "{words}");
    let quiet = project.run_workflow();
    assert_eq!(quiet.ended(), ("waiting", None, 4));
    assert!(
        quiet.stderr.starts_with("warning: the script's answer to 'approve' was refused: "),
        "{}",
        quiet.stderr
    );
}

#[test]
fn after_a_wrong_answer_in_the_script_the_next_one_is_taken() {
    let two = "answers: [{ question: approve, answer: perhaps }, { question: approve, answer: proceed }]\n";
    let ran = WorkflowProject::new(APPROVE, &format!("{WORKS}{two}")).run_workflow();
    assert_eq!(ran.ended(), ("done", None, 0));
    assert!(
        ran.stderr.starts_with("warning: the script's answer to 'approve' was refused: "),
        "{}",
        ran.stderr
    );
}

const SEVERAL: &str = "
workflow: several
start: clarify
variables: { name: string?, size: string?, remark: string? }
states:
  clarify:
    asks:
      name: { question: \"What is it called?\", pattern: \"[a-z]+(-[a-z]+)*\" }
      size: { question: \"How large?\", choices: [small, large] }
      remark: { question: \"Anything else?\", optional: true }
    next: [{ set: { name: result.name, size: result.size, remark: result.remark }, go: done }]
  done: { end: done }
";

#[test]
fn several_questions_are_asked_at_once_and_an_optional_one_is_cancelled_by_itself() {
    let project = WorkflowProject::new(SEVERAL, "replies: []\n");
    let ran = project.run_json(&["run", "flow.yaml", "--format", "json"]);
    assert_eq!(ran.ended(), ("waiting", None, 4));
    let ids: Vec<&str> = ran.report["questions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|q| q["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["clarify.name", "clarify.size", "clarify.remark"], "as they were asked");
    let answered = |question: &str, answer: &str| {
        let output = project.command(&["answer", "last", question, answer]).output();
        assert_eq!(output.code, Some(0), "{}", output.stderr);
    };
    answered("clarify.size", "small");
    let open = project.run_json(&["resume", "last", "--format", "json"]);
    assert_eq!(open.report["questions"].as_array().unwrap().len(), 2);
    answered("clarify.name", "login-page");
    let ran = project.run_json(&["resume", "last", "--format", "json"]);
    assert_eq!(ran.ended(), ("done", None, 0));
    assert_eq!(
        ran.report["variables"],
        json!({"name": "login-page", "size": "small", "remark": null})
    );
}

/// Two items that ask at once, each of them twice.
const ITEMS_ASK: &str = "
workflow: items
start: all
states:
  all: { each: { in: \"['z', 'a']\", as: item, key: item, parallel: 2, workspace: repository, run: one, with: { item: item } }, go: done }
  done: { end: done }
workflows:
  one:
    inputs: { item: string }
    start: later
    states:
      later: { ask: { question: \"First of {{ item }}?\" }, go: earlier }
      earlier: { ask: { question: \"Second of {{ item }}?\" }, go: out }
      out: { end: done }
";

#[test]
fn open_questions_are_listed_in_the_order_in_which_they_were_asked() {
    let project = WorkflowProject::new(ITEMS_ASK, "replies: []\n");
    let open = || -> Vec<String> {
        let listed = project.run_json(&["answer", "--format", "json"]).report;
        let questions = listed[0]["questions"].as_array().unwrap();
        questions.iter().map(|one| one["question"].as_str().unwrap().to_owned()).collect()
    };
    let ran = project.run_json(&["run", "flow.yaml", "--format", "json"]);
    assert_eq!(ran.ended(), ("waiting", None, 4), "{}", ran.stderr);
    assert_eq!(open(), ["First of z?", "First of a?"]);
    let answer = ["answer", "last", "all/z/later", "yes", "--resume", "--format", "json"];
    project.run_json(&answer);
    assert_eq!(open(), ["First of a?", "Second of z?"]);
}

#[test]
fn a_question_has_the_same_names_with_and_without_its_answer() {
    let project = WorkflowProject::new(ITEMS_ASK, "replies: []\n");
    project.run_json(&["run", "flow.yaml", "--format", "json"]);
    for name in ["all/z/later", "z/later", "all/z"] {
        project.run(&["answer", "last", name]).expect(
            2,
            &["give the answer to 'all/z/later':\n  all/z/later: First of z?", " TEXT --resume"],
        );
    }
    // Neither says that a question is not open which is one of several.
    project
        .run(&["answer", "last", "later"])
        .expect(2, &["'later' may be one of several questions:\n  all/z/later: First of z?"]);
    project.run(&["answer", "last", "later", "yes"]).expect(
        2,
        &["'later' may be one of several questions: all/z/later, all/a/later; write more of its id"],
    );
    project.run(&["answer", "last", "z/later", "yes"]).expect(0, &["answer recorded"]);
    project.run(&["answer", "last", "later"]).expect(2, &["give the answer to 'all/a/later'"]);
}

#[test]
fn an_answered_run_stays_so_when_an_optional_question_is_answered() {
    let project = WorkflowProject::new(
        SEVERAL,
        "answers:\n  - { question: clarify.name, answer: x }\n  - { question: size, answer: large }\n  - { question: remark, answer: mind the gap }\n",
    );
    project.run_json(&["run", "flow.yaml", "--format", "json"]);
    for (question, answer, outcome) in [
        ("name", "x", "waiting"),
        ("size", "large", "answered"),
        ("remark", "mind the gap", "answered"),
    ] {
        let output = project.command(&["answer", "last", question, answer]).output();
        assert_eq!(output.code, Some(0), "{question}: {}", output.stderr);
        project.run(&["runs"]).expect(0, &[outcome]);
    }
    let ran = project.run_json(&["resume", "last", "--format", "json"]);
    assert_eq!(ran.report["variables"]["remark"], "mind the gap");
}

#[test]
fn an_optional_question_can_be_answered_too() {
    let project = WorkflowProject::new(
        SEVERAL,
        "answers:\n  - { question: remark, answer: mind the gap }\n  - { question: clarify.name, answer: x }\n  - { question: size, answer: large }\n",
    );
    // No agent is in this workflow, so nobody brings the script: people answer.
    project.run_json(&["run", "flow.yaml", "--format", "json"]);
    for (question, answer) in [("remark", "mind the gap"), ("name", "x"), ("size", "large")] {
        let output = project.command(&["answer", "last", question, answer]).output();
        assert_eq!(output.code, Some(0), "{question}: {}", output.stderr);
    }
    let ran = project.run_json(&["resume", "last", "--format", "json"]);
    assert_eq!(
        ran.report["variables"],
        json!({"name": "x", "size": "large", "remark": "mind the gap"})
    );
}

#[test]
fn an_answer_must_have_its_form() {
    let project = WorkflowProject::new(SEVERAL, "replies: []\n");
    let ran = project.run_json(&["run", "flow.yaml", "--format", "json"]);
    assert_eq!(ran.report["questions"][0]["pattern"], "[a-z]+(-[a-z]+)*");
    let words = project.run_refused(&["answer", "last", "clarify.name", "Login Page"]);
    assert!(words.contains("'Login Page'") && words.contains("[a-z]+(-[a-z]+)*"), "{words}");
    let words = project.run_refused(&["answer", "last", "clarify.remark", "  "]);
    assert!(words.contains("expected a text"), "{words}");
}

#[test]
fn a_question_that_comes_again_has_a_name_of_its_own() {
    let flow = "
workflow: again
start: ask
limits: { times: { max: 3, then: gave-up } }
states:
  ask:
    ask: { question: \"Ready?\", choices: [\"yes\", \"no\"] }
    next: [{ when: result.answer == \"yes\", go: done }, { go: ask, counts: times }]
  done: { end: done }
  gave-up: { end: exhausted }
";
    let project = WorkflowProject::new(flow, "replies: []\n");
    project.run_json(&["run", "flow.yaml", "--format", "json"]);
    let ran = project.run_json(&["answer", "last", "ask", "no", "--resume", "--format", "json"]);
    assert_eq!(ran.report["questions"][0]["id"], "ask#2");
    let ran = project.run_json(&["answer", "last", "ask", "yes", "--resume", "--format", "json"]);
    assert_eq!(ran.ended(), ("done", None, 0), "the name alone means the one that is open");
}

/// A question of several lines, whose choice may come with words for the agent.
const DECIDE: &str = "
workflow: decide
variables: { advice: string?, choice: { type: string, initial: '' } }
agents: { worker: { contract: scene/step, prompt: 'Do it.{% if advice %} A person says: {{ advice }}{% endif %}' } }
contracts: [contracts]
start: decide
states:
  decide:
    ask: { question: \"It failed twice.\\n- once in a.rs\\n- once in b.rs\", choices: [retry, skip] }
    next:
      - { when: result.answer == \"retry\", set: { advice: result.words, choice: result.answer }, go: work }
      - { go: skipped }
  work: { agent: worker, go: done }
  done: { end: done }
  skipped: { end: blocked }
";

#[test]
fn words_of_a_person_follow_a_choice() {
    let project = WorkflowProject::new(DECIDE, WORKS);
    project.run_workflow();
    project.command(&["resume", "last"]).output().expect(
        4,
        &[
            "  decide: It failed twice.\n    - once in a.rs\n    - once in b.rs\n",
            "your words may follow the choice",
        ],
    );
    let refused = project.run_refused(&["answer", "last", "decide", "again", "With care."]);
    assert!(refused.contains("expected one of retry, skip"), "{refused}");
    let ran = project.run_json(&[
        "answer",
        "last",
        "decide",
        "retry",
        "Use the \"other\" clock: it's right.",
        "--resume",
        "--format",
        "json",
    ]);
    assert_eq!(ran.ended(), ("done", None, 0));
    assert_eq!(ran.report["variables"]["choice"], "retry");
    assert_eq!(ran.report["variables"]["advice"], "Use the \"other\" clock: it's right.");
}

#[test]
fn a_script_can_add_words_to_a_choice() {
    let script = format!("{WORKS}answers: [{{ question: decide, answer: 'retry: with care' }}]\n");
    let ran = WorkflowProject::new(DECIDE, &script).run_workflow();
    assert_eq!(ran.ended(), ("done", None, 0));
    assert_eq!(ran.report["variables"]["advice"], "with care");
}
