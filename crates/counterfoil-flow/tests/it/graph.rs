//! Diagrams of workflows: their content, and that every valid workflow can be drawn.
#![allow(clippy::unwrap_used)] // Clippy does not recognise test helpers as tests.

mod live;

use counterfoil_flow::{Workflow, check, graph};
use regex::Regex;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// A workflow with every feature: questions, commands, a fan-out, nested sub-workflows, computed
/// targets, failures, limits.
const RELEASE: &str = r#"
workflow: release
summary: Plan, build each task, ask <somebody> & "ship" it
inputs:
  goal: string
  max_rounds: { type: integer, default: 3 }
variables:
  tasks: { type: [{ id: string, note?: string }], initial: [] }
agents:
  planner:  { contract: acme/plan, prompt: "Plan {{ goal }}" }
  builder:  { contract: acme/step, prompt: "Build {{ task.id }}" }
  reviewer: { contract: acme/step, prompt: "Review", access: read-only }
contracts: [contracts]
limits:
  rounds: { max: max_rounds, then: worn-out }
  tries:  { max: 2, then: give-up }
start: plan
states:
  plan:
    agent: planner
    counts: rounds
    on:
      contract: { go: plan, counts: tries }
      timeout: give-up
      any: give-up
    next:
      - { when: size(result.tasks) == 0, go: done }
      - { set: { tasks: result.tasks }, go: build }
  build:
    each: { in: tasks, as: task, key: task.id, parallel: 4, failures: collect, run: one-task, with: { task: task } }
    next:
      - when: size(result.failed) > 0 && result.failed.exists(f, f.reason != "" && f.key < "zzz")
        go: plan
      - { go: test }
  test:
    command: [cargo, test, --workspace, --all-targets, "--message-format=json", "{{ goal }}"]
    on: { timeout: { go: test, counts: tries } }
    next:
      - { when: result.ok, go: approve, resets: [tries] }
      - { go: plan }
  approve:
    ask: { question: "Ship it?", choices: [ship, again, stop] }
    next:
      - { when: result.answer == "ship", go: ship }
      - { when: result.answer == "again", go: plan }
      - { go: give-up }
  ship:
    run: shipping
    on: { blocked: give-up }
    go: done
  done:     { end: done }
  give-up:  { end: failed }
  worn-out: { end: exhausted }
workflows:
  one-task:
    inputs: { task: { id: string, note?: string } }
    limits: { fixes: { max: 3, per: task.id, then: stuck } }
    start: work
    states:
      work:
        agent: builder
        next: [{ goto: result.next, counts: fixes }]
      review:
        agent: reviewer
        with: {}
        next: [{ goto: result.next, counts: fixes }]
      wait:  { run: shipping, go: fine }
      fine:  { end: done }
      stuck: { end: blocked }
  shipping:
    start: which
    states:
      which:
        next:
          - { when: run.iteration > 1, go: tell }
          - { go: tag }
      tag:  { command: [git, tag, v1], go: tell }
      tell: { asks: { note: { question: "What is new?" }, more: { question: "More?", optional: true } }, go: out }
      out:  { end: done }
"#;

const CONTRACTS: [(&str, &str); 2] = [
    (
        "contracts/plan.yaml",
        "contract: acme/plan\nversion: 1\nfields: { tasks: [{ id: string, note?: string }] }\nexamples: [{ tasks: [] }]\n",
    ),
    (
        "contracts/step.yaml",
        "contract: acme/step\nversion: 1\nfields: { next: work | review | wait | fine }\nexamples: [{ next: fine }]\n",
    ),
];

fn checked(text: &str) -> Workflow {
    let mut files: BTreeMap<String, String> =
        BTreeMap::from([("w.yaml".to_owned(), text.to_owned())]);
    files.extend(CONTRACTS.map(|(path, text)| (path.to_owned(), text.to_owned())));
    check("w.yaml", &files, &counterfoil_packs::registry()).unwrap()
}

