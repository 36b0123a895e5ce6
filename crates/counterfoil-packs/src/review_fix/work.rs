//! Results of the agents that change code, with their tasks and files, and the deprecated untyped
//! result.
//!
//! Fields that the origin's own models leave out are required here and have a default: a lenient
//! reader fills them in with a warning.

use super::Usage;
use crate::value::string_enum;
use counterfoil_contract::claim::{Claim, ClaimKind};
use counterfoil_contract::{AgentOutput, Definition, Framing, RepoPath, Rule};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

string_enum! {
    /// What happened to a file.
    ChangeType { Added = "added", Modified = "modified", Deleted = "deleted", Renamed = "renamed" }
}

string_enum! {
    /// How far a task got.
    TaskStatus {
        Pending = "pending", InProgress = "in_progress", Completed = "completed", Failed = "failed", Skipped = "skipped",
    }
}

string_enum! {
    /// A step of validation.
    ValidationStep { Format = "format", Lint = "lint", Typecheck = "typecheck", Test = "test" }
}

fn default_change_type() -> ChangeType {
    ChangeType::Modified
}

fn default_true() -> bool {
    true
}

/// What happened to one file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FileChange {
    /// The file
    pub file_path: RepoPath,
    /// What happened to it
    #[serde(default = "default_change_type")]
    pub change_type: ChangeType,
    /// Lines that were added
    #[schemars(extend("default" = 0))]
    pub lines_added: u64,
    /// Lines that were removed
    #[schemars(extend("default" = 0))]
    pub lines_removed: u64,
    /// Where it was before; required when it was renamed
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_path: Option<RepoPath>,
}

fn renamed_needs_old_path(id: &str, each: &str) -> Rule {
    Rule::require(id, "item.change_type == \"renamed\"", &["old_path"]).each(each)
}

/// What the issue fixer hands back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FixResult {
    /// Whether the issue is fixed
    pub success: bool,
    /// The issue's number
    #[schemars(range(min = 1))]
    pub issue_number: u64,
    /// The issue's title
    pub issue_title: String,
    /// Where the issue stands
    #[serde(default)]
    pub issue_url: String,
    /// What the cause was
    #[serde(default)]
    pub root_cause: String,
    /// What was done about it
    #[serde(default)]
    pub fix_description: String,
    /// The files that were changed
    #[schemars(extend("default" = []))]
    pub files_changed: Vec<FileChange>,
    /// The commit with the fix
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit_sha: Option<String>,
    /// Whether the fix was tried out
    #[serde(default)]
    pub verification_passed: bool,
    /// Whether format, lint, types and tests are good
    #[serde(default = "default_true")]
    pub validation_passed: bool,
    /// Deprecated: use the other fields
    #[serde(default)]
    #[schemars(extend("deprecated" = true))]
    pub output: String,
    /// Anything else a program may want
    #[serde(default)]
    pub metadata: Map<String, Value>,
    /// What went wrong
    #[serde(default)]
    pub errors: Vec<String>,
}

