//! The contracts of the feature pipeline: short blocks between `---OUTPUT---` and `---END---`.
//!
//! Every field is required. `none` in a block makes the field null.

use crate::value::{Nullable, string_enum};
use counterfoil_contract::claim::{Claim, ClaimKind, Figure};
use counterfoil_contract::{AgentOutput, Definition, Framing, RepoPath, Rule};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

string_enum! {
    /// The difficulty of a feature.
    Complexity { Low = "low", Medium = "medium", High = "high" }
}

string_enum! {
    /// Whether the tests cover the change.
    TestCoverage { Adequate = "adequate", NeedsImprovement = "needs-improvement", Insufficient = "insufficient" }
}

string_enum! {
    /// What a reviewer recommends.
    ReviewRecommendation { Approve = "approve", Revise = "revise", Block = "block" }
}

string_enum! {
    /// How much simpler the code became.
    ComplexityReduction { None = "none", Low = "low", Medium = "medium", High = "high" }
}

string_enum! {
    /// The severity of silent failures.
    FailureSeverity { None = "none", Low = "low", Medium = "medium", High = "high", Critical = "critical" }
}

string_enum! {
    /// What came of the tests.
    TestStatus { AllPass = "all-pass", SomeFail = "some-fail", NotRun = "not-run" }
}

string_enum! {
    /// The confidence of a reviewer.
    ApprovalConfidence { Low = "low", Medium = "medium", High = "high" }
}

string_enum! {
    /// What the merge gate recommends.
    MergeRecommendation { Merge = "merge", Revise = "revise", Reject = "reject" }
}

/// A definition with the settings that all blocks share.
fn block_definition<T: JsonSchema>(name: &str) -> Definition {
    Definition::for_type::<T>(&format!("feature-pipeline/{name}"), 1, Framing::OutputBlock)
        .agent(name)
        .salvages("")
}

/// An expression for the size of a list that may be null.
fn size_expression(field: &str) -> String {
    format!("(result.{field} == null ? 0 : size(result.{field}))")
}

/// What the TODO document's author hands back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TodoDocBlock {
    /// The TODO document that was written
    #[schemars(extend("x-placeholder" = ".claude/features/[slug]-TODO.md"))]
    pub path: RepoPath,
    /// Slugs of the features that must come first, or none
    #[schemars(extend("x-placeholder" = "[feature1, feature2] or \"none\""))]
    pub dependencies: Nullable<Vec<String>>,
    /// 1 (first) to 5 (last)
    #[schemars(range(min = 1, max = 5), extend("x-placeholder" = "[1-5]"))]
    pub priority: u64,
    /// How many phases it has
    #[schemars(range(min = 1), extend("x-placeholder" = "[count]"))]
    pub phases: u64,
    /// How hard it is
    #[schemars(extend("x-placeholder" = "[low/medium/high]"))]
    pub complexity: Complexity,
}

impl AgentOutput for TodoDocBlock {
    fn definition() -> Definition {
        block_definition::<Self>("todo-doc-generator")
            .summary("The TODO document of a feature: where it is, what it depends on, how much it is")
            .display("{{ result.path }}: {{ result.phases }} phases, {{ result.complexity }}, priority {{ result.priority }}")
            .claim("path", Claim::new(ClaimKind::Artifact))
            .example(json!({
                "path": ".claude/features/search-TODO.md", "dependencies": null, "priority": 2, "phases": 4,
                "complexity": "high"
            }))
            .example(json!({
                "path": ".claude/features/export-TODO.md", "dependencies": ["search", "login"], "priority": 5,
                "phases": 1, "complexity": "low"
            }))
            .counter_example(
                "C0204",
                json!({
                    "path": ".claude/features/search-TODO.md", "dependencies": null, "priority": 9, "phases": 4,
                    "complexity": "high"
                }),
            )
    }
}

