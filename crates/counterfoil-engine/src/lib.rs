//! Runs workflows: the journal, the driver and the reports.
//!
//! An [`Engine`] keeps its runs in a state folder. [`Engine::start`] drives a checked workflow
//! until it ends, waits for an answer or is stopped; [`Engine::resume`] continues a run after a
//! stop or a crash. `counterfoil-flow` decides what happens next, `counterfoil-worker` performs the
//! attempts; this crate does the I/O between them: the [`journal`] and the driver.

mod artifacts;
mod clock;
pub mod config;
mod driver;
mod engine;
mod error;
pub mod event_text;
mod files_diff;
mod fs_files;
mod given_answers;
pub mod journal;
pub mod ledger;
pub mod lists;
mod observer;
pub mod receipt;
mod run_diff;
mod run_inputs;
mod run_progress;
mod run_replica;
mod run_report;
mod run_waits;
mod state_progress;
mod transcript_calls;
mod transcript_reader;
pub mod trouble;
mod unheld_limits;
pub mod visits;

pub use counterfoil_agents::assignment::{AgentAssignments, AssignmentError};
pub use engine::{
    CancelOutcome, CreatedRun, Engine, ResumeOptions, RunView, StartOptions, StopSignal,
};
pub use error::{Error, InputError};
pub use files_diff::{DiffBody, DiffLimits, FileDiff, FilesDiff};
pub use fs_files::FsFiles;
pub use given_answers::GivenAnswer;
pub use observer::{NoopObserver, Observers, RunObserver};
pub use run_diff::RunDiff;
pub use run_progress::RunProgress;
pub use run_replica::RunReplica;
pub use run_report::{Attempt, Question, Reopening, RunInterruption, RunReport, RunUndoing, Step};
pub use run_waits::{RunWait, WaitCause};
pub use state_progress::{StateKey, StateProgress};
pub use transcript_calls::{CallOutcome, GrowingTranscript, ToolCall, TranscriptCalls};
pub use transcript_reader::{
    TranscriptError, TranscriptReader, TranscriptText, VerifiedTexts, prompt_locations,
};
pub use unheld_limits::unheld_limits;
