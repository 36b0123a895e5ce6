//! Every workflow under `examples/` passes the checker, and the four of them together use every key
//! of the language.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

use crate::shipped;
use counterfoil_contract::diagnostic::Style;
use counterfoil_flow::{Bundle, Form, Step, check, reload, render};

#[test]
fn every_example_passes() {
    let examples = shipped::examples();
    assert!(examples.len() >= 4, "{:?}", examples.iter().map(|one| &one.name).collect::<Vec<_>>());
    for example in &examples {
        if let Err(rejected) =
            check(&example.workflow, &example.files, &counterfoil_packs::registry())
        {
            panic!(
                "{}:\n{}",
                example.name,
                render(&rejected.findings, &rejected.files, Style::default())
            );
        }
    }
}

#[test]
fn every_example_passes_again_from_what_a_run_keeps() {
    for example in shipped::examples() {
        let workflow =
            check(&example.workflow, &example.files, &counterfoil_packs::registry()).unwrap();
        let bytes = workflow.bundle.to_bytes().unwrap();
        let again = reload(&Bundle::from_bytes(&bytes).unwrap()).unwrap();
        assert_eq!(again.bundle.to_bytes().unwrap(), bytes, "{}", example.name);
        assert_eq!(format!("{:?}", again.main.order), format!("{:?}", workflow.main.order));
    }
}

#[test]
fn together_they_use_every_key_of_the_language() {
    const KEYS: [&str; 64] = [
        "workflow",
        "version",
        "summary",
        "inputs",
        "variables",
        "agents",
        "contracts",
        "limits",
        "iterations",
        "start",
        "states",
        "workflows",
        "artifacts",
        "budget",
        "default",
        "initial",
        "optional",
        "contract",
        "prompt",
        "access",
        "timeout",
        "idle",
        "repairs",
        "retries",
        "tokens",
        "cost_usd",
        "time",
        "attempts",
        "max",
        "then",
        "per",
        "total",
        "agent",
        "with",
        "needs",
        "command",
        "cwd",
        "input",
        "output",
        "ask",
        "asks",
        "question",
        "choices",
        "pattern",
        "each",
        "as",
        "key",
        "after",
        "rank",
        "parallel",
        "failures",
        "run",
        "end",
        "goto",
        "counts",
        "resets",
        "append",
        "writes",
        "protect",
        "protection",
        "tests",
        "claims",
        "match",
        "workspace",
    ];
    let texts: Vec<String> =
        shipped::examples().into_iter().map(|one| one.files[&one.workflow].clone()).collect();
    let used = |key: &str| texts.iter().any(|text| text.contains(&format!("{key}:")));
    let missing: Vec<&str> = KEYS.into_iter().filter(|key| !used(key)).collect();
    assert!(missing.is_empty(), "no example uses {missing:?}");
}

/// A script, as far as its replies go.
#[derive(serde::Deserialize)]
struct Script {
    replies: Vec<Reply>,
    #[serde(default)]
    answers: Vec<Answer>,
}

#[derive(serde::Deserialize)]
struct Reply {
    agent: String,
    text: Option<String>,
    fail: Option<String>,
}

#[derive(serde::Deserialize)]
struct Answer {
    question: String,
    answer: String,
}

#[test]
fn the_scripts_play_the_agents_and_questions_of_their_workflows() {
    for example in shipped::examples() {
        let workflow =
            check(&example.workflow, &example.files, &counterfoil_packs::registry()).unwrap();
        let script: Script = serde_saphyr::from_str(&example.files["script.yaml"]).unwrap();
        let mut wrong = 0;
        for reply in &script.replies {
            let role = workflow.agents.get(&reply.agent);
            let role =
                role.unwrap_or_else(|| panic!("{}: no agent '{}'", example.name, reply.agent));
            assert_ne!(
                reply.text.is_some(),
                reply.fail.is_some(),
                "{}: a text or a failure",
                example.name
            );
            wrong += usize::from(
                reply.text.as_ref().is_some_and(|text| !role.contract.check(text).is_accepted()),
            );
        }
        // One reply of `deliver` is wrong, to show how it is asked for again.
        assert_eq!(wrong, usize::from(example.name == "deliver"), "{}", example.name);
        for answer in &script.answers {
            let (state, name) =
                answer.question.split_once('.').unwrap_or((&answer.question, "answer"));
            let Step::Ask(questions) = &workflow.main.states[state].kind else {
                panic!("'{state}' asks nothing")
            };
            let question = questions.iter().find(|one| one.name == name).unwrap();
            if let Form::Choices(choices) = &question.form {
                assert!(choices.contains(&answer.answer), "{}: {}", example.name, answer.answer);
            }
        }
    }
}
