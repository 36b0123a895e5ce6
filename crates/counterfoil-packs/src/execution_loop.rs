//! The contracts of the execution loop: implementer, QA, code quality, manager, definition of done.

use crate::value::string_enum;
use counterfoil_contract::claim::{Claim, ClaimKind, ClaimMatch};
use counterfoil_contract::{AgentOutput, Definition, Framing, RepoPath, Rule};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

string_enum! {
    /// How far an agent got.
    WorkStatus { Success = "success", Partial = "partial", Blocked = "blocked" }
}

string_enum! {
    /// The severity of a code quality issue.
    IssueSeverity { Error = "error", Warning = "warning" }
}

string_enum! {
    /// The confidence of an agent.
    Confidence { High = "high", Medium = "medium", Low = "low" }
}

/// What every agent of the loop can say.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BaseOutput {
    /// `success`, `partial` (some of the work is done) or `blocked` (it cannot go on)
    pub status: WorkStatus,
    /// What was done, in a sentence or two
    #[schemars(extend("x-placeholder" = "Brief description of what was done"))]
    pub summary: String,
}

impl AgentOutput for BaseOutput {
    fn definition() -> Definition {
        Definition::for_type::<Self>("execution-loop/base", 1, Framing::AnyJson)
            .summary("The status and summary that any agent of the loop can give")
            .approves("result.status == \"success\"")
            .asks_if_several()
            .display("{{ result.status }}: {{ result.summary }}")
            .repairs_syntax()
            .example(json!({"status": "success", "summary": "Moved the parser into a module of its own"}))
            .example(
                json!({"status": "blocked", "summary": "The database schema this needs is not there yet"}),
            )
            .counter_example("C0203", json!({"status": "done", "summary": "Moved the parser"}))
            .counter_example(
                "C0212",
                json!({"status": "success|partial|blocked", "summary": "Moved the parser"}),
            )
    }
}

/// What the implementer hands back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ImplementerOutput {
    /// `success`, `partial` (some of the work is done) or `blocked` (it cannot go on)
    pub status: WorkStatus,
    /// What was implemented
    #[schemars(extend("x-placeholder" = "Brief description of what was done"))]
    pub summary: String,
    /// Files that were modified, relative to the project's root
    #[serde(default)]
    pub files_changed: Vec<RepoPath>,
    /// Files that were created, relative to the project's root
    #[serde(default)]
    pub files_added: Vec<RepoPath>,
    /// What should be verified or done next
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_steps: Option<String>,
}

impl AgentOutput for ImplementerOutput {
    fn definition() -> Definition {
        Definition::for_type::<Self>("execution-loop/implementer", 1, Framing::AnyJson)
            .summary("Code written for the plan: how far it got and which files it touched")
            .approves("result.status == \"success\"")
            .asks_if_several()
            .agent("implementer")
            .alias("execution-implementer")
            .display(
                "{{ result.status }}: {{ result.summary }} \
                 ({{ result.files_changed | length }} changed, {{ result.files_added | length }} added)",
            )
            .repairs_syntax()
            .expects(&["files_changed", "files_added"])
            .claim("files_changed", Claim::new(ClaimKind::FilesModified))
            .claim("files_added", Claim::new(ClaimKind::FilesAdded))
            .example(json!({
                "status": "success",
                "summary": "Added slugify and title_case with tests",
                "files_changed": ["src/text.py"],
                "files_added": ["tests/test_text.py"],
                "next_steps": "Run the new tests"
            }))
            .example(json!({
                "status": "blocked",
                "summary": "The user table this needs does not exist yet",
                "files_changed": [],
                "files_added": [],
                "next_steps": "Do the migration of phase 1 first"
            }))
            .counter_example(
                "C0214",
                json!({
                    "status": "success", "summary": "Edited the hosts file",
                    "files_changed": ["/etc/hosts"], "files_added": []
                }),
            )
            .counter_example(
                "C0202",
                json!({
                    "status": "success", "summary": "Added slugify", "files_changed": "src/text.py", "files_added": []
                }),
            )
    }
}

/// One criterion of the definition of done, checked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QaCheck {
    /// What was checked
    pub criterion: String,
    /// Whether it holds
    pub passed: bool,
    /// What was seen
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<String>,
}

