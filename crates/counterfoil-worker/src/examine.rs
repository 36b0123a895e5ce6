//! The witness of an attempt: it looks at the workspace before and after, and holds what the
//! attempt says against what it saw. It decides nothing: judging is in `claims`, `protect` and
//! `inventory`.

mod aside;
mod look;

use crate::attempt::{Conclusion, Witness};
use crate::perform::Contracts;
use counterfoil_agents::agent::Later;
use counterfoil_contract::Contract;
use counterfoil_contract::claim::{ClaimPolicy, ClaimReport, EffectiveClaim, Evidence, Verdict};
use counterfoil_process::StopRequest;
use counterfoil_verify::claims::{self, VerifyConfig, VerifyContext};
use counterfoil_verify::inventory;
use counterfoil_verify::protect::{self, WriteRules};
use counterfoil_workspace::workspaces::{readable_name, run_name};
use look::Look;
pub(crate) use look::Trees;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;
use tokio::sync::watch;

/// What an attempt is held to, and where.
pub(crate) struct Scene {
    /// The workspace.
    pub(crate) folder: PathBuf,
    /// The state folder: our own files, kept contents, results of checks.
    pub(crate) state: PathBuf,
    /// Names the attempt among all; the processes of checks carry it.
    pub(crate) marker: String,
    pub(crate) contract: Arc<Contract>,
    pub(crate) claims: Vec<EffectiveClaim>,
    /// Which files may be written.
    pub(crate) rules: WriteRules,
    /// What follows from writing others.
    pub(crate) protection: ClaimPolicy,
    /// What follows from taking tests away.
    pub(crate) tests: ClaimPolicy,
    /// The files we write ourselves.
    pub(crate) published: Arc<Mutex<BTreeSet<PathBuf>>>,
    /// Contracts by id, for artifacts.
    pub(crate) contracts: Arc<Contracts>,
    /// Who else was at work in the workspace since a time, in words.
    pub(crate) company: Box<dyn Fn(SystemTime) -> Option<String> + Send + Sync>,
    pub(crate) stop: watch::Receiver<StopRequest>,
}

impl Scene {
    /// Where what stood in the way of restoring a file is kept.
    fn set_aside(&self) -> PathBuf {
        // The names of items are an agent's: none of them may lead elsewhere, or be too long for a
        // folder.
        let (run, attempt) = self.marker.split_once('/').unwrap_or(("", &self.marker));
        self.state
            .join("set-aside")
            .join(run_name(run))
            .join(readable_name(attempt, &[run, attempt]))
    }
}

/// A witness of one attempt.
pub(crate) struct Examiner {
    scene: Arc<Scene>,
    trees: Arc<Trees>,
    /// Elsewhere while a thread looks.
    look: Option<Look>,
}

impl Examiner {
    pub(crate) fn new(scene: Scene, trees: Arc<Trees>) -> Self {
        Self { scene: Arc::new(scene), trees, look: None }
    }

    /// Looks again, on a thread where it may block.
    async fn look_again(&mut self) {
        let Some(mut look) = self.look.take() else { return };
        let scene = self.scene.clone();
        let looked = tokio::task::spawn_blocking(move || {
            look.again(&scene);
            look
        });
        self.look = looked.await.ok();
    }

    /// What the engine itself holds against every attempt.
    fn own(&self, look: &Look) -> Vec<ClaimReport> {
        let scene = &self.scene;
        let mut reports = Vec::new();
        if scene.protection != ClaimPolicy::Ignore {
            // Where it is asked to do better, only what it did since counts; otherwise all that it
            // did.
            let breaches =
                if scene.protection == ClaimPolicy::Require { &look.fresh } else { &look.breaches };
            let some = !look.observed.last_changes().files.is_empty();
            let mut report =
                protect::report(breaches, &look.restored, &look.unrestored, scene.protection, some);
            if look.set_aside && !breaches.is_empty() {
                let kept = format!("what stood there is kept in {}", scene.set_aside().display());
                report.evidence.push(Evidence::new("note", kept));
            }
            reports.push(report);
        }
        if scene.tests != ClaimPolicy::Ignore {
            reports.push(inventory::report(&look.delta, scene.tests));
        }
        match look.observed.unobservable_reason() {
            Some(why) => reports.into_iter().map(|report| unseen(report, why)).collect(),
            None => reports,
        }
    }
}

