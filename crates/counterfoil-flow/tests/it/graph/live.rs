//! The diagram as a part of a page, with the marks of a run, and its twin, the table of states.

use super::{ODD, RELEASE, checked, deliver, many, well_formed};
use counterfoil_flow::graph::{
    Mark, MarkStatus, Marks, StateRow, StateTarget, live_svg, states_table,
};
use counterfoil_flow::{Machine, Workflow};
use regex::Regex;
use std::collections::BTreeSet;

/// A workflow with a node of every shape.
const SMALL: &str = r#"
workflow: small
summary: Run, ask, & "ship"
limits: { rounds: { max: 9, then: worn-out } }
start: run
states:
  run:
    command: [make]
    on: { timeout: give-up }
    next: [{ when: result.ok, go: look }, { go: run, counts: rounds }]
  look: { ask: { question: "Ship?" }, go: pick }
  pick: { next: [{ when: run.iteration > 1, go: ship }, { go: done }] }
  ship: { run: out, go: done }
  done: { end: done }
  give-up: { end: failed }
  worn-out: { end: exhausted }
workflows:
  out: { start: tag, states: { tag: { command: [git, tag], go: end }, end: { end: done } } }
"#;

fn marks<const N: usize>(marks: [(&str, &str, Mark); N]) -> Marks {
    let named = marks.map(|(machine, state, mark)| ((machine.to_owned(), state.to_owned()), mark));
    Marks { states: named.into() }
}

fn mark(visits: u32, status: MarkStatus) -> Mark {
    Mark { visits, status: Some(status), ..Mark::default() }
}

/// A mark of each kind, and one of a state that does not exist.
fn small_marks() -> Marks {
    let run = Mark {
        note: Some("47/50 left".to_owned()),
        href: Some("/runs/1?state=run&tab=log#end".to_owned()),
        ..mark(3, MarkStatus::Failed)
    };
    marks([
        ("", "run", run),
        ("", "look", mark(1, MarkStatus::Waiting)),
        ("", "pick", mark(1, MarkStatus::Done)),
        ("", "ship", mark(12, MarkStatus::Current)),
        ("", "missing", mark(9, MarkStatus::Current)),
        ("out", "tag", mark(2, MarkStatus::Refuted)),
    ])
}

/// A mark with every field on every state.
fn all_marked(workflow: &Workflow, text: &str) -> Marks {
    let mut marks = Marks::default();
    for machine in machines(workflow) {
        for name in &machine.order {
            let mark = Mark {
                note: Some(text.to_owned()),
                href: Some(format!("/state/{text}")),
                ..mark(u32::MAX, MarkStatus::Current)
            };
            marks.states.insert((machine.name.clone(), name.clone()), mark);
        }
    }
    marks
}

fn machines(workflow: &Workflow) -> impl Iterator<Item = &Machine> {
    std::iter::once(&workflow.main).chain(workflow.machines.values())
}

/// Fails unless the element is well-formed, and has neither styles nor code, and a class on
/// everything that is drawn.
fn clean(svg: &str) {
    well_formed(svg);
    assert!(svg.starts_with("<svg "), "{svg}");
    let undrawn = ["title", "desc", "defs", "marker"];
    for found in Regex::new("<([A-Za-z]+)([^<>]*)>").unwrap().captures_iter(svg) {
        let (name, attributes) = (&found[1], &found[2]);
        assert!(!["style", "script", "foreignObject", "image", "use"].contains(&name), "{name}");
        assert!(undrawn.contains(&name) || attributes.contains(" class=\"cf-"), "{}", &found[0]);
    }
    // Quoted values cannot contain quotation marks: what is outside of them are names.
    for found in Regex::new(r#" ([A-Za-z:-]+)="[^"<>]*""#).unwrap().captures_iter(svg) {
        assert!(!found[1].starts_with("on") && &found[1] != "style", "{}", &found[0]);
    }
}

