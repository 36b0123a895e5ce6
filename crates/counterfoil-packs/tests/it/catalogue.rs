//! The whole catalogue: every contract exists, compiles, renders, and agrees with its Rust type.

use counterfoil_contract::policy::{RepairPolicy, Several, Truncated};
use counterfoil_contract::render::vendor::{self, Target};
use counterfoil_contract::shown::Shown;
use counterfoil_contract::{AgentOutput, Framing};
use counterfoil_packs::contracts::*;
use counterfoil_packs::{definitions, registry};
use serde_json::{Value, json};

/// Every id that programs depend on.
const IDS: &[&str] = &[
    "execution-loop/base",
    "execution-loop/implementer",
    "execution-loop/qa",
    "execution-loop/code-quality",
    "execution-loop/manager",
    "execution-loop/dod",
    "review-fix/fixer-result",
    "review-fix/fix-result",
    "review-fix/implementation-result",
    "review-fix/review-result",
    "review-fix/grouped-review-result",
    "review-fix/fix-outcomes",
    "review-fix/fix-outcome",
    "review-fix/review-finding",
    "review-fix/finding",
    "review-fix/finding-group",
    "review-fix/agent-result",
    "feature-pipeline/todo-doc-generator",
    "feature-pipeline/tdd-task-executor",
    "feature-pipeline/code-reviewer",
    "feature-pipeline/code-simplifier",
    "feature-pipeline/silent-failure-hunter",
    "feature-pipeline/review-pr",
    "feature-pipeline/type-design-analyzer",
    "spec-pipeline/specify",
    "spec-pipeline/clarify",
    "spec-pipeline/research",
    "spec-pipeline/plan",
    "spec-pipeline/checklist",
    "spec-pipeline/tasks",
    "spec-pipeline/analyze",
    "spec-pipeline/implement",
    "spec-pipeline/test",
    "spec-pipeline/review",
    "spec-pipeline/taskstoissues",
    "spec-pipeline/workflow-context",
    "spec-pipeline/feedback-context",
    "gated-team/output",
    "gated-team/input",
    "gated-team/status",
    "gated-team/tasks",
    "gated-team/acceptance",
];

#[test]
fn every_contract_is_there_and_loads() {
    let registry = registry();
    for id in IDS {
        match registry.get(id) {
            Ok(contract) => assert!(contract.lint().is_empty(), "{id}: {:?}", contract.lint()),
            Err(error) => panic!("{id}: {error}"),
        }
    }
    let found: Vec<String> =
        definitions().into_iter().map(|definition| definition.contract).collect();
    assert_eq!(found, IDS, "in the order of the packs, and no others");
    let earlier = counterfoil_packs::earlier_definitions().len();
    assert_eq!(registry.all().count(), IDS.len() + earlier, "none was left out");
}

#[test]
fn every_contract_is_documented_by_examples() {
    for definition in definitions() {
        let id = &definition.contract;
        assert!(definition.examples.len() >= 2, "{id} has {} examples", definition.examples.len());
        assert!(!definition.counter_examples.is_empty(), "{id} has no counter-example");
        assert!(!definition.summary.is_empty(), "{id} has no summary");
        assert!(definition.display.is_some(), "{id} has no display");
        let contract = registry().get(id).unwrap();
        for example in &definition.examples {
            let line = contract.display_line(example);
            assert!(!line.contains("display failed"), "{id}: {line:?}");
        }
        for counter in &definition.counter_examples {
            let report = contract.check_value(&counter.value);
            let by_rule = definition.rules.iter().find(|rule| rule.id == counter.because);
            match by_rule {
                Some(rule) => {
                    let reason = |message: &str| match &rule.message {
                        Some(said) => message == said,
                        None => report.codes().iter().any(|code| code.as_str().starts_with("C03")),
                    };
                    assert!(
                        report.violations.iter().any(|violation| reason(&violation.message)),
                        "{id}: {report:?}"
                    );
                }
                None => assert!(
                    report.codes().iter().any(|code| code.as_str() == counter.because),
                    "{id}: {:?} instead of {}",
                    report.codes(),
                    counter.because
                ),
            }
        }
    }
}

