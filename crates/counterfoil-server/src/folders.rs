//! The state folders whose runs the server shows.

use crate::problem::Problem;
use axum::http::StatusCode;
use counterfoil_contract::text::escape_control;
use counterfoil_engine::{Engine, Error, RunView, journal};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The maximum number of runs whose events are kept in memory.
const MAX_VIEWS: usize = 32;

/// A state folder to show.
#[derive(Clone, Debug)]
pub struct StateFolder {
    /// The name that people see.
    pub name: String,
    /// The folder.
    pub path: PathBuf,
    /// The folder with the keys of journals.
    pub keys: Option<PathBuf>,
}

/// The state folders, with what was read of them.
#[derive(Debug)]
pub(crate) struct Folders {
    folders: Vec<OpenFolder>,
    /// The runs that were read last, the last one in front.
    views: Mutex<VecDeque<(PathBuf, Arc<Mutex<RunView>>)>>,
}

#[derive(Debug)]
struct OpenFolder {
    folder: StateFolder,
    engine: Mutex<Option<Engine>>,
    /// Whether it was there once, so that one which is not there any more was removed.
    was_there: AtomicBool,
}

/// A run and the folder that has it.
#[derive(Clone, Debug)]
pub(crate) struct RunPlace {
    /// Reads the folder.
    pub(crate) engine: Engine,
    /// The name of the folder.
    pub(crate) folder: String,
    /// The id of the run.
    pub(crate) run: String,
}

impl Folders {
    pub(crate) fn new(folders: Vec<StateFolder>) -> Self {
        let open = |folder: StateFolder| OpenFolder {
            was_there: AtomicBool::new(folder.path.exists()),
            folder,
            engine: Mutex::default(),
        };
        Self { folders: folders.into_iter().map(open).collect(), views: Mutex::default() }
    }

    /// The folders that have a journal, by name. A folder gets one with its first run. One that cannot
    /// be read hides no other ([`Self::unreadable`]).
    pub(crate) fn engines(&self) -> Result<Vec<(&str, Engine)>, Problem> {
        let mut engines = Vec::new();
        for folder in &self.folders {
            match folder.engine() {
                Ok(Some(engine)) => engines.push((folder.folder.name.as_str(), engine)),
                Ok(None) => {}
                Err(problem) if self.folders.len() == 1 => return Err(problem),
                Err(problem) => {
                    tracing::warn!(folder = folder.folder.name, detail = problem.detail());
                }
            }
        }
        Ok(engines)
    }

    /// The folders that cannot be read, by name, and why.
    pub(crate) fn unreadable(&self) -> Vec<(&str, Problem)> {
        let name = |folder: &'_ OpenFolder| folder.engine().err();
        let folders = self.folders.iter();
        folders.filter_map(|folder| Some((folder.folder.name.as_str(), name(folder)?))).collect()
    }

    /// The paths of all folders.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.folders.iter().map(|folder| folder.folder.path.as_path())
    }

    /// Whether there is more than one folder, so that people need their names.
    pub(crate) fn are_several(&self) -> bool {
        self.folders.len() > 1
    }

    /// The names of the state folders.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.folders.iter().map(|folder| folder.folder.name.as_str())
    }

    /// Finds a run by its id or by an unambiguous part of it.
    pub(crate) fn find(&self, run: &str) -> Result<RunPlace, Problem> {
        let (mut found, mut unreadable) = (Vec::new(), None);
        for folder in &self.folders {
            let engine = match folder.engine() {
                Ok(Some(engine)) => engine,
                Ok(None) => continue,
                Err(problem) => {
                    unreadable = Some(problem);
                    continue;
                }
            };
            match engine.journal().resolve(run) {
                Ok(run) => found.push(RunPlace { engine, folder: folder.folder.name.clone(), run }),
                Err(journal::Error::NoRun { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        match found.len() {
            0 => {
                Err(unreadable
                    .unwrap_or_else(|| Problem::not_found(format!("there is no run {run}"))))
            }
            1 => Ok(found.swap_remove(0)),
            _ => {
                let detail = format!("several state folders have a run {run}");
                Err(Problem::new(StatusCode::CONFLICT, "ambiguous", detail))
            }
        }
    }

    /// A run with all events that are recorded now.
    pub(crate) fn view(&self, place: &RunPlace) -> Result<Arc<Mutex<RunView>>, Problem> {
        let key = place.engine.journal().folder().join(&place.run);
        let known = {
            let mut views = self.views.lock().unwrap_or_else(PoisonError::into_inner);
            let at = views.iter().position(|(known, _)| *known == key);
            let found = at.and_then(|at| views.remove(at));
            if let Some(found) = found.clone() {
                views.push_front(found);
            }
            found.map(|(_, view)| view)
        };
        if let Some(view) = known {
            let caught_up = {
                let mut locked = view.lock().unwrap_or_else(PoisonError::into_inner);
                locked.catch_up(|_, _, _| {})
            };
            match caught_up {
                Ok(_) => return Ok(view),
                Err(error) => {
                    self.forget(&key);
                    // Of a journal that was replaced, the run is read again.
                    if !matches!(error, Error::Journal(journal::Error::Gone { .. })) {
                        return Err(error.into());
                    }
                }
            }
        }
        let view = Arc::new(Mutex::new(place.engine.view(&place.run)?));
        let mut views = self.views.lock().unwrap_or_else(PoisonError::into_inner);
        views.push_front((key, Arc::clone(&view)));
        views.truncate(MAX_VIEWS);
        Ok(view)
    }

    fn forget(&self, key: &Path) {
        let mut views = self.views.lock().unwrap_or_else(PoisonError::into_inner);
        views.retain(|(known, _)| known != key);
    }
}

impl OpenFolder {
    /// Reads the folder. `None` if it has no journal yet. A journal that was replaced is opened again.
    /// A folder that was removed is an error: it would look like one in which nothing ever ran.
    fn engine(&self) -> Result<Option<Engine>, Problem> {
        let mut engine = self.engine.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(open) = engine.as_ref() {
            match open.journal().last_change() {
                Ok(_) => return Ok(Some(open.clone())),
                Err(journal::Error::Gone { .. }) => *engine = None,
                Err(error) => return Err(error.into()),
            }
        }
        let StateFolder { path, keys, .. } = &self.folder;
        match Engine::open_to_read(path, keys.as_deref()) {
            Ok(open) => {
                self.was_there.store(true, Ordering::Relaxed);
                Ok(Some(engine.insert(open).clone()))
            }
            Err(Error::Journal(journal::Error::Missing { .. })) => self.without_journal(),
            Err(error) => Err(error.into()),
        }
    }

    /// What a folder without a journal is: a new one, or a problem.
    fn without_journal(&self) -> Result<Option<Engine>, Problem> {
        let path = &self.folder.path;
        if path.exists() {
            self.was_there.store(true, Ordering::Relaxed);
        } else if self.was_there.load(Ordering::Relaxed) {
            let path = path.to_string_lossy();
            let detail = format!("the state folder {} is gone", escape_control(&path));
            return Err(Problem::new(StatusCode::NOT_FOUND, "state-folder-gone", detail));
        }
        Ok(None)
    }
}