fn ids(svg: &str) -> BTreeSet<String> {
    let id = Regex::new(r#" id="([^"]*)""#).unwrap();
    id.captures_iter(svg).map(|found| found[1].to_owned()).collect()
}

/// The group of a state's node, with the link around it.
fn node<'a>(svg: &'a str, id: &str) -> &'a str {
    let found = svg.lines().find(|line| line.contains(&format!(" id=\"{id}\" ")));
    found.unwrap_or_else(|| panic!("no node {id}\n{svg}"))
}

fn row<'a>(rows: &'a [StateRow], machine: &str, state: &str) -> &'a StateRow {
    rows.iter().find(|row| row.machine == machine && row.state == state).unwrap()
}

#[test]
fn small_as_part_of_a_page() {
    let svg = live_svg(&checked(SMALL), &small_marks(), "run-1");
    clean(&svg);
    insta::assert_snapshot!(svg);
}

#[test]
fn there_are_no_styles_and_no_code() {
    for workflow in [deliver(), checked(RELEASE), checked(SMALL), many(40, 7919)] {
        for marks in [Marks::default(), all_marked(&workflow, "47/50")] {
            let svg = live_svg(&workflow, &marks, "g");
            clean(&svg);
            for part in [" style=", "<style", "<script", "<?xml"] {
                assert!(!svg.contains(part), "{part}\n{svg}");
            }
            assert_eq!(svg, live_svg(&workflow, &marks, "g"), "the same drawing each time");
        }
    }
}

#[test]
fn the_element_has_a_name_and_a_size() {
    let svg = live_svg(&checked(SMALL), &Marks::default(), "g");
    let first = svg.lines().next().unwrap();
    for part in [
        " class=\"cf-graph\"",
        " role=\"img\"",
        " aria-labelledby=\"g-title\"",
        " viewBox=\"0 0 480 862\"",
    ] {
        assert!(first.contains(part), "{part}: {first}");
    }
    assert!(svg.contains("<title id=\"g-title\">small</title>"));
}

#[test]
fn marks_appear() {
    let svg = live_svg(&checked(SMALL), &small_marks(), "g");
    let run = node(&svg, "g-s_run");
    assert!(
        run.starts_with(
            "<a id=\"g-link-s_run\" class=\"cf-link\" href=\"/runs/1?state=run&amp;tab=log#end\">\
             <g id=\"g-s_run\" class=\"cf-node cf-command cf-visited cf-failed\">\
             <title>run, failed, 3 visits, 47/50 left</title>"
        ),
        "{run}"
    );
    assert!(run.contains(">✗ failed, 47/50 left</text>") && run.contains(">×3</text>"), "{run}");
    assert!(run.ends_with("</g></g></a>"), "{run}");
    let look = node(&svg, "g-s_look");
    assert!(look.contains("\"cf-node cf-question cf-visited cf-waiting\""), "{look}");
    assert!(look.contains("<title>look, waiting, 1 visit</title>"), "{look}");
    assert!(!look.contains("cf-badge") && !look.contains("<a "), "{look}");
    assert!(node(&svg, "g-s_ship").contains("cf-nested cf-visited cf-current\""));
    assert!(node(&svg, "g-in_out_tag").contains("cf-visited cf-refuted\""));
    assert!(node(&svg, "g-s_done").contains("class=\"cf-node cf-end cf-end-done\""));
    assert!(node(&svg, "g-s_start").contains("class=\"cf-node cf-start\""));
    for (id, sign) in [
        ("g-s_look", "? waiting"),
        ("g-s_pick", "✓ done"),
        ("g-s_ship", "● now"),
        ("g-in_out_tag", "✗ refuted"),
    ] {
        assert!(node(&svg, id).contains(&format!(">{sign}</text>")), "{id}: {svg}");
    }
    assert_eq!(svg.matches("cf-current").count(), 1);
    assert_eq!(svg.matches("class=\"cf-badge\"").count(), 3);
}

