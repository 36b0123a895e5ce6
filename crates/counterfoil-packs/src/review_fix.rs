//! The contracts of review and fix: findings and their outcomes.

mod work;

pub use work::*;

use crate::value::{LineRef, string_enum};
use counterfoil_contract::claim::{Claim, ClaimKind, ClaimMatch};
use counterfoil_contract::{AgentOutput, Definition, Framing, RepoPath, Rule};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

string_enum! {
    /// The severity of a finding.
    FindingSeverity { Critical = "critical", Major = "major", Minor = "minor" }
}

string_enum! {
    /// The severity of a reviewer's finding; a suggestion counts as minor.
    ReviewSeverity { Critical = "critical", Major = "major", Minor = "minor", Suggestion = "suggestion" }
}

string_enum! {
    /// The outcome of a finding.
    OutcomeKind { Fixed = "fixed", Blocked = "blocked", Deferred = "deferred" }
}

/// What the fixer hands back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FixerResult {
    /// Whether the fix was applied
    pub success: bool,
    /// What was done
    pub summary: String,
    /// Files that were touched, as far as the agent knows
    #[serde(default)]
    pub files_mentioned: Vec<RepoPath>,
    /// What went wrong; required when `success` is false
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_details: Option<String>,
}

impl AgentOutput for FixerResult {
    fn definition() -> Definition {
        Definition::for_type::<Self>("review-fix/fixer-result", 1, Framing::FencedJson)
            .summary("Whether a fix was applied, and what went wrong if not")
            .agent("fixer")
            .display("{{ 'fixed' if result.success else 'not fixed' }}: {{ result.summary }}")
            .rule(Rule::require("error-when-failed", "!result.success", &["error_details"]))
            .claim("files_mentioned", Claim::new(ClaimKind::FilesChanged).matching(ClaimMatch::BestEffort))
            .example(json!({
                "success": true, "summary": "Removed the unused import", "files_mentioned": ["src/cache.py"]
            }))
            .example(json!({
                "success": false,
                "summary": "The formatter could not run",
                "files_mentioned": [],
                "error_details": "ruff is not installed in this environment"
            }))
            .counter_example("error-when-failed", json!({"success": false, "summary": "It did not work"}))
            .counter_example(
                "error-when-failed",
                json!({"success": false, "summary": "It did not work", "error_details": "  "}),
            )
    }
}

/// Something a review found, with an id by which its fix is accounted for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// An id of its own, such as F001
    pub id: String,
    /// The file it is in
    pub file: RepoPath,
    /// Its line, or a range such as 10-20
    pub line: LineRef,
    /// What is wrong
    pub issue: String,
    /// How much it weighs
    pub severity: FindingSeverity,
    /// What kind of issue it is
    pub category: String,
    /// How it could be fixed
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fix_hint: Option<String>,
}

impl AgentOutput for Finding {
    fn definition() -> Definition {
        Definition::for_type::<Self>("review-fix/finding", 1, Framing::FencedJson)
            .summary("One thing that a review found")
            .display("{{ result.id }} {{ result.severity }} {{ result.file }}:{{ result.line }} {{ result.issue }}")
            .claim("file", Claim::new(ClaimKind::Location))
            .example(finding("F001", "42"))
            .example(json!({
                "id": "F002", "file": "src/pool.rs", "line": "10-20", "issue": "the lock is held across an await",
                "severity": "critical", "category": "concurrency", "fix_hint": "drop the guard first"
            }))
            .counter_example(
                "C0203",
                json!({
                    "id": "F003", "file": "src/pool.rs", "line": 7, "issue": "name is unclear",
                    "severity": "trivial", "category": "style"
                }),
            )
    }
}

fn finding(id: &str, line: &str) -> Value {
    json!({
        "id": id, "file": "src/cache.py", "line": line, "issue": "the key ignores the tenant",
        "severity": "major", "category": "correctness"
    })
}

/// Findings that belong together; groups can be fixed at the same time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FindingGroup {
    /// What the findings have in common
    pub description: String,
    /// The findings
    pub findings: Vec<Finding>,
}