impl AgentOutput for FixResult {
    fn definition() -> Definition {
        Definition::for_type::<Self>("review-fix/fix-result", 3, Framing::FencedJson)
            .summary("The fix of one issue: its cause, the files, the commit")
            .agent("issue-fixer")
            .display(
                "#{{ result.issue_number }} {{ 'fixed' if result.success else 'not fixed' }}: {{ result.issue_title }} \
                 ({{ result.files_changed | length }} files)",
            )
            .rule(renamed_needs_old_path("old-path-when-renamed", "/files_changed/*"))
            .claim("files_changed", Claim::new(ClaimKind::FilesChanged))
            .claim("commit_sha", Claim::new(ClaimKind::Commit).with_files("/files_changed").required())
            // The field defaults to true. A result with `success: false` makes no claim.
            .claim("validation_passed", Claim::check("test").when("result.success && result.validation_passed"))
            .example(json!({
                "success": true, "issue_number": 17, "issue_title": "Tenants see each other's data",
                "issue_url": "https://example.org/issues/17", "root_cause": "The cache key had no tenant",
                "fix_description": "The key has the tenant's id",
                "files_changed": [
                    {"file_path": "src/cache.py", "change_type": "modified", "lines_added": 4, "lines_removed": 1},
                    {"file_path": "src/keys.py", "change_type": "renamed", "lines_added": 0, "lines_removed": 0,
                     "old_path": "src/key.py"}
                ],
                "commit_sha": "4f2a9c1", "verification_passed": true, "validation_passed": true,
                "output": "", "metadata": {}, "errors": []
            }))
            .example(json!({
                "success": false, "issue_number": 18, "issue_title": "Slow start", "files_changed": [],
                "errors": ["could not reproduce it"]
            }))
            .counter_example(
                "old-path-when-renamed",
                json!({
                    "success": true, "issue_number": 17, "issue_title": "Rename the module",
                    "files_changed": [
                        {"file_path": "src/keys.py", "change_type": "renamed", "lines_added": 0, "lines_removed": 0}
                    ]
                }),
            )
            .counter_example(
                "C0204",
                json!({"success": true, "issue_number": 0, "issue_title": "Slow start", "files_changed": []}),
            )
    }
}

/// One step of validating a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StepValidation {
    /// Which step
    pub step: ValidationStep,
    /// Whether it passed
    pub success: bool,
    /// What it printed
    #[schemars(extend("default" = ""))]
    pub output: String,
    /// Milliseconds it took
    #[schemars(extend("default" = 0))]
    pub duration_ms: u64,
    /// Whether it mended something by itself
    #[schemars(extend("default" = false))]
    pub auto_fixed: bool,
}

/// What became of one task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskResult {
    /// The task's id: T and at least three digits
    #[schemars(regex(pattern = r"^T[0-9]{3,}$"))]
    pub task_id: String,
    /// How far it got
    pub status: TaskStatus,
    /// The files that were changed
    #[schemars(extend("default" = []))]
    pub files_changed: Vec<FileChange>,
    /// The tests that were added
    #[schemars(extend("default" = []))]
    pub tests_added: Vec<String>,
    /// The task's commit
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit_sha: Option<String>,
    /// What went wrong
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Milliseconds it took
    #[schemars(extend("default" = 0))]
    pub duration_ms: u64,
    /// The steps of its validation
    #[schemars(extend("default" = []))]
    pub validation: Vec<StepValidation>,
}

/// What the implementer hands back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ImplementationResult {
    /// Whether all tasks could be done
    pub success: bool,
    /// Tasks that are done
    pub tasks_completed: u64,
    /// Tasks that failed
    pub tasks_failed: u64,
    /// Tasks that were left out
    pub tasks_skipped: u64,
    /// What became of each task
    #[schemars(extend("default" = []))]
    pub task_results: Vec<TaskResult>,
    /// All files that were changed
    #[schemars(extend("default" = []))]
    pub files_changed: Vec<FileChange>,
    /// All commits that were made
    #[schemars(extend("default" = []))]
    pub commits: Vec<String>,
    /// Whether format, lint, types and tests are good
    #[serde(default = "default_true")]
    pub validation_passed: bool,
    /// Deprecated: use the other fields
    #[serde(default)]
    #[schemars(extend("deprecated" = true))]
    pub output: String,
    /// Anything else a program may want
    #[serde(default)]
    pub metadata: Map<String, Value>,
    /// What went wrong
    #[serde(default)]
    pub errors: Vec<String>,
}

