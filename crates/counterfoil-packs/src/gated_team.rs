//! The contracts of the gated team: the input and output that all agents share, and the documents
//! of a session.

use crate::value::{Nullable, string_enum};
use counterfoil_contract::claim::{Claim, ClaimKind, ClaimMatch};
use counterfoil_contract::{AgentOutput, Definition, Framing, RepoPath, Rule, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

string_enum! {
    /// The status that an agent of the team reports.
    TeamStatus { Ok = "OK", Blocked = "BLOCKED", NeedsInfo = "NEEDS_INFO", Fail = "FAIL" }
}

string_enum! {
    /// An agent of the team.
    TeamAgent {
        SpecAgent = "SpecAgent", Architect = "Architect", Designer = "Designer", Planner = "Planner", Coder = "Coder",
        Reviewer = "Reviewer", Qa = "QA", Security = "Security", Integrator = "Integrator", Docs = "Docs",
        Orchestrator = "Orchestrator",
    }
}

string_enum! {
    /// What a task may put at risk.
    RiskFlag { Security = "security", Perf = "perf", BreakingChange = "breaking-change", None = "none" }
}

string_enum! {
    /// What the last run of the checks came to.
    CiStatus { Unknown = "unknown", Green = "green", Red = "red" }
}

string_enum! {
    /// The state of a session.
    SessionState {
        Intake = "INTAKE", Design = "DESIGN", Plan = "PLAN", ImplementLoop = "IMPLEMENT_LOOP", Integrate = "INTEGRATE",
        Release = "RELEASE", Done = "DONE", AskUser = "ASK_USER", Blocked = "BLOCKED",
    }
}

/// A remark: a sentence, or an object with what the agent found fit to say.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum Remark {
    /// A sentence.
    Text(String),
    /// An object, such as a finding with its severity.
    Detail(Map<String, Value>),
}

/// The task an agent is given.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TeamTask {
    /// The task's id, such as T-001, or `meta` for the session itself
    #[schemars(regex(pattern = r"^(T-[0-9]{3,}|meta)$"), extend("x-placeholder" = "T-XXX|meta"))]
    pub id: String,
    /// What it is called
    #[schemars(extend("x-placeholder" = "Short title"))]
    pub title: String,
    /// What must be achieved
    #[schemars(extend("x-placeholder" = "What to achieve"))]
    pub goal: String,
    /// What must be left alone
    #[schemars(extend("x-placeholder" = "What not to do"))]
    pub non_goals: Vec<String>,
    /// Files that must be read first
    pub context_files: Vec<RepoPath>,
    /// What must be kept to
    #[schemars(extend("x-placeholder" = "Hard constraints"))]
    pub constraints: Vec<String>,
    /// How it is checked: `cmd: …` is run, `manual: …` is asked
    #[schemars(inner(regex(pattern = r"^(cmd|manual): *\S")))]
    pub acceptance_checks: Vec<String>,
    /// What it may put at risk
    pub risk_flags: Vec<RiskFlag>,
}

/// The state of the repository.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RepoState {
    /// The branch that is checked out
    pub branch: String,
    /// What the last run of the checks came to
    pub ci_status: CiStatus,
    /// The step that failed last
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-placeholder" = "optional string or null"))]
    pub last_failed_step: Option<String>,
}

/// What an agent of the team is given.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TeamInput {
    /// The task
    pub task: TeamTask,
    /// The state of the repository
    pub repo_state: RepoState,
    /// The tools the agent has
    pub tools_available: Vec<String>,
    /// Files that are there already
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-placeholder" = "list of existing files optional"))]
    pub artifact_list: Option<Vec<RepoPath>>,
}

