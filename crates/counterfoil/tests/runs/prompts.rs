//! What agents are asked: the rendered prompt, what they must hand back, and what a repair says.

use crate::scene::{BAD, GOOD, Scene, one_step, replies};

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

fn suffix(scene: &Scene) -> String {
    let output = scene
        .command(&["contract", "prompt", "scene/step", "--contracts", "contracts"])
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

#[test]
fn what_is_to_be_fixed_is_there_and_then_gone() {
    let no = r#"text: '{"ok": false, "note": "the button is missing"}'"#;
    let scene = Scene::new(DELIVER, &replies(&[GOOD, no, GOOD, GOOD, GOOD]));
    scene.file("prompt.md", PROMPT);
    let ran = scene.run_with(&["--task", "a login page"]);
    assert_eq!(ran.ended(), ("done", None, 0), "{}", ran.reason());
    let (first, second, last) = (
        scene.prompt(&ran, "work_1.1"),
        scene.prompt(&ran, "work_2.1"),
        scene.prompt(&ran, "last_1.1"),
    );
    assert!(first.starts_with("Implement this: a login page\n"), "{first}");
    assert!(!first.contains("Fix this first"), "{first}");
    assert!(second.contains("Fix this first: the button is missing\n"), "{second}");
    assert_eq!(last, first, "once it is fixed, nothing of it is left");
}

#[test]
fn the_contract_speaks_at_the_end_of_the_prompt() {
    let scene = Scene::new(&one_step(""), &replies(&[GOOD]));
    let ran = scene.run();
    let suffix = suffix(&scene);
    assert!(suffix.contains("note"), "{suffix}");
    assert_eq!(scene.prompt(&ran, "work_1.1").trim_end(), format!("Do it.\n\n{suffix}"));
}

#[test]
fn a_repair_names_what_was_wrong_and_nothing_else() {
    let scene = Scene::new(&one_step(""), &replies(&["text: 'I am done.'", BAD, GOOD]));
    let ran = scene.run();
    let (absent, rejected) = (scene.prompt(&ran, "work_1.2"), scene.prompt(&ran, "work_1.3"));
    assert!(!absent.contains("Do it."), "the work is not asked for again:\n{absent}");
    assert!(
        rejected.contains("/note (line 1): `note` is required when `!result.ok`"),
        "{rejected}"
    );
    assert!(!rejected.contains("Do it."), "{rejected}");
}

#[test]
fn a_command_that_remembers_nothing_is_told_again() {
    let scene = Scene::new(&one_step(""), "replies: []");
    scene.file(
        "agent.sh",
        "n=$(ls heard.* 2>/dev/null | wc -l); cat > heard.$n\n\
         if [ $n = 0 ]; then echo 'I looked at it: {\"ok\": false}'; else echo '{\"ok\": true}'; fi\n",
    );
    let ran =
        scene.json(&["run", "flow.yaml", "--format", "json", "--agent", "command:sh agent.sh"]);
    assert_eq!(ran.ended(), ("done", None, 0), "{}", ran.reason());
    assert_eq!(ran.attempts(), ["work#1 accepted"]);
    assert_eq!(ran.report["attempts"][0]["repairs_asked"], 1);
    let heard = scene.read("heard.1");
    assert!(heard.contains("Do it."), "the first prompt:\n{heard}");
    assert!(heard.contains("I looked at it: {\"ok\": false}"), "what it answered:\n{heard}");
    assert!(heard.contains("/note"), "what was wrong:\n{heard}");
    for (n, name) in [(0, "work_1.1"), (1, "work_1.2")] {
        assert_eq!(
            scene.prompt(&ran, name),
            scene.read(&format!("heard.{n}")),
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
    let scene = Scene::new(&one_step(""), &script);
    let ran = scene.run();
    assert_eq!(ran.ended(), ("done", None, 0));
    let first = scene.prompt(&ran, "work_1.1");
    for name in ["work_2.1", "work_3.1"] {
        assert_eq!(scene.prompt(&ran, name), first, "{name}");
    }
}

#[test]
fn a_text_from_outside_is_not_a_template() {
    let scene = Scene::new(DELIVER, &replies(&[GOOD, GOOD, GOOD]));
    scene.file("prompt.md", PROMPT);
    let ran = scene.run_with(&["--task", "{{ fix_info }} {% if %}"]);
    assert!(
        scene.prompt(&ran, "work_1.1").starts_with("Implement this: {{ fix_info }} {% if %}\n")
    );
}
