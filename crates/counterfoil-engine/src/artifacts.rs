//! Writes the artifacts of a run. A file is replaced completely or not at all.

use counterfoil_flow::{Event, Rendered, Rendering, RunState, Workflow, artifacts, rendered_by};
use counterfoil_workspace::atomic_write;
use counterfoil_workspace::path::{is_strictly_inside, resolve_for_writing};
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

/// Writes the final artifacts of a run that has ended. A failure is only logged, since the run
/// cannot react to it any more.
pub(crate) fn publish_final(workflow: &Workflow, run_state: &RunState) {
    let repo = Path::new(&run_state.repo);
    let failed = match artifacts(workflow, run_state) {
        Ok(rendered) if repo.is_dir() => publish(repo, &rendered, PriorWrite::Perhaps).err(),
        Ok(_) => None,
        Err(failed) => Some(failed),
    };
    if let Some((path, why)) = failed {
        tracing::warn!(run = run_state.run, path, why, "the final artifacts could not be written");
    }
}

/// Writes the artifacts. The error is the path of the first failure and its reason.
pub(crate) fn publish(
    repo: &Path,
    rendered: &[Rendered],
    prior: PriorWrite,
) -> Result<(), (String, String)> {
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
        written.map_err(|error| (artifact.path.clone(), error.to_string()))?;
    }
    Ok(())
}

/// Tries a write until it succeeds, at most [`TRIES`] times. The error is that of the last try.
fn with_tries(mut write: impl FnMut() -> std::io::Result<()>) -> std::io::Result<()> {
    for _ in 1..TRIES {
        if write().is_ok() {
            return Ok(());
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

fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    // Opening a pipe would block. It is replaced.
    let is_file = std::fs::metadata(path).is_ok_and(|meta| meta.is_file());
    if is_file && std::fs::read(path).is_ok_and(|current| current == text.as_bytes()) {
        return Ok(());
    }
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    atomic_write(path, text.as_bytes())?;
    // Read it back: others act on the content of the file.
    if std::fs::read(path)? == text.as_bytes() {
        Ok(())
    } else {
        Err(std::io::Error::other("the file has a different content after it was written"))
    }
}

/// Appends texts to a file. If they may have been written before, only those that are not yet at
/// its end.
fn append(path: &Path, texts: &[String], prior: PriorWrite) -> std::io::Result<()> {
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
    if prior == PriorWrite::Perhaps {
        let max: u64 = texts.iter().map(|text| text.len() as u64).sum();
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(max)))?;
        let mut end = Vec::new();
        file.read_to_end(&mut end)?;
        let is_at_end = |count: &usize| end.ends_with(texts[..*count].concat().as_bytes());
        existing = (0..=texts.len()).rev().find(is_at_end).unwrap_or(0);
    }
    file.write_all(texts[existing..].concat().as_bytes())
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
