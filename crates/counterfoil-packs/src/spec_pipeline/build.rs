//! Results of the agents that build: implement, test, review and taskstoissues.

use super::{
    Envelope, PipelineFinding, SpecResult, envelope_display, percentage_matches_counts,
    rename_finding_fields, result_rule, success_example,
};
use crate::value::string_enum;
use counterfoil_contract::claim::{Claim, ClaimKind, Figure};
use counterfoil_contract::{Definition, RepoPath, Rule};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

string_enum! {
    /// Whether a quality gate is passed.
    GateStatus { Passed = "PASSED", Failed = "FAILED" }
}

string_enum! {
    /// Whether a criterion of success is met.
    CriterionStatus { Passed = "PASSED", Failed = "FAILED", NotTested = "NOT_TESTED" }
}

string_enum! {
    /// The outcome of a review of the feature.
    ReviewVerdict {
        Approved = "APPROVED",
        ApprovedWithWarnings = "APPROVED_WITH_WARNINGS",
        NeedsManualReview = "NEEDS_MANUAL_REVIEW",
    }
}

string_enum! {
    /// Whether the project's rules are kept.
    ComplianceStatus { Pass = "PASS", Fail = "FAIL" }
}

/// Code that was written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ImplementResult {
    /// The list of tasks
    #[schemars(extend("default" = "none", "x-asked" = "optional"))]
    pub tasks_file: RepoPath,
    /// Tasks that are done
    pub tasks_completed: u64,
    /// Tasks in all
    pub tasks_total: u64,
    /// The share of those, in percent
    #[schemars(range(min = 0.0, max = 100.0))]
    pub completion_percentage: f64,
    /// Tests that passed
    pub tests_passed: u64,
    /// Tests in all
    pub tests_total: u64,
    /// Lines covered by tests, in percent
    #[schemars(range(min = 0.0, max = 100.0))]
    pub coverage_percentage: f64,
    /// How many files were created
    pub files_created: u64,
    /// How many files were modified
    pub files_modified: u64,
    /// How far each phase is, by name
    pub implementation_phases: BTreeMap<String, String>,
    /// The agents that could come next
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_steps: Option<Vec<String>>,
}

/// The output of the agent `implement`.
pub type ImplementOutput = Envelope<ImplementResult>;

impl SpecResult for ImplementResult {
    const AGENT: &'static str = "implement";
    const PREFIXED_AGENT: &'static str = "speckit-implement";

    fn failure() -> Value {
        json!({
            "type": "QualityGateFailure", "code": "TESTS_FAIL", "message": "Two tests of the ranking still fail",
            "recoverable": true
        })
    }

    fn extend_envelope(envelope: Definition) -> Definition {
        let example = json!({
            "tasks_file": "specs/007-search/tasks.md", "tasks_completed": 3, "tasks_total": 4,
            "completion_percentage": 75.0, "tests_passed": 31, "tests_total": 31, "coverage_percentage": 88.5,
            "files_created": 6, "files_modified": 2, "implementation_phases": {"setup": "completed"}
        });
        let mut too_many = success_example::<Self>(&example);
        too_many["result"]["tasks_completed"] = json!(5);
        envelope
            .version(4)
            .summary("The tasks of the plan, implemented")
            .display(&envelope_display(
                "{{ result.result.tasks_completed }}/{{ result.result.tasks_total }} tasks, \
                 {{ result.result.tests_passed }}/{{ result.result.tests_total }} tests, \
                 {{ result.result.coverage_percentage }} % covered",
            ))
            .rule(result_rule(
                "completed-within-total",
                "result.result.tasks_completed <= result.result.tasks_total",
                "`tasks_completed` is above `tasks_total`",
                "/result/tasks_completed",
            ))
            .rule(result_rule(
                "completion-agrees-with-counts",
                &percentage_matches_counts(
                    "result.result.completion_percentage",
                    "result.result.tasks_completed",
                    "result.result.tasks_total",
                ),
                "`completion_percentage` differs by more than 0.5 from `tasks_completed` of `tasks_total`",
                "/result/completion_percentage",
            ))
            .claim("result/files_created", Claim::figure(Figure::FilesAdded))
            .claim("result/files_modified", Claim::figure(Figure::FilesModified))
            .claim("result/tests_passed", Claim::figure_of_check(Figure::Passed, "test"))
            .claim("result/tests_total", Claim::figure_of_check(Figure::Total, "test"))
            .example(success_example::<Self>(&example))
            .counter_example("completed-within-total", too_many)
    }
}

/// The counts of a test run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TestCounts {
    /// Tests in all
    pub total: u64,
    /// Tests that passed
    pub passed: u64,
    /// Tests that failed
    pub failed: u64,
}

/// How much the tests cover.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CoverageDetails {
    /// What is covered, in percent
    #[schemars(range(min = 0.0, max = 100.0))]
    pub overall: f64,
    /// What must be covered, in percent
    #[schemars(range(min = 0.0, max = 100.0))]
    pub required: f64,
}

/// What linters and type checkers count.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CodeQualityDetails {
    /// Errors of the linter
    pub lint_errors: u64,
    /// Errors of the type checker
    pub type_errors: u64,
}

