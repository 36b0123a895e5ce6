//! Starting work: attempts with their witness, commands, what the engine does itself, and errands
//! to workspaces.

use super::errands;
use super::{Drive, SCRATCH, TRANSCRIPT_CAP, Watcher};
use crate::attempt::{Completed, Handle, Kept, Request, Witness, attempt};
use crate::deed;
use crate::examine::{Examiner, Scene};
use crate::journal::{self, Journal, Transcript};
use crate::process::Stop;
use crate::protect::Rules;
use crate::shell;
use counterfoil_contract::Contract;
use counterfoil_flow::{AgentWork, Budget, Errand, Event, Start, Work};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

/// What somebody at work tells the driver.
pub(super) enum News {
    /// On the way.
    Progress(Box<Event>),
    /// An attempt is over.
    Done(Box<Completed>),
    /// An errand is.
    Back(Box<Event>),
}

/// What is at work.
pub(super) struct Running {
    pub(super) stops: BTreeMap<String, watch::Sender<Stop>>,
    pub(super) tasks: JoinSet<()>,
    pub(super) sender: mpsc::UnboundedSender<News>,
    /// Errands that nobody came back from yet, the first of them on its way: one after the other,
    /// so that attempts start in the order in which they were decided.
    pub(super) errands: VecDeque<Errand>,
    /// The files we write ourselves: they do not count as changes of the work tree.
    pub(super) published: Arc<Mutex<BTreeSet<PathBuf>>>,
    /// Held by the one that commits.
    committing: Arc<tokio::sync::Mutex<()>>,
    /// Attempts by the folder they work in.
    beside: Arc<Beside>,
}

impl Running {
    pub(super) fn new(sender: mpsc::UnboundedSender<News>) -> Self {
        Self {
            stops: BTreeMap::new(),
            tasks: JoinSet::new(),
            sender,
            errands: VecDeque::new(),
            published: Arc::default(),
            committing: Arc::default(),
            beside: Arc::default(),
        }
    }
}

impl Drive {
    /// Where work is done: in the repository, or in a workspace of its own.
    pub(super) fn folder(&self, workspace: Option<&str>) -> PathBuf {
        match workspace {
            Some(id) => self.workspaces.folder(&self.fold.run, id),
            None => self.repo.clone(),
        }
    }

    /// Where an attempt keeps files that are nobody's work.
    fn scratch(&self, attempt: &str) -> PathBuf {
        let state = self.journal.folder();
        let state = std::path::absolute(state).unwrap_or_else(|_| state.to_owned());
        state.join(SCRATCH).join(&self.fold.run).join(attempt.replace(['/', '\0'], "-"))
    }

    /// Has somebody see to a workspace, unless that is under way.
    pub(super) fn send(&self, errand: Errand, running: &mut Running) {
        if running.errands.contains(&errand) {
            return;
        }
        running.errands.push_back(errand);
        if running.errands.len() == 1 {
            self.set_out(running);
        }
    }

    /// Somebody may have come back from an errand; then the next sets out.
    pub(super) fn came_back(&self, facts: &[Event], running: &mut Running) {
        let is_back =
            |errand: &Errand| facts.iter().any(|fact| errands::of(fact) == Some(&errand.workspace));
        if running.errands.front().is_some_and(is_back) {
            running.errands.pop_front();
            self.set_out(running);
        }
    }

    fn set_out(&self, running: &mut Running) {
        let Some(errand) = running.errands.front().cloned() else { return };
        let (workspaces, run) = (self.workspaces.clone(), self.fold.run.clone());
        let (sender, published) = (running.sender.clone(), running.published.clone());
        running.tasks.spawn(async move {
            let failed = errands::failed(&errand, "the thread that saw to it broke off");
            let done = tokio::task::spawn_blocking(move || {
                let ours = published.lock().unwrap_or_else(PoisonError::into_inner).clone();
                errands::run(&workspaces, &run, &errand, &ours)
            });
            let _ = sender.send(News::Back(Box::new(done.await.unwrap_or(failed))));
        });
    }

