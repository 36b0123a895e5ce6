//! An agent in this process that changes files at random and claims something random about it. It
//! logs what it did.

use crate::dice::Dice;
use crate::user_files::content::{Content, Contents, contents, plain};
use counterfoil_agents::agent::{
    Agent, AgentReply, BoxFuture, Prompt, PromptContext, ReplyDetails, ReplyStatus, Session, Task,
};
use counterfoil_flow::{AttemptOutcome, Usage};
use serde_json::json;
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// The paths that agents and users write, relative to the folder of the run. The last one is above
/// it.
pub(crate) const NAMES: [&str; 14] = [
    "a.txt",
    "shared.txt",
    "src/lib.rs",
    "src/deep/b.rs",
    "src/deep/c.rs",
    "docs/guide.md",
    "tests/it.rs",
    "odd \"name\"\nof two lines.txt",
    "mine.log",
    "build/out.bin",
    "AGENTS.md",
    ".github/ci.yml",
    "guarded/key.txt",
    "../above.txt",
];

/// What one reply did: the content of each touched path afterwards, relative to the top of its
/// workspace.
#[derive(Clone)]
pub(crate) struct FileActions {
    /// The attempt, without its run.
    pub(crate) attempt: String,
    /// The folder of the agent.
    pub(crate) folder: PathBuf,
    /// The content before the first reply in this folder.
    pub(crate) base: Arc<Contents>,
    pub(crate) left: Vec<(PathBuf, Option<Content>)>,
}

impl std::fmt::Debug for FileActions {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{} in {}", self.attempt, self.folder.display())?;
        self.left.iter().try_for_each(|(path, content)| {
            write!(out, "\n        {}: {content:?}", path.display())
        })
    }
}

/// All actions of a run, in order.
#[derive(Default)]
pub(crate) struct Log {
    pub(crate) actions: Mutex<Vec<FileActions>>,
}

pub(crate) struct Actor {
    pub(crate) seed: u64,
    pub(crate) log: Arc<Log>,
    /// The path from the top of a workspace to the folder of the agent.
    pub(crate) below: PathBuf,
    /// Whether the agent can commit in a worktree.
    pub(crate) commits: bool,
}

impl Agent for Actor {
    fn open(&self, task: Task) -> Box<dyn Session> {
        let (_, attempt) = task.marker.split_once('/').unwrap();
        Box::new(Acting {
            seed: self.seed,
            log: self.log.clone(),
            below: self.below.clone(),
            commits: self.commits && task.cwd.to_string_lossy().contains("worktrees"),
            attempt: attempt.to_owned(),
            cwd: task.cwd,
            replies: 0,
            touched: BTreeSet::new(),
        })
    }

    fn backs_off(&self) -> bool {
        false
    }

    fn has_files(&self) -> bool {
        false
    }
}

struct Acting {
    seed: u64,
    log: Arc<Log>,
    below: PathBuf,
    commits: bool,
    attempt: String,
    cwd: PathBuf,
    replies: u64,
    touched: BTreeSet<PathBuf>,
}

impl Session for Acting {
    fn ask<'a>(&'a mut self, _: &'a Prompt, _: &'a mut PromptContext) -> BoxFuture<'a, AgentReply> {
        Box::pin(async move {
            self.replies += 1;
            let mut dice = Dice::new(throw(self.seed, &(&self.attempt, self.replies)));
            let (text, how) = tokio::task::block_in_place(|| self.act(&mut dice));
            AgentReply {
                text: text.into_bytes(),
                usage: Usage::default(),
                status: how,
                played: None,
                recorded: false,
                details: ReplyDetails::default(),
            }
        })
    }
}

/// Derives a seed from a seed and more data.
pub(crate) fn throw(seed: u64, more: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    (seed, more).hash(&mut hasher);
    hasher.finish()
}

impl Acting {
    /// The top of the workspace.
    fn top(&self) -> PathBuf {
        let up = self.below.components().count();
        self.cwd.ancestors().nth(up).unwrap().to_owned()
    }

    fn act(&mut self, dice: &mut Dice) -> (String, ReplyStatus) {
        let top = self.top();
        let base = {
            let actions = self.log.actions.lock().unwrap();
            actions
                .iter()
                .find(|action| action.folder == self.cwd)
                .map(|action| action.base.clone())
        };
        let base = base.unwrap_or_else(|| Arc::new(contents(&top, &[".git", ".counterfoil"])));
        let mut hands = Hands::new(&self.cwd, &top);
        for n in 0..dice.below(5) {
            hands.do_something(
                dice,
                &format!("by {} reply {} action {n}\n", self.attempt, self.replies),
            );
        }
        let touched = hands.touched;
        if self.commits && dice.percent(4) {
            crate::user_files::user::git(&self.cwd, &["add", "-A"]);
            crate::user_files::user::git(
                &self.cwd,
                &["commit", "-q", "--allow-empty", "-m", "an agent's"],
            );
        }
        let left = touched.iter().map(|path| {
            let path = plain(&self.cwd.join(path));
            (path.strip_prefix(&top).unwrap().to_owned(), Content::at(&path))
        });
        let action = FileActions {
            attempt: self.attempt.clone(),
            folder: self.cwd.clone(),
            base,
            left: left.collect(),
        };
        self.log.actions.lock().unwrap().push(action);
        self.touched.extend(touched);
        self.say(dice)
    }

