//! Writing artifacts: whole or not at all.

use counterfoil_flow::{Event, Rendered, Rendering, RunState, Workflow, artifacts, rendered_by};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// A failed write is tried this often.
const TRIES: usize = 3;

/// Whether artifacts were written before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    /// Not yet.
    No,
    /// Perhaps: they are written behind the journal, and a kill may have come before or after.
    Perhaps,
}

/// What a run recorded last, with the artifacts that belong to it. Artifacts are written behind the
/// journal, so if we were killed there, they may not be written.
#[derive(Debug, Default)]
pub(crate) struct Trail {
    at: i64,
    moved: bool,
    rendered: Vec<Rendering>,
}

impl Trail {
    /// So many events before the last are enough to know whether the last turn moved anything.
    pub(crate) const LENGTH: u64 = 256;

    /// Hears the events of a run, in order, right behind each; those of one turn have one time, and
    /// that of the last is known.
    pub(crate) fn hear(
        &mut self,
        workflow: &Workflow,
        fold: &RunState,
        event: &Event,
        at: i64,
        last: i64,
    ) {
        if at != last {
            return;
        }
        if at != self.at {
            *self = Self { at, ..Self::default() };
        }
        self.rendered.extend(rendered_by(workflow, fold, event));
        self.moved |= matches!(
            event,
            Event::TransitionTaken(_)
                | Event::FrameOpened { .. }
                | Event::FrameEnded { .. }
                | Event::Asked { .. }
                | Event::RunEnded { .. }
        );
    }

    /// What may not be written, if the artifacts may be behind the journal.
    pub(crate) fn unwritten(self) -> Option<Vec<Rendering>> {
        self.moved.then_some(self.rendered)
    }
}

/// Shows how a run ended that nobody drives any more. What it is told here it is told too late to
/// act on.
pub(crate) fn show_end(workflow: &Workflow, fold: &RunState) {
    let repo = Path::new(&fold.repo);
    let failed = match artifacts(workflow, fold) {
        Ok(rendered) if repo.is_dir() => publish(repo, &rendered, Written::Perhaps).err(),
        Ok(_) => None,
        Err(failed) => Some(failed),
    };
    if let Some((path, why)) = failed {
        tracing::warn!(run = fold.run, path, why, "the end of the run could not be shown");
    }
}

/// Writes the artifacts; the error names the first that cannot be written.
pub(crate) fn publish(
    repo: &Path,
    rendered: &[Rendered],
    written: Written,
) -> Result<(), (String, String)> {
    for (at, artifact) in rendered.iter().enumerate() {
        let path = inside(repo, &artifact.path).map_err(|why| (artifact.path.clone(), why))?;
        let lines = |rendered: &[Rendered]| -> Vec<String> {
            let same = rendered.iter().filter(|one| one.append && one.path == artifact.path);
            same.map(|one| one.text.clone()).collect()
        };
        // What is added to one file is added at once, so that what stands there already can be
        // told.
        if artifact.append && !lines(&rendered[..at]).is_empty() {
            continue;
        }
        let mut last = Ok(());
        for _ in 0..TRIES {
            last = if artifact.append {
                append(&path, &lines(rendered), written)
            } else {
                replace(&path, &artifact.text)
            };
            if last.is_ok() {
                break;
            }
        }
        last.map_err(|error| (artifact.path.clone(), error.to_string()))?;
    }
    Ok(())
}

/// Where an artifact goes.
pub(crate) fn inside(repo: &Path, path: &str) -> Result<PathBuf, String> {
    let relative = Path::new(path);
    let plain = counterfoil_workspace::path::is_inside(relative);
    if plain && !path.trim().is_empty() {
        Ok(repo.join(relative))
    } else {
        Err("it is not a path inside the repository".to_owned())
    }
}

fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    if std::fs::read(path).is_ok_and(|there| there == text.as_bytes()) {
        return Ok(());
    }
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("artifact");
    let draft = folder.join(format!(".{name}.{}.part", std::process::id()));
    let written = std::fs::File::create(&draft).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    if let Err(error) = written.and_then(|()| std::fs::rename(&draft, path)) {
        let _ = std::fs::remove_file(&draft);
        return Err(error);
    }
    // What others act on is what stands there, not what we meant to write.
    if std::fs::read(path)? == text.as_bytes() {
        Ok(())
    } else {
        Err(std::io::Error::other("it was written, and reads otherwise"))
    }
}

/// Adds texts to a file; of those that were perhaps written before, the ones that do not stand at
/// its end.
fn append(path: &Path, texts: &[String], written: Written) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let mut file = std::fs::OpenOptions::new().read(true).append(true).create(true).open(path)?;
    let mut there = 0;
    if written == Written::Perhaps {
        let most: u64 = texts.iter().map(|text| text.len() as u64).sum();
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(most)))?;
        let mut end = Vec::new();
        file.read_to_end(&mut end)?;
        let stands = |count: &usize| end.ends_with(texts[..*count].concat().as_bytes());
        there = (0..=texts.len()).rev().find(stands).unwrap_or(0);
    }
    file.write_all(texts[there..].concat().as_bytes())
}
