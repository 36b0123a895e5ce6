//! Details of the workflow language: ordered lists, waits, rules of a step, artifacts of
//! sub-workflows, the variables of a run.

use crate::runs::project::{GOOD, WorkflowProject, replies};
use serde_json::{Value, json};

/// Puts a list in order and says so.
fn ordered(items: &Value) -> WorkflowProject {
    let flow = "
workflow: ordered
inputs: { items: [{ id: string, after: [string], rank: integer }] }
variables: { order: { type: [string], initial: [] } }
start: sort
states:
  sort:
    order: { in: items, as: one, key: one.id, after: one.after, rank: one.rank }
    on: { order: { go: stuck, reason: problem.reason } }
    next: [{ set: { order: \"result.items.map(one, one.id)\" }, go: done }]
  done: { end: done }
  stuck: { end: blocked }
";
    let project = WorkflowProject::new(flow, "replies: []");
    project.write("items.json", items.to_string());
    project
}

fn sorted(items: &Value) -> Value {
    let project = ordered(items);
    let given = format!("items={items}");
    project.run_workflow_with(&["--input", &given]).report["variables"]["order"].clone()
}

#[test]
fn a_list_is_put_in_order_by_what_comes_after_what_then_rank_then_place() {
    let one = |id: &str, after: &[&str], rank: i64| json!({"id": id, "after": after, "rank": rank});
    let diamond = json!([
        one("d", &["b", "c"], 0),
        one("b", &["a"], 2),
        one("c", &["a"], 1),
        one("a", &[], 9)
    ]);
    assert_eq!(sorted(&diamond), json!(["a", "c", "b", "d"]));
    let ties = json!([one("x", &[], 1), one("y", &[], 1), one("z", &[], 0)]);
    assert_eq!(sorted(&ties), json!(["z", "x", "y"]));
    assert_eq!(sorted(&json!([])), json!([]));
}

#[test]
fn a_list_without_an_order_is_trouble() {
    let one = |id: &str, after: &[&str]| json!({"id": id, "after": after, "rank": 0});
    for (items, words) in [
        (json!([one("a", &["b"]), one("b", &["a"])]), "a after b after a"),
        (json!([one("a", &["z"])]), "'z', which is not in the list"),
        (json!([one("a", &[]), one("a", &[])]), "two items have the key 'a'"),
    ] {
        let ran = ordered(&items).run_workflow_with(&["--input", &format!("items={items}")]);
        assert_eq!(ran.ended(), ("blocked", None, 7));
        assert!(ran.reason().contains(words), "{}", ran.reason());
    }
}

#[test]
fn a_step_waits_as_long_as_its_transition_says() {
    let flow = "
workflow: patient
agents: { worker: { contract: scene/step, prompt: Do it. } }
contracts: [contracts]
variables: { pause: { type: integer, initial: 1 } }
limits: { tries: { max: 3, then: done } }
start: work
states:
  work:
    agent: worker
    next:
      - { when: result.ok, go: done }
      - { go: work, counts: tries, wait: pause, set: { pause: pause * 2 } }
  done: { end: done }
";
    let not_yet = r#"text: '{"ok": false, "note": "not yet"}'"#;
    let project = WorkflowProject::new(flow, &replies(&[not_yet, GOOD]));
    let ran = project.run_workflow();
    assert_eq!(ran.ended(), ("done", None, 0));
    let events = project.command(&["show", "last", "--events"]).output().stdout;
    let events: Vec<Value> =
        events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let moved = events.iter().find(|event| event["kind"] == "moved").unwrap();
    let started = events.iter().rfind(|event| event["kind"] == "attempt-started").unwrap();
    let time = |event: &Value| event["at"].as_i64().unwrap();
    assert_eq!(moved["not_before"].as_i64().unwrap() - time(moved), 1000, "{moved}");
    assert!(time(started) >= moved["not_before"].as_i64().unwrap(), "{started}");
}

#[test]
fn a_result_is_held_to_the_rules_of_its_step() {
    let flow = "
workflow: ruled
agents: { worker: { contract: scene/step, prompt: Do it. } }
contracts: [contracts]
inputs: { known: { type: [string], default: [one, two] } }
start: work
states:
  work:
    agent: worker
    with: { most: 2, share: 2.0 }
    rules:
      - { id: known, check: \"!has(result.note) || result.note in known\", message: \"the note must be one of {{ known | join(', ') }}\", at: /note }
      - { id: few, check: \"size(known) <= most && share * 1.5 > 2.5\", message: too many }
    go: done
  done: { end: done }
";
    let said = |note: &str| format!(r#"text: '{{"ok": true, "note": "{note}"}}'"#);
    let project = WorkflowProject::new(flow, &replies(&[&said("three"), &said("two")]));
    let ran = project.run_workflow();
    assert_eq!(ran.ended(), ("done", None, 0), "repaired in the same session");
    let attempt = &ran.report["attempts"][0];
    assert_eq!(attempt["repairs_asked"], 1);
    assert_eq!(attempt["replies"][0]["status"], "rejected");
    let asked = project.prompt(&ran, "work_1.2");
    assert!(asked.contains("the note must be one of one, two"), "{asked}");

    let project =
        WorkflowProject::new(flow, &replies(&[&said("three"), &said("four"), &said("five")]));
    let ran = project.run_workflow();
    assert_eq!(ran.ended(), ("failed", Some("contract"), 1), "never repaired");
    let violation = &ran.report["attempts"][0]["violations"][0];
    assert_eq!(
        (violation["rule"].as_str(), violation["pointer"].as_str()),
        (Some("known"), Some("/note"))
    );

    let project = WorkflowProject::new(flow, &replies(&[said("one").as_str(); 3]));
    let ran = project.run_workflow_with(&["--input", r#"known=["one","two","three"]"#]);
    assert_eq!(
        ran.ended(),
        ("failed", Some("contract"), 1),
        "a rule may read what the state gives"
    );
}

#[test]
fn sub_workflows_show_each_of_their_transitions() {
    let flow = "
workflow: whole
agents: { worker: { contract: scene/step, prompt: \"Do {{ name }}.\" } }
contracts: [contracts]
inputs: { names: { type: [string], default: [a, b] } }
artifacts:
  - { path: all.md, template: \"{% for one in run.items %}{{ one.key }} {{ one.outcome }} {{ one.at }} {{ one.variables.round | default('-') }} {{ one.value.round | default('-') }}\\n{% endfor %}\" , when: size(run.items) > 0 }
start: all
states:
  all: { each: { in: names, as: name, key: name, run: one, with: { name: name }, failures: collect }, go: done }
  done: { end: done }
workflows:
  one:
    inputs: { name: string }
    variables: { round: { type: integer, initial: 0 } }
    result: { round: integer }
    artifacts:
      - { path: \"{{ name }}.log\", template: \"{{ run.from }} to {{ run.state }} in round {{ round }}\\n\", append: true }
      - { path: all.log, template: \"{{ run.state }}\\n\", append: true }
      - { path: \"{{ name }}.bad\", template: \"{{ run.reason }}\\n\", when: run.state == 'bad' }
    start: work
    states:
      work: { agent: worker, next: [{ when: result.ok, set: { round: round + 1 }, go: route }, { go: bad, reason: result.note }] }
      route: { go: good }
      good: { end: done, result: \"{'round': round}\" }
      bad: { end: blocked, result: \"{'round': 7}\" }
";
    let bad = r#"text: '{"ok": false, "note": "it broke"}'"#;
    let peeks = "exec: 'cp all.md seen.md'";
    let project = WorkflowProject::new(flow, &replies(&[GOOD, &format!("{peeks}, {bad}")]));
    assert_eq!(project.run_workflow().ended(), ("done", None, 0));
    assert_eq!(project.read("a.log"), "work to route in round 1\nroute to good in round 1\n");
    assert_eq!(project.read("b.log"), "work to bad in round 0\n");
    assert_eq!(project.read("b.bad"), "it broke\n");
    assert_eq!(project.read("all.log"), "route\ngood\nbad\n", "lines of all of them, each once");
    assert!(!project.path("a.bad").exists(), "only where its condition holds");
    assert_eq!(
        project.read("seen.md"),
        "a done  - 1\nb running work 0 -\n",
        "as the second agent saw it"
    );
}

#[test]
fn what_a_step_changed_is_unknown_if_the_list_was_cut() {
    let flow = "
workflow: many
agents: { worker: { contract: scene/step, prompt: Do it. } }
contracts: [contracts]
variables: { known: boolean? }
start: work
states:
  work: { agent: worker, next: [{ set: { known: has(run.step_changed) }, go: done }] }
  done: { end: done }
";
    let said = r#"exec: "mkdir d; cd d; seq 10001 | xargs touch", text: '{"ok": true}'"#;
    let project = WorkflowProject::new(flow, &replies(&[said]));
    project.git(&["init", "-q"]);
    let ran = project.run_workflow();
    assert_eq!(ran.report["attempts"][0]["changed"]["total"], 10_001);
    assert_eq!(ran.report["variables"]["known"], json!(false));
}

#[test]
fn a_run_knows_the_time_where_it_began_and_what_its_agents_changed() {
    let flow = "
workflow: aware
agents: { worker: { contract: scene/step, prompt: \"From {{ run.base }}: {{ run.changed | join(' ') }}.\" } }
contracts: [contracts]
variables: { at: string?, base: string?, changed: { type: [string], initial: [] }, steps: { type: [string], initial: [] } }
start: work
states:
  work: { agent: worker, next: [{ set: { steps: &step \"steps + [has(run.step_changed) ? run.step_changed.join(' ') : 'unknown']\" }, go: again }] }
  again: { agent: worker, next: [{ set: { at: run.now, base: run.base, changed: run.changed, steps: *step }, go: idle }] }
  idle: { agent: worker, next: [{ set: { steps: *step }, go: pause }] }
  pause: { next: [{ set: { steps: *step }, go: done }] }
  done: { end: done }
";
    let writes = |path: &str| format!(r#"writes: {{ {path}: x }}, text: '{{"ok": true}}'"#);
    // The second step is tried twice, and all that it changed counts.
    let said = [&writes("src/a.rs"), "writes: { b.md: x }, fail: timeout", GOOD, GOOD];
    let project = WorkflowProject::new(flow, &replies(&said));
    let git = |arguments: &[&str]| project.git(arguments).trim().to_owned();
    git(&["init", "-q"]);
    git(&["commit", "-q", "--allow-empty", "-m", "begin"]);
    let ran = project.run_workflow();
    let variables = &ran.report["variables"];
    assert_eq!(variables["base"].as_str().unwrap(), git(&["rev-parse", "HEAD"]));
    assert_eq!(variables["changed"], json!(["b.md", "src/a.rs"]));
    // Where no agent works, nothing is known.
    assert_eq!(variables["steps"], json!(["src/a.rs", "b.md", "", "unknown"]));
    assert!(variables["at"].as_str().unwrap().parse::<jiff::Timestamp>().is_ok());
    assert!(project.prompt(&ran, "again_1.1").contains(": src/a.rs."));

    let outside = WorkflowProject::new(flow, &replies(&[GOOD, GOOD, GOOD])).run_workflow();
    assert_eq!(outside.report["variables"]["base"], "");
}

#[test]
fn an_agent_that_only_repeats_its_prompt_says_nothing() {
    let flow = "
workflow: echo
agents: { worker: { contract: execution-loop/qa, prompt: Look at it. } }
start: work
states:
  work: { agent: worker, go: done }
  done: { end: done }
";
    let project = WorkflowProject::new(flow, "replies: []");
    let echo = ["run", "flow.yaml", "--format", "json", "--agent", "command:cat"];
    let ran = project.run_json(&echo);
    assert_eq!(
        ran.ended(),
        ("failed", Some("contract"), 1),
        "the example in the prompt is no result"
    );
    assert_eq!(ran.report["attempts"][0]["replies"][0]["status"], "absent");
    // What comes behind the echo counts.
    let answers = r#"cat; echo '{"dod_achieved": true, "checks": []}'"#;
    project.write("agent.sh", answers);
    let ran = project.run_json(&[
        "run",
        "flow.yaml",
        "--format",
        "json",
        "--agent",
        "command:sh agent.sh",
    ]);
    assert_eq!(ran.ended(), ("done", None, 0));
    assert_eq!(ran.report["attempts"][0]["repairs_asked"], 0);
}

#[test]
fn a_wait_holds_back_looking_for_what_a_step_needs() {
    let flow = "
workflow: polling
agents: { worker: { contract: scene/step, prompt: Do it. } }
contracts: [contracts]
limits: { looks: { max: 3, then: late } }
start: work
states:
  work: { agent: worker, needs: [ready.txt], on: { blocked: { go: work, counts: looks, wait: 1s } }, go: done }
  done: { end: done }
  late: { end: exhausted }
";
    let project = WorkflowProject::new(flow, &replies(&[GOOD]));
    let path = project.path("ready.txt");
    let writer = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(400));
        std::fs::write(path, "now").unwrap();
    });
    assert_eq!(project.run_workflow().ended(), ("done", None, 0), "it came while the step waited");
    writer.join().unwrap();
}

#[test]
fn a_limit_that_is_used_up_leads_where_the_workflow_says() {
    let flow = "
workflow: drafts
agents: { worker: { contract: scene/step, prompt: Do it. } }
contracts: [contracts]
variables: { wrong: string? }
limits: { drafts: { max: 2, then: flagged } }
start: work
states:
  work: { agent: worker, go: look }
  look:
    read: draft.json
    contract: scene/step
    on: { contract: { go: work, counts: drafts, set: { wrong: problem.reason }, reason: problem.reason } }
    go: done
  done: { end: done }
  flagged: { end: blocked }
";
    let same = r#"writes: { draft.json: '{"ok": 3}' }, text: '{"ok": true}'"#;
    let ran = WorkflowProject::new(flow, &replies(&[same, same, same])).run_workflow();
    assert_eq!(ran.ended(), ("blocked", None, 7), "{}", ran.reason());
    assert!(ran.reason().contains("draft.json"), "{}", ran.reason());
}

#[test]
fn paths_are_protected_that_only_the_run_knows() {
    let flow = "
workflow: guarded
agents: { worker: { contract: scene/step, prompt: Do it. } }
contracts: [contracts]
inputs: { mine: string }
protect: [\"work/**\", \"!work/{{ mine }}/**\", \"work/{{ mine }}/status.json\"]
start: work
states:
  work: { agent: worker, next: [{ when: claims.protected.verdict == 'refuted', go: caught, reason: claims.protected.reason }, { go: done }] }
  caught: { end: blocked }
  done: { end: done }
";
    // A value stands for itself, and one that is empty makes no exception.
    for mine in ["*", "''"] {
        let writes = r#"writes: { work/old/a.md: x }, text: '{"ok": true}'"#;
        let ran = WorkflowProject::new(flow, &replies(&[writes]))
            .run_workflow_with(&["--input", &format!("mine={}", mine.trim_matches('\''))]);
        assert_eq!(ran.report["outcome"], "blocked", "{mine}: {}", ran.reason());
    }
    for (path, outcome) in [
        ("work/new/a.md", "done"),
        ("work/old/a.md", "blocked"),
        ("work/new/status.json", "blocked"),
        ("elsewhere.md", "done"),
    ] {
        let project = WorkflowProject::new(
            flow,
            &replies(&[&format!(r#"writes: {{ {path}: x }}, text: '{{"ok": true}}'"#)]),
        );
        let ran = project.run_workflow_with(&["--input", "mine=new"]);
        assert_eq!(ran.report["outcome"], outcome, "{path}: {}", ran.reason());
        assert_eq!(project.path(path).exists(), outcome == "done", "{path} is put back");
    }
}