/// The contracts of gates and reviewers, whose result lets the work pass or not.
const GATES: [&str; 14] = [
    "execution-loop/qa",
    "execution-loop/code-quality",
    "execution-loop/dod",
    "review-fix/grouped-review-result",
    "review-fix/review-result",
    "review-fix/fix-outcomes",
    "feature-pipeline/code-reviewer",
    "feature-pipeline/silent-failure-hunter",
    "feature-pipeline/type-design-analyzer",
    "feature-pipeline/review-pr",
    "gated-team/output",
    "spec-pipeline/analyze",
    "spec-pipeline/test",
    "spec-pipeline/review",
];

#[test]
fn no_gate_is_shown_an_approving_example_alone() {
    for id in GATES {
        let contract = registry().get(id).unwrap();
        assert_eq!(contract.policy().several, Several::Ask, "{id}");
        let examples = &contract.definition().examples;
        let shown: Vec<bool> =
            contract.shown_examples().map(|one| contract.approves(one).unwrap()).collect();
        assert_eq!(shown.first(), Some(&false), "{id} shows {shown:?} of {}", examples.len());
        // A prompt that is quoted in full lets nothing pass, nor does the repair prompt.
        let shown = Shown::of(&contract);
        let absent = contract.check("There is no result here.");
        for prompt in [contract.prompt(), contract.repair(&absent)] {
            let report = contract.check_bytes_shown(prompt.as_bytes(), contract.policy(), &shown);
            let approves = report.value.as_ref().and_then(|value| contract.approves(value));
            assert_ne!(approves, Some(true), "{id}: {prompt}");
        }
    }
}

#[test]
fn envelopes_show_success_and_error() {
    for id in ["spec-pipeline/specify", "spec-pipeline/test", "spec-pipeline/analyze"] {
        let contract = registry().get(id).unwrap();
        let shown: Vec<&str> =
            contract.shown_examples().map(|one| one["status"].as_str().unwrap()).collect();
        assert_eq!(shown, ["error", "success"], "{id}");
    }
    for id in ["review-fix/fixer-result", "review-fix/fix-result"] {
        let contract = registry().get(id).unwrap();
        let shown: Vec<bool> =
            contract.shown_examples().map(|one| one["success"].as_bool().unwrap()).collect();
        assert_eq!(shown, [false, true], "{id}");
    }
}

/// The display line of each contract's first example. This detects a display template that renders
/// nothing.
#[test]
fn every_display_shows_the_result() {
    let registry = registry();
    for (id, line) in [
        ("execution-loop/base", "success: Moved the parser into a module of its own"),
        (
            "execution-loop/implementer",
            "success: Added slugify and title_case with tests (1 changed, 1 added)",
        ),
        ("execution-loop/qa", "done: 2 of 2 checks pass, 0 tests fail"),
        ("review-fix/grouped-review-result", "1 findings in 1 groups"),
        ("review-fix/fix-outcomes", "1 of 2 fixed"),
        ("review-fix/review-finding", "critical src/cache.py:42 The cache key ignores the tenant"),
        ("feature-pipeline/silent-failure-hunter", "1 silent failures, severity high"),
        ("spec-pipeline/specify", "ValidationError: The request names no feature"),
        ("spec-pipeline/plan", "PrerequisiteError: There is no spec.md to start from"),
        ("gated-team/tasks", "2 tasks: T-001, T-002"),
    ] {
        let contract = registry.get(id).unwrap();
        assert_eq!(contract.display_line(&contract.definition().examples[0]), line, "{id}");
    }
    for definition in definitions() {
        let contract = registry.get(&definition.contract).unwrap();
        for example in &definition.examples {
            assert!(contract.display_line(example).len() > 4, "{}", definition.contract);
        }
    }
}

#[test]
fn every_field_and_every_rule_says_what_it_is() {
    for definition in definitions() {
        let schema = definition.schema.clone().unwrap();
        let mut objects = vec![&schema];
        objects.extend(schema["$defs"].as_object().into_iter().flat_map(|defs| defs.values()));
        for object in objects {
            for (name, field) in object["properties"].as_object().into_iter().flatten() {
                let description = field["description"].as_str().unwrap_or_default();
                assert!(
                    !description.is_empty(),
                    "{}: {name} has no description",
                    definition.contract
                );
                assert!(
                    !description.contains('\n'),
                    "{}: {name} is not one line",
                    definition.contract
                );
            }
        }
        for rule in &definition.rules {
            if rule.check.is_some() {
                let message = rule.message.clone().unwrap_or_default();
                assert!(
                    message.matches('`').count() >= 4,
                    "{}/{} names both fields",
                    definition.contract,
                    rule.id
                );
            }
        }
    }
}

