//! Malformed and hostile files: each gets a clear finding in bounded time, and nothing panics.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

use counterfoil_contract::diagnostic::Style;
use counterfoil_contract::{Definition, Registry};
use counterfoil_flow::{Bundle, Code, Finding, Rejected, Workflow, check, reload};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::{Duration, Instant};

fn checked(text: &str) -> Result<Workflow, Rejected> {
    check(
        "workflow.yaml",
        &BTreeMap::from([("workflow.yaml".to_owned(), text.to_owned())]),
        &Registry::new(),
    )
}

/// The findings for a text. Checks that each has a hint and a position inside the text.
fn refused(text: &str) -> Vec<Finding> {
    let since = Instant::now();
    let begin = thread_time(since);
    let Err(rejected) = checked(text) else {
        panic!("this passes: {}", text.chars().take(200).collect::<String>());
    };
    let took = thread_time(since).saturating_sub(begin);
    assert!(took < Duration::from_secs(10), "it took {took:?}");
    assert!(!rejected.findings.is_empty());
    for finding in &rejected.findings {
        assert!(!finding.message.is_empty() && !finding.hint.is_empty(), "{finding:?}");
        assert!(finding.message.len() < 2_000, "a message of {} bytes", finding.message.len());
        if let Some(span) = finding.span {
            assert!(
                span.start <= text.len(),
                "{finding:?} is past the end of {} bytes",
                text.len()
            );
        }
    }
    // Rendering must work too.
    let rendered = counterfoil_flow::render(&rejected.findings, &rejected.files, Style::default());
    assert!(rendered.contains(rejected.findings[0].code.as_str()));
    rejected.findings
}

fn first(text: &str) -> (Code, String) {
    let finding = refused(text).remove(0);
    (finding.code, finding.message)
}

#[test]
fn a_file_without_a_workflow_is_rejected() {
    let empty = (Code::WrongForm, "the file is empty".to_owned());
    assert_eq!(first(""), empty);
    assert_eq!(first("\n\n   \n"), empty);
    assert_eq!(first("# only\n# comments\n"), empty);
    assert_eq!(first("---\n"), empty);
    assert_eq!(
        first("just words"),
        (Code::WrongForm, "the file is a string, not a workflow".to_owned())
    );
    assert_eq!(
        first("- a\n- b\n"),
        (Code::WrongForm, "the file is a list, not a workflow".to_owned())
    );
    assert_eq!(first("{}"), (Code::MissingKey, "the workflow has no name".to_owned()));
}

#[test]
fn a_yaml_error_is_reported_with_its_position() {
    for text in
        ["a: [", "a: {b: c", "a: 'b", "a: b: c", "%", "? [", "&a *b", "a: *nobody", "]", "!!"]
    {
        assert_eq!(first(text).0, Code::Syntax, "{text:?}");
    }
    assert_eq!(
        first("workflow: a\nworkflow: b\n"),
        (Code::Syntax, "duplicate key 'workflow'".to_owned())
    );
    let inner = refused("workflow: a\nstates:\n  b: { end: done, end: failed }\n");
    assert_eq!(inner[0].span.map(|span| (span.line, span.column)), Some((3, 19)));
}

#[test]
fn garbage_is_refused() {
    let bytes: Vec<u8> =
        (0..20_000_u32).map(|n| u8::try_from((n * 7919 + n / 251) % 256).unwrap()).collect();
    refused(&String::from_utf8_lossy(&bytes));
    refused("\0\0\0\0");
    refused("\u{feff}");
    refused("workflow: \u{202e}\u{0}x\nstart: a\nstates: {}\n");
    refused(&"{".repeat(5000));
    refused(&"[".repeat(5000));
    refused(&"- ".repeat(20_000));
    refused(&"a: ".repeat(1000));
}

#[test]
fn every_beginning_of_a_workflow_is_refused_or_passes_without_a_panic() {
    let text = include_str!("../../../../examples/features/features.yaml");
    for end in (0..text.len()).step_by(7).filter(|end| text.is_char_boundary(*end)) {
        drop(checked(&text[..end]));
    }
}

#[test]
fn an_alias_bomb_is_rejected() {
    let mut text = "workflow: bomb\na0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for n in 1..12 {
        let many = vec![format!("*a{}", n - 1); 10].join(", ");
        writeln!(text, "a{n}: &a{n} [{many}]").unwrap();
    }
    assert_eq!(first(&text).0, Code::Syntax);
}

