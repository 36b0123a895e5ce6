//! Workflows for coding agents: state machines as data, checked against contracts before they run.
//!
//! A workflow is a YAML file: states, transitions, typed variables, limits. [`check`] holds it to
//! its contracts and gives a [`Workflow`], or everything that is wrong with it. [`RunState`] is what is
//! known of a run, event by event; [`decide`] says what to do next. Neither reads a clock, makes a
//! random number, or does I/O: an engine does, and records what came of it.

mod artifact;
mod attempt_message;
mod bundle;
mod check;
mod decide;
mod draft;
mod event;
mod fan_out;
mod finding;
pub mod graph;
mod problem;
mod run_state;
mod scope;
mod step_rule;
pub mod template;
mod tree;
mod turn;
pub mod value;
mod workflow;

pub use artifact::{Rendered, Rendering, artifact_paths, artifacts, rendered_by};
pub use attempt_message::{
    AgentMessage, AttemptMessage, CommandMessage, ReadMessage, ResolveError, RuleMessage,
    WorkMessage,
};
pub use bundle::{Bundle, Files};
pub use check::{Rejected, check, reload};
pub use decide::{
    AgentWork, AttemptRequest, AttemptWork, ChangesWork, Command, CommandWork, CommitWork,
    FileCheck, ReadWork, WorkspaceOp, WorkspaceOpKind, decide,
};
pub use event::{
    AskedQuestion, AssignedAgent, AttemptOutcome, BuiltinStep, Cause, ChangedFiles, Channel,
    DECIDE, Ended, Event, Outcome, PlannedItem, Reply, Started, TransitionTaken, Usage,
    WorkspaceLifetime,
};
pub use fan_out::{FanOut, Item, ItemStatus};
pub use finding::{Code, Finding, UnknownCode, render};
pub use problem::Problem;
pub use run_state::{
    AnswerError, ClaimVerdict, Ending, Frame, OpenQuestion, Phase, RunState, Stopping, Streak,
    Workspace, WorkspaceStage,
};
pub use step_rule::{BoundRule, apply_rules};
pub use turn::{Turn, resume_facts, turn};
pub use workflow::{
    Access, Artifact, Body, Bounds, Budget, ChangesStep, ClaimPolicies, CommitStep, Dispatch, Each,
    End, FailureKind, Failures, Form, Input, Limit, Listing, Machine, Paths, Question, ReadStep,
    Role, ShellStep, State, StateClaims, Step, StepRule, Target, Term, Transition, Variable, Wait,
    Workflow, WorkspaceMode,
};
