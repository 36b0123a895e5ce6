//! Runs the case files in `tests/it/cases`. Every text is checked whole and in pieces, and both
//! must give the same report.
use counterfoil_contract::shown::Shown;
use counterfoil_contract::{Contract, Report, Status};
use serde::Deserialize;
use serde_json::Value;
use std::path::Path;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// The contract for all cases, as YAML.
    contract: String,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    text: String,
    /// Lines to put into the contract: another framing or policy.
    #[serde(default)]
    with: Option<String>,
    #[serde(default)]
    strict: bool,
    /// The prompt that the agent was shown, besides what every agent of the contract is shown.
    #[serde(default)]
    prompt: Option<String>,
    /// The value accepted; if left out, the text must not be accepted.
    #[serde(default)]
    value: Option<Value>,
    /// The same as JSON text, where every digit counts.
    #[serde(default)]
    json: Option<String>,
    /// The codes of the violations.
    #[serde(default)]
    codes: Option<Vec<String>>,
    /// The codes of the warnings.
    #[serde(default)]
    warnings: Option<Vec<String>>,
    #[serde(default)]
    status: Option<Status>,
    #[serde(default)]
    stage: Option<String>,
    /// The text at the span of the first violation.
    #[serde(default)]
    at: Option<String>,
    /// The pointer of the first violation.
    #[serde(default)]
    pointer: Option<String>,
    /// The kinds of repair, each once, sorted.
    #[serde(default)]
    repairs: Option<Vec<String>>,
    /// The coercions, as `pointer: from -> to`.
    #[serde(default)]
    coercions: Option<Vec<String>>,
    #[serde(default)]
    unwrapped: Option<Vec<String>>,
    #[serde(default)]
    candidates: Option<usize>,
    #[serde(default)]
    chosen: Option<usize>,
    #[serde(default)]
    partial: Option<Value>,
    #[serde(default)]
    rejected_items: Option<Vec<String>>,
}

/// Runs every case of one file and reports all that fail.
fn run_file(stem: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/it/cases/{stem}.yaml"));
    let text = std::fs::read_to_string(&path).unwrap();
    let file: File =
        serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert!(!file.cases.is_empty(), "{stem} has no cases");
    let failed: Vec<String> = file
        .cases
        .iter()
        .filter_map(|case| {
            let error = run(&file.contract, case).err()?;
            Some(format!("{stem}: {}\n{error}", case.name))
        })
        .collect();
    assert!(failed.is_empty(), "{} cases failed\n\n{}", failed.len(), failed.join("\n\n"));
}

/// One test for each file, and one that no file is missing here.
macro_rules! case_files {
    ($($name:ident = $stem:literal;)*) => {
        $(#[test]
        fn $name() {
            run_file($stem);
        })*

        #[test]
        fn every_case_file_is_run() {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/cases");
            let mut found: Vec<String> = std::fs::read_dir(folder)
                .unwrap()
                .map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
                .collect();
            found.sort();
            assert_eq!(found, [$($stem),*]);
        }
    };
}

case_files! {
    any_json = "any-json";
    empty_values = "empty-values";
    fenced_json = "fenced-json";
    json_only = "json-only";
    last_attempt = "last-attempt";
    last_list = "last-list";
    last_map = "last-map";
    last_numbers = "last-numbers";
    origin_forms = "origin-forms";
    output_block = "output-block";
    placeholders = "placeholders";
    quotations = "quotations";
    repairs = "repairs";
    rules = "rules";
    validation = "validation";
}

fn run(contract: &str, case: &Case) -> Result<(), String> {
    let mut yaml = contract.to_owned();
    if let Some(lines) = &case.with {
        let replaced = |key: &str| lines.lines().any(|line| line.starts_with(key));
        yaml = yaml
            .lines()
            .filter(|line| {
                !["framing:", "policy:", "fields:"]
                    .iter()
                    .any(|key| line.starts_with(key) && replaced(key))
            })
            .collect::<Vec<_>>()
            .join("\n");
        yaml.push('\n');
        yaml.push_str(lines);
    }
    let contract = Contract::from_yaml(&yaml).map_err(|error| error.to_string())?;
    let report = match &case.prompt {
        Some(prompt) => {
            let shown = Shown::with_prompts(&contract, &[prompt]);
            contract.check_bytes_shown(case.text.as_bytes(), contract.policy(), &shown)
        }
        None if case.strict => contract.check_strictly(&case.text),
        None => contract.check(&case.text),
    };
    if !case.strict && case.prompt.is_none() {
        for size in [1, 7, 64] {
            let mut stream = contract.stream();
            let characters: Vec<char> = case.text.chars().collect();
            for piece in characters.chunks(size) {
                stream.push(&piece.iter().collect::<String>());
            }
            let streamed = stream.finish();
            if streamed != report {
                return Err(format!("in pieces of {size}:\n{streamed:#?}\nwhole:\n{report:#?}"));
            }
        }
    }
    spans_are_in_the_text(&report, &case.text)?;
    compare(case, &report)
}