/// Whether the build is valid.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BuildDetails {
    /// `valid`, or what is wrong with the compose file
    pub docker_compose: String,
    /// Anything else that was built
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// One quality gate, with the figures behind it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct Gate<D> {
    /// Whether it is passed
    pub status: GateStatus,
    /// The figures behind it
    pub details: D,
}

/// The four quality gates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QualityGates {
    /// All tests pass
    pub tests_passing: Gate<TestCounts>,
    /// Enough is covered
    pub coverage: Gate<CoverageDetails>,
    /// No errors of linters and type checkers
    pub code_quality: Gate<CodeQualityDetails>,
    /// The build is valid
    pub build_validation: Gate<BuildDetails>,
}

/// One criterion of success.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SuccessCriterion {
    /// Its id, such as SC-001
    pub id: String,
    /// What must hold
    pub description: String,
    /// Whether it does
    pub status: CriterionStatus,
}

/// The quality gates of a feature.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TestResult {
    /// The feature
    pub feature_id: String,
    /// Whether all gates are passed
    pub overall_status: GateStatus,
    /// The gates
    pub quality_gates: QualityGates,
    /// The criteria of success
    pub success_criteria: Vec<SuccessCriterion>,
    /// The agents that could come next
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_steps: Option<Vec<String>>,
}

/// The output of the agent `test`.
pub type TestOutput = Envelope<TestResult>;

impl SpecResult for TestResult {
    const AGENT: &'static str = "test";
    const PREFIXED_AGENT: &'static str = "speckit-test";

    fn failure() -> Value {
        json!({
            "type": "TimeoutError", "code": "TESTS_HANG", "message": "The tests did not end within 30 minutes",
            "recoverable": true
        })
    }

    fn extend_envelope(envelope: Definition) -> Definition {
        let example = json!({
            "feature_id": "007-search", "overall_status": "PASSED",
            "quality_gates": {
                "tests_passing": {"status": "PASSED", "details": {"total": 31, "passed": 31, "failed": 0}},
                "coverage": {"status": "PASSED", "details": {"overall": 88.5, "required": 80.0}},
                "code_quality": {"status": "PASSED", "details": {"lint_errors": 0, "type_errors": 0}},
                "build_validation": {"status": "PASSED", "details": {"docker_compose": "valid"}}
            },
            "success_criteria": [
                {"id": "SC-001", "description": "a search takes under 50 ms", "status": "NOT_TESTED"},
                {"id": "SC-002", "description": "a search finds every exact match", "status": "PASSED"}
            ]
        });
        let mut failed_gate = success_example::<Self>(&example);
        failed_gate["result"]["quality_gates"]["coverage"]["status"] = json!("FAILED");
        envelope
            .summary("The quality gates of a feature, with the figures behind them")
            .approves("has(result.result) && result.result.overall_status == \"PASSED\"")
            .asks_if_several()
            .display(&envelope_display(
                "{{ result.result.overall_status }}: {{ result.result.quality_gates.tests_passing.details.passed }}/\
                 {{ result.result.quality_gates.tests_passing.details.total }} tests, \
                 {{ result.result.quality_gates.coverage.details.overall }} % covered",
            ))
            .rule(result_rule(
                "passed-means-no-gate-failed",
                "!(result.result.overall_status == \"PASSED\" && (\
                 result.result.quality_gates.tests_passing.status == \"FAILED\" || \
                 result.result.quality_gates.coverage.status == \"FAILED\" || \
                 result.result.quality_gates.code_quality.status == \"FAILED\" || \
                 result.result.quality_gates.build_validation.status == \"FAILED\"))",
                "`overall_status` is PASSED, but a gate of `quality_gates` is FAILED",
                "/result/overall_status",
            ))
            .rule(Rule::unique("ids-differ", "/result/success_criteria/*/id"))
            .claim("result/quality_gates/tests_passing", Claim::check("test"))
            .claim("result/quality_gates/code_quality", Claim::check("lint"))
            .claim("result/quality_gates/build_validation", Claim::check("build"))
            .example(success_example::<Self>(&example))
            .counter_example("passed-means-no-gate-failed", failed_gate)
    }
}

/// A file that was moved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MovedFile {
    /// Where it was
    pub from: RepoPath,
    /// Where it is
    pub to: RepoPath,
}

/// A file that was created or deleted, and why.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReasonedFile {
    /// The file
    pub path: RepoPath,
    /// Why
    pub reason: String,
}

/// A file that was modified, and how.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EditedFile {
    /// The file
    pub path: RepoPath,
    /// What was changed
    pub changes: String,
}

/// What a review changed by itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReviewChanges {
    /// Files that were moved
    pub files_moved: Vec<MovedFile>,
    /// Files that were deleted
    pub files_deleted: Vec<ReasonedFile>,
    /// Files that were created
    pub files_created: Vec<ReasonedFile>,
    /// Files that were modified
    pub files_modified: Vec<EditedFile>,
}

/// Whether the project's rules are kept, with the counts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConstitutionCompliance {
    /// Whether all are kept
    pub status: ComplianceStatus,
    /// Rules that are kept
    pub passed: u64,
    /// Rules that are not
    pub failed: u64,
}

