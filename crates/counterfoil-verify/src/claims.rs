//! Verifies the claims of a result against the workspace.
//!
//! The work is split in three: `extract` reads from a result what it claims; one module for each
//! kind of claim compares that with observations and returns an assessment; `probe`, `check` and
//! `git` make the observations and decide nothing. [`verify`] connects them. A claim that the
//! result does not make gives no report: the field is absent or null, or it is an empty list where
//! an empty list is a valid answer.

mod allow;
mod artifact;
mod assessment;
mod cache;
mod capture;
mod check;
mod claimed_counts;
mod command;
mod commit;
mod complete;
mod count;
mod evasion;
mod excerpt;
mod extract;
mod figures;
mod files;
mod fixed;
mod format;
mod git;
mod idle;
mod junit;
mod location;
mod parse_location;
mod passes;
mod path;
mod probe;
mod rerun;
mod run_check;
mod runner;
mod state;
mod stated;
mod unittest;

pub use crate::config::{Check, CheckCommand, ConfigError, VerifyConfig};
pub use cache::CheckCache;
pub use counterfoil_workspace::refs::Refs;
pub use counterfoil_workspace::snapshot::Since;
pub use extract::{ExtractError, makes_claim};
pub use figures::{Figures, FiguresError};
pub use run_check::{CheckRun, run_check};

use crate::inventory::IneffectiveTest;
use crate::unfinished::UnfinishedWork;
use assessment::ClaimAssessment;
use counterfoil_contract::Contract;
use counterfoil_contract::claim::{ClaimKind, ClaimPolicy, ClaimReport, EffectiveClaim};
use counterfoil_process::StopRequest;
use counterfoil_process::contain::Launcher;
use counterfoil_workspace::snapshot::Changes;
use serde_json::Value;
use state::VerificationState;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;
use tokio::sync::watch;

/// The changes in the workspace cannot be determined.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct UnobservableError {
    /// The reason, as text for people.
    pub reason: String,
}

/// How many tests a step added and removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TestCounts {
    /// The number of tests that were added, without those that check nothing.
    pub added: u64,
    /// The number of tests that were removed.
    pub removed: u64,
    /// The tests that were added and check nothing.
    pub in_vain: Vec<IneffectiveTest>,
}

/// What the verification asks about a workspace. Calls may block: they read files and run git.
pub trait WorkspaceView: Send + Sync {
    /// The changes from the start of the step until now.
    ///
    /// # Errors
    ///
    /// The changes cannot be determined.
    fn changes(&mut self) -> Result<&Changes, UnobservableError>;

    /// The change of a file that git ignores, relative to the workspace's folder. A file that git
    /// does not ignore is reported as `Untouched` or `Absent`: `changes` covers it.
    fn ignored_change(&mut self, path: &Path) -> Since;

    /// The changes of several ignored files, in order. Override it where one call of git can answer
    /// for all paths.
    fn ignored_changes(&mut self, paths: &[PathBuf]) -> Vec<Since> {
        paths.iter().map(|path| self.ignored_change(path)).collect()
    }

    /// The paths that git ignores, whether or not they exist. For a path that does not exist,
    /// nothing records whether it existed before.
    fn ignored(&mut self, paths: &[PathBuf]) -> BTreeSet<PathBuf>;

    /// An identifier of the current content of the work tree, equal for equal content; none if it
    /// cannot be determined.
    fn tree_id(&mut self) -> Option<String>;

    /// How many tests were added and removed since the step began; none if they cannot be counted.
    fn test_counts(&mut self) -> Option<TestCounts>;

    /// What the changes left unfinished.
    fn unfinished_work(&mut self) -> UnfinishedWork;

    /// Whether a file is like another one was when the step began: a part of its lines is the same. None
    /// if that cannot be determined.
    fn is_like(&mut self, _path: &Path, _was: &Path) -> Option<bool> {
        None
    }

    /// When the step began.
    fn started_at(&self) -> Option<SystemTime>;

    /// The repository when the run began, where that is known.
    fn run_start(&mut self) -> Option<&mut dyn RunStart> {
        None
    }
}

/// A file in an earlier state: its path, and its content if that is not simply what it was at the start.
pub type EarlierFile = (PathBuf, Option<Vec<u8>>);

/// The repository as it was when the run began, seen from a workspace. Paths are relative to the top
/// of the repository. Calls may block.
pub trait RunStart: Send + Sync {
    /// The files of the workspace that differ from it now.
    ///
    /// # Errors
    ///
    /// They cannot be determined.
    fn changed(&mut self) -> Result<Vec<PathBuf>, UnobservableError>;

    /// The content of a file at the start; none if it did not exist.
    ///
    /// # Errors
    ///
    /// It cannot be read.
    fn content(&mut self, path: &Path) -> io::Result<Option<Vec<u8>>>;

    /// Whether there was a file, or a folder with files, at the start.
    fn existed(&mut self, path: &Path) -> bool;

    /// Puts files of the workspace into an earlier state: as they were at the start, or with the
    /// given content. [`RunStart::put_forward`] undoes it, also in a later process.
    ///
    /// # Errors
    ///
    /// A file cannot be written. Then all are as before.
    fn put_back(&mut self, files: &[EarlierFile]) -> Result<(), String>;

    /// Undoes [`RunStart::put_back`]. Returns the files that could not be written, with the reasons.
    fn put_forward(&mut self) -> Vec<(PathBuf, String)>;
}

/// The commits that existed before a step.
#[derive(Clone, Debug)]
pub enum CommitsBefore {
    /// Those that the repository had when the step began: what its refs reached, and the others. None is
    /// known to be new if the others are not known.
    Refs(Refs),
    /// Those that a revision reaches. If it is a name that moves with HEAD, what a step made after it
    /// may be part of it as well.
    Revision(String),
    /// It is not known which.
    Unknown(String),
}

