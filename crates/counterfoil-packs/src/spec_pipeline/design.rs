//! Results of the agents that write documents, from specify to tasks, and of analyze, which checks
//! them.

use super::{
    Envelope, PipelineFinding, SpecResult, envelope_display, missing_document,
    percentage_matches_counts, rename_finding_fields, result_rule, success_example,
};
use crate::value::string_enum;
use counterfoil_contract::claim::{Claim, ClaimKind, ClaimMatch};
use counterfoil_contract::{Definition, RepoPath, Rule};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

string_enum! {
    /// Whether a spec's checklist is complete.
    ChecklistStatus { Complete = "complete", Incomplete = "incomplete" }
}

string_enum! {
    /// How reliable the research is.
    ConfidenceLevel { High = "HIGH", Medium = "MEDIUM", Low = "LOW" }
}

string_enum! {
    /// What a checklist is about.
    ChecklistDomain { Ux = "ux", Api = "api", Security = "security", Performance = "performance", Data = "data" }
}

/// A spec that was written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SpecifyResult {
    /// The branch that was made
    #[schemars(extend("default" = "", "x-asked" = "optional"))]
    pub branch_name: String,
    /// The spec
    pub spec_file: RepoPath,
    /// The feature's number
    #[schemars(extend("default" = 0, "x-asked" = "optional"))]
    pub feature_number: u64,
    /// The feature's short name
    pub short_name: String,
    /// How many questions are open
    pub clarifications_needed: u64,
    /// The sections that were written
    pub sections_generated: Vec<String>,
    /// Whether the spec's checklist is complete
    pub checklist_status: ChecklistStatus,
    /// The agents that could come next
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_steps: Option<Vec<String>>,
}

/// The output of the agent `specify`.
pub type SpecifyOutput = Envelope<SpecifyResult>;

impl SpecResult for SpecifyResult {
    const AGENT: &'static str = "specify";
    const PREFIXED_AGENT: &'static str = "speckit-specify";

    fn failure() -> Value {
        json!({
            "type": "ValidationError", "code": "REQUEST_UNCLEAR", "message": "The request names no feature",
            "recoverable": false
        })
    }

    fn extend_envelope(envelope: Definition) -> Definition {
        envelope
            .version(3)
            .summary("A spec written from the user's request")
            .display(&envelope_display(
                "{{ result.result.spec_file }}: {{ result.result.clarifications_needed }} questions open",
            ))
            .claim("result/spec_file", Claim::new(ClaimKind::Artifact))
            .example(success_example::<Self>(&json!({
                "branch_name": "007-search", "spec_file": "specs/007-search/spec.md", "feature_number": 7,
                "short_name": "search", "clarifications_needed": 1, "sections_generated": ["Goal", "Stories"],
                "checklist_status": "complete", "next_steps": ["clarify"]
            })))
    }
}

/// Questions that were settled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClarifyResult {
    /// The spec
    pub spec_file: RepoPath,
    /// How many questions were settled
    pub clarifications_resolved: u64,
    /// How many questions were asked
    pub questions_asked: u64,
    /// How many are still open
    pub remaining_ambiguities: u64,
    /// The agents that could come next
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_steps: Option<Vec<String>>,
}

/// The output of the agent `clarify`.
pub type ClarifyOutput = Envelope<ClarifyResult>;

impl SpecResult for ClarifyResult {
    const AGENT: &'static str = "clarify";
    const PREFIXED_AGENT: &'static str = "speckit-clarify";

    fn extend_envelope(envelope: Definition) -> Definition {
        envelope
            .summary("Open questions of the spec, settled")
            .display(&envelope_display(
                "{{ result.result.clarifications_resolved }} of {{ result.result.questions_asked }} questions settled, \
                 {{ result.result.remaining_ambiguities }} left",
            ))
            .claim("result/spec_file", Claim::new(ClaimKind::Artifact))
            .example(success_example::<Self>(&json!({
                "spec_file": "specs/007-search/spec.md", "clarifications_resolved": 2, "questions_asked": 2,
                "remaining_ambiguities": 0
            })))
    }
}

/// A technology that was looked into.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResearchedTechnology {
    /// Its name
    pub name: String,
    /// Its id in the documentation service
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context7_id: Option<String>,
    /// What was looked up
    pub topics: Vec<String>,
    /// How many passages were found
    pub snippet_count: u64,
}