#[test]
fn depth_is_bounded() {
    let deep =
        |open: &str, close: &str, n: usize| format!("{}x{}", open.repeat(n), close.repeat(n));
    refused(&format!("workflow: deep\ninputs: {{ a: {} }}\n", deep("[", "]", 3_000)));
    refused(&format!("workflow: deep\ninputs: {{ a: {} }}\n", deep("{ a: ", " }", 3_000)));
    let guard = |inner: String| {
        format!(
            "workflow: deep\nstart: a\nstates:\n  a: {{ next: [{{ when: \"{inner}\", go: b }}, {{ go: b }}] }}\n  b: {{ end: done }}\n"
        )
    };
    refused(&guard(deep("(", ")", 2_000).replace('x', "true")));
    refused(&guard(format!("{}true", "!".repeat(3_000))));
    refused(&guard(format!("{}1", "-".repeat(3_000))));
    refused(&guard(format!("a{}", ".a".repeat(3_000))));
    let ask = |text: &str| {
        format!(
            "workflow: deep\nstart: a\nstates:\n  a: {{ ask: {{ question: \"{text}\" }}, go: b }}\n  b: {{ end: done }}\n"
        )
    };
    let nested = format!("{}{}", "{% if true %}".repeat(2_000), "{% endif %}".repeat(2_000));
    assert_eq!(first(&ask(&nested)).0, Code::BadTemplate);
    assert_eq!(
        first(&ask(&format!("{{{{ {} }}}}", deep("(", ")", 2_000).replace('x', "1")))).0,
        Code::BadTemplate
    );
}

#[test]
fn an_expression_of_a_megabyte_is_too_long() {
    let long = format!("{}true", "true && ".repeat(130_000));
    let text = format!(
        "workflow: long\nstart: a\nstates:\n  a: {{ next: [{{ when: {long}, go: b }}, {{ go: b }}] }}\n  b: {{ end: done }}\n"
    );
    assert!(text.len() > 1_000_000);
    assert_eq!(first(&text), (Code::BadExpression, "the expression is too long".to_owned()));
}

#[test]
fn a_file_that_is_too_large_is_not_read() {
    let text = format!("workflow: large\nsummary: {}\n", "x".repeat(9 << 20));
    let (code, message) = first(&text);
    assert_eq!(code, Code::Syntax);
    assert!(message.starts_with("the file has 94372"), "{message}");
}

#[test]
fn a_missing_workflow_file_is_reported() {
    let Err(rejected) = check("deliver.yaml", &BTreeMap::new(), &Registry::new()) else {
        panic!("it passes")
    };
    assert_eq!(
        rejected.to_string(),
        "deliver.yaml: F0107: cannot read the workflow: no such file (pass the path of a workflow file)"
    );
}

#[test]
fn a_contract_that_does_not_load_is_reported_where_it_is_used() {
    let text = "workflow: a\nagents: { qa: { contract: acme/qa, prompt: Check it. } }\nstart: a\nstates:\n  \
                a: { agent: qa, go: b }\n  b: { end: done }\n";
    let broken = Definition::from_yaml(
        "contract: acme/qa\nversion: 1\nfields: { passed: bolean }\n",
        "qa.yaml",
    )
    .unwrap();
    let mut registry = Registry::new();
    registry.add(broken.clone()).unwrap();
    let files = BTreeMap::from([("workflow.yaml".to_owned(), text.to_owned())]);
    let Err(rejected) = check("workflow.yaml", &files, &registry) else { panic!("it passes") };
    let finding = &rejected.findings[0];
    assert_eq!(
        (finding.code, finding.span.map(|span| span.line)),
        (Code::UnknownContract, Some(2))
    );
    assert!(finding.message.starts_with("contract 'acme/qa' does not load"), "{}", finding.message);
    // The same for a stored run, which a newer version may have started.
    let kept = BTreeMap::from([
        ("acme/qa@1".to_owned(), broken.clone()),
        ("acme/qa@1 again".to_owned(), broken),
    ]);
    let bundle = Bundle {
        workflow: "workflow.yaml".to_owned(),
        files,
        contracts: kept,
        require_claims: false,
    };
    let Err(rejected) = reload(&bundle) else { panic!("it passes") };
    assert_eq!(rejected.findings[0].code, Code::UnknownContract);
    assert!(
        rejected.findings[0].hint.contains("use that version"),
        "{}",
        rejected.findings[0].hint
    );
}