impl AgentOutput for TeamInput {
    fn definition() -> Definition {
        let example = json!({
            "task": {
                "id": "T-002", "title": "Index the documents", "goal": "A document can be found by its words",
                "non_goals": ["ranking"], "context_files": [".agents-work/2026-03-01_search/spec.md"],
                "constraints": ["no new services"], "acceptance_checks": ["cmd: cargo test", "manual: find a word"],
                "risk_flags": ["perf"]
            },
            "repo_state": {"branch": "search", "ci_status": "green"},
            "tools_available": ["read_file", "run_cmd"],
            "artifact_list": [".agents-work/2026-03-01_search/spec.md"]
        });
        let mut unknown_check = example.clone();
        unknown_check["task"]["acceptance_checks"] = json!(["cargo test"]);
        Definition::for_type::<Self>("gated-team/input", 1, Framing::JsonOnly)
            .summary("What an agent of the team is given: the task, the repository, the tools")
            .display("{{ result.task.id }}: {{ result.task.title }}")
            .example(example)
            .example(json!({
                "task": {
                    "id": "meta", "title": "Write the spec", "goal": "spec.md and acceptance.json", "non_goals": [],
                    "context_files": [], "constraints": [], "acceptance_checks": [], "risk_flags": ["none"]
                },
                "repo_state": {"branch": "main", "ci_status": "unknown", "last_failed_step": "cargo build"},
                "tools_available": []
            }))
            .counter_example("C0206", unknown_check)
    }
}

/// What an agent made. Agents may add keys of their own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Artifacts {
    /// Files that should be created or updated
    #[serde(default)]
    #[schemars(extend("x-placeholder" = "... optional"))]
    pub files_to_create_or_update: Vec<RepoPath>,
    /// Files that were changed
    #[serde(default)]
    #[schemars(extend("x-placeholder" = "... optional"))]
    pub files_changed: Vec<RepoPath>,
    /// Tests that were added or updated
    #[serde(default)]
    #[schemars(extend("x-placeholder" = "... optional"))]
    pub tests_added_or_updated: Vec<String>,
    /// Commands that should be run
    #[serde(default)]
    pub commands_to_run: Vec<String>,
    /// Steps for a person
    #[serde(default)]
    #[schemars(extend("x-placeholder" = "... optional"))]
    pub manual_steps: Vec<String>,
    /// Comments of a review, as sentences or objects
    #[serde(default)]
    #[schemars(extend("x-placeholder" = "... optional"))]
    pub review_comments: Vec<Remark>,
    /// Findings, as sentences or objects
    #[serde(default)]
    #[schemars(extend("x-placeholder" = "... optional"))]
    pub findings: Vec<Remark>,
    /// Assumptions, trade-offs, files worth reading
    #[serde(default)]
    #[schemars(extend("x-placeholder" = "assumptions, tradeoffs, links to files"))]
    pub notes: Vec<String>,
    /// Whatever else the agent adds
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// What an agent says of the gates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Gates {
    /// Whether the definition of done is met
    pub meets_definition_of_done: bool,
    /// Whether it must be reviewed
    pub needs_review: bool,
    /// Whether tests are missing
    pub needs_tests: bool,
    /// Concerns about security, as sentences or objects
    pub security_concerns: Vec<Remark>,
}

/// What an agent thinks should come next. The workflow decides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NextStep {
    /// The agent that should come next
    pub recommended_agent: TeamAgent,
    /// The task it should take: an id such as T-001, `meta`, or `same` for the current one
    #[schemars(regex(pattern = r"^(T-[0-9]{3,}|meta|same)$"), extend("x-placeholder" = "T-XXX|meta"))]
    pub recommended_task_id: String,
    /// Why
    #[schemars(extend("x-placeholder" = "Short"))]
    pub reason: String,
}

/// What an agent of the team hands back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TeamOutput {
    /// What it came to
    pub status: TeamStatus,
    /// What was done, in one to three sentences
    #[schemars(extend("x-placeholder" = "1-3 sentences"))]
    pub summary: String,
    /// What it made
    pub artifacts: Artifacts,
    /// What it says of the gates
    pub gates: Gates,
    /// What should come next
    pub next: NextStep,
}

