//! Holds what a result claims against what happened.
//!
//! Three rooms: [`read`] takes from a result what it claims, the modules named for a kind judge it
//! over plain data, and what looks at the world (`look`, `check`, `git`) decides nothing.
//! [`verify`] is the way through them. A claim that the result does not make (the field is absent
//! or null, a list that names nothing where nothing is a legal answer) gives no report.

mod artifact;
mod cache;
mod check;
mod command;
mod commit;
mod count;
mod figures;
mod files;
mod fixed;
mod git;
mod judged;
mod location;
mod look;
mod path;
mod places;
mod read;
mod scene;
mod shown;
mod xml;

pub use crate::config::{Check, Config, ConfigError, Run};
pub use counterfoil_workspace::tree::Since;
pub use figures::Figures;
pub use read::understands;

use counterfoil_contract::Contract;
use counterfoil_contract::claim::{ClaimKind, ClaimPolicy, ClaimReport, EffectiveClaim};
use counterfoil_process::Stop;
use counterfoil_workspace::tree::Changes;
use judged::Judged;
use scene::Scene;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;
use tokio::sync::watch;

/// What the judge asks of the workspace. Calls may block: it looks at files and asks git.
pub trait Observer: Send + Sync {
    /// What changed since the step began, as the tree stands now; or why that cannot be told.
    fn changes(&mut self) -> Result<&Changes, String>;

    /// What became of a file that git ignores, relative to the workspace's folder. A file that git
    /// does not ignore is `Untouched` here, or `Absent`: `changes` tells of it.
    fn since(&mut self, path: &Path) -> Since;

    /// The same for many, in order. Whoever can ask git once for all of them should.
    fn since_all(&mut self, paths: &[PathBuf]) -> Vec<Since> {
        paths.iter().map(|path| self.since(path)).collect()
    }

    /// Those of some paths that git ignores, whether there is anything or not. Of what is not there
    /// nothing tells whether it was.
    fn ignored(&mut self, paths: &[PathBuf]) -> BTreeSet<PathBuf>;

    /// A name for the tree as it stands now, equal for equal trees; none if it cannot be told.
    fn tree_id(&mut self) -> Option<String>;

    /// How many tests were added and removed since the step began.
    fn tests(&mut self) -> Option<(u64, u64)>;

    /// When the step began.
    fn began(&self) -> Option<SystemTime>;
}

/// The world that claims are held against.
pub struct World<'a> {
    /// The workspace's folder: claimed paths count from here.
    pub folder: &'a Path,
    /// The top of its repository; the folder itself outside of one.
    pub top: &'a Path,
    /// Tells what changed.
    pub observer: &'a mut dyn Observer,
    /// The project's checks, as they stood before the step: an agent does not redefine what it is
    /// checked by.
    pub config: &'a Config,
    /// Contracts by id, for artifacts.
    pub contracts: &'a (dyn Fn(&str) -> Option<Arc<Contract>> + Sync),
    /// Where outcomes of checks are kept; none: each is run again.
    pub cache: Option<&'a Path>,
    /// Says when to stop.
    pub stop: watch::Receiver<Stop>,
    /// Marks the processes of checks, as [`counterfoil_process::Spawn::marker`] does.
    pub marker: String,
    /// Files that are ours, absolute: nobody claims them.
    pub ours: &'a BTreeSet<PathBuf>,
    /// Whether commands may be run.
    pub commands: bool,
    /// Since when changes count, in words: "the step began", or a revision.
    pub since: &'a str,
    /// Who else was at work in the folder meanwhile, in words: what nobody claims may be theirs.
    pub company: Option<&'a str>,
}

/// Holds the claims of an accepted result against the world: one report for each claim that was
/// made and is not ignored, in the order they are held.
///
/// What only looks comes before what runs, since a check may change what there is to see.
pub async fn verify(
    held: &[EffectiveClaim],
    contract: &Contract,
    value: &Value,
    world: &mut World<'_>,
) -> Vec<ClaimReport> {
    let is_held = |held: &EffectiveClaim| {
        held.claim.policy != ClaimPolicy::Ignore
            // The engine makes these two itself.
            && !matches!(held.claim.kind, ClaimKind::Protected | ClaimKind::TestsKept)
    };
    if !held.iter().any(is_held) {
        return Vec::new();
    }
    let mut scene = Scene::look(world);
    let mut reports: Vec<Option<ClaimReport>> = held.iter().map(|_| None).collect();
    for runs in [false, true] {
        for (held, report) in held.iter().zip(&mut reports) {
            if is_held(held) && needs_a_run(held) == runs {
                let judged = hold(held, contract, value, &mut scene, world).await;
                *report = judged.map(|judged| judged.report(held, scene.tree.clone()));
            }
        }
    }
    reports.into_iter().flatten().collect()
}

fn needs_a_run(held: &EffectiveClaim) -> bool {
    match held.claim.kind {
        ClaimKind::Command | ClaimKind::Commands => true,
        ClaimKind::Count => held.claim.run.is_some() || held.claim.check.is_some(),
        _ => false,
    }
}

async fn hold(
    held: &EffectiveClaim,
    contract: &Contract,
    value: &Value,
    scene: &mut Scene,
    world: &mut World<'_>,
) -> Option<Judged> {
    match held.claim.kind {
        ClaimKind::FilesModified
        | ClaimKind::FilesAdded
        | ClaimKind::FilesDeleted
        | ClaimKind::FilesRenamed
        | ClaimKind::FilesChanged => files::hold(held, value, scene, world),
        ClaimKind::Command => command::hold(held, contract, value, scene, world).await,
        ClaimKind::Commands => command::hold_each(held, value, scene, world).await,
        ClaimKind::Count => count::hold(held, value, scene, world).await,
        ClaimKind::Artifact => artifact::hold(held, value, scene, world),
        ClaimKind::Commit => commit::hold(held, value, scene, world).await,
        ClaimKind::Location => location::hold(held, value, scene),
        ClaimKind::Fixed => fixed::hold(held, value, scene, world),
        ClaimKind::Protected | ClaimKind::TestsKept => None,
    }
}