#[test]
fn packs_read_as_strictly_as_they_say() {
    for definition in definitions() {
        let id = definition.contract.as_str();
        let framing = match id {
            "gated-team/tasks" => Framing::AnyJson,
            _ if id.starts_with("execution-loop/") || id.starts_with("spec-pipeline/") => {
                Framing::AnyJson
            }
            _ if id.starts_with("review-fix/") => Framing::FencedJson,
            _ if id.starts_with("feature-pipeline/") => Framing::OutputBlock,
            _ => Framing::JsonOnly,
        };
        assert_eq!(definition.framing, framing, "{id}");
        let repairs = definition.policy.repair == RepairPolicy::Syntax;
        assert_eq!(repairs, id.starts_with("execution-loop/"), "{id}");
        assert_eq!(definition.policy.truncated, Truncated::Reject, "{id}");
        assert_eq!(definition.policy.coerce, counterfoil_contract::policy::Coerce::None, "{id}");
        assert!(!definition.policy.closed, "{id}: unknown fields are kept");
    }
}

#[test]
fn agents_are_found_by_their_other_names() {
    let registry = registry();
    for (alias, id) in [
        ("execution-implementer", "execution-loop/implementer"),
        ("execution-qa", "execution-loop/qa"),
        ("execution-code-quality", "execution-loop/code-quality"),
        ("execution-manager", "execution-loop/manager"),
        ("execution-dod", "execution-loop/dod"),
        ("pr-review-toolkit:code-reviewer", "feature-pipeline/code-reviewer"),
        ("pr-review-toolkit:code-simplifier", "feature-pipeline/code-simplifier"),
        ("pr-review-toolkit:review-pr", "feature-pipeline/review-pr"),
        ("speckit-specify", "spec-pipeline/specify"),
        ("speckit-test", "spec-pipeline/test"),
        ("speckit-taskstoissues", "spec-pipeline/taskstoissues"),
    ] {
        assert_eq!(registry.get(alias).unwrap().id(), id);
    }
}

/// Each type with its id: the type and the contract are one.
macro_rules! for_every_type {
    ($run:ident) => {
        $run::<BaseOutput>("execution-loop/base");
        $run::<ImplementerOutput>("execution-loop/implementer");
        $run::<QaOutput>("execution-loop/qa");
        $run::<CodeQualityOutput>("execution-loop/code-quality");
        $run::<ManagerOutput>("execution-loop/manager");
        $run::<DodOutput>("execution-loop/dod");
        $run::<FixerResult>("review-fix/fixer-result");
        $run::<FixResult>("review-fix/fix-result");
        $run::<ImplementationResult>("review-fix/implementation-result");
        $run::<ReviewResult>("review-fix/review-result");
        $run::<GroupedReviewResult>("review-fix/grouped-review-result");
        $run::<FixOutcomes>("review-fix/fix-outcomes");
        $run::<FixOutcome>("review-fix/fix-outcome");
        $run::<ReviewFinding>("review-fix/review-finding");
        $run::<Finding>("review-fix/finding");
        $run::<FindingGroup>("review-fix/finding-group");
        $run::<AgentResult>("review-fix/agent-result");
        $run::<TodoDocBlock>("feature-pipeline/todo-doc-generator");
        $run::<TddPhaseBlock>("feature-pipeline/tdd-task-executor");
        $run::<CodeReviewBlock>("feature-pipeline/code-reviewer");
        $run::<SimplifierBlock>("feature-pipeline/code-simplifier");
        $run::<SilentFailureBlock>("feature-pipeline/silent-failure-hunter");
        $run::<MergeReviewBlock>("feature-pipeline/review-pr");
        $run::<TypeDesignBlock>("feature-pipeline/type-design-analyzer");
        $run::<SpecifyOutput>("spec-pipeline/specify");
        $run::<ClarifyOutput>("spec-pipeline/clarify");
        $run::<ResearchOutput>("spec-pipeline/research");
        $run::<PlanOutput>("spec-pipeline/plan");
        $run::<ChecklistOutput>("spec-pipeline/checklist");
        $run::<TasksOutput>("spec-pipeline/tasks");
        $run::<AnalyzeOutput>("spec-pipeline/analyze");
        $run::<ImplementOutput>("spec-pipeline/implement");
        $run::<TestOutput>("spec-pipeline/test");
        $run::<ReviewOutput>("spec-pipeline/review");
        $run::<TasksToIssuesOutput>("spec-pipeline/taskstoissues");
        $run::<WorkflowContext>("spec-pipeline/workflow-context");
        $run::<FeedbackContext>("spec-pipeline/feedback-context");
        $run::<TeamOutput>("gated-team/output");
        $run::<TeamInput>("gated-team/input");
        $run::<SessionStatus>("gated-team/status");
        $run::<TaskPlan>("gated-team/tasks");
        $run::<Acceptance>("gated-team/acceptance");
    };
}

