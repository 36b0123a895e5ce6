//! Workflows for coding agents: state machines as data, checked against contracts before they run.
//!
//! A workflow is a YAML file with states, transitions, typed variables and limits. [`check`]
//! validates it against its contracts and returns a [`Workflow`] or all findings. [`RunState`] is
//! the state of a run, built event by event; [`decide`] computes what to do next, and [`turn`]
//! takes facts and returns the events to record and the work to do. None of them reads a clock,
//! uses random numbers or does I/O: a driver does, and reports the results as facts.

pub mod amount;
mod artifact;
mod ast;
mod attempt_message;
mod bundle;
mod check;
mod decide;
mod event;
mod fan_out;
mod finding;
pub mod graph;
mod problem;
mod reopen;
mod run_state;
mod scope;
mod step_rule;
pub mod template;
mod turn;
pub mod value;
mod variable_types;
mod workflow;
mod yaml_place;
mod yaml_tree;

/// The JSON Schema of a workflow file. The checker finds more than a schema can tell.
pub const JSON_SCHEMA: &str = include_str!("workflow.schema.json");

pub use artifact::{Rendered, Rendering, artifact_paths, artifacts, rendered_by};
pub use attempt_message::{
    AgentMessage, AttemptMessage, CommandMessage, ReadMessage, ResolveError, RuleMessage,
    WorkMessage,
};
pub use bundle::{Bundle, FileError, Files};
pub use check::{Rejected, check, is_name, reload};
pub use decide::{
    AgentWork, AttemptRequest, AttemptWork, ChangesWork, ChecksWork, Command, CommandWork,
    CommitWork, EarlierAttempt, FileCheck, QuotedValue, ReadWork, WorkspaceOp, WorkspaceOpKind,
    decide, used_up_part,
};
pub use event::{
    AskedQuestion, AssignedAgent, AttemptOutcome, BuiltinStep, Cause, ChangedFiles, Changes,
    Channel, CheckDefinition, CheckProgram, CheckReport, CheckStatus, DECIDE, DecidedBy, Ended,
    Event, Origin, Outcome, PlannedChecks, PlannedItem, RejectedPart, Reopened, Reply, Resumed,
    RetryRule, Started, TransitionTaken, Undone, Usage, WorkspaceLifetime, is_verified_at_end,
};
pub use fan_out::{FanOut, Item, ItemStatus};
pub use finding::{Code, Finding, UnknownCode, render};
pub use problem::Problem;
pub use reopen::{History, ReopenError, Request, SameEnd, named_limits};
pub use run_state::{
    AnswerError, ClaimVerdict, Ending, FirstAttempt, Frame, Interruption, OpenQuestion,
    PastConversation, Phase, RunState, Stopping, Streak, Undoing, Workspace, WorkspaceStage,
};
pub use step_rule::{BoundRule, apply_rules};
pub use turn::{LostWork, Turn, resume_facts, turn};
pub use workflow::{
    Access, Artifact, Body, Bounds, Budget, BudgetPart, ChangesStep, CheckUse, ClaimPolicies,
    ClaimUse, CommitStep, Dispatch, Each, End, FailureKind, Failures, Form, Input, Limit, Listing,
    Machine, MissingCheck, Paths, Question, ReadStep, Role, ShellStep, State, StateClaims, Step,
    StepRule, Target, Term, Transition, Variable, Wait, Workflow, WorkspaceMode,
};
pub use yaml_place::YamlPlaces;