/// What the TDD executor hands back after a phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TddPhaseBlock {
    /// Which phase of how many, such as 2/3
    #[schemars(
        regex(pattern = r"^[1-9][0-9]*/[1-9][0-9]*$"),
        extend("format" = "n-of-m", "x-placeholder" = "[phase number]/[total phases]")
    )]
    pub phase: String,
    /// Whether the phase is done
    #[schemars(extend("x-placeholder" = "[true/false]"))]
    pub phase_complete: bool,
    /// Files that were modified
    #[schemars(extend("x-placeholder" = "[file1.ts, file2.ts]"))]
    pub files_changed: Vec<RepoPath>,
    /// Files that were created, or none
    #[schemars(extend("x-placeholder" = "[newfile.ts] or \"none\""))]
    pub files_created: Nullable<Vec<RepoPath>>,
    /// How many tests were added
    #[schemars(extend("x-placeholder" = "[count]"))]
    pub tests_added: u64,
    /// Whether all tests pass
    #[schemars(extend("x-placeholder" = "[true/false]"))]
    pub tests_passing: bool,
    /// Names of the tests that fail, or none
    #[schemars(extend("x-placeholder" = "[list of failing test names] or \"none\""))]
    pub test_failures: Nullable<Vec<String>>,
    /// What keeps the work from going on, or none
    #[schemars(extend("x-placeholder" = "[description] or \"none\""))]
    pub blockers: Nullable<Vec<String>>,
    /// What should happen next
    #[schemars(extend("x-placeholder" = "[what needs to happen next]"))]
    pub next_action: String,
}

fn tdd_phase() -> Value {
    json!({
        "phase": "1/2", "phase_complete": true, "files_changed": ["src/search/index.ts"],
        "files_created": ["src/search/index.test.ts"], "tests_added": 5, "tests_passing": true,
        "test_failures": null, "blockers": null, "next_action": "go on with phase 2"
    })
}

impl AgentOutput for TddPhaseBlock {
    fn definition() -> Definition {
        let failures = size_expression("test_failures");
        let mut contradicting = tdd_phase();
        contradicting["test_failures"] = json!(["ranks exact matches first"]);
        let mut wrong_phase = tdd_phase();
        wrong_phase["phase"] = json!("one of two");
        block_definition::<Self>("tdd-task-executor")
            .version(2)
            .summary("One phase of a feature, done test first")
            .approves("result.phase_complete && result.tests_passing")
            .asks_if_several()
            .display(
                "phase {{ result.phase }} {{ 'complete' if result.phase_complete else 'open' }}, \
                 {{ result.tests_added }} tests added, tests {{ 'pass' if result.tests_passing else 'fail' }}",
            )
            .rule(
                Rule::check(
                    "complete-means-no-failures",
                    &format!("!(result.phase_complete && {failures} > 0)"),
                    "`phase_complete` is true, but `test_failures` names tests that fail",
                )
                .at("/phase_complete"),
            )
            .rule(
                Rule::check(
                    "passing-means-no-failures",
                    &format!("!(result.tests_passing && {failures} > 0)"),
                    "`tests_passing` is true, but `test_failures` names tests that fail",
                )
                .at("/tests_passing"),
            )
            .claim("files_changed", Claim::new(ClaimKind::FilesModified))
            .claim("files_created", Claim::new(ClaimKind::FilesAdded))
            .claim("tests_added", Claim::figure(Figure::TestsAdded))
            .claim("tests_passing", Claim::check("test"))
            .example(tdd_phase())
            .example(json!({
                "phase": "2/2", "phase_complete": false, "files_changed": [], "files_created": null,
                "tests_added": 0, "tests_passing": false, "test_failures": ["ranks exact matches first"],
                "blockers": ["the ranking service is not reachable"], "next_action": "give the test a stub"
            }))
            .counter_example("passing-means-no-failures", contradicting)
            .counter_example("C0206", wrong_phase)
    }
}