/// How messages speak of the state of the repository that a changed check is also run in.
#[derive(Clone, Copy, Debug)]
pub struct StartWords<'a> {
    /// When it was, after "since": "the run began", or a revision.
    pub since: &'a str,
    /// How files were in it: "as when the run began".
    pub as_then: &'a str,
    /// How to allow a change of what steers a check.
    pub way_out: &'a str,
}

impl StartWords<'_> {
    /// The start of a run.
    pub const RUN: Self = Self {
        since: "the run began",
        as_then: "as when the run began",
        way_out: "to allow the change, spell out the file's name in `writes` of the agent or the workflow",
    };
}

/// Everything that claims are verified against.
pub struct VerifyContext<'a> {
    /// The workspace's folder. Claimed paths are relative to it.
    pub folder: &'a Path,
    /// The top folder of its repository; the workspace's folder itself outside of a repository.
    pub top: &'a Path,
    /// The source of the changes.
    pub view: &'a mut dyn WorkspaceView,
    /// The project's checks, read before the step began, so that an agent cannot redefine the
    /// checks of its own work.
    pub config: &'a VerifyConfig,
    /// Contracts by id, for artifacts.
    pub contracts: &'a (dyn Fn(&str) -> Option<Arc<Contract>> + Sync),
    /// The outcomes of checks that were run before; none: every check is run.
    pub cache: Option<&'a CheckCache>,
    /// Protected files that were changed and could not be restored, relative to the folder. A check
    /// that one of them steers is not run.
    pub unrestored: &'a [PathBuf],
    /// Whether the step may change a file that steers checks, given relative to the folder.
    pub may_change: &'a (dyn Fn(&Path) -> bool + Sync),
    /// How messages speak of the state that checks are also run in.
    pub start: StartWords<'a>,
    /// The commits from before the step. Only others verify that a step committed its work.
    pub commits_before: &'a CommitsBefore,
    /// Signals that the verification must stop.
    pub stop: watch::Receiver<StopRequest>,
    /// Marks the processes of checks, as [`counterfoil_process::ChildSpec::marker`] does.
    pub marker: String,
    /// How checks are contained.
    pub launcher: &'a Launcher,
    /// Absolute paths of Counterfoil's own files. A result need not claim their changes.
    pub own_files: &'a BTreeSet<PathBuf>,
    /// Whether commands may be run.
    pub run_commands: bool,
    /// The point from which changes count, as text: "the step began", or a revision.
    pub since: &'a str,
    /// Describes another writer that was active in the folder during the step. Unclaimed changes
    /// may be its work.
    pub concurrent_writer: Option<&'a str>,
}

/// Verifies the claims of an accepted result: one report for each claim that the result makes and
/// that is not ignored, in the given order.
///
/// Claims that only need observation are verified before claims that run a command, because a
/// command may change the workspace.
pub async fn verify(
    claims: &[EffectiveClaim],
    contract: &Contract,
    value: &Value,
    context: &mut VerifyContext<'_>,
) -> Vec<ClaimReport> {
    let is_verified = |effective: &EffectiveClaim| {
        effective.claim.policy != ClaimPolicy::Ignore
            // The worker reports these two kinds for every attempt.
            && !matches!(effective.claim.kind, ClaimKind::Protected | ClaimKind::TestsKept)
    };
    if !claims.iter().any(is_verified) {
        return Vec::new();
    }
    let mut state = VerificationState::observe(context);
    let mut reports: Vec<Option<ClaimReport>> = claims.iter().map(|_| None).collect();
    for with_commands in [false, true] {
        for (effective, report) in claims.iter().zip(&mut reports) {
            if is_verified(effective) && runs_command(effective) == with_commands {
                let assessment =
                    verify_claim(effective, contract, value, &mut state, context).await;
                *report = assessment
                    .map(|assessment| assessment.into_report(effective, state.tree_id.clone()));
            }
        }
    }
    reports.into_iter().flatten().collect()
}

/// Whether verifying a claim runs a command.
pub fn runs_command(effective: &EffectiveClaim) -> bool {
    match effective.claim.kind {
        ClaimKind::Command | ClaimKind::Commands => true,
        // A check of the configuration may write the report.
        ClaimKind::Count => {
            let claim = &effective.claim;
            claim.run.is_some() || claim.check.is_some() || claim.report.is_some()
        }
        _ => false,
    }
}

async fn verify_claim(
    effective: &EffectiveClaim,
    contract: &Contract,
    value: &Value,
    state: &mut VerificationState,
    context: &mut VerifyContext<'_>,
) -> Option<ClaimAssessment> {
    match effective.claim.kind {
        ClaimKind::FilesModified
        | ClaimKind::FilesAdded
        | ClaimKind::FilesDeleted
        | ClaimKind::FilesRenamed
        | ClaimKind::FilesChanged => files::verify(effective, value, state, context),
        ClaimKind::Command => command::verify(effective, contract, value, state, context).await,
        ClaimKind::Commands => command::verify_each(effective, value, state, context).await,
        ClaimKind::Count => count::verify(effective, value, state, context).await,
        ClaimKind::Artifact => artifact::verify(effective, value, state, context),
        ClaimKind::Commit => commit::verify(effective, value, state, context).await,
        ClaimKind::Location => location::verify(effective, value, state),
        ClaimKind::Fixed => fixed::verify(effective, value, state, context),
        ClaimKind::Complete => complete::verify(effective, contract, value, state, context),
        ClaimKind::Protected | ClaimKind::TestsKept => None,
    }
}
