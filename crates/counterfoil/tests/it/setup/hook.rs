//! Hooks, with payloads as Claude Code sends them.

use crate::setup::project::SetupProject;
use counterfoil_testkit::TestCommand;
use serde_json::{Value, json};

const GOOD: &str = r#"{"dod_achieved": true, "checks": []}"#;
const SUBAGENT: &str = "claude-subagent-stop";
const MAIN: &str = "claude-stop";

fn bound() -> SetupProject {
    let project = SetupProject::new();
    project.write(
        "repo/counterfoil.toml",
        "[agents.qa]\ncontract = \"execution-loop/qa\"\n[agents.claude]\ncontract = \"execution-loop/dod\"\n",
    );
    project
}

/// What Claude Code sends to a hook, with a few things changed; null takes something out.
fn payload(project: &SetupProject, hook: &str, changed: &Value) -> String {
    let text = match hook {
        SUBAGENT => include_str!("../../fixtures/hooks/subagent-stop.json"),
        _ => include_str!("../../fixtures/hooks/stop.json"),
    };
    let mut payload: Value = serde_json::from_str(text).unwrap();
    payload["cwd"] = json!(project.repo());
    for (key, value) in changed.as_object().unwrap() {
        payload[key] = value.clone();
    }
    payload.to_string()
}

fn hook(project: &SetupProject, hook: &str, changed: &Value) -> TestCommand {
    let mut command = project.command();
    command.args(["hook", hook]).write_stdin(payload(project, hook, changed));
    command
}

/// The exit code, and what was said.
fn answer(mut command: TestCommand) -> (i32, String) {
    let output = command.output();
    assert!(output.stdout.is_empty(), "words are for standard error");
    (output.code.unwrap(), output.stderr)
}

#[test]
fn a_bad_result_is_sent_back_and_a_good_one_is_not() {
    let project = bound();
    insta::assert_snapshot!(project.snapshot(&mut hook(
        &project,
        SUBAGENT,
        &json!({"last_assistant_message": "All good, ship it."})
    )));
    let good = answer(hook(&project, SUBAGENT, &json!({"last_assistant_message": GOOD})));
    assert_eq!(good, (0, String::new()));
}

#[test]
fn a_message_that_only_quotes_the_example_is_sent_back() {
    let project = bound();
    let contract =
        counterfoil_packs::registry_for("execution-loop/qa").get("execution-loop/qa").unwrap();
    for example in &contract.definition().examples {
        let message = format!("The form is:\n> {example}\n");
        let (code, words) =
            answer(hook(&project, SUBAGENT, &json!({"last_assistant_message": message})));
        assert_eq!(code, 2, "{words}");
        assert!(words.contains("repeats an example"), "{words}");
        // It is not shown an example that approves alone.
        let (fails, passes) =
            (words.find("\"dod_achieved\": false"), words.find("\"dod_achieved\": true"));
        assert!(fails.is_some() && fails < passes.or(Some(usize::MAX)), "{words}");
    }
}

#[test]
fn an_agent_that_never_gets_it_right_is_let_through_with_words() {
    let project = bound();
    let say = |active: bool| {
        answer(hook(
            &project,
            SUBAGENT,
            &json!({"last_assistant_message": "All good.", "stop_hook_active": active}),
        ))
    };
    assert_eq!(say(false).0, 2);
    assert_eq!(say(true).0, 2);
    assert_eq!(say(true).0, 2);
    let (code, words) = say(true);
    assert_eq!(code, 1, "{words}");
    insta::assert_snapshot!(words);
    // The next time it is asked, it has its three tries again.
    assert_eq!(say(false).0, 2);
}

#[test]
fn a_good_result_gives_the_next_one_all_its_tries() {
    let project = bound();
    let say =
        |text: &str| answer(hook(&project, SUBAGENT, &json!({"last_assistant_message": text}))).0;
    assert_eq!(
        [say("no"), say("no"), say(GOOD), say("no"), say("no"), say("no"), say("no")],
        [2, 2, 0, 2, 2, 2, 1]
    );
}

#[test]
fn agents_at_work_side_by_side_are_counted_each_for_itself() {
    let project = bound();
    let say = |agent: &str| {
        answer(hook(
            &project,
            SUBAGENT,
            &json!({"last_assistant_message": "no", "agent_id": agent}),
        ))
        .0
    };
    let codes: Vec<i32> = ["a", "b", "a", "b", "a", "b", "a", "b"].map(say).to_vec();
    assert_eq!(codes, [2, 2, 2, 2, 2, 2, 1, 1]);
}