/// What the code reviewer hands back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CodeReviewBlock {
    /// Whether the change can go on as it is
    #[schemars(extend("x-placeholder" = "[true/false]"))]
    pub approved: bool,
    /// How many issues there are: critical, major and minor ones
    #[schemars(extend("x-placeholder" = "[count]"))]
    pub issues_total: u64,
    /// The critical issues, or none
    #[schemars(extend("x-placeholder" = "[list of critical issues] or \"none\""))]
    pub critical: Nullable<Vec<String>>,
    /// The major issues, or none
    #[schemars(extend("x-placeholder" = "[list of major issues] or \"none\""))]
    pub major: Nullable<Vec<String>>,
    /// The minor issues, or none
    #[schemars(extend("x-placeholder" = "[list of minor issues] or \"none\""))]
    pub minor: Nullable<Vec<String>>,
    /// Concerns about security, or none
    #[schemars(extend("x-placeholder" = "[security concerns] or \"none\""))]
    pub security: Nullable<Vec<String>>,
    /// Whether the tests cover the change
    #[schemars(extend("x-placeholder" = "[adequate/needs-improvement/insufficient]"))]
    pub test_coverage: TestCoverage,
    /// What should happen now
    #[schemars(extend("x-placeholder" = "[approve/revise/block]"))]
    pub recommendation: ReviewRecommendation,
}

impl AgentOutput for CodeReviewBlock {
    fn definition() -> Definition {
        let (critical, major, minor) =
            (size_expression("critical"), size_expression("major"), size_expression("minor"));
        block_definition::<Self>("code-reviewer")
            .summary("A review of the change: approved or not, and the issues by weight")
            .approves("result.approved")
            .asks_if_several()
            .alias("pr-review-toolkit:code-reviewer")
            .display("{{ result.recommendation }}: {{ result.issues_total }} issues, coverage {{ result.test_coverage }}")
            .rule(
                Rule::check(
                    "issues-add-up",
                    &format!("result.issues_total == {critical} + {major} + {minor}"),
                    "`issues_total` differs from the number of `critical`, `major` and `minor` issues",
                )
                .at("/issues_total"),
            )
            .rule(
                Rule::check(
                    "approved-means-nothing-critical",
                    &format!("!(result.approved && {critical} > 0)"),
                    "`approved` is true, but `critical` names issues",
                )
                .at("/approved"),
            )
            .rule(
                Rule::check(
                    "approved-means-approve",
                    "!result.approved || result.recommendation == \"approve\"",
                    "`approved` is true, but `recommendation` is not approve",
                )
                .at("/approved"),
            )
            .example(json!({
                "approved": true, "issues_total": 1, "critical": null, "major": null,
                "minor": ["the constant has no name"], "security": null, "test_coverage": "adequate",
                "recommendation": "approve"
            }))
            .example(json!({
                "approved": false, "issues_total": 2, "critical": ["queries are built from user input"],
                "major": ["no test for an empty query"], "minor": [], "security": ["injection through the query"],
                "test_coverage": "insufficient", "recommendation": "block"
            }))
            .counter_example(
                "issues-add-up",
                json!({
                    "approved": false, "issues_total": 5, "critical": null, "major": ["no test for an empty query"],
                    "minor": null, "security": null, "test_coverage": "adequate", "recommendation": "revise"
                }),
            )
            .counter_example(
                "approved-means-approve",
                json!({
                    "approved": true, "issues_total": 0, "critical": null, "major": null, "minor": null,
                    "security": null, "test_coverage": "adequate", "recommendation": "revise"
                }),
            )
    }
}

/// What the simplifier hands back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimplifierBlock {
    /// Whether anything became simpler
    #[schemars(extend("x-placeholder" = "[true/false]"))]
    pub simplified: bool,
    /// Files that were modified
    #[schemars(extend("x-placeholder" = "[list of files]"))]
    pub files_modified: Vec<RepoPath>,
    /// How many lines went away
    #[schemars(extend("x-placeholder" = "[count]"))]
    pub lines_removed: u64,
    /// How much simpler the code became
    #[schemars(extend("x-placeholder" = "[none/low/medium/high]"))]
    pub complexity_reduction: ComplexityReduction,
    /// What was simplified
    #[schemars(extend("x-placeholder" = "[brief description of simplifications]"))]
    pub changes_summary: String,
}