#[test]
fn a_pattern_that_would_explode_is_refused() {
    let text = "workflow: a\nstart: a\nstates:\n  a: { ask: { question: q, pattern: '(((a{99}){99}){99}){99}' }, go: b }\n  b: { end: done }\n";
    assert_eq!(first(text).0, Code::WrongForm);
}

/// A machine of `n` states in a row.
fn row(n: usize) -> String {
    let mut text = "workflow: large\nstart: s0\nstates:\n".to_owned();
    for at in 0..n {
        writeln!(
            text,
            "  s{at}: {{ command: [make], next: [{{ when: result.ok, go: s{} }}, {{ go: s{n} }}] }}",
            at + 1
        )
        .unwrap();
    }
    writeln!(text, "  s{n}: {{ end: done }}").unwrap();
    text
}

/// One cycle of `n` states, counted once.
fn ring(n: usize) -> String {
    let mut text =
        "workflow: large\nlimits: { rounds: { max: 3, then: done } }\nstart: s0\nstates:\n"
            .to_owned();
    for at in 0..n - 1 {
        writeln!(text, "  s{at}: {{ go: s{} }}", at + 1).unwrap();
    }
    writeln!(
        text,
        "  s{}: {{ next: {{ go: s0, counts: rounds }} }}\n  done: {{ end: done }}",
        n - 1
    )
    .unwrap();
    text
}

/// `n / 2` small cycles in a row, each counting the same two limits.
fn chain(n: usize) -> String {
    let limits = "{ one: { max: 3, then: done }, two: { max: 3, then: done } }";
    let mut text = format!("workflow: large\nlimits: {limits}\nstart: s0\nstates:\n");
    for at in (0..n).step_by(2) {
        let on = if at + 2 < n { format!("s{}", at + 2) } else { "done".to_owned() };
        writeln!(
            text,
            "  s{at}: {{ command: [make], next: [{{ when: result.ok, go: s{}, counts: one }}, {{ go: s{at}, counts: two }}] }}\n  \
             s{}: {{ command: [make], next: [{{ when: result.ok, go: {on} }}, {{ go: s{at} }}] }}",
            at + 1,
            at + 1
        )
        .unwrap();
    }
    text.push_str("  done: { end: done }\n");
    text
}

/// `n` states that each go to a state that does not exist.
fn lost(n: usize) -> String {
    let mut text = "workflow: large\nstart: s0\nstates:\n".to_owned();
    for at in 0..n {
        writeln!(text, "  s{at}: {{ go: nowhere{at} }}").unwrap();
    }
    text
}

/// A ring without a limit.
fn unbounded(n: usize) -> String {
    ring(n)
        .replace(", counts: rounds", "")
        .replace("done: {", "unused: {")
        .replace("then: done", "then: unused")
}

/// The time that this thread has had a core, which other load does not change; the elapsed time
/// where the system does not tell.
fn thread_time(since: Instant) -> Duration {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = told.and_then(|line| line.split(' ').next()?.parse().ok());
    nanoseconds.map_or_else(|| since.elapsed(), Duration::from_nanos)
}

fn time(text: &str) -> Duration {
    let since = Instant::now();
    let begin = thread_time(since);
    drop(checked(text));
    thread_time(since).saturating_sub(begin)
}

#[test]
fn the_time_grows_with_the_number_of_states_and_not_with_its_square() {
    for (name, make) in [
        ("row", row as fn(usize) -> String),
        ("ring", ring),
        ("chain", chain),
        ("lost", lost),
        ("unbounded", unbounded),
    ] {
        let (few, many) = (make(300), make(1_200));
        // What else disturbs only slows it down, so take the faster of two runs.
        let fastest = |text: &str| (0..2).map(|_| time(text)).min().unwrap();
        let (short, long) = (fastest(&few), fastest(&many));
        println!("{name}: 300 states {short:?}, 1,200 states {long:?}");
        assert!(long < Duration::from_secs(10), "{name}: {long:?}");
        assert!(
            long < short * 9 + Duration::from_millis(50),
            "{name}: 300 states take {short:?}, and 1,200 take {long:?}"
        );
    }
    assert!(checked(&row(10_000)).is_ok());
    assert!(checked(&ring(4_000)).is_ok());
    assert!(checked(&chain(4_000)).is_ok());
    assert!(checked(&unbounded(100)).is_err());
}