impl AgentOutput for FindingGroup {
    fn definition() -> Definition {
        Definition::for_type::<Self>("review-fix/finding-group", 1, Framing::FencedJson)
            .summary("Findings that one fixer can take together")
            .display("{{ result.description }} ({{ result.findings | length }} findings)")
            .rule(Rule::unique("ids-differ", "/findings/*/id"))
            .claim("findings/*/file", Claim::new(ClaimKind::Location))
            .salvages("/findings")
            .example(json!({"description": "The cache's keys", "findings": [finding("F001", "42"), finding("F002", "57")]}))
            .example(json!({"description": "Nothing left here", "findings": []}))
            .counter_example(
                "ids-differ",
                json!({"description": "The cache's keys", "findings": [finding("F001", "42"), finding("F001", "57")]}),
            )
    }
}

/// What the unified reviewer hands back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GroupedReviewResult {
    /// The groups of findings; empty if nothing was found
    pub groups: Vec<FindingGroup>,
    /// The files that were read
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files_reviewed: Option<Vec<RepoPath>>,
}

impl AgentOutput for GroupedReviewResult {
    fn definition() -> Definition {
        Definition::for_type::<Self>("review-fix/grouped-review-result", 2, Framing::FencedJson)
            .summary("What a review found, in groups that can be fixed in parallel")
            .approves("result.groups.all(g, size(g.findings) == 0)")
            .asks_if_several()
            .agent("unified-reviewer")
            .display("{{ result.groups | map(attribute='findings') | map('length') | sum }} findings in {{ result.groups | length }} groups")
            .rule(Rule::unique("ids-differ", "/groups/*/findings/*/id"))
            .claim("groups/*/findings/*/file", Claim::new(ClaimKind::Location))
            .salvages("/groups")
            .salvages("/groups/*/findings")
            .example(json!({
                "groups": [{"description": "The cache's keys", "findings": [finding("F001", "42")]}],
                "files_reviewed": ["src/cache.py", "src/keys.py"]
            }))
            .example(json!({"groups": []}))
            .counter_example(
                "ids-differ",
                json!({"groups": [
                    {"description": "The cache's keys", "findings": [finding("F001", "42")]},
                    {"description": "The cache's age", "findings": [finding("F001", "80")]}
                ]}),
            )
    }
}

/// What became of one finding.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FixOutcome {
    /// The finding's id
    pub id: String,
    /// `fixed`, `blocked` (it cannot be fixed) or `deferred` (not now)
    pub outcome: OutcomeKind,
    /// What was done, or why not
    pub explanation: String,
}

impl AgentOutput for FixOutcome {
    fn definition() -> Definition {
        Definition::for_type::<Self>("review-fix/fix-outcome", 1, Framing::FencedJson)
            .summary("What became of one finding")
            .display("{{ result.id }} {{ result.outcome }}: {{ result.explanation }}")
            .claim("outcome", Claim::new(ClaimKind::Fixed).required())
            .example(
                json!({"id": "F001", "outcome": "fixed", "explanation": "The tenant is part of the key now"}),
            )
            .example(
                json!({"id": "F002", "outcome": "blocked", "explanation": "The library has no such option"}),
            )
            .counter_example(
                "C0203",
                json!({"id": "F001", "outcome": "done", "explanation": "The key has the tenant"}),
            )
    }
}

/// What the simple fixer hands back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FixOutcomes {
    /// One outcome for each finding that was sent
    pub outcomes: Vec<FixOutcome>,
}

impl AgentOutput for FixOutcomes {
    fn definition() -> Definition {
        Definition::for_type::<Self>("review-fix/fix-outcomes", 1, Framing::FencedJson)
            .summary("What became of each finding of a group")
            .approves("result.outcomes.all(o, o.outcome == \"fixed\")")
            .asks_if_several()
            .agent("simple-fixer")
            .display(
                "{{ result.outcomes | selectattr('outcome', 'equalto', 'fixed') | list | length }} of \
                 {{ result.outcomes | length }} fixed",
            )
            .rule(Rule::unique("ids-differ", "/outcomes/*/id"))
            .claim("outcomes", Claim::new(ClaimKind::Fixed).required())
            .salvages("/outcomes")
            .example(json!({"outcomes": [
                {"id": "F001", "outcome": "fixed", "explanation": "The tenant is part of the key now"},
                {"id": "F002", "outcome": "deferred", "explanation": "Needs a migration first"}
            ]}))
            .example(json!({"outcomes": []}))
            .counter_example(
                "ids-differ",
                json!({"outcomes": [
                    {"id": "F001", "outcome": "fixed", "explanation": "The key has the tenant"},
                    {"id": "F001", "outcome": "deferred", "explanation": "Needs a migration first"}
                ]}),
            )
    }
}

