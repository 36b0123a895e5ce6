//! Writes the artifacts of a run. A file is replaced completely or not at all.

use counterfoil_flow::{Event, Rendered, Rendering, RunState, Workflow, artifacts, rendered_by};
use counterfoil_workspace::path::{is_strictly_inside, resolve_for_writing};
use counterfoil_workspace::{NoRoom, atomic_write};
use rustix::fs::OFlags;
use std::collections::BTreeSet;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// How often a write is tried.
const TRIES: usize = 3;

/// Whether the artifacts may have been written before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PriorWrite {
    /// They have not been written.
    No,
    /// They may have been written: a crash came after the events were recorded.
    Perhaps,
}

/// The artifacts of the last turn of a run. They are written after the events, so a crash may have
/// prevented it.
#[derive(Debug, Default)]
pub(crate) struct PendingArtifacts {
    at: i64,
    moved: bool,
    rendered: Vec<Rendering>,
    /// The paths of the artifacts of all events. The condition of an artifact may hold only for the
    /// event that wrote it, but its file stays the engine's own.
    published: BTreeSet<String>,
}

impl PendingArtifacts {
    /// How many of the last events are enough to know whether the last turn changed an artifact.
    pub(crate) const LOOKBACK: u64 = 256;

    /// Collects the artifacts of the last turn, and the paths of all. It is called with every event
    /// in order and the state right after it. All events of a turn have the same time; `last` is
    /// the time of the last turn.
    pub(crate) fn on_event(
        &mut self,
        workflow: &Workflow,
        run_state: &RunState,
        event: &Event,
        at: i64,
        last: i64,
    ) {
        let rendered = rendered_by(workflow, run_state, event);
        self.published.extend(rendered.iter().flatten().map(|one| one.path.clone()));
        if at != last {
            return;
        }
        if at != self.at {
            (self.at, self.moved) = (at, false);
            self.rendered.clear();
        }
        self.rendered.extend(rendered);
        self.moved |= matches!(
            event,
            Event::TransitionTaken(_)
                | Event::FrameOpened { .. }
                | Event::FrameEnded { .. }
                | Event::Asked { .. }
                | Event::RunEnded { .. }
        );
    }

    /// The paths of the artifacts that single events wrote.
    pub(crate) fn published(&self) -> impl Iterator<Item = &str> {
        self.published.iter().map(String::as_str)
    }

    /// The artifacts of single events to write again; `None` if the last turn changed no artifact.
    pub(crate) fn into_unwritten(self) -> Option<Vec<Rendering>> {
        self.moved.then_some(self.rendered)
    }
}

/// An artifact that could not be written.
#[derive(Debug)]
pub(crate) struct PublishError {
    /// Its path in the repository.
    pub(crate) path: String,
    /// The reason, as text.
    pub(crate) reason: String,
    /// Set if there is no room for it. The run is interrupted then, and the artifact is written when
    /// it is resumed.
    pub(crate) no_room: Option<NoRoom>,
}

impl From<(String, String)> for PublishError {
    fn from((path, reason): (String, String)) -> Self {
        Self { path, reason, no_room: None }
    }
}

/// Writes the artifacts of the last turn of a run that has ended, as far as they are not written.
/// Whether there were any. Only the lack of room is an error. Another failure is logged, since the run
/// cannot react to it any more.
pub(crate) fn publish_final(
    workflow: &Workflow,
    run_state: &RunState,
    pending: PendingArtifacts,
) -> Result<bool, PublishError> {
    let repo = Path::new(&run_state.repo);
    let of_events = pending.into_unwritten().unwrap_or_default();
    let rendered = artifacts(workflow, run_state).and_then(|mut rendered| {
        rendered.extend(of_events.into_iter().collect::<Result<Vec<_>, _>>()?);
        Ok(rendered)
    });
    let published = match rendered {
        Ok(rendered) if repo.is_dir() => publish(repo, &rendered, PriorWrite::Perhaps),
        Ok(_) => Ok(false),
        Err(failed) => Err(failed.into()),
    };
    match published {
        Err(PublishError { path, reason, no_room: None }) => {
            let run = &run_state.run;
            tracing::warn!(run, path, reason, "the final artifacts could not be written");
            Ok(false)
        }
        other => other,
    }
}