fn team_output() -> Value {
    json!({
        "status": "OK", "summary": "The index is written and tested.",
        "artifacts": {
            "files_changed": ["src/index.rs"], "tests_added_or_updated": ["tests/index.rs"],
            "commands_to_run": ["cargo test"], "notes": ["words are split at blanks"],
            "test_results": {"passed": 9, "failed": 0}
        },
        "gates": {"meets_definition_of_done": true, "needs_review": true, "needs_tests": false, "security_concerns": []},
        "next": {"recommended_agent": "Reviewer", "recommended_task_id": "same", "reason": "It is ready to be read"}
    })
}

impl AgentOutput for TeamOutput {
    fn definition() -> Definition {
        let mut unknown_agent = team_output();
        unknown_agent["next"]["recommended_agent"] = json!("Tester");
        let mut word = team_output();
        word["gates"]["needs_tests"] = json!("false");
        Definition::for_type::<Self>("gated-team/output", 2, Framing::JsonOnly)
            .summary("What every agent of the team hands back: status, artifacts, gates, what should come next")
            .approves("result.status == \"OK\"")
            .asks_if_several()
            .display("{{ result.status }}: {{ result.summary }}")
            .claim("artifacts/files_changed", Claim::new(ClaimKind::FilesChanged).matching(ClaimMatch::Subset))
            .example(team_output())
            .example(json!({
                "status": "BLOCKED", "summary": "The password is stored in the clear.",
                "artifacts": {
                    "commands_to_run": [],
                    "findings": ["there is no rate limit", {"severity": "high", "file": "src/login.rs", "line": 12}],
                    "review_comments": [{"file": "src/login.rs", "comment": "hash it"}], "notes": []
                },
                "gates": {
                    "meets_definition_of_done": false, "needs_review": false, "needs_tests": true,
                    "security_concerns": ["passwords in the clear"]
                },
                "next": {"recommended_agent": "Coder", "recommended_task_id": "T-004", "reason": "It must be hashed"}
            }))
            .counter_example("C0203", unknown_agent)
            .counter_example("C0202", word)
    }
}

/// A task that cannot go on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BlockedTask {
    /// The task
    #[schemars(regex(pattern = r"^(T-[0-9]{3,}|meta)$"))]
    pub id: String,
    /// Why
    pub reason: String,
}

/// A question to a person, and the answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UserDecision {
    /// What was asked
    pub question: String,
    /// What was answered; null as long as it is open
    pub answer: Nullable<String>,
    /// When it was asked, or answered
    #[schemars(extend("x-placeholder" = "ISO-8601"))]
    pub timestamp: Timestamp,
    /// The state that asked, to return to
    #[schemars(extend("x-placeholder" = "which state triggered ASK_USER"))]
    pub state_context: String,
}

/// How often a task went through each loop of fixing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE", deny_unknown_fields)]
pub struct RetryCounts {
    /// After a review
    #[serde(default)]
    pub fix_review: u64,
    /// After the tests
    #[serde(default)]
    pub fix_tests: u64,
    /// After the look at security
    #[serde(default)]
    pub fix_security: u64,
    /// After the build
    #[serde(default)]
    pub fix_build: u64,
}

/// The state of a session, as status.json holds it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionStatus {
    /// Where the session is
    pub current_state: SessionState,
    /// The session's folder: a date and a slug
    #[schemars(
        regex(pattern = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}_[a-z0-9][a-z0-9-]*$"),
        extend("x-placeholder" = "YYYY-MM-DD_short-slug")
    )]
    pub session: String,
    /// Tasks that are done
    #[schemars(inner(regex(pattern = r"^(T-[0-9]{3,}|meta)$")))]
    pub completed_tasks: Vec<String>,
    /// Tasks that cannot go on
    pub blocked_tasks: Vec<BlockedTask>,
    /// What was taken for granted
    pub assumptions: Vec<String>,
    /// What people were asked
    pub user_decisions: Vec<UserDecision>,
    /// How often each task went through the loops of fixing; the session's own under `meta`
    pub retry_counts: BTreeMap<String, RetryCounts>,
    /// What is known to be wrong and accepted
    pub known_issues: Vec<String>,
    /// What the last run of the checks came to
    pub last_ci_result: CiStatus,
    /// When this was written
    #[schemars(extend("x-placeholder" = "ISO-8601 timestamp"))]
    pub last_update: Timestamp,
}