/// A decision that was taken.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResearchDecision {
    /// What was to be decided
    pub decision: String,
    /// What was chosen
    pub choice: String,
    /// Why
    pub rationale: String,
    /// What else there was
    pub alternatives: Vec<String>,
}

/// What is known before planning.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResearchResult {
    /// Where the findings are kept
    pub research_cache_file: RepoPath,
    /// The technologies that were looked into
    pub technologies_researched: Vec<ResearchedTechnology>,
    /// The decisions that were taken
    pub decisions: Vec<ResearchDecision>,
    /// How far it can be relied on
    pub confidence_level: ConfidenceLevel,
    /// The agents that could come next
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_steps: Option<Vec<String>>,
}

/// The output of the agent `research`.
pub type ResearchOutput = Envelope<ResearchResult>;

impl SpecResult for ResearchResult {
    const AGENT: &'static str = "research";
    const PREFIXED_AGENT: &'static str = "speckit-research";

    fn failure() -> Value {
        json!({
            "type": "ExternalServiceError", "code": "DOCUMENTATION_UNREACHABLE",
            "message": "The documentation service does not answer", "recoverable": true
        })
    }

    fn extend_envelope(envelope: Definition) -> Definition {
        envelope
            .summary("Technologies looked into and decisions taken before planning")
            .display(&envelope_display(
                "{{ result.result.technologies_researched | length }} technologies, \
                 {{ result.result.decisions | length }} decisions, confidence {{ result.result.confidence_level }}",
            ))
            .claim("result/research_cache_file", Claim::new(ClaimKind::Artifact))
            .example(success_example::<Self>(&json!({
                "research_cache_file": "specs/007-search/research.json",
                "technologies_researched": [
                    {"name": "tantivy", "context7_id": "/quickwit-oss/tantivy", "topics": ["ranking"], "snippet_count": 8}
                ],
                "decisions": [{
                    "decision": "search engine", "choice": "tantivy", "rationale": "it runs in the process",
                    "alternatives": ["a search server"]
                }],
                "confidence_level": "HIGH"
            })))
    }
}

/// A plan that was written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlanResult {
    /// The plan
    pub plan_file: RepoPath,
    /// The research it rests on
    #[schemars(extend("default" = "none", "x-asked" = "optional"))]
    pub research_file: RepoPath,
    /// The data model
    #[schemars(extend("default" = "none", "x-asked" = "optional"))]
    pub data_model_file: RepoPath,
    /// The folder of the contracts
    #[schemars(extend("default" = "none", "x-asked" = "optional"))]
    pub contracts_dir: RepoPath,
    /// How to start
    #[schemars(extend("default" = "none", "x-asked" = "optional"))]
    pub quickstart_file: RepoPath,
    /// The technologies it uses
    pub technologies: Vec<String>,
    /// Rules of the project that it breaks
    pub constitution_violations: Vec<String>,
    /// The files that were written
    pub artifacts_created: Vec<RepoPath>,
    /// The agents that could come next
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_steps: Option<Vec<String>>,
}

/// The output of the agent `plan`.
pub type PlanOutput = Envelope<PlanResult>;

impl SpecResult for PlanResult {
    const AGENT: &'static str = "plan";
    const PREFIXED_AGENT: &'static str = "speckit-plan";

    fn extend_envelope(envelope: Definition) -> Definition {
        envelope
            .version(3)
            .summary("The plan of a feature and the documents around it")
            .display(&envelope_display(
                "{{ result.result.plan_file }}: {{ result.result.artifacts_created | length }} documents, \
                 {{ result.result.constitution_violations | length }} violations of the constitution",
            ))
            .claim("result/plan_file", Claim::new(ClaimKind::Artifact))
            .claim("result/artifacts_created", Claim::new(ClaimKind::FilesChanged).matching(ClaimMatch::Subset))
            .example(success_example::<Self>(&json!({
                "plan_file": "specs/007-search/plan.md", "research_file": "specs/007-search/research.md",
                "data_model_file": "specs/007-search/data-model.md", "contracts_dir": "specs/007-search/contracts/",
                "quickstart_file": "specs/007-search/quickstart.md", "technologies": ["tantivy"],
                "constitution_violations": [], "artifacts_created": ["specs/007-search/plan.md"]
            })))
    }
}

