//! Workflow files that are made to cost time or memory: each passes or is refused within a bound,
//! and the finding names the place.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use counterfoil_contract::{Registry, work};
use counterfoil_flow::{Rejected, Workflow, check};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

fn checked(text: &str) -> Result<Workflow, Rejected> {
    let files = BTreeMap::from([("workflow.yaml".to_owned(), text.to_owned())]);
    check("workflow.yaml", &files, &Registry::new())
}

/// A workflow with these top-level lines and the body of its first state.
fn one(top: &str, body: &str) -> String {
    format!("workflow: one\n{top}start: a\nstates:\n  a: {{ {body} }}\n  b: {{ end: done }}\n")
}

fn join(count: usize, between: &str, piece: impl Fn(usize) -> String) -> String {
    (0..count).map(piece).collect::<Vec<_>>().join(between)
}

fn lines(count: usize, line: impl Fn(usize) -> String) -> String {
    (0..count).fold(String::new(), |mut text, at| {
        writeln!(text, "{}", line(at)).unwrap();
        text
    })
}

/// A state machine of `n` states, each with the body that `body` writes.
fn machine(top: &str, n: usize, body: impl Fn(usize) -> String) -> String {
    let states = lines(n, |at| format!("  s{at}: {{ {} }}", body(at)));
    format!("workflow: many\n{top}start: s0\nstates:\n{states}  s{n}: {{ end: done }}\n")
}