fn deliver() -> Workflow {
    let files = BTreeMap::from(
        [
            ("deliver.yaml", include_str!("../../../../examples/deliver/deliver.yaml")),
            (
                "prompts/implementer.md",
                include_str!("../../../../examples/deliver/prompts/implementer.md"),
            ),
            ("prompts/qa.md", include_str!("../../../../examples/deliver/prompts/qa.md")),
            ("contracts/qa.yaml", include_str!("../../../../examples/deliver/contracts/qa.yaml")),
        ]
        .map(|(path, text)| (path.to_owned(), text.to_owned())),
    );
    check("deliver.yaml", &files, &counterfoil_packs::registry()).unwrap()
}

#[test]
fn deliver_as_mermaid() {
    insta::assert_snapshot!(graph::mermaid(&deliver()));
}

#[test]
fn deliver_as_dot() {
    insta::assert_snapshot!(graph::dot(&deliver()));
}

#[test]
fn deliver_as_svg() {
    insta::assert_snapshot!(graph::svg(&deliver()));
}

#[test]
fn release_as_mermaid() {
    insta::assert_snapshot!(graph::mermaid(&checked(RELEASE)));
}

#[test]
fn release_as_dot() {
    insta::assert_snapshot!(graph::dot(&checked(RELEASE)));
}

#[test]
fn release_as_svg() {
    insta::assert_snapshot!(graph::svg(&checked(RELEASE)));
}

#[test]
fn shapes_and_labels_show_the_steps() {
    let drawn = graph::mermaid(&checked(RELEASE));
    for line in [
        "s_plan(\"plan<br/>planner<br/>rounds ≤ max_rounds\")",
        "s_approve{{\"approve<br/>Ship it?\"}}",
        "s_done([\"done\"]):::done",
        "s_plan -.->|\"timeout<br/>any\"| s_give_up",
        "s_plan -->|\"rounds used up\"| s_worn_out",
        "s_plan -.->|\"contract, tries ≤ 2\"| s_plan",
        "s_approve -->|\"result.answer == #quot;ship#quot;\"| s_ship",
        "s_build -->|\"size(result.failed) #gt; 0 #amp;#amp; result.faile…\"| s_plan",
        "s_build ==>|\"runs for each\"| in_one_task",
        "subgraph in_one_task[\"one-task\"]",
    ] {
        assert!(drawn.lines().any(|drawn| drawn.trim() == line), "not there: {line}\n{drawn}");
    }
}

/// Names that are keywords of Mermaid or Graphviz, names that differ only in characters that are not
/// allowed in identifiers, and texts with every special character of the three formats.
const ODD: &str = r#"
workflow: end
summary: "<svg onload=x> & ]]> \" ' \u0007 日本語 🦀 \u202e"
start: end
states:
  end: { go: a-b }
  a-b: { ask: { question: "a \"b\" <c> & `d` \\n #e; *f* _g_ \u0001 日本語 🦀\n---\n$$x$$" }, go: a_b }
  a_b: { command: [echo, "</text><script>&amp;", "%%", "日本語日本語日本語日本語日本語日本語日本語日本語日本語"], go: a/b }
  a/b: { next: [{ when: 'run.workflow == "<&>\"\\]]>"', go: graph }, { go: subgraph }] }
  graph: { end: failed }
  subgraph: { run: main, go: node }
  node: { end: done }
workflows:
  main: { start: start, states: { start: { end: done } } }
"#;