/// The counts of a test run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TestResults {
    /// Tests that were collected
    pub total: u64,
    /// Tests that passed
    pub passed: u64,
    /// Tests that failed
    pub failed: u64,
}

/// What QA hands back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QaOutput {
    /// Whether every criterion of the definition of done holds
    pub dod_achieved: bool,
    /// The criteria that were checked
    pub checks: Vec<QaCheck>,
    /// The counts of the test run, if there was one
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test_results: Option<TestResults>,
    /// What must be fixed, and how; required when `dod_achieved` is false
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-placeholder" = "If dod_achieved=false, what needs fixing"))]
    pub fix_info: Option<String>,
}

impl AgentOutput for QaOutput {
    fn definition() -> Definition {
        Definition::for_type::<Self>("execution-loop/qa", 1, Framing::AnyJson)
            .summary("Whether the definition of done is reached, check by check")
            .approves("result.dod_achieved")
            .asks_if_several()
            .agent("qa")
            .alias("execution-qa")
            .display(
                "{{ 'done' if result.dod_achieved else 'not done' }}: \
                 {{ result.checks | selectattr('passed') | list | length }} of {{ result.checks | length }} checks pass\
                 {% if result.test_results %}, {{ result.test_results.failed }} tests fail{% endif %}",
            )
            .repairs_syntax()
            .rule(
                Rule::require("fix-info-when-not-done", "!result.dod_achieved", &["fix_info"])
                    .hint("say what must be fixed, so that the next iteration can"),
            )
            .rule(
                Rule::check(
                    "done-means-all-checks-pass",
                    "!result.dod_achieved || result.checks.all(c, c.passed)",
                    "`dod_achieved` is true, but an entry of `checks` did not pass",
                )
                .at("/dod_achieved"),
            )
            .rule(
                Rule::check(
                    "done-means-no-test-fails",
                    "!(result.dod_achieved && has(result.test_results) && result.test_results.failed > 0)",
                    "`dod_achieved` is true, but `test_results.failed` is above 0",
                )
                .at("/dod_achieved"),
            )
            .rule(
                Rule::check(
                    "test-counts-agree",
                    "!has(result.test_results) || \
                     result.test_results.passed + result.test_results.failed <= result.test_results.total",
                    "`test_results.passed` and `test_results.failed` together exceed `test_results.total`",
                )
                .at("/test_results/total"),
            )
            .claim("test_results", Claim::check("test"))
            .example(json!({
                "dod_achieved": true,
                "checks": [
                    {"criterion": "slugify is typed", "passed": true, "details": "signature in src/text.py"},
                    {"criterion": "tests pass", "passed": true}
                ],
                "test_results": {"total": 12, "passed": 12, "failed": 0}
            }))
            .example(json!({
                "dod_achieved": false,
                "checks": [{"criterion": "tests pass", "passed": false, "details": "test_empty fails"}],
                "test_results": {"total": 12, "passed": 11, "failed": 1},
                "fix_info": "slugify('') must return '' instead of raising"
            }))
            .counter_example(
                "fix-info-when-not-done",
                json!({"dod_achieved": false, "checks": [{"criterion": "tests pass", "passed": false}]}),
            )
            .counter_example(
                "done-means-all-checks-pass",
                json!({"dod_achieved": true, "checks": [{"criterion": "tests pass", "passed": false}]}),
            )
            .counter_example("C0202", json!({"dod_achieved": "true", "checks": []}))
    }
}

/// One issue of code quality.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QualityIssue {
    /// The file it is in
    pub file: RepoPath,
    /// Its line
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub line: Option<u64>,
    /// The tool's code for it
    pub code: String,
    /// What is wrong
    pub message: String,
    /// `error` blocks, `warning` does not
    pub severity: IssueSeverity,
}

/// What the code quality agent hands back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CodeQualityOutput {
    /// Whether nothing blocks
    pub quality_passed: bool,
    /// The issues found; empty if there are none
    #[serde(default)]
    pub issues: Vec<QualityIssue>,
    /// The files that were looked at
    pub files_analyzed: Vec<RepoPath>,
    /// How many issues block
    pub blocking_issues_count: u64,
    /// How many false alarms were left out
    pub ignored_issues_count: u64,
    /// What must be fixed; required when `quality_passed` is false
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-placeholder" = "If quality_passed=false, what to fix"))]
    pub fix_info: Option<String>,
}