#[test]
fn only_who_is_bound_is_held_to_anything() {
    let project = bound();
    let bad = |more: &Value| {
        let mut changed = json!({"last_assistant_message": "no"});
        changed.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        changed
    };
    assert_eq!(
        answer(hook(&project, SUBAGENT, &bad(&json!({"agent_type": "Explore"})))),
        (0, String::new())
    );
    assert_eq!(answer(hook(&project, SUBAGENT, &bad(&json!({"agent_type": "claude"})))).0, 2);
    // The main agent is `claude`, unless the session was started as another.
    let (code, words) = answer(hook(&project, MAIN, &bad(&json!({}))));
    assert!(code == 2 && words.contains("task_complete"), "{words}");
    let (code, words) = answer(hook(&project, MAIN, &bad(&json!({"agent_type": "qa"}))));
    assert!(code == 2 && words.contains("dod_achieved"), "{words}");
    // A flag is above all of it.
    let mut flagged =
        hook(&project, SUBAGENT, &json!({"agent_type": "Explore", "last_assistant_message": "no"}));
    flagged.args(["--contract", "review-fix/fix-result"]);
    assert_eq!(answer(flagged).0, 2);
    let elsewhere = SetupProject::new();
    assert_eq!(answer(hook(&elsewhere, SUBAGENT, &bad(&json!({})))), (0, String::new()));
}

#[test]
fn agents_in_a_run_are_held_to_its_contract_alone() {
    let project = bound();
    let mut command = hook(&project, SUBAGENT, &json!({}));
    command.env("COUNTERFOIL_ATTEMPT", "run/1");
    assert_eq!(answer(command), (0, String::new()));
}

#[test]
fn settings_are_found_above_and_not_beyond_the_repository() {
    let project = bound();
    let deep = project.path("repo/src/deep");
    std::fs::create_dir_all(&deep).unwrap();
    let say = |project: &SetupProject, cwd: &std::path::Path| {
        answer(hook(project, SUBAGENT, &json!({"last_assistant_message": "no", "cwd": cwd}))).0
    };
    assert_eq!(say(&project, &deep), 2);
    project.write("repo/src/deep/.git/HEAD", "ref: refs/heads/main\n");
    for folder in ["objects", "refs"] {
        std::fs::create_dir(project.path("repo/src/deep/.git").join(folder)).unwrap();
    }
    assert_eq!(say(&project, &deep), 0, "a repository inside of it is another project");
    assert_eq!(say(&project, &project.path("nowhere")), 0);
}