/// What was cleaned up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CleanupSummary {
    /// Tests that were removed
    pub tests_removed: u64,
    /// Files that were moved
    pub files_moved: u64,
    /// Lines of dead code that were removed
    pub dead_code_lines_removed: u64,
}

/// A feature that was reviewed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FeatureReviewResult {
    /// The feature
    pub feature_id: String,
    /// What the review comes to
    pub overall_status: ReviewVerdict,
    /// What it changed by itself
    pub changes_made: ReviewChanges,
    /// Whether the project's rules are kept
    pub constitution_compliance: ConstitutionCompliance,
    /// What was cleaned up
    pub cleanup_summary: CleanupSummary,
    /// What is left to be fixed
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issues: Option<Vec<PipelineFinding>>,
    /// The agents that could come next
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_steps: Option<Vec<String>>,
}

/// The output of the agent `review`.
pub type ReviewOutput = Envelope<FeatureReviewResult>;

impl SpecResult for FeatureReviewResult {
    const AGENT: &'static str = "review";
    const PREFIXED_AGENT: &'static str = "speckit-review";

    fn failure() -> Value {
        json!({
            "type": "ConstitutionViolationError", "code": "RULES_CONFLICT",
            "message": "Two rules of the project contradict each other", "recoverable": false
        })
    }

    fn extend_envelope(envelope: Definition) -> Definition {
        rename_finding_fields(envelope, "/result/issues/*")
            .summary("A review of the whole feature against the project's rules, with what it cleaned up")
            .approves("has(result.result) && result.result.overall_status.startsWith(\"APPROVED\")")
            .asks_if_several()
            .display(&envelope_display(
                "{{ result.result.overall_status }}: rules {{ result.result.constitution_compliance.status }}, \
                 {{ result.result.changes_made.files_modified | length }} files modified",
            ))
            // Whole lists: an empty one claims that there was no such change.
            .claim("result/changes_made/files_moved", Claim::new(ClaimKind::FilesRenamed))
            .claim("result/changes_made/files_deleted", Claim::new(ClaimKind::FilesDeleted))
            .claim("result/changes_made/files_created", Claim::new(ClaimKind::FilesAdded))
            .claim("result/changes_made/files_modified", Claim::new(ClaimKind::FilesModified))
            .example(success_example::<Self>(&json!({
                "feature_id": "007-search", "overall_status": "APPROVED_WITH_WARNINGS",
                "changes_made": {
                    "files_moved": [{"from": "src/find.py", "to": "src/search/find.py"}],
                    "files_deleted": [{"path": "src/old_find.py", "reason": "nothing calls it"}],
                    "files_created": [{"path": "src/search/__init__.py", "reason": "it is a package now"}],
                    "files_modified": [{"path": "src/app.py", "changes": "imports from the package"}]
                },
                "constitution_compliance": {"status": "PASS", "passed": 8, "failed": 0},
                "cleanup_summary": {"tests_removed": 1, "files_moved": 1, "dead_code_lines_removed": 40},
                "issues": [{
                    "severity": "LOW", "type": "naming_violation", "message": "`q` should be `query`",
                    "location": "src/search/find.py:9", "recommendation": "Rename it"
                }]
            })))
    }
}

/// An issue that was created.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CreatedIssue {
    /// Its number
    #[schemars(range(min = 1))]
    pub number: u64,
    /// Its title
    pub title: String,
    /// Where it stands
    pub url: String,
    /// The task it is for: T and at least three digits
    #[schemars(regex(pattern = r"^T[0-9]{3,}$"))]
    pub task_id: String,
}

/// Issues that were created from tasks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TasksToIssuesResult {
    /// How many were created
    pub issues_created: u64,
    /// The issues
    pub issues: Vec<CreatedIssue>,
    /// The labels they were given
    pub labels_applied: Vec<String>,
    /// The agents that could come next
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_steps: Option<Vec<String>>,
}

/// The output of the agent `taskstoissues`.
pub type TasksToIssuesOutput = Envelope<TasksToIssuesResult>;

impl SpecResult for TasksToIssuesResult {
    const AGENT: &'static str = "taskstoissues";
    const PREFIXED_AGENT: &'static str = "speckit-taskstoissues";

    fn failure() -> Value {
        json!({
            "type": "ExternalServiceError", "code": "TRACKER_UNREACHABLE", "message": "The tracker cannot be reached",
            "recoverable": false
        })
    }

    fn extend_envelope(envelope: Definition) -> Definition {
        envelope
            .summary("The tasks as issues of a tracker")
            .display(&envelope_display("{{ result.result.issues_created }} issues created"))
            .rule(Rule::unique("numbers-differ", "/result/issues/*/number"))
            .claim("result/issues_created", Claim::count_of("/result/issues"))
            .example(success_example::<Self>(&json!({
                "issues_created": 1,
                "issues": [{
                    "number": 31, "title": "Index the documents", "url": "https://example.org/issues/31",
                    "task_id": "T001"
                }],
                "labels_applied": ["feature"]
            })))
    }
}