#[test]
fn built_in_steps_are_drawn_like_commands() {
    let drawn = graph::mermaid(&checked(
        "
workflow: keep
inputs: { slug: string }
start: load
states:
  load: { read: \"plan/{{ slug }}.yaml\", on: { blocked: stuck }, go: look }
  look: { changes: { since: slug }, go: again }
  again: { changes: {}, go: keep }
  keep:
    commit: { message: \"feat({{ slug }}): it\\n\\nAnd why.\" }
    next: [{ when: result.ok, go: done }, { go: stuck }]
  done: { end: done }
  stuck: { end: blocked }
",
    ));
    for line in [
        "s_load[\"load<br/>read plan/{{ slug }}.yaml\"]",
        "s_look[\"look<br/>changes since slug\"]",
        "s_again[\"again<br/>changes since run.base\"]",
        "s_keep[\"keep<br/>commit feat({{ slug }}): it\"]",
        "s_load -.->|\"blocked\"| s_stuck",
    ] {
        assert!(drawn.contains(line), "{line}\n{drawn}");
    }
}

#[test]
fn special_names_and_texts_are_escaped() {
    let odd = checked(ODD);
    let svg = graph::svg(&odd);
    well_formed(&svg);
    assert!(svg.contains("<title>end</title>"));
    assert!(
        svg.contains(
            "&lt;svg onload=x&gt; &amp; ]]&gt; &quot; ' \\u{7} 日本語 🦀 \\u{202e}</desc>"
        ),
        "{svg}"
    );
    insta::assert_snapshot!("odd_as_mermaid", graph::mermaid(&odd));
    insta::assert_snapshot!("odd_as_dot", graph::dot(&odd));
}

#[test]
fn an_image_is_well_formed_and_has_a_title() {
    for (workflow, name) in [(deliver(), "deliver"), (checked(RELEASE), "release")] {
        let svg = graph::svg(&workflow);
        well_formed(&svg);
        assert!(svg.contains(&format!("<title>{name}</title>")));
        assert_eq!(svg, graph::svg(&workflow), "the same drawing each time");
    }
}

/// A state with two kinds of transitions to itself.
const LOOPS: &str = r"
workflow: loops
limits: { rounds: { max: 9, then: done } }
start: a
states:
  a:
    command: [run]
    on: { timeout: { go: a, counts: rounds } }
    next: [{ when: result.ok, go: b }, { go: a, counts: rounds }]
  b: { command: [run], go: c }
  c: { command: [run], go: d }
  d: { command: [run], go: done }
  done: { end: done }
";

#[test]
fn boxes_and_labels_do_not_overlap() {
    for workflow in [deliver(), checked(RELEASE), many(40, 7919), dense(12), checked(LOOPS)] {
        let svg = graph::svg(&workflow);
        let boxes = boxes(&svg);
        assert!(boxes.len() >= 8, "{svg}");
        for (at, one) in boxes.iter().enumerate() {
            for other in &boxes[at + 1..] {
                let apart = one[0] + one[2] <= other[0] + 1.0
                    || other[0] + other[2] <= one[0] + 1.0
                    || one[1] + one[3] <= other[1] + 1.0
                    || other[1] + other[3] <= one[1] + 1.0;
                assert!(apart, "{one:?} overlaps {other:?}\n{svg}");
            }
        }
    }
}

#[test]
fn five_hundred_states_are_drawn_in_bounded_time() {
    // A long chain whose states also go to themselves or far back, a star whose centre goes to all,
    // and a complete graph.
    for (workflow, count) in
        [(many(500, 1), 500), (many(500, 7919), 500), (star(500), 500), (dense(60), 60)]
    {
        let begin = Instant::now();
        let svg = graph::svg(&workflow);
        let (mermaid, dot) = (graph::mermaid(&workflow), graph::dot(&workflow));
        let took = begin.elapsed();
        well_formed(&svg);
        assert!(svg.matches("<g id=").count() >= count);
        let last = format!("s_s{}", count - 1);
        assert!(mermaid.contains(&last) && dot.contains(&last));
        // Twenty times the duration of the slowest in a development build: the test is for growth.
        assert!(took < Duration::from_secs(20), "{took:?}");
    }
}

/// A chain of states, each with a transition to an earlier one and one to a failed end.
fn many(count: usize, step: usize) -> Workflow {
    let mut text = String::from(
        "workflow: many\nlimits: { rounds: { max: 9, then: worn-out } }\nstart: s0\nstates:\n",
    );
    for at in 0..count {
        let next = if at + 1 < count { format!("s{}", at + 1) } else { "done".to_owned() };
        let back = at * step % (at + 1);
        text.push_str(&format!(
            "  s{at}:\n    command: [run, '{at}']\n    on: {{ timeout: give-up }}\n    next:\n\
             \x20     - {{ when: result.ok, go: {next} }}\n      - {{ go: s{back}, counts: rounds }}\n"
        ));
    }
    text.push_str(
        "  done: { end: done }\n  give-up: { end: failed }\n  worn-out: { end: exhausted }\n",
    );
    checked(&text)
}

/// States each of which may go to any other.
fn dense(count: usize) -> Workflow {
    let names: Vec<String> = (0..count).map(|at| format!("s{at}")).collect();
    let mut text = format!(
        "workflow: dense\nlimits: {{ rounds: {{ max: 9, then: worn-out }} }}\n\
         variables: {{ to: {{ type: {}, initial: s0 }} }}\nstart: s0\nstates:\n",
        names.join(" | ")
    );
    for name in &names {
        text.push_str(&format!(
            "  {name}: {{ command: [run], next: [{{ goto: to, counts: rounds }}] }}\n"
        ));
    }
    checked(&format!("{text}  worn-out: {{ end: exhausted }}\n"))
}

/// One state that goes to all the others.
fn star(count: usize) -> Workflow {
    let mut text = String::from(
        "workflow: star\nstart: ask\nstates:\n  ask:\n    ask: { question: Where? }\n    next:\n",
    );
    let (mut ends, all) = (String::new(), 0..count);
    for at in all {
        text.push_str(&format!("      - {{ when: 'result.answer == \"{at}\"', go: s{at} }}\n"));
        ends.push_str(&format!("  s{at}: {{ end: done }}\n"));
    }
    checked(&format!("{text}      - {{ go: s0 }}\n{ends}"))
}

/// The box of every state and label: x, y, width, height. Boxes of clusters contain others, so they
/// are left out.
fn boxes(svg: &str) -> Vec<[f64; 4]> {
    let rect = Regex::new(
        r#"<rect class="(?:box|behind)" x="(\d+)" y="(\d+)" width="(\d+)" height="(\d+)""#,
    )
    .unwrap();
    rect.captures_iter(svg).map(|found| [1, 2, 3, 4].map(|at| found[at].parse().unwrap())).collect()
}

/// Fails unless the text is well-formed XML that consists of elements with quoted attributes and text.
fn well_formed(svg: &str) {
    let tag = Regex::new(r#"<(/?)([A-Za-z]+)((?: [A-Za-z:-]+="[^"<]*")*)(/?)>"#).unwrap();
    let code = Regex::new("&(?:amp|lt|gt|quot);").unwrap();
    let (mut open, mut at, mut ids) = (Vec::new(), 0, BTreeSet::new());
    for found in tag.captures_iter(svg) {
        let whole = found.get(0).unwrap();
        let between = &svg[at..whole.start()];
        assert!(
            !code.replace_all(between, "").contains(['<', '>', '&']),
            "not plain text: {between}"
        );
        assert!(
            !code.replace_all(&found[3], "").contains('&'),
            "not a plain attribute: {}",
            &found[3]
        );
        at = whole.end();
        assert!(
            at == svg.trim_end().len() || !open.is_empty() || found[1].is_empty(),
            "more than one root"
        );
        if &found[1] == "/" {
            assert_eq!(
                open.pop(),
                Some(found[2].to_owned()),
                "closed in the wrong order near {}",
                &svg[..at]
            );
        } else if found[4].is_empty() {
            open.push(found[2].to_owned());
        }
        if let Some(id) = found[3].split(" id=\"").nth(1) {
            assert!(ids.insert(id.split('"').next().map(str::to_owned)), "an id twice: {id}");
        }
    }
    assert!(open.is_empty() && svg[at..].trim().is_empty(), "not closed: {open:?}");
    assert!(svg.chars().all(|c| c == '\n' || !c.is_control()), "a character that XML cannot hold");
}