    fn say(&self, dice: &mut Dice) -> (String, ReplyStatus) {
        let claimed: Vec<&str> = match dice.below(10) {
            0 => vec!["never.rs", "/etc/passwd", "../../x"],
            1 => Vec::new(),
            _ => self.touched.iter().filter_map(|path| path.to_str()).collect(),
        };
        let good = json!({"files": claimed}).to_string();
        match dice.below(20) {
            0 => ("no result at all".to_owned(), ReplyStatus::Complete),
            1 => ("{\"files\": \"broken\"".to_owned(), ReplyStatus::Complete),
            2 => {
                (String::new(), ReplyStatus::failed(AttemptOutcome::Transport, "the line is dead"))
            }
            3 => (good, ReplyStatus::failed(AttemptOutcome::Agent, "it fell over")),
            4 => (String::new(), ReplyStatus::failed(AttemptOutcome::Timeout, "it took too long")),
            _ => (good, ReplyStatus::Complete),
        }
    }
}

/// Changes files and records which.
pub(crate) struct Hands<'a> {
    cwd: &'a Path,
    /// The top folder; nothing above it is changed.
    names: &'static [&'static str],
    touched: BTreeSet<PathBuf>,
}

impl<'a> Hands<'a> {
    pub(crate) fn new(cwd: &'a Path, top: &Path) -> Self {
        let names = if cwd == top { &NAMES[..NAMES.len() - 1] } else { &NAMES };
        Self { cwd, names, touched: BTreeSet::new() }
    }

    /// A random change of a random file.
    pub(crate) fn do_something(&mut self, dice: &mut Dice, text: &str) {
        let name = PathBuf::from(*dice.pick(self.names));
        let full = self.cwd.join(&name);
        let current = Content::at(&full);
        match dice.below(12) {
            0 | 1 => drop(self.take(&name)),
            2 => {
                let to = if dice.percent(50) {
                    PathBuf::from(*dice.pick(self.names))
                } else {
                    name.with_extension("moved")
                };
                if let Some(content) = current.filter(|_| to != name && self.is_free(&to)) {
                    self.take(&name);
                    self.put(&to, &content);
                }
            }
            3 => {
                if let Some(Content::File { bytes, mode }) = current {
                    self.put(&name, &Content::File { bytes, mode: mode ^ 0o111 });
                }
            }
            4 => {
                let aim = *dice.pick(&["../outside/precious.txt", "src/lib.rs", "/nowhere", "."]);
                self.put(&name, &Content::Link(aim.into()));
            }
            5 => {
                // A folder where a file was.
                if self.take(&name).is_some() {
                    self.put(&name.join("inner.txt"), &file(text.as_bytes()));
                }
            }
            6 => {
                // A file where a folder was.
                let folder = *dice.pick(&["src/deep", ".github", "guarded", "docs"]);
                let inside = contents(&self.cwd.join(folder), &[]);
                for path in inside.keys() {
                    self.take(&Path::new(folder).join(path));
                }
                if !inside.is_empty() && std::fs::remove_dir_all(self.cwd.join(folder)).is_ok() {
                    self.put(Path::new(folder), &file(text.as_bytes()));
                }
            }
            7 | 8 => self.edit_a_line(dice, text),
            9 => {
                if let Some(Content::File { mut bytes, mode }) = current {
                    bytes.extend_from_slice(text.as_bytes());
                    self.put(&name, &Content::File { bytes, mode });
                }
            }
            _ => self.put(&name, &file(text.as_bytes())),
        }
    }

    fn edit_a_line(&mut self, dice: &mut Dice, text: &str) {
        let name = Path::new("shared.txt");
        let Some(Content::File { bytes, mode }) = Content::at(&self.cwd.join(name)) else { return };
        let mut lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
        let at = usize::try_from(dice.below(lines.len() as u64)).unwrap();
        if let Some(line) = lines.get_mut(at) {
            *line = text.as_bytes();
            let bytes = lines.concat();
            self.put(name, &Content::File { bytes, mode });
        }
    }

    /// Whether a file can be created at a path: its parents are folders, and it is not a folder.
    fn is_free(&self, name: &Path) -> bool {
        let full = self.cwd.join(name);
        let is_folder = |path: &Path| path.symlink_metadata().is_ok_and(|meta| meta.is_dir());
        let real = full.ancestors().skip(1).take_while(|path| path.starts_with(self.cwd));
        real.into_iter().all(|path| path.symlink_metadata().is_err() || is_folder(path))
            && !is_folder(&full)
    }

    /// Replaces the content at a path. Links are not followed.
    pub(crate) fn put(&mut self, name: &Path, content: &Content) {
        if !self.is_free(name) {
            return;
        }
        let full = self.cwd.join(name);
        std::fs::create_dir_all(full.parent().unwrap()).unwrap();
        let _ = std::fs::remove_file(&full);
        match content {
            Content::Link(aim) => std::os::unix::fs::symlink(aim, &full).unwrap(),
            Content::File { bytes, mode } => {
                std::fs::write(&full, bytes).unwrap();
                std::fs::set_permissions(&full, std::fs::Permissions::from_mode(*mode)).unwrap();
            }
        }
        self.touched.insert(name.to_owned());
    }

    /// Removes the content at a path.
    fn take(&mut self, name: &Path) -> Option<Content> {
        let reached = self.is_free(name).then(|| Content::at(&self.cwd.join(name)))??;
        std::fs::remove_file(self.cwd.join(name)).unwrap();
        self.touched.insert(name.to_owned());
        Some(reached)
    }
}

pub(crate) fn file(bytes: &[u8]) -> Content {
    Content::File { bytes: bytes.to_vec(), mode: 0o644 }
}