impl AgentOutput for ImplementationResult {
    fn definition() -> Definition {
        let task = json!({
            "task_id": "T001", "status": "completed",
            "files_changed": [
                {"file_path": "src/cache.py", "change_type": "added", "lines_added": 40, "lines_removed": 0}
            ],
            "tests_added": ["tests/test_cache.py"], "commit_sha": "4f2a9c1", "duration_ms": 61000,
            "validation": [
                {"step": "test", "success": true, "output": "12 passed", "duration_ms": 800, "auto_fixed": false}
            ]
        });
        Definition::for_type::<Self>("review-fix/implementation-result", 3, Framing::FencedJson)
            .summary("What became of a list of tasks, one by one")
            .agent("implementer")
            .display(
                "{{ result.tasks_completed }} tasks done, {{ result.tasks_failed }} failed, \
                 {{ result.tasks_skipped }} skipped",
            )
            .rule(Rule::unique("ids-differ", "/task_results/*/task_id"))
            .rule(renamed_needs_old_path("old-path-when-renamed", "/files_changed/*"))
            .rule(renamed_needs_old_path("old-path-when-renamed-in-task", "/task_results/*/files_changed/*"))
            .claim("files_changed", Claim::new(ClaimKind::FilesChanged))
            .claim("commits", Claim::new(ClaimKind::Commit).with_files("/files_changed").required())
            .claim(
                "task_results/*/commit_sha",
                Claim::new(ClaimKind::Commit).with_files("/task_results/*/files_changed").required(),
            )
            // The field defaults to true. A result with `success: false` makes no claim.
            .claim("validation_passed", Claim::check("test").when("result.success && result.validation_passed"))
            .salvages("/task_results")
            .example(json!({
                "success": true, "tasks_completed": 1, "tasks_failed": 0, "tasks_skipped": 0, "task_results": [task],
                "files_changed": [
                    {"file_path": "src/cache.py", "change_type": "added", "lines_added": 40, "lines_removed": 0}
                ],
                "commits": ["4f2a9c1"], "validation_passed": true, "output": "", "metadata": {}, "errors": []
            }))
            .example(json!({
                "success": false, "tasks_completed": 0, "tasks_failed": 1, "tasks_skipped": 0,
                "task_results": [{
                    "task_id": "T0002", "status": "failed", "files_changed": [], "tests_added": [],
                    "error": "the service did not start", "duration_ms": 0, "validation": []
                }],
                "files_changed": [], "commits": [], "validation_passed": false, "errors": ["T0002 failed"]
            }))
            .counter_example(
                "C0206",
                json!({
                    "success": true, "tasks_completed": 1, "tasks_failed": 0, "tasks_skipped": 0,
                    "task_results": [{
                        "task_id": "T1", "status": "completed", "files_changed": [], "tests_added": [],
                        "duration_ms": 5, "validation": []
                    }],
                    "files_changed": [], "commits": []
                }),
            )
    }
}

/// The result that agents gave before each had a contract of its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AgentResult {
    /// Whether it worked
    pub success: bool,
    /// What the agent said
    pub output: String,
    /// What it used up
    pub usage: Usage,
    /// What went wrong, as a list; a failure needs this or `error`
    #[serde(default)]
    pub errors: Vec<String>,
    /// What went wrong; a failure needs this or `errors`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl AgentOutput for AgentResult {
    fn definition() -> Definition {
        let usage = json!({"input_tokens": 900, "output_tokens": 80, "duration_ms": 2100, "total_cost": 0.01});
        Definition::for_type::<Self>("review-fix/agent-result", 1, Framing::FencedJson)
            .summary("Whether an agent succeeded and what it said, untyped")
            .deprecated(
                "use the contract of the agent instead: fixer-result, fix-result, implementation-result, review-result, \
                 grouped-review-result or fix-outcomes",
            )
            .display("{{ 'succeeded' if result.success else 'failed' }}: {{ result.output }}")
            .rule(
                Rule::check(
                    "failure-has-error",
                    "result.success || size(result.errors) > 0 || (has(result.error) && size(result.error) > 0)",
                    "`success` is false, but neither `errors` nor `error` says what went wrong",
                )
                .at("/errors"),
            )
            .example(json!({"success": true, "output": "Done", "usage": usage, "errors": []}))
            .example(json!({"success": false, "output": "", "usage": usage, "errors": ["the model did not answer"]}))
            .counter_example("failure-has-error", json!({"success": false, "output": "", "usage": usage}))
    }
}