/// Where nothing can be seen, that nothing was seen proves nothing.
fn unseen(report: ClaimReport, why: &str) -> ClaimReport {
    if report.verdict != Verdict::Verified {
        return report;
    }
    let reason = format!("what changed cannot be told: {why}");
    ClaimReport { verdict: Verdict::Unverifiable, reason, evidence: Vec::new(), ..report }
}

/// A claim of which nothing can be said, since looking broke off by a fault of ours: that is never
/// silence.
fn broken_off(held: &EffectiveClaim) -> ClaimReport {
    ClaimReport {
        claim: held.name.clone(),
        field: held.field.clone(),
        kind: held.claim.kind,
        policy: held.claim.policy,
        verdict: Verdict::Unverifiable,
        claimed: Value::Null,
        observed: Value::Null,
        reason: "looking at the workspace broke off".to_owned(),
        evidence: Vec::new(),
        tree: None,
    }
}

impl Witness for Examiner {
    fn begin(&mut self) -> Later<'_, ()> {
        Box::pin(async move {
            let (scene, trees) = (self.scene.clone(), self.trees.clone());
            self.look = tokio::task::spawn_blocking(move || Look::first(&trees, &scene)).await.ok();
        })
    }

    fn examine<'a>(&'a mut self, value: &'a Value) -> Later<'a, Vec<ClaimReport>> {
        Box::pin(async move {
            self.look_again().await;
            let scene = self.scene.clone();
            let Some(mut look) = self.look.take() else {
                return scene.claims.iter().map(broken_off).collect();
            };
            let (folder, top) = (look.observed.folder().to_owned(), look.observed.top().to_owned());
            let config = look.config.clone();
            let none = VerifyConfig::default();
            let company = look.company.clone();
            let ours = scene.published.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let cache = scene.state.join("checks");
            let mut context = VerifyContext {
                folder: &folder,
                top: &top,
                view: &mut look.observed,
                config: config.as_ref().unwrap_or(&none),
                contracts: &*scene.contracts,
                cache: Some(&cache),
                stop: scene.stop.clone(),
                marker: scene.marker.clone(),
                own_files: &ours,
                run_commands: true,
                since: "the step began",
                concurrent_writer: company.as_deref(),
            };
            let mut reports =
                claims::verify(&scene.claims, &scene.contract, value, &mut context).await;
            if let Err(error) = &config {
                for report in
                    reports.iter_mut().filter(|report| report.verdict == Verdict::Unverifiable)
                {
                    report.evidence.push(Evidence::new("note", error.clone()));
                }
            }
            reports.extend(self.own(&look));
            self.look = Some(look);
            reports
        })
    }

    fn conclude(&mut self, examined: bool) -> Later<'_, Conclusion> {
        Box::pin(async move {
            if !examined {
                self.look_again().await;
            }
            let Some(look) = self.look.take() else { return Conclusion::default() };
            let mut claims = if examined { Vec::new() } else { self.own(&look) };
            // Without a result there is nothing that these would confirm.
            claims.retain(|claim| claim.verdict != Verdict::Verified);
            let conclusion = Conclusion {
                changed: Some(look.changed()),
                tree: look.observed.last_tree_id(),
                claims,
            };
            look.end(&self.scene, &self.trees);
            conclusion
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use counterfoil_verify::inventory::TestDelta;
    use counterfoil_verify::protect::{ForbiddenChange, ForbiddenReason};
    use counterfoil_workspace::snapshot::Change;

    #[test]
    fn nothing_is_verified_by_not_looking() {
        let breach = ForbiddenChange {
            path: "AGENTS.md".into(),
            change: Change::Modified,
            reason: ForbiddenReason::Default("instructions"),
        };
        let protected = |breaches: &[ForbiddenChange]| {
            protect::report(breaches, &[], &[], ClaimPolicy::Record, !breaches.is_empty())
        };
        for (report, verdict) in [
            (protected(&[]), Verdict::Unverifiable),
            (inventory::report(&TestDelta::default(), ClaimPolicy::Record), Verdict::Unverifiable),
            // What was seen stays seen.
            (protected(&[breach]), Verdict::Refuted),
        ] {
            let report = unseen(report, "too much to look at");
            assert_eq!(report.verdict, verdict, "{report:?}");
            if verdict == Verdict::Unverifiable {
                assert_eq!(report.reason, "what changed cannot be told: too much to look at");
                assert_eq!(report.evidence, []);
            }
        }
    }
}