impl AgentOutput for CodeQualityOutput {
    fn definition() -> Definition {
        Definition::for_type::<Self>("execution-loop/code-quality", 1, Framing::AnyJson)
            .summary("What linters and type checkers say of the change")
            .approves("result.quality_passed")
            .asks_if_several()
            .agent("code-quality")
            .alias("execution-code-quality")
            .display(
                "{{ 'passed' if result.quality_passed else 'failed' }}: {{ result.blocking_issues_count }} blocking, \
                 {{ result.issues | length }} issues in {{ result.files_analyzed | length }} files",
            )
            .repairs_syntax()
            .expects(&["issues"])
            .rule(Rule::require("fix-info-when-failed", "!result.quality_passed", &["fix_info"]))
            .rule(
                Rule::check(
                    "passed-means-nothing-blocks",
                    "!(result.quality_passed && result.blocking_issues_count > 0)",
                    "`quality_passed` is true, but `blocking_issues_count` is above 0",
                )
                .at("/quality_passed"),
            )
            .rule(
                Rule::check(
                    "blocking-count-matches-issues",
                    "result.blocking_issues_count == size(result.issues.filter(i, i.severity == \"error\"))",
                    "`blocking_issues_count` differs from the number of `issues` of severity error",
                )
                .at("/blocking_issues_count")
                .warns(),
            )
            .claim("quality_passed", Claim::check("lint"))
            .claim("issues/*/file", Claim::new(ClaimKind::Location))
            .salvages("/issues")
            .example(json!({
                "quality_passed": true,
                "issues": [],
                "files_analyzed": ["src/text.py"],
                "blocking_issues_count": 0,
                "ignored_issues_count": 2
            }))
            .example(json!({
                "quality_passed": false,
                "issues": [{
                    "file": "src/text.py", "line": 9, "code": "ANN001",
                    "message": "the parameter has no annotation", "severity": "error"
                }],
                "files_analyzed": ["src/text.py", "tests/test_text.py"],
                "blocking_issues_count": 1,
                "ignored_issues_count": 0,
                "fix_info": "Annotate the parameter of slugify"
            }))
            .counter_example(
                "passed-means-nothing-blocks",
                json!({
                    "quality_passed": true, "issues": [], "files_analyzed": [],
                    "blocking_issues_count": 1, "ignored_issues_count": 0
                }),
            )
            .counter_example(
                "C0204",
                json!({
                    "quality_passed": true, "issues": [], "files_analyzed": [],
                    "blocking_issues_count": -1, "ignored_issues_count": 0
                }),
            )
    }
}

/// What the manager hands back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ManagerOutput {
    /// Whether the task's documents were brought up to date
    pub updated: bool,
    /// The documents that were modified
    pub artifacts_modified: Vec<RepoPath>,
    /// What was brought up to date
    pub summary: String,
}

impl AgentOutput for ManagerOutput {
    fn definition() -> Definition {
        Definition::for_type::<Self>("execution-loop/manager", 1, Framing::AnyJson)
            .summary("Which of the task's documents were brought up to date")
            .agent("manager")
            .alias("execution-manager")
            .display("{{ 'updated' if result.updated else 'not updated' }}: {{ result.summary }}")
            .repairs_syntax()
            .claim("artifacts_modified", Claim::new(ClaimKind::FilesChanged).matching(ClaimMatch::Subset))
            .example(json!({
                "updated": true,
                "artifacts_modified": ["stories/US-002.md"],
                "summary": "Ticked the criteria of US-002"
            }))
            .example(
                json!({"updated": false, "artifacts_modified": [], "summary": "Nothing to bring up to date"}),
            )
            .counter_example(
                "C0202",
                json!({"updated": "yes", "artifacts_modified": [], "summary": "Ticked the criteria"}),
            )
    }
}