impl AgentOutput for SimplifierBlock {
    fn definition() -> Definition {
        block_definition::<Self>("code-simplifier")
            .summary("Code made simpler with the same behaviour")
            .alias("pr-review-toolkit:code-simplifier")
            .display("{{ result.lines_removed }} lines removed, reduction {{ result.complexity_reduction }}: {{ result.changes_summary }}")
            .claim("files_modified", Claim::new(ClaimKind::FilesModified))
            .example(json!({
                "simplified": true, "files_modified": ["src/search/index.ts"], "lines_removed": 14,
                "complexity_reduction": "low", "changes_summary": "One loop instead of three"
            }))
            .example(json!({
                "simplified": false, "files_modified": [], "lines_removed": 0, "complexity_reduction": "none",
                "changes_summary": "Nothing worth it"
            }))
            .counter_example(
                "C0203",
                json!({
                    "simplified": true, "files_modified": [], "lines_removed": 0, "complexity_reduction": "some",
                    "changes_summary": "One loop instead of three"
                }),
            )
    }
}

/// What the hunter of silent failures hands back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SilentFailureBlock {
    /// How many were found
    #[schemars(extend("x-placeholder" = "[count]"))]
    pub silent_failures_found: u64,
    /// Where, as `file:line - what`, or none
    #[schemars(extend("x-placeholder" = "[file:line descriptions] or \"none\""))]
    pub locations: Nullable<Vec<String>>,
    /// How bad the worst is; `none` if there are none
    #[schemars(extend("x-placeholder" = "[none/low/medium/high/critical]"))]
    pub severity: FailureSeverity,
    /// What to do about them, or none
    #[schemars(extend("x-placeholder" = "[brief list]"))]
    pub recommendations: Nullable<Vec<String>>,
}

impl AgentOutput for SilentFailureBlock {
    fn definition() -> Definition {
        block_definition::<Self>("silent-failure-hunter")
            .summary("Errors that are swallowed, and where")
            .approves("!(result.severity in [\"high\", \"critical\"])")
            .asks_if_several()
            .alias("pr-review-toolkit:silent-failure-hunter")
            .display("{{ result.silent_failures_found }} silent failures, severity {{ result.severity }}")
            .rule(
                Rule::check(
                    "none-found-means-no-locations",
                    &format!("!(result.silent_failures_found == 0 && {} > 0)", size_expression("locations")),
                    "`silent_failures_found` is 0, but `locations` names places",
                )
                .at("/silent_failures_found"),
            )
            .rule(
                Rule::check(
                    "found-means-severity",
                    "!(result.silent_failures_found > 0 && result.severity == \"none\")",
                    "`silent_failures_found` is above 0, but `severity` is none",
                )
                .at("/severity"),
            )
            .claim("locations", Claim::new(ClaimKind::Location))
            .claim("silent_failures_found", Claim::count_of("/locations"))
            .example(json!({
                "silent_failures_found": 1, "locations": ["src/search/client.ts:31 - the rejection is dropped"],
                "severity": "high", "recommendations": ["hand the error to the caller"]
            }))
            .example(json!({
                "silent_failures_found": 0, "locations": null, "severity": "none", "recommendations": null
            }))
            .counter_example(
                "found-means-severity",
                json!({
                    "silent_failures_found": 1, "locations": ["src/search/client.ts:31 - dropped"],
                    "severity": "none", "recommendations": null
                }),
            )
    }
}

/// What the merge gate hands back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MergeReviewBlock {
    /// Whether it can be merged now
    #[schemars(extend("x-placeholder" = "[true/false]"))]
    pub ready_to_merge: bool,
    /// What must be fixed first, or none
    #[schemars(extend("x-placeholder" = "[list] or \"none\""))]
    pub blocking_issues: Nullable<Vec<String>>,
    /// What is worth knowing, or none
    #[schemars(extend("x-placeholder" = "[list] or \"none\""))]
    pub warnings: Nullable<Vec<String>>,
    /// What came of the tests
    #[schemars(extend("x-placeholder" = "[all-pass/some-fail/not-run]"))]
    pub test_status: TestStatus,
    /// How many files were read
    #[schemars(extend("x-placeholder" = "[count]"))]
    pub files_reviewed: u64,
    /// How sure the reviewer is
    #[schemars(extend("x-placeholder" = "[low/medium/high]"))]
    pub approval_confidence: ApprovalConfidence,
    /// What should happen now
    #[schemars(extend("x-placeholder" = "[merge/revise/reject]"))]
    pub final_recommendation: MergeRecommendation,
}