type Shape = (&'static str, fn(usize) -> String);

/// The shapes, each by its number of parts.
const SHAPES: &[Shape] = &[
    ("states in a row", |n| machine("", n, |at| format!("go: s{}", at + 1))),
    ("states in one cycle", |n| {
        machine("limits: { r: { max: 3, then: s0 } }\n", n, |at| {
            format!("next: {{ go: s{}, counts: r }}", (at + 1) % n)
        })
    }),
    ("states to everywhere", |n| {
        let k = n.isqrt();
        machine("", k, |_| {
            format!(
                "ask: {{ question: q, choices: [{}] }}, next: [{}, {{ go: s{k} }}]",
                join(k, ", ", |c| format!("c{c}")),
                join(k, ", ", |to| format!("{{ when: \"result.answer == 'c{to}'\", go: s{to} }}"))
            )
        })
    }),
    ("transitions of one state", |n| {
        one(
            "",
            &format!(
                "command: [make], next: [{}, {{ go: b }}]",
                join(n, ", ", |at| format!("{{ when: result.exit_code == {at}, go: b }}"))
            ),
        )
    }),
    ("the same transition", |n| {
        one(
            "",
            &format!(
                "command: [make], next: [{}, {{ go: b }}]",
                join(n, ", ", |_| "{ when: result.ok, go: b }".into())
            ),
        )
    }),
    ("transitions with alternatives", |n| {
        one(
            "",
            &format!(
                "command: [make], next: [{}, {{ go: b }}]",
                join(n, ", ", |at| format!(
                    "{{ when: 'result.exit_code > {at} || result.ok && result.exit_code < {at}', go: b }}"
                ))
            ),
        )
    }),
    ("choices of a question", |n| {
        one(
            "",
            &format!(
                "ask: {{ question: q, choices: [{}] }}, go: b",
                join(n, ", ", |at| format!("c{at}"))
            ),
        )
    }),
    ("variables", |n| {
        one(
            &format!(
                "variables: {{ {} }}\n",
                join(n, ", ", |at| format!("v{at}: {{ type: integer, initial: {at} }}"))
            ),
            "go: b",
        )
    }),
    ("inputs", |n| {
        one(&format!("inputs: {{ {} }}\n", join(n, ", ", |at| format!("v{at}: string"))), "go: b")
    }),
    ("inputs that are read", |n| {
        one(
            &format!("inputs: {{ {} }}\n", join(n, ", ", |at| format!("v{at}: string"))),
            &format!(
                "ask: {{ question: \"{}\" }}, go: b",
                join(n.min(9_000), " ", |at| format!("{{{{ v{at} }}}}"))
            ),
        )
    }),
    ("unknown variables", |n| {
        one(
            "inputs: { known: string }\n",
            &format!(
                "ask: {{ question: \"{}\" }}, go: b",
                join(n.min(9_000), " ", |at| format!("{{{{ v{at} }}}}"))
            ),
        )
    }),
    ("unknown keys", |n| one(&lines(n, |at| format!("key{at}: 1")), "go: b")),
    ("unknown states", |n| machine("", n, |at| format!("go: nowhere{at}"))),
    ("agents", |n| {
        one(
            &format!(
                "agents:\n{}",
                lines(n, |at| format!("  a{at}: {{ contract: acme/x, prompt: Do it. }}"))
            ),
            "go: b",
        )
    }),
    ("limits", |n| {
        one(
            &format!(
                "limits: {{ {} }}\n",
                join(n, ", ", |at| format!("l{at}: {{ max: 3, then: b }}"))
            ),
            "go: b",
        )
    }),
    ("sub-workflows", |n| {
        one(
            &format!(
                "workflows:\n{}",
                lines(n, |at| format!(
                    "  w{at}: {{ start: x, states: {{ x: {{ run: w{} }} }} }}",
                    at + 1
                ))
            ),
            "run: w0, go: b",
        )
    }),
    ("sub-workflows that run each other", |n| {
        one(
            &format!(
                "workflows:\n{}",
                lines(n, |at| format!(
                    "  w{at}: {{ start: x, states: {{ x: {{ run: w{}, go: y }}, y: {{ run: w{}, go: z }}, z: {{ end: done }} }} }}",
                    (at + 1) % n,
                    (at * 7 + 3) % n
                ))
            ),
            "run: w0, go: b",
        )
    }),
    ("sub-workflows that double", |n| {
        one(
            &format!(
                "workflows:\n{}  w{n}: {{ start: z, states: {{ z: {{ end: done }} }} }}\n",
                lines(n, |at| format!(
                    "  w{at}: {{ start: x, states: {{ x: {{ run: w{0}, go: y }}, y: {{ run: w{0}, go: z }}, z: {{ end: done }} }} }}",
                    at + 1
                ))
            ),
            "run: w0, go: b",
        )
    }),
    ("a long expression", |n| {
        one(
            "",
            &format!(
                "command: [make], next: [{{ when: \"{}\", go: b }}, {{ go: b }}]",
                join(n, " || ", |at| format!("result.exit_code == {at}"))
            ),
        )
    }),
    ("an expression of negations", |n| {
        one(
            "",
            &format!(
                "command: [make], next: [{{ when: \"{}result.ok\", go: b }}, {{ go: b }}]",
                "!".repeat(n)
            ),
        )
    }),
    ("an expression of lists", |n| {
        one(
            "",
            &format!(
                "command: [make], next: [{{ when: \"result.exit_code in [{}]\", go: b }}, {{ go: b }}]",
                join(n, ", ", |at| at.to_string())
            ),
        )
    }),
    ("nested conditions", |n| {
        one(
            "",
            &format!(
                "command: [make], next: [{{ when: \"{}result.ok{}\", go: b }}, {{ go: b }}]",
                "result.ok ? (".repeat(n),
                ") : false".repeat(n)
            ),
        )
    }),
    ("a template of variables", |n| {
        one(
            "inputs: { v: string }\n",
            &format!("ask: {{ question: \"{}\" }}, go: b", "{{ v }}".repeat(n)),
        )
    }),
    ("a template of nested loops", |n| {
        one(
            "inputs: { v: [string] }\n",
            &format!(
                "ask: {{ question: \"{}{}\" }}, go: b",
                "{% for x in v %}".repeat(n),
                "{% endfor %}".repeat(n)
            ),
        )
    }),
    ("a template of sets", |n| {
        one(
            "inputs: { v: string }\n",
            &format!(
                "ask: {{ question: \"{}\" }}, go: b",
                join(n, "", |at| format!("{{% set w{at} = v %}}"))
            ),
        )
    }),
    ("a template of filters", |n| {
        one(
            "inputs: { v: string }\n",
            &format!("ask: {{ question: \"{{{{ v{} }}}}\" }}, go: b", " | upper".repeat(n)),
        )
    }),
    ("a template of conditions", |n| {
        one(
            "inputs: { v: string }\n",
            &format!(
                "ask: {{ question: \"{}\" }}, go: b",
                "{% if v == 'x' %}a{% endif %}".repeat(n)
            ),
        )
    }),
    ("templates in many states", |n| {
        machine("inputs: { v: string }\n", n, |at| {
            format!("ask: {{ question: 'Is it {{{{ v }}}}?' }}, go: s{}", at + 1)
        })
    }),
    ("a long line", |n| one(&format!("summary: {}\n", "word ".repeat(n)), "go: b")),
    ("a long comment", |n| one(&format!("# {}\n", "word ".repeat(n)), "go: b")),
    ("many lines", |n| one(&"\n".repeat(n * 8), "go: b")),
    ("a long block", |n| {
        one(&format!("summary: |\n{}", lines(n, |_| "  some words".into())), "go: b")
    }),
    ("escapes", |n| one(&format!("summary: \"{}\"\n", "\\u00e9".repeat(n)), "go: b")),
    ("deep lists", |n| {
        one(&format!("inputs: {{ a: {}x{} }}\n", "[".repeat(n), "]".repeat(n)), "go: b")
    }),
    ("deep mappings", |n| {
        one(&format!("inputs: {{ a: {}x{} }}\n", "{ a: ".repeat(n), " }".repeat(n)), "go: b")
    }),
    ("deep block lists", |n| one(&format!("inputs:\n  {}x\n", "- ".repeat(n)), "go: b")),
    ("aliases of one anchor", |n| {
        one(
            &format!(
                "summary: &x [{}]\nmore: [{}]\n",
                join(n.min(1_000), ", ", |_| "x".into()),
                join(n, ", ", |_| "*x".into())
            ),
            "go: b",
        )
    }),
    ("aliases of aliases", |n| {
        let mut text = "a0: &a0 [x, x, x, x]\n".to_owned();
        for at in 1..n.min(60) {
            writeln!(text, "a{at}: &a{at} [{}]", vec![format!("*a{}", at - 1); 4].join(", "))
                .unwrap();
        }
        one(&text, "go: b")
    }),
    ("anchors", |n| one(&lines(n, |at| format!("k{at}: &a{at} x")), "go: b")),
    ("merge keys", |n| {
        let mut text = "a0: &a0 { k: 1 }\n".to_owned();
        for at in 1..n {
            writeln!(text, "a{at}: &a{at} {{ <<: *a{}, k{at}: 1 }}", at - 1).unwrap();
        }
        one(&text, "go: b")
    }),
    ("merge keys that double", |n| {
        let mut text = "a0: &a0 { k: { l: 1 } }\n".to_owned();
        for at in 1..n.min(60) {
            writeln!(text, "a{at}: &a{at} {{ x: {{ <<: *a{0} }}, y: {{ <<: *a{0} }} }}", at - 1)
                .unwrap();
        }
        one(&text, "go: b")
    }),
    ("path patterns", |n| {
        one(
            &format!("protect: [{}]\n", join(n, ", ", |at| format!("'src/**/a{at}/*.rs'"))),
            "go: b",
        )
    }),
    ("a command with many arguments", |n| {
        one("", &format!("command: [{}], go: b", join(n, ", ", |_| "x".into())))
    }),
    ("one pattern of braces", |n| one(&format!("protect: ['{}']\n", "{a,b}".repeat(n)), "go: b")),
];

/// The first finding for a text, if it is refused. Checks that it has a place, a bounded message and
/// a hint.
fn first_finding(name: &str, text: &str) -> Option<String> {
    let rejected = checked(text).err()?;
    assert!(rejected.findings.len() <= 101, "{name}");
    for finding in &rejected.findings {
        assert!(finding.span.is_some(), "{name}: {finding:?}");
        assert!(finding.message.len() < 2_000 && !finding.hint.is_empty(), "{name}: {finding:?}");
        assert!(!finding.message.contains("seconds"), "{name}: {finding:?}");
        assert!(!finding.message.contains("breached"), "{name}: {finding:?}");
    }
    Some(rejected.findings[0].message.clone())
}

#[test]
fn every_shape_passes_or_is_refused_before_the_time_is_over() {
    // Those that exceed a limit of the file are in the test below.
    for (name, make) in SHAPES.iter().filter(|(name, _)| !name.contains("alias")) {
        let text = make(200);
        let finding = first_finding(name, &text);
        println!("{name}: {} bytes: {finding:?}", text.len());
    }
}

#[test]
fn what_exceeds_a_limit_of_the_file_is_named() {
    let find = |wanted: &str| SHAPES.iter().find(|(name, _)| *name == wanted).unwrap().1;
    for (name, expected) in [
        ("aliases of aliases", "the file has more than 250000 values"),
        ("aliases of one anchor", "the file has more than 250000 values"),
        ("merge keys that double", "the file has more than 10000 merge keys"),
        ("deep lists", "the file is nested more than 48 deep"),
        ("deep mappings", "the file is nested more than 48 deep"),
        ("deep block lists", "the file is nested more than 48 deep"),
    ] {
        assert_eq!(first_finding(name, &find(name)(600)).as_deref(), Some(expected), "{name}");
    }
}

#[test]
fn a_workflow_that_takes_too_long_is_refused_at_the_place_that_was_reached() {
    let text = one("", "go: b");
    assert!(checked(&text).is_ok());
    let rejected = work::within(Duration::ZERO, || checked(&text)).unwrap_err();
    assert_eq!(rejected.findings.len(), 1);
    let finding = &rejected.findings[0];
    assert!(finding.message.contains("seconds to check, which ended here"), "{finding:?}");
    assert_eq!(finding.span.map(|span| (span.line, span.column)), Some((4, 3)));
    assert!(checked(&text).is_ok(), "the time of one check does not count for the next");
}

#[test]
fn thousands_of_sub_workflows_and_transitions_are_no_square() {
    // With a comparison of each one with each other one, these take longer than the time for a
    // check.
    let find = |wanted: &str| SHAPES.iter().find(|(name, _)| *name == wanted).unwrap().1;
    for name in ["sub-workflows that double", "transitions of one state"] {
        assert_eq!(first_finding(name, &find(name)(6_000)), None, "{name}");
    }
}