/// How much of the whole task is done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskSummary {
    /// User stories in all
    pub user_stories_total: u64,
    /// User stories that are done
    pub user_stories_done: u64,
    /// Phases in all
    pub phases_total: u64,
    /// Phases that are done
    pub phases_done: u64,
}

/// What the definition-of-done agent hands back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DodOutput {
    /// Whether the whole task is done
    pub task_complete: bool,
    /// How sure that is
    pub confidence: Confidence,
    /// The counts behind it
    pub summary: TaskSummary,
    /// What is left to do; empty when `task_complete` is true
    #[serde(default)]
    pub remaining_items: Vec<String>,
    /// What to do next
    pub recommendation: String,
}

impl AgentOutput for DodOutput {
    fn definition() -> Definition {
        Definition::for_type::<Self>("execution-loop/dod", 1, Framing::AnyJson)
            .summary("Whether the whole task is done, and what is left")
            .approves("result.task_complete")
            .asks_if_several()
            .agent("dod")
            .alias("execution-dod")
            .display(
                "{{ 'complete' if result.task_complete else 'incomplete' }} ({{ result.confidence }}): stories \
                 {{ result.summary.user_stories_done }}/{{ result.summary.user_stories_total }}, phases \
                 {{ result.summary.phases_done }}/{{ result.summary.phases_total }}",
            )
            .repairs_syntax()
            .expects(&["remaining_items"])
            .rule(
                Rule::check(
                    "complete-means-nothing-remains",
                    "!(result.task_complete && size(result.remaining_items) > 0)",
                    "`task_complete` is true, but `remaining_items` is not empty",
                )
                .at("/task_complete"),
            )
            .rule(
                Rule::check(
                    "complete-means-all-stories-done",
                    "!(result.task_complete && result.summary.user_stories_done < result.summary.user_stories_total)",
                    "`task_complete` is true, but `summary.user_stories_done` is below `summary.user_stories_total`",
                )
                .at("/task_complete"),
            )
            .rule(
                Rule::check(
                    "complete-means-all-phases-done",
                    "!(result.task_complete && result.summary.phases_done < result.summary.phases_total)",
                    "`task_complete` is true, but `summary.phases_done` is below `summary.phases_total`",
                )
                .at("/task_complete"),
            )
            .rule(
                Rule::check(
                    "stories-done-within-total",
                    "result.summary.user_stories_done <= result.summary.user_stories_total",
                    "`summary.user_stories_done` is above `summary.user_stories_total`",
                )
                .at("/summary/user_stories_done"),
            )
            .rule(
                Rule::check(
                    "phases-done-within-total",
                    "result.summary.phases_done <= result.summary.phases_total",
                    "`summary.phases_done` is above `summary.phases_total`",
                )
                .at("/summary/phases_done"),
            )
            .example(json!({
                "task_complete": true,
                "confidence": "high",
                "summary": {"user_stories_total": 3, "user_stories_done": 3, "phases_total": 2, "phases_done": 2},
                "remaining_items": [],
                "recommendation": "Hand it over"
            }))
            .example(json!({
                "task_complete": false,
                "confidence": "medium",
                "summary": {"user_stories_total": 3, "user_stories_done": 2, "phases_total": 2, "phases_done": 1},
                "remaining_items": ["US-003: error messages"],
                "recommendation": "Go on with US-003"
            }))
            .counter_example(
                "complete-means-nothing-remains",
                json!({
                    "task_complete": true, "confidence": "high",
                    "summary": {"user_stories_total": 3, "user_stories_done": 3, "phases_total": 2, "phases_done": 2},
                    "remaining_items": ["US-003"], "recommendation": "Hand it over"
                }),
            )
            .counter_example(
                "stories-done-within-total",
                json!({
                    "task_complete": false, "confidence": "low",
                    "summary": {"user_stories_total": 3, "user_stories_done": 4, "phases_total": 2, "phases_done": 2},
                    "remaining_items": [], "recommendation": "Count again"
                }),
            )
    }
}

pub(crate) fn definitions() -> Vec<Definition> {
    vec![
        BaseOutput::definition(),
        ImplementerOutput::definition(),
        QaOutput::definition(),
        CodeQualityOutput::definition(),
        ManagerOutput::definition(),
        DodOutput::definition(),
    ]
}