/// Writes the artifacts. Whether a file was changed. The error is the first failure.
pub(crate) fn publish(
    repo: &Path,
    rendered: &[Rendered],
    prior: PriorWrite,
) -> Result<bool, PublishError> {
    let mut changed = false;
    for (at, artifact) in rendered.iter().enumerate() {
        inside(repo, &artifact.path).map_err(|why| (artifact.path.clone(), why))?;
        let lines = |rendered: &[Rendered]| -> Vec<String> {
            let same = rendered.iter().filter(|one| one.append && one.path == artifact.path);
            same.map(|one| one.text.clone()).collect()
        };
        // All texts for one file are appended together, so that texts which it already has can be
        // recognised.
        if artifact.append && !lines(&rendered[..at]).is_empty() {
            continue;
        }
        let written = with_tries(|| {
            // Agents can put a link there: it is not followed out of the repository.
            let path = resolve_for_writing(repo, Path::new(&artifact.path))?;
            if artifact.append {
                append(&path, &lines(rendered), prior)
            } else {
                replace(&path, &artifact.text)
            }
        });
        changed |= written.map_err(|error| PublishError {
            path: artifact.path.clone(),
            reason: error.to_string(),
            no_room: NoRoom::of(&error),
        })?;
    }
    Ok(changed)
}

/// Tries a write until it succeeds, at most [`TRIES`] times. The error is that of the last try.
fn with_tries<T>(mut write: impl FnMut() -> std::io::Result<T>) -> std::io::Result<T> {
    for _ in 1..TRIES {
        if let Ok(written) = write() {
            return Ok(written);
        }
    }
    write()
}

/// The path of an artifact.
pub(crate) fn inside(repo: &Path, path: &str) -> Result<PathBuf, String> {
    let relative = Path::new(path);
    if is_strictly_inside(relative) && !path.trim().is_empty() {
        Ok(repo.join(relative))
    } else {
        Err("it is not a path inside the repository".to_owned())
    }
}

/// Replaces a file. Whether it had another content.
fn replace(path: &Path, text: &str) -> std::io::Result<bool> {
    // Opening a pipe would block. It is replaced.
    let is_file = std::fs::metadata(path).is_ok_and(|meta| meta.is_file());
    if is_file && std::fs::read(path).is_ok_and(|current| current == text.as_bytes()) {
        return Ok(false);
    }
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    atomic_write(path, text.as_bytes())?;
    // Read it back: others act on the content of the file.
    if std::fs::read(path)? == text.as_bytes() {
        Ok(true)
    } else {
        Err(std::io::Error::other("the file has a different content after it was written"))
    }
}

/// Appends texts to a file, all of them or none. If they may have been written before, only those that
/// are not yet at its end. Whether there were any.
fn append(path: &Path, texts: &[String], prior: PriorWrite) -> std::io::Result<bool> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    // The file may have become a link since its place was resolved.
    let no_follow = OFlags::NOFOLLOW.bits().cast_signed();
    let mut file = std::fs::OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .custom_flags(no_follow)
        .open(path)?;
    let mut existing = 0;
    let length = file.metadata()?.len();
    if prior == PriorWrite::Perhaps {
        let max: u64 = texts.iter().map(|text| text.len() as u64).sum();
        file.seek(SeekFrom::Start(length.saturating_sub(max)))?;
        let mut end = Vec::new();
        file.read_to_end(&mut end)?;
        let is_at_end = |count: &usize| end.ends_with(texts[..*count].concat().as_bytes());
        existing = (0..=texts.len()).rev().find(is_at_end).unwrap_or(0);
    }
    let new = texts[existing..].concat();
    let written = file.write_all(new.as_bytes());
    if written.is_err() {
        // Half a text would be taken for part of the file by the next try.
        file.set_len(length)?;
    }
    written.map(|()| !new.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_write_is_tried_three_times() {
        for (failures, tries, succeeds) in [(0, 1, true), (2, 3, true), (3, 3, false)] {
            let mut tried = 0;
            let written = with_tries(|| {
                tried += 1;
                if tried > failures { Ok(()) } else { Err(std::io::Error::other("full")) }
            });
            assert_eq!((tried, written.is_ok()), (tries, succeeds), "{failures} failures");
        }
    }
}