/// A checklist that was written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChecklistResult {
    /// The checklist
    pub checklist_file: RepoPath,
    /// What it is about
    pub domain: ChecklistDomain,
    /// How many items it has
    pub total_items: u64,
    /// The headings of its items
    pub categories: Vec<String>,
    /// The agents that could come next
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_steps: Option<Vec<String>>,
}

/// The output of the agent `checklist`.
pub type ChecklistOutput = Envelope<ChecklistResult>;

impl SpecResult for ChecklistResult {
    const AGENT: &'static str = "checklist";
    const PREFIXED_AGENT: &'static str = "speckit-checklist";

    fn extend_envelope(envelope: Definition) -> Definition {
        envelope
            .summary("A checklist for the spec in one domain")
            .display(&envelope_display("{{ result.result.checklist_file }}: {{ result.result.total_items }} items on {{ result.result.domain }}"))
            .claim("result/checklist_file", Claim::new(ClaimKind::Artifact))
            .example(success_example::<Self>(&json!({
                "checklist_file": "specs/007-search/checklists/security.md", "domain": "security", "total_items": 9,
                "categories": ["Clarity", "Coverage"]
            })))
    }
}

/// How many tasks each phase has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseCounts {
    /// Tasks that set things up
    pub setup: u64,
    /// Tasks that all stories rest on
    pub foundational: u64,
    /// Tasks of the user stories
    pub user_stories: u64,
    /// Tasks at the end
    pub polish: u64,
}

/// Tasks that were written down.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TasksResult {
    /// The list of tasks
    pub tasks_file: RepoPath,
    /// How many tasks there are
    pub task_count: u64,
    /// How many tasks each phase has
    pub phases: PhaseCounts,
    /// How many tasks can run beside others
    pub parallelizable_tasks: u64,
    /// The ids of all tasks: T and at least three digits
    #[schemars(inner(regex(pattern = r"^T[0-9]{3,}$")))]
    pub task_ids: Vec<String>,
    /// Whether the tasks say what they depend on
    pub dependencies_mapped: bool,
    /// The agents that could come next
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_steps: Option<Vec<String>>,
}

/// The output of the agent `tasks`.
pub type TasksOutput = Envelope<TasksResult>;

impl SpecResult for TasksResult {
    const AGENT: &'static str = "tasks";
    const PREFIXED_AGENT: &'static str = "speckit-tasks";

    fn failure() -> Value {
        missing_document(
            "PLAN_NOT_FOUND",
            "There is no plan.md to cut into tasks",
            "plan",
            "It writes the plan",
        )
    }

    fn extend_envelope(envelope: Definition) -> Definition {
        envelope
            .summary("The plan as a list of tasks in phases")
            .display(&envelope_display("{{ result.result.tasks_file }}: {{ result.result.task_count }} tasks, {{ result.result.parallelizable_tasks }} in parallel"))
            .rule(result_rule(
                "phases-add-up",
                "result.result.task_count == result.result.phases.setup + result.result.phases.foundational + \
                 result.result.phases.user_stories + result.result.phases.polish",
                "`task_count` differs from the sum of `phases`",
                "/result/task_count",
            ))
            .rule(result_rule(
                "every-task-has-an-id",
                "result.result.task_count == size(result.result.task_ids)",
                "`task_count` differs from the number of `task_ids`",
                "/result/task_count",
            ))
            .rule(Rule::unique("ids-differ", "/result/task_ids/*"))
            .claim("result/tasks_file", Claim::new(ClaimKind::Artifact))
            .claim("result/task_count", Claim::count_of("/result/task_ids"))
            .example(success_example::<Self>(&json!({
                "tasks_file": "specs/007-search/tasks.md", "task_count": 4,
                "phases": {"setup": 1, "foundational": 1, "user_stories": 2, "polish": 0},
                "parallelizable_tasks": 2, "task_ids": ["T001", "T002", "T003", "T004"], "dependencies_mapped": true
            })))
            .counter_example("phases-add-up", success_example::<Self>(&json!({
                "tasks_file": "specs/007-search/tasks.md", "task_count": 2,
                "phases": {"setup": 1, "foundational": 1, "user_stories": 2, "polish": 0},
                "parallelizable_tasks": 2, "task_ids": ["T001", "T002"], "dependencies_mapped": true
            })))
    }
}