fn merge_review() -> Value {
    json!({
        "ready_to_merge": true, "blocking_issues": null, "warnings": ["an end-to-end test would help"],
        "test_status": "all-pass", "files_reviewed": 4, "approval_confidence": "medium",
        "final_recommendation": "merge"
    })
}

impl AgentOutput for MergeReviewBlock {
    fn definition() -> Definition {
        let mut untested = merge_review();
        untested["test_status"] = json!("not-run");
        let mut revise = merge_review();
        revise["final_recommendation"] = json!("revise");
        block_definition::<Self>("review-pr")
            .summary("The last look before a merge")
            .approves("result.ready_to_merge")
            .asks_if_several()
            .alias("pr-review-toolkit:review-pr")
            .display("{{ result.final_recommendation }} ({{ result.approval_confidence }}): tests {{ result.test_status }}, {{ result.files_reviewed }} files")
            .rule(
                Rule::check(
                    "ready-means-nothing-blocks",
                    &format!("!(result.ready_to_merge && {} > 0)", size_expression("blocking_issues")),
                    "`ready_to_merge` is true, but `blocking_issues` names issues",
                )
                .at("/ready_to_merge"),
            )
            .rule(
                Rule::check(
                    "ready-means-tests-pass",
                    "!result.ready_to_merge || result.test_status == \"all-pass\"",
                    "`ready_to_merge` is true, but `test_status` is not all-pass",
                )
                .at("/ready_to_merge"),
            )
            .rule(
                Rule::check(
                    "ready-means-merge",
                    "!result.ready_to_merge || result.final_recommendation == \"merge\"",
                    "`ready_to_merge` is true, but `final_recommendation` is not merge",
                )
                .at("/ready_to_merge"),
            )
            .claim("test_status", Claim::check("test"))
            .example(merge_review())
            .example(json!({
                "ready_to_merge": false, "blocking_issues": ["the search test fails"], "warnings": null,
                "test_status": "some-fail", "files_reviewed": 4, "approval_confidence": "high",
                "final_recommendation": "revise"
            }))
            .counter_example("ready-means-tests-pass", untested)
            .counter_example("ready-means-merge", revise)
    }
}

/// What the analyser of type design hands back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TypeDesignBlock {
    /// How many types were looked at
    #[schemars(extend("x-placeholder" = "[count]"))]
    pub types_analyzed: u64,
    /// 1 (poor) to 10 (excellent)
    #[schemars(range(min = 1, max = 10), extend("x-placeholder" = "[1-10]"))]
    pub quality_score: u64,
    /// What is wrong with the types, or none
    #[schemars(extend("x-placeholder" = "[list of type design issues] or \"none\""))]
    pub issues: Nullable<Vec<String>>,
    /// What to do about it, or none
    #[schemars(extend("x-placeholder" = "[list] or \"none\""))]
    pub recommendations: Nullable<Vec<String>>,
}

impl AgentOutput for TypeDesignBlock {
    fn definition() -> Definition {
        block_definition::<Self>("type-design-analyzer")
            .summary("How well the types of the change are designed")
            .approves("result.quality_score > 4")
            .asks_if_several()
            .alias("pr-review-toolkit:type-design-analyzer")
            .display("{{ result.types_analyzed }} types, score {{ result.quality_score }} of 10")
            .example(
                json!({"types_analyzed": 6, "quality_score": 8, "issues": null, "recommendations": null}),
            )
            .example(json!({
                "types_analyzed": 2, "quality_score": 4, "issues": ["an id is a plain string"],
                "recommendations": ["give the id a type"]
            }))
            .counter_example(
                "C0204",
                json!({"types_analyzed": 6, "quality_score": 11, "issues": null, "recommendations": null}),
            )
    }
}

pub(crate) fn definitions() -> Vec<Definition> {
    vec![
        TodoDocBlock::definition(),
        TddPhaseBlock::definition(),
        CodeReviewBlock::definition(),
        SimplifierBlock::definition(),
        SilentFailureBlock::definition(),
        MergeReviewBlock::definition(),
        TypeDesignBlock::definition(),
    ]
}
