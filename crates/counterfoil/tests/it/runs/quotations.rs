//! Replies that repeat the prompt, and copies of earlier results.

use crate::runs::project::{WorkflowProject, one_step, replies};
use serde_json::Value;

const GATE: &str = r"
contract: scene/gate
version: 1
fields: { ok: boolean, why: string }
approves: result.ok
examples:
  - { ok: true, why: every test passes }
  - { ok: false, why: the search test fails }
";

/// Two agents; the prompt of the second one contains the result of the first.
const TWO: &str = r#"
workflow: two
variables: { first: { type: { contract: scene/gate }, optional: true } }
agents: { worker: { contract: scene/gate, prompt: "Look." } }
contracts: [contracts]
start: look
states:
  look: { agent: worker, next: [{ set: { first: result }, go: again }] }
  again: { agent: worker, prompt: "{% if first %}It was {{ first | tojson }}. {% endif %}Look again.", go: done, repairs: 1 }
  done: { end: done }
"#;

fn project(workflow: &str, texts: &[&str]) -> WorkflowProject {
    let texts: Vec<String> = texts
        .iter()
        .map(|text| format!("text: {}", serde_json::to_string(text).unwrap()))
        .collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let project = WorkflowProject::new(workflow, &replies(&texts));
    project.write("contracts/gate.yaml", GATE);
    project
}

fn codes(attempt: &Value) -> Vec<&str> {
    let replies = attempt["replies"].as_array().unwrap();
    replies
        .iter()
        .flat_map(|reply| reply["codes"].as_array().into_iter().flatten())
        .map(|code| code.as_str().unwrap())
        .collect()
}

#[test]
fn a_reply_that_only_quotes_the_prompt_is_asked_again() {
    let workflow = one_step("").replace("scene/step", "scene/gate");
    let quoted =
        "You showed me:\n> {\n>   \"why\": \"every test passes\",\n>   \"ok\": true\n> }\n";
    let answer = "{\"ok\": false, \"why\": \"two tests fail\"}";
    let project = project(&workflow, &[quoted, &format!("{answer}\n{quoted}")]);
    let ran = project.run_workflow();
    assert_eq!(ran.ended(), ("done", None, 0), "{}", ran.reason());
    let attempt = &ran.report["attempts"][0];
    assert_eq!(codes(attempt), ["C0116"]);
    assert_eq!(attempt["value"]["why"], "two tests fail");
    let reason = "repair requested: the answer repeats an example or a template that was shown, and has \
                  no result of its own (C0116)";
    project.run(&["show"]).expect(0, &[reason]);
    // The repair prompt shows what does not approve first, as the prompt does.
    for name in ["work_1.1", "work_1.2"] {
        let prompt = project.prompt(&ran, name);
        let (bad, good) = (prompt.find("the search test fails"), prompt.find("every test passes"));
        assert!(bad.unwrap() < good.unwrap(), "{prompt}");
    }
}

#[test]
fn quoting_to_the_end_is_no_result() {
    let workflow = one_step("").replace("scene/step", "scene/gate");
    let quoted = "```json\n{\"ok\": true, \"why\": \"every test passes\"}\n```";
    let ran = project(&workflow, &[quoted; 3]).run_workflow();
    assert_eq!(ran.ended(), ("failed", Some("contract"), 1));
    assert!(ran.reason().contains("repeats an example"), "{}", ran.reason());
}

#[test]
fn what_the_agent_said_itself_is_not_ours() {
    // The first reply breaks the contract. The same values count once they are in its form.
    let workflow = one_step("").replace("scene/step", "scene/gate");
    let ran = project(
        &workflow,
        &["{\"ok\": true, \"why\": 7}", "{\"ok\": true, \"why\": \"all 7 tests pass\"}"],
    )
    .run_workflow();
    assert_eq!(ran.ended(), ("done", None, 0), "{}", ran.reason());
}

#[test]
fn a_copy_of_an_earlier_result_counts_when_it_is_sent_again() {
    let first = "{\"ok\": true, \"why\": \"all 7 tests pass\"}";
    let project_ = project(TWO, &[first, first, first]);
    let ran = project_.run_workflow();
    assert_eq!(ran.ended(), ("done", None, 0), "{}", ran.reason());
    let attempt = &ran.report["attempts"][1];
    assert_eq!((codes(attempt), attempt["repairs_asked"].as_u64()), (vec!["C0117"], Some(1)));
    let question = project_.prompt(&ran, "again_1.2");
    assert!(question.contains("identical to `first`"), "{question}");
    // A result of its own is not asked about.
    let ran =
        project(TWO, &[first, "{\"ok\": true, \"why\": \"all 8 tests pass\"}"]).run_workflow();
    assert_eq!(ran.ended(), ("done", None, 0), "{}", ran.reason());
    // Without a repair left, nobody can be asked.
    let ran = project(&TWO.replace("repairs: 1", "repairs: 0"), &[first, first]).run_workflow();
    assert_eq!(ran.ended(), ("failed", Some("contract"), 1));
}

#[test]
fn a_recording_of_a_question_replays() {
    let first = "{\"ok\": true, \"why\": \"all 7 tests pass\"}";
    let project = project(TWO, &[first, first, first]);
    project.run_workflow();
    project.command(&["export", "last", "rec"]).output().expect(0, &[]);
    project.command(&["replay", "rec", "--contracts", "contracts"]).output().expect(0, &[]);
}