#[test]
fn what_was_cancelled_says_so_and_not_that_it_failed() {
    let noted = Mark { note: Some("1/2".to_owned()), ..mark(2, MarkStatus::Cancelled) };
    let marks = marks([("", "run", mark(1, MarkStatus::Cancelled)), ("", "ship", noted)]);
    let svg = live_svg(&checked(SMALL), &marks, "g");
    clean(&svg);
    for (id, note) in [("g-s_run", ">– cancelled</text>"), ("g-s_ship", ">– cancelled, 1/2</text>")]
    {
        let node = node(&svg, id);
        assert!(node.contains("cf-visited cf-cancelled\"") && node.contains(note), "{node}");
        assert!(!node.contains("cf-failed"), "{node}");
    }
    assert!(node(&svg, "g-s_run").contains("<title>run, cancelled, 1 visit</title>"));
    let rows = states_table(&checked(SMALL), &marks);
    assert_eq!(row(&rows, "", "ship").status, Some(MarkStatus::Cancelled));
    assert_eq!(row(&rows, "", "ship").note.as_deref(), Some("1/2"));
}

#[test]
fn a_state_that_was_not_entered_has_no_mark() {
    let (workflow, unvisited) = (checked(SMALL), marks([("", "run", Mark::default())]));
    let svg = live_svg(&workflow, &unvisited, "g");
    assert_eq!(svg, live_svg(&workflow, &Marks::default(), "g"));
    assert!(!svg.contains("cf-visited") && !svg.contains("cf-badge"));
}

#[test]
fn the_identifiers_of_two_diagrams_differ() {
    let workflow = checked(RELEASE);
    let [one, other] = ["a", "a-s"].map(|prefix| live_svg(&workflow, &Marks::default(), prefix));
    assert_eq!(ids(&one).len(), ids(&other).len());
    assert!(ids(&one).is_disjoint(&ids(&other)));
    assert!(ids(&one).iter().all(|id| id.starts_with("a-")));
    for (svg, head) in [(&one, "a-head"), (&other, "a-s-head")] {
        assert!(ids(svg).contains(head));
        let arrows = svg.matches("marker-end=").count();
        assert_eq!(svg.matches(&format!("marker-end=\"url(#{head})\"")).count(), arrows);
        assert!(arrows > 0);
    }
    let odd = live_svg(&workflow, &Marks::default(), "a\"><b)é ");
    clean(&odd);
    assert!(ids(&odd).contains("a___b___-head"), "{odd}");
}

#[test]
fn hostile_texts_are_escaped() {
    let breakout = "\"><script>alert(1)</script><a onload='x' style=\"y\">&";
    let hostile = &format!("{breakout}\u{7}\u{202e}\u{ffff}");
    let mut workflow = checked(ODD);
    // Names that the checker refuses are escaped too.
    workflow.name.clone_from(hostile);
    workflow.summary.clone_from(hostile);
    let state = workflow.main.states.remove("a-b").unwrap();
    workflow.main.states.insert(hostile.clone(), state);
    for name in workflow.main.order.iter_mut().filter(|name| name.as_str() == "a-b") {
        name.clone_from(hostile);
    }
    let mut machine = workflow.machines.remove("main").unwrap();
    machine.name.clone_from(hostile);
    workflow.machines.insert(hostile.clone(), machine);
    for text in [hostile.as_str(), breakout] {
        let svg = live_svg(&workflow, &all_marked(&workflow, text), hostile);
        clean(&svg);
        assert!(!svg.contains("<script") && !svg.contains("<a onload"), "{svg}");
        assert!(!svg.contains(['\u{7}', '\u{202e}', '\u{ffff}']));
        assert!(svg.contains(">&quot;&gt;&lt;script&gt;alert(1)&lt;/script&gt;"), "{svg}");
        // A control character is not part of any address.
        let link = " href=\"/state/&quot;&gt;&lt;script&gt;";
        assert_eq!(svg.contains(link), text == breakout, "{svg}");
    }
    // The table has the names as they are, as the keys of the marks.
    let rows = states_table(&workflow, &Marks::default());
    assert!(rows.iter().any(|row| row.state == *hostile));
    assert!(rows.iter().any(|row| row.machine == *hostile));
}