/// JSON, type, JSON again: accepted both times, and the same.
fn round_trip<T: AgentOutput>(id: &str) {
    let contract = contract_of::<T>().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(contract.id(), id);
    for example in &contract.definition().examples {
        let read = contract.check_value(example).value.unwrap();
        let typed: T =
            serde_json::from_value(read.clone()).unwrap_or_else(|error| panic!("{id}: {error}"));
        let written = serde_json::to_value(&typed).unwrap();
        let again = contract.check_value(&written);
        assert!(again.is_accepted(), "{id}: {:?}", again.violations);
        assert_eq!(again.value.unwrap(), read, "{id}");
    }
}

#[test]
fn every_example_survives_its_type() {
    for_every_type!(round_trip);
}

#[test]
fn a_line_is_kept_as_a_string() {
    for (line, kept) in [(json!("42"), "42"), (json!(42), "42"), (json!("10-20"), "10-20")] {
        let finding = json!({
            "id": "F001", "file": "src/a.rs", "line": line, "issue": "wrong", "severity": "minor", "category": "style"
        });
        let text = format!("```json\n{finding}\n```");
        let finding: Finding = validate_output(&text).unwrap();
        assert_eq!(finding.line, LineRef(kept.into()));
    }
    let null: Value = json!({
        "id": "F001", "file": "src/a.rs", "line": null, "issue": "wrong", "severity": "minor", "category": "style"
    });
    assert!(validate_output::<Finding>(&format!("```json\n{null}\n```")).is_err());
}

#[test]
fn a_block_reads_none_and_lists_and_sentences() {
    let review: CodeReviewBlock = validate_output(
        "Reviewed.\n---OUTPUT---\napproved: false\nissues_total: 2\ncritical: none\nmajor: [a, b]\nminor: []\n\
         security: limit the rate first\ntest_coverage: adequate\nrecommendation: revise\n---END---\n",
    )
    .unwrap();
    assert_eq!(review.critical, Nullable(None));
    assert_eq!(review.major.items(), ["a", "b"]);
    assert_eq!(review.security.items(), ["limit the rate first"]);
    let hunt: SilentFailureBlock = validate_output(
        "---OUTPUT---\nsilent_failures_found: 0\nlocations: none\nseverity: none\nrecommendations: none\n---END---",
    )
    .unwrap();
    assert_eq!(hunt.severity, FailureSeverity::None, "an enum that knows the word keeps it");
}

#[test]
fn findings_by_other_names_are_read() {
    let issue = json!({
        "severity": "HIGH", "category": "coverage_gap", "file": "tasks.md:12", "description": "REQ-4 has no task"
    });
    let context = json!({"feedback_from": "analyze", "iteration": 1, "max_iterations": 2, "issues_to_fix": [issue]});
    let context: FeedbackContext = validate_output(&context.to_string()).unwrap();
    let issue = &context.issues_to_fix[0];
    assert_eq!(
        (issue.kind.as_str(), issue.message.as_str()),
        ("coverage_gap", "REQ-4 has no task")
    );
    assert_eq!(issue.location.as_deref(), Some("tasks.md:12"));
}

