//! Workflows for coding agents: state machines as data, checked against contracts before they run.
//!
//! A workflow is a YAML file: states, transitions, typed variables, limits. [`check`] holds it to
//! its contracts and gives a [`Workflow`], or everything that is wrong with it. [`Fold`] is what is
//! known of a run, event by event; [`decide`] says what to do next. Neither reads a clock, makes a
//! random number, or does I/O: an engine does, and records what came of it.

mod artifact;
mod bundle;
mod check;
mod decide;
mod draft;
mod event;
mod fan;
mod finding;
mod fold;
pub mod graph;
mod rule;
mod scope;
pub mod template;
mod tree;
mod turn;
pub mod value;
mod workflow;

pub use artifact::{Rendered, Rendering, artifact_paths, artifacts, rendered_by};
pub use bundle::{Bundle, Files};
pub use check::{Rejected, check, reload};
pub use decide::{
    AgentWork, ChangesWork, Chore, Command, CommandWork, CommitWork, Errand, Look, ReadWork, Start,
    Work, decide,
};
pub use event::{
    Asked, AttemptOutcome, Cause, Changed, Channel, DECIDE, Deed, Ended, Event, Moved, Outcome,
    Planned, Player, Reply, Started, Tenure, Usage,
};
pub use fan::{FanOut, Fate, Item};
pub use finding::{Code, Finding, UnknownCode, render};
pub use fold::{
    Ending, Fold, Frame, OpenQuestion, Phase, Problem, Refused, Stage, Stood, Stopping, Streak,
    Workspace,
};
pub use rule::{HeldRule, hold};
pub use turn::{Turn, turn};
pub use workflow::{
    Access, Artifact, Body, Bounds, Budget, ChangesStep, CommitStep, Dispatch, Each, End, Failures,
    Form, Held, Holding, Input, Limit, Listing, Machine, Paths, Question, ReadStep, Role,
    ShellStep, State, Step, StepRule, Target, Term, Transition, Trouble, Variable, Wait, Workflow,
    Workplace,
};
