//! Writing artifacts: whole or not at all.

use countersign_flow::{Event, Fold, Rendered, Workflow, artifacts};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Component, Path, PathBuf};

/// A failed write is tried this often.
const TRIES: usize = 3;
/// Of a file that is added to, so much of its end is looked at: what stands there was added before a crash.
const LOOKED_AT: u64 = 16 << 10;

/// Whether what a run recorded last is a transition. Artifacts are written behind the journal, so if we were killed there,
/// what shows it may not be written.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Trail {
    at: i64,
    moved: bool,
}

impl Trail {
    /// So many events before the last are enough to hear.
    pub(crate) const LENGTH: u64 = 256;

    /// Hears the events of a run, in order; those of one turn have one time.
    pub(crate) fn hear(&mut self, event: &Event, at: i64) {
        if at != self.at {
            *self = Self { at, moved: false };
        }
        self.moved |= matches!(
            event,
            Event::Moved(_)
                | Event::FrameOpened { .. }
                | Event::FrameEnded { .. }
                | Event::Asked { .. }
                | Event::RunEnded { .. }
        );
    }

    /// Whether the artifacts may be behind the journal.
    pub(crate) fn is_in_doubt(self) -> bool {
        self.moved
    }
}

/// Shows how a run ended that nobody drives any more. What it is told here it is told too late to act on.
pub(crate) fn show_end(workflow: &Workflow, fold: &Fold) {
    let repo = Path::new(&fold.repo);
    let failed = match artifacts(workflow, fold) {
        Ok(rendered) if repo.is_dir() => publish(repo, &rendered).err(),
        Ok(_) => None,
        Err(failed) => Some(failed),
    };
    if let Some((path, why)) = failed {
        tracing::warn!(run = fold.run, path, why, "the end of the run could not be shown");
    }
}

/// Writes the artifacts; the error names the first that cannot be written.
pub(crate) fn publish(repo: &Path, rendered: &[Rendered]) -> Result<(), (String, String)> {
    for artifact in rendered {
        let path = inside(repo, &artifact.path).map_err(|why| (artifact.path.clone(), why))?;
        let mut last = Ok(());
        for _ in 0..TRIES {
            last =
                if artifact.append { append(&path, &artifact.text) } else { replace(&path, &artifact.text) };
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
    let plain = relative.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
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

fn append(path: &Path, text: &str) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let mut file = std::fs::OpenOptions::new().read(true).append(true).create(true).open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(LOOKED_AT)))?;
    let mut end = Vec::new();
    file.read_to_end(&mut end)?;
    if end.ends_with(text.as_bytes()) {
        return Ok(());
    }
    file.write_all(text.as_bytes())
}