#[test]
fn a_default_that_is_missed_is_said_and_refused_by_a_strict_reader() {
    for (id, fields) in [
        ("execution-loop/implementer", &["/files_added", "/files_changed"][..]),
        ("execution-loop/code-quality", &["/issues"]),
        ("execution-loop/dod", &["/remaining_items"]),
    ] {
        let contract = registry().get(id).unwrap();
        let mut result = contract.definition().examples[0].clone();
        result.as_object_mut().unwrap().retain(|name, _| !fields.contains(&&*format!("/{name}")));
        let report = contract.check(&result.to_string());
        let missed: Vec<(&str, &str)> =
            report.warnings.iter().map(|one| (one.code.as_str(), one.pointer.as_str())).collect();
        assert_eq!(missed, fields.iter().map(|one| ("W0102", *one)).collect::<Vec<_>>(), "{id}");
        let value = report.value.unwrap();
        assert!(fields.iter().all(|one| value.pointer(one) == Some(&json!([]))), "{id}: {value}");
        let strict = contract.check_strictly(&result.to_string()).violations;
        let mut refused: Vec<(&str, &str)> =
            strict.iter().map(|one| (one.code.as_str(), one.pointer.as_str())).collect();
        refused.sort_unstable();
        assert_eq!(refused, fields.iter().map(|one| ("C0201", *one)).collect::<Vec<_>>(), "{id}");
    }
    // Without the promise of a table, a default needs no word.
    let fixer = contract_of::<FixerResult>().unwrap();
    let report = fixer.check("```json\n{\"success\": true, \"summary\": \"Done\"}\n```");
    assert!(report.is_accepted() && report.warnings.is_empty(), "{report:?}");
}

#[test]
fn the_old_result_is_readable_and_says_what_to_use_instead() {
    let contract = contract_of::<AgentResult>().unwrap();
    let report = contract.check_value(&contract.definition().examples[0]);
    assert!(report.is_accepted());
    assert_eq!(report.warnings[0].code.as_str(), "W0107");
    assert!(report.warnings[0].message.contains("fixer-result"));
}

/// What `OpenAI` publishes of the schemas that it takes for structured outputs.
fn assert_strict(schema: &Value, at: &str) {
    const KEYWORDS: [&str; 21] = [
        "type",
        "enum",
        "const",
        "title",
        "description",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "anyOf",
        "$ref",
        "$defs",
        "pattern",
        "format",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "minItems",
        "maxItems",
    ];
    let map = schema.as_object().unwrap_or_else(|| panic!("{at}: {schema}"));
    for keyword in map.keys() {
        assert!(KEYWORDS.contains(&keyword.as_str()), "{at}: {keyword}");
    }
    if map.contains_key("$ref") {
        assert_eq!(map.len(), 1, "{at}: something stands beside a reference");
        return;
    }
    let types: Vec<&str> = match &map.get("type") {
        Some(Value::Array(types)) => types.iter().map(|ty| ty.as_str().unwrap()).collect(),
        ty => ty.iter().map(|ty| ty.as_str().unwrap()).collect(),
    };
    assert!(!types.is_empty() || map.contains_key("anyOf"), "{at}: no type");
    assert!(!types.contains(&"array") || map.contains_key("items"), "{at}: no items");
    let properties = map.get("properties").and_then(Value::as_object);
    if types.contains(&"object") {
        assert_eq!(map["additionalProperties"], json!(false), "{at}");
        let names: Vec<&String> = properties.unwrap().keys().collect();
        assert_eq!(map["required"], json!(names), "{at}");
    }
    for (name, inner) in properties.into_iter().flatten() {
        assert_strict(inner, &format!("{at}/{name}"));
    }
    for (name, inner) in map.get("$defs").and_then(Value::as_object).into_iter().flatten() {
        assert_strict(inner, &format!("#{name}"));
    }
    for inner in map
        .get("items")
        .into_iter()
        .chain(map.get("anyOf").and_then(Value::as_array).into_iter().flatten())
    {
        assert_strict(inner, &format!("{at}/…"));
    }
}

#[test]
fn every_schema_for_codex_is_one_that_its_server_takes() {
    let registry = registry();
    let mut left_out = Vec::new();
    for id in IDS {
        let lowered = vendor::schema(&registry.get(id).unwrap(), Target::Codex);
        assert_strict(&lowered.schema, id);
        if !lowered.is_usable() {
            left_out.push(*id);
        }
    }
    // Each of them must hand back an object whose keys are data, which the server would make it
    // leave empty.
    assert_eq!(
        left_out,
        ["spec-pipeline/implement", "spec-pipeline/workflow-context", "gated-team/status"]
    );
}