impl AgentOutput for SessionStatus {
    fn definition() -> Definition {
        let started = json!({
            "current_state": "INTAKE", "session": "2026-03-01_search", "completed_tasks": [], "blocked_tasks": [],
            "assumptions": [], "user_decisions": [], "retry_counts": {}, "known_issues": [],
            "last_ci_result": "unknown", "last_update": "2026-03-01T09:30:00Z"
        });
        let mut undated = started.clone();
        undated["last_update"] = json!("yesterday");
        let mut unknown_loop = started.clone();
        unknown_loop["retry_counts"] = json!({"T-001": {"FIX_DOCS": 1}});
        Definition::for_type::<Self>("gated-team/status", 2, Framing::JsonOnly)
            .summary("The state of a session, as status.json holds it")
            .display("{{ result.session }} in {{ result.current_state }}: {{ result.completed_tasks | length }} tasks done")
            .rule(Rule::unique("completed-once", "/completed_tasks/*"))
            .rule(Rule::unique("blocked-once", "/blocked_tasks/*/id"))
            .example(started)
            .example(json!({
                "current_state": "ASK_USER", "session": "2026-03-01_search-2", "completed_tasks": ["T-001"],
                "blocked_tasks": [{"id": "T-002", "reason": "the review was refused three times"}],
                "assumptions": ["documents are UTF-8"],
                "user_decisions": [{
                    "question": "Accept T-002 with known issues?", "answer": null,
                    "timestamp": "2026-03-01T11:00:00+01:00", "state_context": "FIX_REVIEW"
                }],
                "retry_counts": {"T-002": {"FIX_REVIEW": 3, "FIX_TESTS": 0, "FIX_SECURITY": 0, "FIX_BUILD": 0}},
                "known_issues": [], "last_ci_result": "red", "last_update": "2026-03-01T11:00:00+01:00"
            }))
            .counter_example("C0210", undated)
            .counter_example("C0209", unknown_loop)
    }
}

/// A task of the plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedTask {
    /// Its id: T- and at least three digits
    #[schemars(regex(pattern = r"^T-[0-9]{3,}$"))]
    pub id: String,
    /// What it is called
    #[schemars(length(min = 1))]
    pub title: String,
    /// What must be achieved
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<String>,
    /// What must be left alone
    #[serde(default)]
    pub non_goals: Vec<String>,
    /// Ids of the tasks that must be done first
    #[schemars(inner(regex(pattern = r"^T-[0-9]{3,}$")))]
    pub depends_on: Vec<String>,
    /// How it is checked: `cmd: …` is run, `manual: …` is asked
    #[schemars(length(min = 1), inner(regex(pattern = r"^(cmd|manual): *\S")))]
    pub checks: Vec<String>,
    /// When it is done
    #[schemars(length(min = 1))]
    pub done_when: Vec<String>,
    /// What it may put at risk
    #[serde(default)]
    pub risk_flags: Vec<RiskFlag>,
}

/// The plan, as tasks.yaml holds it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskPlan {
    /// The tasks
    #[schemars(length(min = 1))]
    pub tasks: Vec<PlannedTask>,
}

fn planned(id: &str, depends_on: &[&str]) -> Value {
    json!({
        "id": id, "title": "Index the documents", "goal": "A document can be found by its words",
        "depends_on": depends_on, "checks": ["cmd: cargo test"], "done_when": ["a word finds its documents"],
        "risk_flags": ["none"]
    })
}