    pub(super) fn start(&self, start: Start, running: &mut Running) {
        let (stop, stopped) = watch::channel(Stop::No);
        running.stops.insert(start.attempt.clone(), stop);
        let marker = format!("{}/{}", self.fold.run, start.attempt);
        let handle: Arc<dyn Handle> = Arc::new(Reaching {
            journal: self.journal.clone(),
            run: self.fold.run.clone(),
            attempt: start.attempt.clone(),
            stop: stopped.clone(),
            sender: running.sender.clone(),
            watcher: self.watcher.clone(),
        });
        let word = Word { attempt: start.attempt.clone(), sender: Some(running.sender.clone()) };
        match start.work {
            Work::Command(work) => {
                let folder = self.folder(work.workspace.as_deref());
                running.tasks.spawn(async move {
                    word.give(shell::run(start.attempt, marker, *work, folder, handle).await);
                });
            }
            Work::Read(work) => {
                let folder = self.folder(work.workspace.as_deref());
                running.tasks.spawn(async move {
                    word.give(
                        deed::look(start.attempt, handle, move || deed::read::read(&folder, &work))
                            .await,
                    );
                });
            }
            Work::Changes(work) => {
                let folder = self.folder(work.workspace.as_deref());
                let state = self.journal.folder().to_owned();
                running.tasks.spawn(async move {
                    let look = move || deed::changes::look(&folder, &state, &work);
                    word.give(deed::look(start.attempt, handle, look).await);
                });
            }
            Work::Commit(work) => {
                let place = deed::commit::Place {
                    folder: self.folder(work.workspace.as_deref()),
                    state: self.journal.folder().to_owned(),
                    turn: running.committing.clone(),
                };
                running.tasks.spawn(async move {
                    word.give(
                        deed::commit::commit(start.attempt, marker, *work, place, handle).await,
                    );
                });
            }
            Work::Agent(work) => {
                // Without its word the attempt counts as failed, so an agent that nobody plays does
                // not hang the run.
                let Some(agent) = self.cast.get(&work.agent) else { return };
                let cwd = self.folder(work.workspace.as_deref());
                let presence = running.beside.join(&start.attempt, &cwd);
                let witness = if agent.changes_files() || !work.claims.is_empty() {
                    match self.witness(&work, &marker, &cwd, stopped, running, &presence) {
                        Ok(witness) => Some(witness),
                        Err(why) => return word.give(Completed::failed(&start.attempt, why)),
                    }
                } else {
                    None
                };
                let left = self.budget_left();
                let scratch = self.scratch(&start.attempt);
                running.tasks.spawn(async move {
                    let request =
                        Request { attempt: start.attempt, marker, work: *work, cwd, scratch, left };
                    let done = attempt(request, agent, handle, witness).await;
                    drop(presence);
                    word.give(done);
                });
            }
        }
    }

    fn witness(
        &self,
        work: &AgentWork,
        marker: &str,
        folder: &Path,
        stop: watch::Receiver<Stop>,
        running: &Running,
        presence: &Presence,
    ) -> Result<Box<dyn Witness>, String> {
        let rules = Rules::new(work.writes.as_deref(), &work.protect, &self.fold.own)?;
        let workflow = self.workflow.clone();
        let contracts = move |id: &str| -> Option<Arc<Contract>> {
            let definitions = workflow.bundle.contracts.iter();
            let named = |name: &&String| {
                name.as_str() == id || name.rsplit_once('@').is_some_and(|(name, _)| name == id)
            };
            // The newest is the one with the highest number, which is not the last in the order of
            // names.
            let version = |name: &str| {
                name.rsplit_once('@').and_then(|(_, number)| number.parse::<u64>().ok())
            };
            let (_, definition) = definitions
                .filter(|(name, _)| named(name))
                .max_by_key(|(name, _)| version(name))?;
            Contract::compile(definition.clone()).ok().map(Arc::new)
        };
        let scene = Scene {
            folder: folder.to_owned(),
            state: self.journal.folder().to_owned(),
            marker: marker.to_owned(),
            contract: work.contract.clone(),
            claims: work.claims.clone(),
            rules,
            protection: work.protected,
            tests: work.tests,
            published: running.published.clone(),
            contracts: Arc::new(contracts),
            company: self.company(work.workspace.is_some(), presence),
            stop,
        };
        Ok(Box::new(Examiner::new(scene, self.trees.clone())))
    }