/// How many findings there are of each severity.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub struct SeverityCounts {
    /// Critical ones
    pub critical: u64,
    /// High ones
    pub high: u64,
    /// Medium ones
    pub medium: u64,
    /// Low ones
    pub low: u64,
}

/// Whether every requirement has a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CoverageAnalysis {
    /// Requirements in all
    pub total_requirements: u64,
    /// Requirements that have a task
    pub requirements_with_tasks: u64,
    /// The share of those, in percent
    #[schemars(range(min = 0.0, max = 100.0))]
    pub coverage_percentage: f64,
    /// Requirements without a task
    pub uncovered_requirements: Vec<String>,
}

/// What is wrong between spec, plan and tasks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AnalyzeResult {
    /// The report
    pub analysis_report: RepoPath,
    /// The documents that were read
    pub artifacts_analyzed: Vec<RepoPath>,
    /// How many findings there are
    pub total_findings: u64,
    /// How many there are of each severity
    pub findings_by_severity: SeverityCounts,
    /// The findings
    pub findings: Vec<PipelineFinding>,
    /// Whether every requirement has a task
    pub coverage_analysis: CoverageAnalysis,
    /// The agents that could come next
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_steps: Option<Vec<String>>,
}

/// The output of the agent `analyze`.
pub type AnalyzeOutput = Envelope<AnalyzeResult>;

impl SpecResult for AnalyzeResult {
    const AGENT: &'static str = "analyze";
    const PREFIXED_AGENT: &'static str = "speckit-analyze";

    fn failure() -> Value {
        missing_document(
            "TASKS_NOT_FOUND",
            "There is no tasks.md to compare",
            "tasks",
            "It writes the tasks",
        )
    }

    fn extend_envelope(envelope: Definition) -> Definition {
        let example = json!({
            "analysis_report": "specs/007-search/analysis.md",
            "artifacts_analyzed": ["specs/007-search/spec.md", "specs/007-search/tasks.md"],
            "total_findings": 1, "findings_by_severity": {"CRITICAL": 0, "HIGH": 1, "MEDIUM": 0, "LOW": 0},
            "findings": [{
                "severity": "HIGH", "type": "coverage_gap", "message": "REQ-4 has no task",
                "location": "specs/007-search/tasks.md:12", "recommendation": "Add a task for it"
            }],
            "coverage_analysis": {
                "total_requirements": 6, "requirements_with_tasks": 5, "coverage_percentage": 83.3,
                "uncovered_requirements": ["REQ-4"]
            }
        });
        let mut miscounted = success_example::<Self>(&example);
        miscounted["result"]["total_findings"] = json!(3);
        rename_finding_fields(envelope, "/result/findings/*")
            .summary("What does not fit between spec, plan and tasks")
            .approves("has(result.result) && result.result.total_findings == 0")
            .asks_if_several()
            .display(&envelope_display(
                "{{ result.result.total_findings }} findings, \
                 {{ result.result.coverage_analysis.coverage_percentage }} % of the requirements have tasks",
            ))
            .rule(result_rule(
                "severities-add-up",
                "result.result.total_findings == result.result.findings_by_severity.CRITICAL + \
                 result.result.findings_by_severity.HIGH + result.result.findings_by_severity.MEDIUM + \
                 result.result.findings_by_severity.LOW",
                "`total_findings` differs from the sum of `findings_by_severity`",
                "/result/total_findings",
            ))
            .rule(result_rule(
                "coverage-agrees-with-counts",
                &percentage_matches_counts(
                    "result.result.coverage_analysis.coverage_percentage",
                    "result.result.coverage_analysis.requirements_with_tasks",
                    "result.result.coverage_analysis.total_requirements",
                ),
                "`coverage_percentage` differs by more than 0.5 from `requirements_with_tasks` of `total_requirements`",
                "/result/coverage_analysis/coverage_percentage",
            ))
            .claim("result/analysis_report", Claim::new(ClaimKind::Artifact))
            .claim("result/total_findings", Claim::count_of("/result/findings"))
            .salvages("/result/findings")
            .example(success_example::<Self>(&example))
            .counter_example("severities-add-up", miscounted)
    }
}