#[test]
fn an_address_that_could_be_code_is_no_link() {
    let workflow = checked(SMALL);
    for (href, safe) in [
        ("/runs/1", true),
        ("?run=1", true),
        ("#a:b", true),
        ("runs/a:b", true),
        ("HTTPS://example.com/x", true),
        ("http://127.0.0.1:80/", true),
        ("javascript:alert(1)", false),
        (" JavaScript:alert(1)", false),
        ("java\nscript:alert(1)", false),
        ("\u{1}javascript:alert(1)", false),
        ("data:text/html,x", false),
        ("vbscript:x", false),
    ] {
        let mark = Mark { href: Some(href.to_owned()), ..Mark::default() };
        let marks = marks([("", "look", mark)]);
        assert_eq!(live_svg(&workflow, &marks, "g").contains("<a "), safe, "{href}");
        let rows = states_table(&workflow, &marks);
        let expected = safe.then(|| href.to_owned());
        assert_eq!(row(&rows, "", "look").href, expected, "{href}");
    }
}

#[test]
fn every_state_is_in_the_table_in_the_order_of_the_file() {
    for workflow in [deliver(), checked(RELEASE), checked(SMALL), checked(ODD), many(500, 7919)] {
        let rows = states_table(&workflow, &Marks::default());
        let found: Vec<(&str, &str)> =
            rows.iter().map(|row| (row.machine.as_str(), row.state.as_str())).collect();
        let expected: Vec<(&str, &str)> = machines(&workflow)
            .flat_map(|machine| {
                machine.order.iter().map(|state| (machine.name.as_str(), state.as_str()))
            })
            .collect();
        assert_eq!(found, expected);
        let count: usize = machines(&workflow).map(|machine| machine.states.len()).sum();
        assert_eq!(rows.len(), count);
        let firsts = rows.iter().filter(|row| row.first).count();
        assert_eq!(firsts, 1 + workflow.machines.len(), "one for each machine");
        for row in &rows {
            assert_eq!(row.targets.is_empty(), row.kind == "end", "{row:?}");
        }
    }
}

#[test]
fn the_table_tells_what_the_diagram_shows() {
    let rows = states_table(&checked(SMALL), &small_marks());
    let target = |state: &str, labels: &[&str], failure| StateTarget {
        state: state.to_owned(),
        labels: labels.iter().map(|label| (*label).to_owned()).collect(),
        failure,
    };
    assert_eq!(
        rows[0],
        StateRow {
            machine: String::new(),
            state: "run".to_owned(),
            first: true,
            kind: "command",
            agent: None,
            details: vec!["$ make".to_owned()],
            targets: vec![
                target("look", &["result.ok"], false),
                target("run", &["otherwise, rounds ≤ 9"], false),
                target("give-up", &["timeout"], true),
                target("worn-out", &["rounds used up"], false),
            ],
            status: Some(MarkStatus::Failed),
            visits: 3,
            note: Some("47/50 left".to_owned()),
            href: Some("/runs/1?state=run&tab=log#end".to_owned()),
        }
    );
    let kinds: Vec<&str> = rows.iter().map(|row| row.kind).collect();
    assert_eq!(
        kinds,
        ["command", "question", "branch", "sub-workflow", "end", "end", "end", "command", "end"]
    );
    assert_eq!(row(&rows, "out", "tag").status, Some(MarkStatus::Refuted));
    assert_eq!(row(&rows, "", "give-up").visits, 0);

    let rows = states_table(&checked(RELEASE), &Marks::default());
    assert_eq!(row(&rows, "", "plan").agent.as_deref(), Some("planner"));
    assert_eq!(row(&rows, "", "plan").details, ["planner", "rounds ≤ max_rounds"]);
    assert_eq!(row(&rows, "", "build").kind, "fan-out");
    assert_eq!(row(&rows, "", "build").agent, None);
    assert_eq!(row(&rows, "one-task", "review").agent.as_deref(), Some("reviewer"));
}