impl AgentOutput for TaskPlan {
    fn definition() -> Definition {
        Definition::for_type::<Self>("gated-team/tasks", 2, Framing::AnyJson)
            // The name that the input of an agent has for them.
            .renames("/tasks/*", "acceptance_checks", "checks")
            .summary("The plan as tasks with dependencies, checks and an end, as tasks.yaml holds it")
            .display(
                "{{ result.tasks | length }} tasks: {{ result.tasks | map(attribute='id') | join(', ') }}",
            )
            .rule(Rule::unique("ids-differ", "/tasks/*/id"))
            .rule(
                Rule::check(
                    "dependencies-are-tasks",
                    "item.depends_on.all(d, result.tasks.exists(t, t.id == d))",
                    "`depends_on` names a task that is not in `tasks`",
                )
                .each("/tasks/*")
                .at("/depends_on"),
            )
            .rule(
                Rule::check(
                    "no-task-needs-itself",
                    "!(item.id in item.depends_on)",
                    "`depends_on` names the task's own `id`",
                )
                .each("/tasks/*")
                .at("/depends_on"),
            )
            .example(json!({"tasks": [planned("T-001", &[]), planned("T-002", &["T-001"])]}))
            .example(json!({"tasks": [{
                "id": "T-1000", "title": "Document it", "depends_on": [], "checks": ["manual: read the page"],
                "done_when": ["the page explains the search"]
            }]}))
            .counter_example("dependencies-are-tasks", json!({"tasks": [planned("T-001", &["T-009"])]}))
            .counter_example("C0207", json!({"tasks": []}))
    }
}

/// One criterion of acceptance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AcceptanceCriterion {
    /// Its id, such as AC-1
    #[schemars(length(min = 1))]
    pub id: String,
    /// What must hold
    #[schemars(length(min = 1))]
    pub description: String,
    /// How it is checked: `cmd: …` is run, `manual: …` is asked
    #[schemars(length(min = 1), inner(regex(pattern = r"^(cmd|manual): *\S")))]
    pub checks: Vec<String>,
}

/// When the whole work is accepted, as acceptance.json holds it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Acceptance {
    /// The criteria
    #[schemars(length(min = 1))]
    pub criteria: Vec<AcceptanceCriterion>,
    /// What is not wanted
    #[serde(default)]
    pub non_goals: Vec<String>,
}

impl AgentOutput for Acceptance {
    fn definition() -> Definition {
        let criterion = |id: &str| json!({"id": id, "description": "a word finds its documents", "checks": ["cmd: cargo test --test search"]});
        Definition::for_type::<Self>("gated-team/acceptance", 2, Framing::JsonOnly)
            .summary("The criteria by which the work is accepted, as acceptance.json holds them")
            .display("{{ result.criteria | length }} criteria")
            .rule(Rule::unique("ids-differ", "/criteria/*/id"))
            // The field itself contains the commands.
            .claim("criteria/*/checks", Claim::new(ClaimKind::Commands).required())
            .example(json!({"criteria": [criterion("AC-1")]}))
            .example(json!({"criteria": [
                criterion("AC-1"),
                {"id": "AC-2", "description": "the page reads well", "checks": ["manual: read it", "cmd: mdbook build"]}
            ]}))
            .counter_example("ids-differ", json!({"criteria": [criterion("AC-1"), criterion("AC-1")]}))
            .counter_example(
                "C0207",
                json!({"criteria": [{"id": "AC-1", "description": "it is good", "checks": []}]}),
            )
    }
}

pub(crate) fn definitions() -> Vec<Definition> {
    vec![
        TeamOutput::definition(),
        TeamInput::definition(),
        SessionStatus::definition(),
        TaskPlan::definition(),
        Acceptance::definition(),
    ]
}