/// What an agent used up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// Tokens it read
    pub input_tokens: u64,
    /// Tokens it wrote
    pub output_tokens: u64,
    /// Milliseconds it took
    pub duration_ms: u64,
    /// What it cost, in US dollars
    #[schemars(range(min = 0.0))]
    pub total_cost: f64,
}

/// Something the code reviewer found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReviewFinding {
    /// How much it weighs
    pub severity: ReviewSeverity,
    /// The file it is in
    pub file: RepoPath,
    /// Its line
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub line: Option<u64>,
    /// What is wrong, in at least ten characters
    #[schemars(length(min = 10))]
    pub message: String,
    /// How it could be fixed
    #[serde(default)]
    pub suggestion: String,
    /// The convention it goes against
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub convention_ref: Option<String>,
}

impl AgentOutput for ReviewFinding {
    fn definition() -> Definition {
        Definition::for_type::<Self>("review-fix/review-finding", 2, Framing::FencedJson)
            .summary("One thing that the code reviewer found")
            .display("{{ result.severity }} {{ result.file }}{% if result.line %}:{{ result.line }}{% endif %} {{ result.message }}")
            .claim("file", Claim::new(ClaimKind::Location))
            .example(review_finding())
            .example(json!({
                "severity": "suggestion", "file": "README.md", "message": "The install section is out of date",
                "suggestion": "", "convention_ref": "docs/style.md"
            }))
            .counter_example("C0205", json!({"severity": "minor", "file": "src/cache.py", "message": "Unclear"}))
    }
}

fn review_finding() -> Value {
    json!({
        "severity": "critical", "file": "src/cache.py", "line": 42,
        "message": "The cache key ignores the tenant", "suggestion": "Put the tenant's id into the key"
    })
}

/// What the code reviewer hands back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReviewResult {
    /// Whether the review could be done
    pub success: bool,
    /// What was found
    pub findings: Vec<ReviewFinding>,
    /// How many files were read
    pub files_reviewed: u64,
    /// The review in a sentence or two
    pub summary: String,
    /// Whether the diff was too long to read all of it
    #[serde(default)]
    pub truncated: bool,
    /// Anything else that was said
    #[serde(default)]
    pub output: String,
    /// Anything else a program may want
    #[serde(default)]
    pub metadata: Map<String, Value>,
    /// What went wrong
    #[serde(default)]
    pub errors: Vec<String>,
    /// What it used up
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

impl AgentOutput for ReviewResult {
    fn definition() -> Definition {
        Definition::for_type::<Self>("review-fix/review-result", 2, Framing::FencedJson)
            .summary("What the code reviewer found in a diff")
            .approves("size(result.findings) == 0")
            .asks_if_several()
            .agent("code-reviewer")
            .display("{{ result.findings | length }} findings in {{ result.files_reviewed }} files: {{ result.summary }}")
            .claim("findings/*/file", Claim::new(ClaimKind::Location))
            .salvages("/findings")
            .example(json!({
                "success": true, "findings": [review_finding()], "files_reviewed": 3,
                "summary": "One issue with the cache, the rest is fine", "truncated": false, "output": "",
                "metadata": {"base": "main"}, "errors": [],
                "usage": {"input_tokens": 5200, "output_tokens": 410, "duration_ms": 9000, "total_cost": 0.03}
            }))
            .example(json!({"success": true, "findings": [], "files_reviewed": 0, "summary": "There was nothing to read"}))
            .counter_example(
                "C0202",
                json!({"success": "true", "findings": [], "files_reviewed": 0, "summary": "There was nothing to read"}),
            )
            .counter_example("C0201", json!({"success": true, "summary": "Looks good"}))
    }
}

pub(crate) fn definitions() -> Vec<Definition> {
    vec![
        FixerResult::definition(),
        FixResult::definition(),
        ImplementationResult::definition(),
        ReviewResult::definition(),
        GroupedReviewResult::definition(),
        FixOutcomes::definition(),
        FixOutcome::definition(),
        ReviewFinding::definition(),
        Finding::definition(),
        FindingGroup::definition(),
        AgentResult::definition(),
    ]
}