    /// Who else was at work in a folder since a time: in a workspace of its own, nobody.
    fn company(
        &self,
        own: bool,
        presence: &Presence,
    ) -> Box<dyn Fn(SystemTime) -> Option<String> + Send + Sync> {
        let (journal, run, repo) =
            (self.journal.clone(), self.fold.run.clone(), self.fold.repo.clone());
        let (beside, attempt) = (presence.beside.clone(), presence.attempt.clone());
        Box::new(move |since| {
            if own {
                return None;
            }
            if let Some(other) = beside.company(&attempt) {
                return Some(format!("'{other}' was at work in the same folder at the same time"));
            }
            let since = since
                .duration_since(UNIX_EPOCH)
                .ok()
                .and_then(|since| i64::try_from(since.as_millis()).ok())?;
            let others = journal.beside(&run, since).ok()?;
            let other = others.into_iter().find(|other| works_in(&journal, &other.id, &repo))?;
            Some(format!("run {} was at work in the same folder at the same time", other.id))
        })
    }

    fn budget_left(&self) -> Budget {
        let (budget, usage) = (&self.fold.budget, &self.fold.usage);
        let tokens = usage.input_tokens.saturating_add(usage.output_tokens);
        Budget {
            tokens: budget.tokens.map(|most| most.saturating_sub(tokens)),
            cost_usd: budget.cost_usd.map(|most| (most - usage.cost_usd).max(0.0)),
            ..Budget::default()
        }
    }
}

/// Whether a run works in this repository.
fn works_in(journal: &Journal, run: &str, repo: &str) -> bool {
    let mut same = false;
    let _ = journal.visit(run, 1, |row| {
        if let Ok(Event::RunStarted(started)) = serde_json::from_slice(&row.body) {
            same = started.repo == repo;
        }
        std::ops::ControlFlow::Break(())
    });
    same
}

/// Who works beside whom, by folder.
#[derive(Default)]
struct Beside {
    at_work: Mutex<BTreeMap<String, Worker>>,
}

struct Worker {
    folder: PathBuf,
    /// One that was at work there at the same time.
    company: Option<String>,
}

/// An attempt at work in a folder, until it is dropped.
pub(super) struct Presence {
    beside: Arc<Beside>,
    attempt: String,
}

impl Beside {
    fn join(self: &Arc<Self>, attempt: &str, folder: &Path) -> Presence {
        let mut at_work = self.at_work.lock().unwrap_or_else(PoisonError::into_inner);
        let mut company = None;
        for (name, other) in at_work.iter_mut().filter(|(_, other)| other.folder == folder) {
            other.company = Some(attempt.to_owned());
            company = Some(name.clone());
        }
        at_work.insert(attempt.to_owned(), Worker { folder: folder.to_owned(), company });
        Presence { beside: self.clone(), attempt: attempt.to_owned() }
    }

    fn company(&self, attempt: &str) -> Option<String> {
        let at_work = self.at_work.lock().unwrap_or_else(PoisonError::into_inner);
        at_work.get(attempt).and_then(|worker| worker.company.clone())
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        self.beside.at_work.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.attempt);
    }
}

/// The word that an attempt owes its driver: one that ends without it, by a panic, has failed, and
/// the run does not wait for it forever.
struct Word {
    attempt: String,
    sender: Option<mpsc::UnboundedSender<News>>,
}

impl Word {
    fn give(mut self, done: Completed) {
        if let Some(sender) = self.sender.take() {
            let _ = sender.send(News::Done(Box::new(done)));
        }
    }
}

impl Drop for Word {
    fn drop(&mut self) {
        if let Some(sender) = self.sender.take() {
            let reason = "the attempt broke off: nobody plays the agent, or it panicked".to_owned();
            let _ = sender.send(News::Done(Box::new(Completed::failed(&self.attempt, reason))));
        }
    }
}

/// An attempt's reach into the embedded engine.
struct Reaching {
    journal: Journal,
    run: String,
    attempt: String,
    stop: watch::Receiver<Stop>,
    sender: mpsc::UnboundedSender<News>,
    watcher: Arc<dyn Watcher>,
}

impl Handle for Reaching {
    fn heartbeat(&self, activity: &str) {
        self.watcher.activity(&self.attempt, activity);
    }

    fn stop(&self) -> watch::Receiver<Stop> {
        self.stop.clone()
    }

    fn transcript(&self, name: &str, kept: Kept) -> journal::Result<Transcript> {
        let make = match kept {
            Kept::InFiles => Transcript::create,
            Kept::InLines => Transcript::in_log,
        };
        make(&self.journal, &self.run, name, TRANSCRIPT_CAP)
    }

    fn progress(&self, event: Event) {
        let _ = self.sender.send(News::Progress(Box::new(event)));
    }
}