fn spans_are_in_the_text(report: &Report, text: &str) -> Result<(), String> {
    for violation in report.violations.iter().chain(&report.warnings) {
        let Some(span) = violation.span else { continue };
        let slice = text
            .get(span.start..span.end)
            .ok_or_else(|| format!("{violation:?} is not in the text"))?;
        let before = &text[..span.start];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        if (span.line, span.column) != (line, column) {
            return Err(format!(
                "{slice:?} stands at {line}:{column}, not at {}:{}",
                span.line, span.column
            ));
        }
    }
    Ok(())
}

fn compare(case: &Case, report: &Report) -> Result<(), String> {
    let mut wrong = Vec::new();
    let mut same = |what: &str, expected: String, found: String| {
        if expected != found {
            wrong.push(format!("{what}: expected {expected}, found {found}"));
        }
    };
    let show =
        |value: &Option<Value>| value.as_ref().map_or("nothing".to_owned(), Value::to_string);
    same("value", case.json.clone().unwrap_or_else(|| show(&case.value)), show(&report.value));
    if let Some(codes) = &case.codes {
        same(
            "codes",
            codes.join(" "),
            report.codes().iter().map(ToString::to_string).collect::<Vec<_>>().join(" "),
        );
    }
    if let Some(codes) = &case.warnings {
        same(
            "warnings",
            codes.join(" "),
            report
                .warnings
                .iter()
                .map(|warning| warning.code.to_string())
                .collect::<Vec<_>>()
                .join(" "),
        );
    } else if report.value.is_some() {
        same(
            "warnings",
            String::new(),
            report
                .warnings
                .iter()
                .map(|warning| warning.code.to_string())
                .collect::<Vec<_>>()
                .join(" "),
        );
    }
    if let Some(status) = case.status {
        same("status", format!("{status:?}"), format!("{:?}", report.status));
    }
    if let Some(stage) = &case.stage {
        same("stage", stage.clone(), report.stage.map_or("none", |stage| stage.name()).to_owned());
    }
    if let Some(at) = &case.at {
        let found = report
            .violations
            .first()
            .and_then(|violation| violation.span)
            .and_then(|span| case.text.get(span.start..span.end));
        same("at", at.clone(), found.unwrap_or("nowhere").to_owned());
    }
    if let Some(pointer) = &case.pointer {
        same(
            "pointer",
            pointer.clone(),
            report
                .violations
                .first()
                .map(|violation| violation.pointer.clone())
                .unwrap_or_default(),
        );
    }
    let mut kinds: Vec<&str> =
        report.provenance.repairs.iter().map(|repair| repair.kind.name()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    same("repairs", case.repairs.clone().unwrap_or_default().join(" "), kinds.join(" "));
    let coercions: Vec<String> = report
        .provenance
        .coercions
        .iter()
        .map(|c| format!("{}: {} -> {}", c.pointer, c.from, c.to))
        .collect();
    same("coercions", case.coercions.clone().unwrap_or_default().join("; "), coercions.join("; "));
    same(
        "unwrapped",
        case.unwrapped.clone().unwrap_or_default().join(" "),
        report.provenance.unwrapped.join(" "),
    );
    for (what, expected, found) in [
        ("candidates", case.candidates, Some(report.provenance.candidates)),
        ("chosen", case.chosen, report.provenance.chosen),
    ] {
        if let Some(expected) = expected {
            same(
                what,
                expected.to_string(),
                found.map_or("none".to_owned(), |found| found.to_string()),
            );
        }
    }
    if case.partial.is_some() {
        same("partial", show(&case.partial), show(&report.partial));
    }
    if let Some(items) = &case.rejected_items {
        same(
            "rejected items",
            items.join(" "),
            report
                .rejected_items
                .iter()
                .map(|item| item.pointer.clone())
                .collect::<Vec<_>>()
                .join(" "),
        );
    }
    if wrong.is_empty() { Ok(()) } else { Err(format!("{}\n{report:#?}", wrong.join("\n"))) }
}
