//! The contexts that the pipeline passes to its agents: their position in the workflow, and the
//! feedback of later agents.

use super::{EnvelopeStatus, PipelineFinding, rename_finding_fields};
use crate::value::string_enum;
use counterfoil_contract::{AgentOutput, Definition, Framing, RepoPath, Rule};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

string_enum! {
    /// An agent of the pipeline.
    PipelineAgent {
        Specify = "specify", Clarify = "clarify", Research = "research", Plan = "plan", Checklist = "checklist",
        Tasks = "tasks", Analyze = "analyze", Implement = "implement", Test = "test", Review = "review",
        TasksToIssues = "taskstoissues",
    }
}

/// What an earlier agent came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PreviousResult {
    /// Whether it succeeded
    pub status: EnvelopeStatus,
    /// The rest of what it handed back
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// Where an agent is in the workflow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkflowContext {
    /// The run
    #[schemars(length(min = 1))]
    pub workflow_id: String,
    /// The feature
    #[schemars(length(min = 1))]
    pub feature_id: String,
    /// The folder with the feature's documents
    #[schemars(extend("x-placeholder" = "specs/<feature-id>/"))]
    pub feature_dir: RepoPath,
    /// What earlier agents came to, by their names
    pub previous_results: BTreeMap<String, PreviousResult>,
}

impl AgentOutput for WorkflowContext {
    fn definition() -> Definition {
        Definition::for_type::<Self>("spec-pipeline/workflow-context", 1, Framing::AnyJson)
            .summary("Where an agent is in the workflow, and what came before it")
            .display("{{ result.feature_id }} in {{ result.feature_dir }}, after {{ result.previous_results | length }} agents")
            .example(json!({
                "workflow_id": "0195a2c4-7d3e-7b60-9f1a-3c5d7e9f1a2b", "feature_id": "007-search",
                "feature_dir": "specs/007-search/", "previous_results": {}
            }))
            .example(json!({
                "workflow_id": "0195a2c4-7d3e-7b60-9f1a-3c5d7e9f1a2b", "feature_id": "007-search",
                "feature_dir": "specs/007-search/",
                "previous_results": {
                    "specify": {"status": "success", "result": {"spec_file": "specs/007-search/spec.md"}}
                }
            }))
            .counter_example(
                "C0214",
                json!({
                    "workflow_id": "0195a2c4", "feature_id": "007-search", "feature_dir": "/home/me/specs",
                    "previous_results": {}
                }),
            )
    }
}

/// What a later agent wants fixed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FeedbackContext {
    /// The agent that found the issues
    pub feedback_from: PipelineAgent,
    /// Which round this is, from 1
    #[schemars(range(min = 1))]
    pub iteration: u64,
    /// How many rounds there can be
    #[schemars(range(min = 1))]
    pub max_iterations: u64,
    /// What must be fixed before anything else
    #[schemars(length(min = 1))]
    pub issues_to_fix: Vec<PipelineFinding>,
}

impl AgentOutput for FeedbackContext {
    fn definition() -> Definition {
        let issue = json!({
            "severity": "HIGH", "type": "coverage_gap", "message": "REQ-4 has no task",
            "location": "specs/007-search/tasks.md:12", "recommendation": "Add a task for it"
        });
        let context =
            Definition::for_type::<Self>("spec-pipeline/feedback-context", 1, Framing::AnyJson);
        rename_finding_fields(context, "/issues_to_fix/*")
            .summary("What a later agent wants fixed, and how many rounds are left")
            .display(
                "{{ result.issues_to_fix | length }} issues from {{ result.feedback_from }}, round \
                 {{ result.iteration }} of {{ result.max_iterations }}",
            )
            .rule(
                Rule::check(
                    "iteration-within-limit",
                    "result.iteration <= result.max_iterations",
                    "`iteration` is above `max_iterations`",
                )
                .at("/iteration"),
            )
            .example(json!({"feedback_from": "analyze", "iteration": 1, "max_iterations": 2, "issues_to_fix": [issue]}))
            .example(json!({
                "feedback_from": "test", "iteration": 2, "max_iterations": 2,
                "issues_to_fix": [{"severity": "CRITICAL", "type": "test_failure", "message": "ranks_exact fails"}]
            }))
            .counter_example(
                "iteration-within-limit",
                json!({"feedback_from": "analyze", "iteration": 3, "max_iterations": 2, "issues_to_fix": [issue]}),
            )
    }
}