#[test]
fn contracts_of_the_project_are_found_beside_its_settings() {
    let project = SetupProject::new();
    project.write("repo/counterfoil.toml", "[agents.qa]\ncontract = \"acme/answer\"\n");
    project.write(
        "repo/contracts/answer.yaml",
        "contract: acme/answer\nversion: 1\nframing: any-json\nschema:\n  type: object\n  required: [answer]\n  properties:\n    answer: {type: integer}\n",
    );
    let say =
        |text: &str| answer(hook(&project, SUBAGENT, &json!({"last_assistant_message": text})));
    assert_eq!(say(r#"{"answer": 42}"#), (0, String::new()));
    let (code, words) = say(r#"{"answer": "forty-two"}"#);
    assert!(code == 2 && words.contains("/answer"), "{words}");
}

#[test]
fn an_older_version_that_sends_only_a_transcript_is_understood() {
    let project = bound();
    let said = |text: &str, aside: bool| json!({"type": "assistant", "isSidechain": aside, "message": {"id": text, "content": [{"type": "text", "text": text}]}});
    let lines = format!(
        "{}\n{}\n{}\n",
        said(GOOD, true),
        said("of the main agent", false),
        json!({"type": "summary"})
    );
    let transcript = project.write("transcript.jsonl", lines);
    let old = json!({"last_assistant_message": null, "agent_transcript_path": null, "agent_id": null, "transcript_path": transcript});
    assert_eq!(answer(hook(&project, SUBAGENT, &old)), (0, String::new()));
    assert_eq!(answer(hook(&project, MAIN, &old)).0, 2);
    let gone = json!({"last_assistant_message": null, "agent_transcript_path": project.path("none.jsonl")});
    let (code, words) = answer(hook(&project, SUBAGENT, &gone));
    assert!(code == 1 && words.contains("none.jsonl"), "{words}");
}

#[test]
fn an_agent_that_said_nothing_handed_back_nothing() {
    let project = bound();
    let (code, words) = answer(hook(&project, SUBAGENT, &json!({"last_assistant_message": ""})));
    assert!(code == 2 && words.contains("no result"), "{words}");
}

/// Everything that must never block an agent, since it is not the agent's fault.
#[test]
fn what_cannot_be_checked_never_blocks() {
    let project = bound();
    let broken = SetupProject::new();
    broken.write("repo/counterfoil.toml", "[agents.qa]\ncontract = 7\n");
    let unknown = SetupProject::new();
    unknown.write("repo/counterfoil.toml", "[agents.qa]\ncontract = \"execution-loop/qaa\"\n");
    let mut shown = String::new();
    let mut case = |project: &SetupProject, name: &str, command: &mut TestCommand| {
        let text = project.snapshot(command);
        assert!(text.starts_with("exit 1\n"), "{name}: {text}");
        shown.push_str(&format!("## {name}\n{text}"));
    };
    for (name, input) in
        [("empty", ""), ("not JSON", "{\"hook_"), ("a list", "[1]"), ("no event", "{}")]
    {
        case(&project, name, project.command().args(["hook", MAIN]).write_stdin(input));
    }
    case(
        &project,
        "another hook's",
        project.command().args(["hook", MAIN]).write_stdin(payload(&project, SUBAGENT, &json!({}))),
    );
    case(
        &project,
        "another event",
        &mut hook(&project, MAIN, &json!({"hook_event_name": "PreToolUse"})),
    );
    let nothing = json!({"last_assistant_message": null, "transcript_path": null, "agent_transcript_path": null});
    case(&project, "no message", &mut hook(&project, SUBAGENT, &nothing));
    case(&project, "no session", &mut hook(&project, SUBAGENT, &json!({"session_id": null})));
    case(&project, "no name", &mut hook(&project, SUBAGENT, &json!({"agent_type": null})));
    case(
        &project,
        "a message that is no text",
        &mut hook(&project, SUBAGENT, &json!({"last_assistant_message": {}})),
    );
    case(&broken, "broken settings", &mut hook(&broken, SUBAGENT, &json!({})));
    case(&unknown, "unknown contract", &mut hook(&unknown, SUBAGENT, &json!({})));
    case(
        &project,
        "unknown flag",
        project.command().args(["hook", MAIN, "--strict"]).write_stdin(""),
    );
    case(&project, "unknown hook", project.command().args(["hook", "gemini-stop"]).write_stdin(""));
    case(&project, "no home", hook(&project, SUBAGENT, &json!({})).env_remove("HOME"));
    insta::assert_snapshot!(shown);
}

#[test]
fn without_a_memory_nothing_is_blocked() {
    let project = bound();
    // The state folder of the project is there, and cannot be written in.
    project.write("repo/.counterfoil/hooks", "not a folder");
    let (code, words) = answer(hook(&project, SUBAGENT, &json!({})));
    assert!(code == 1 && words.contains("was not sent back"), "{words}");
}

#[test]
fn the_memory_is_in_the_state_folder_if_there_is_one() {
    let project = bound();
    assert_eq!(answer(hook(&project, SUBAGENT, &json!({}))).0, 2);
    assert_eq!(
        std::fs::read_dir(project.path("home/.local/state/counterfoil/hooks")).unwrap().count(),
        1
    );
    assert!(!project.path("repo/.counterfoil").exists(), "a hook makes no state folder");
    std::fs::create_dir(project.path("repo/.counterfoil")).unwrap();
    assert_eq!(answer(hook(&project, SUBAGENT, &json!({}))).0, 2);
    assert_eq!(std::fs::read_dir(project.path("repo/.counterfoil/hooks")).unwrap().count(), 1);
    let elsewhere = bound();
    let state = elsewhere.path("state");
    let mut command = hook(&elsewhere, SUBAGENT, &json!({}));
    assert_eq!(
        answer({
            command.env("XDG_STATE_HOME", &state);
            command
        })
        .0,
        2
    );
    assert_eq!(std::fs::read_dir(state.join("counterfoil/hooks")).unwrap().count(), 1);
}
