//! Finds the scripts that a check runs: files of the repository that its command names as programs,
//! and those that they run in turn.

use crate::config::CheckCommand;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

/// How many scripts are followed, and how deep.
const MAX_SCRIPTS: usize = 64;
const MAX_DEPTH: usize = 5;
/// How many bytes of a script are searched for others.
const MAX_SCRIPT_BYTES: usize = 1 << 20;

/// Programs that run the file that is their first argument.
const INTERPRETERS: &[&str] = &[
    "sh", "bash", "dash", "zsh", "ksh", "fish", "python", "python3", "python2", "pypy", "pypy3",
    "node", "nodejs", "deno", "bun", "tsx", "ts-node", "ruby", "perl", "php", "lua", "pwsh",
    "Rscript", "source", ".",
];
/// The interpreters of shell scripts.
const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh", "ksh", "source", "."];
/// Words before a program that are not the program.
const PREFIXES: &[&str] = &[
    "env", "time", "exec", "command", "nice", "nohup", "sudo", "if", "then", "else", "elif", "do",
    "while", "until", "!", "{", "(", "eval", "set",
];
/// Programs that run a script of a `package.json`.
const PACKAGE_RUNNERS: &[&str] = &["npm", "yarn", "pnpm", "bun"];

/// The files that a check runs, relative to the top of the repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Scripts {
    /// Files that its command runs.
    pub(crate) files: BTreeSet<PathBuf>,
    /// Files that would be run instead of an installed program.
    pub(crate) shadows: BTreeSet<PathBuf>,
}

impl Scripts {
    pub(crate) fn contains(&self, path: &Path) -> bool {
        self.files.contains(path) || self.shadows.contains(path)
    }
}

/// The scripts of a check, relative to the top of the repository. `folder` is where the check runs,
/// and `read` reads a file of the repository as it was at the start of the run.
pub(crate) fn scripts(
    run: &CheckCommand,
    folder: &Path,
    read: &mut dyn FnMut(&Path) -> Option<Vec<u8>>,
) -> Scripts {
    let mut search = Search { found: Scripts::default(), read };
    match run {
        CheckCommand::Shell(line) => search.lines(line, folder, 0, true),
        CheckCommand::Argv(argv) => {
            let mut folder = folder.to_owned();
            search.command(argv, &mut folder, 0, true);
        }
    }
    search.found
}

struct Search<'a> {
    found: Scripts,
    read: &'a mut dyn FnMut(&Path) -> Option<Vec<u8>>,
}

impl Search<'_> {
    /// Searches the commands of shell lines. In a script that a check runs, other programs than
    /// shell scripts may be what is checked, so they do not count.
    fn lines(&mut self, text: &str, folder: &Path, depth: usize, is_direct: bool) {
        let mut folder = folder.to_owned();
        for line in text.lines() {
            for part in commands(line) {
                if let Some(words) = shlex::split(&part) {
                    self.command(&words, &mut folder, depth, is_direct);
                }
            }
        }
    }

    fn command(&mut self, words: &[String], folder: &mut PathBuf, depth: usize, is_direct: bool) {
        let mut words = words.iter().map(String::as_str).skip_while(|word| {
            PREFIXES.contains(word) || word.contains('=') && !word.starts_with(['/', '.'])
        });
        let Some(mut program) = words.next() else { return };
        if program == "timeout" {
            let rest = words.by_ref().skip_while(|word| {
                word.starts_with('-') || word.starts_with(|c: char| c.is_ascii_digit())
            });
            let rest: Vec<String> = rest.map(str::to_owned).collect();
            return self.command(&rest, folder, depth, is_direct);
        }
        let name = program.rsplit('/').next().unwrap_or(program);
        let arguments: Vec<&str> = words.collect();
        let option = |names: &[&str]| {
            let at = arguments.iter().position(|word| names.contains(word))?;
            arguments.get(at + 1).copied()
        };
        if program == "cd" {
            if let Some(to) = arguments.first() {
                *folder = folder.join(to);
            }
        } else if INTERPRETERS.contains(&name) && !program.contains("./") {
            let is_shell = SHELLS.contains(&name);
            if let Some(module) = option(&["-m"]).filter(|_| is_direct && !is_shell) {
                // A file of that name is run instead of the installed module.
                let module = module.replace('.', "/");
                let names = ["", "/__main__", "/__init__"];
                let files = names.map(|name| folder.join(format!("{module}{name}.py")));
                self.found.shadows.extend(files.iter().filter_map(|file| normalize(file)));
                return;
            }
            if let Some(line) = option(&["-c"]).filter(|_| is_shell) {
                return self.lines(line, &folder.clone(), depth + 1, is_direct);
            }
            if arguments.contains(&"-c") || arguments.contains(&"-e") && !is_shell {
                return;
            }
            if let Some(script) = arguments.iter().find(|word| !word.starts_with('-'))
                && (is_direct || is_shell)
            {
                self.add(&folder.join(script), folder, depth, is_shell);
            }
        } else if PACKAGE_RUNNERS.contains(&name) && is_direct {
            let at = option(&["--prefix", "-C", "--cwd", "--dir"]).unwrap_or(".");
            self.package_scripts(&folder.join(at), depth);
        } else if matches!(name, "make" | "gmake" | "just" | "task") && is_direct {
            let at = folder.join(option(&["-C", "--directory"]).unwrap_or("."));
            if let Some(file) = option(&["-f", "--file", "--makefile"]) {
                self.add(&at.join(file), &at, depth, false);
            }
        } else if program.contains('/') && is_direct {
            if let Some(relative) = program.strip_prefix("./") {
                program = relative;
            }
            self.add(&folder.join(program), folder, depth, true);
        }
    }

    /// Adds a script, and the shell scripts that it runs.
    fn add(&mut self, path: &Path, folder: &Path, depth: usize, may_be_shell: bool) {
        let Some(path) = normalize(path) else { return };
        if self.found.files.len() >= MAX_SCRIPTS || !self.found.files.insert(path.clone()) {
            return;
        }
        if !may_be_shell || depth >= MAX_DEPTH {
            return;
        }
        let Some(bytes) = (self.read)(&path) else { return };
        if bytes.len() <= MAX_SCRIPT_BYTES
            && let Ok(text) = String::from_utf8(bytes)
        {
            self.lines(&text, folder, depth + 1, false);
        }
    }

    /// Searches the scripts of a `package.json`.
    fn package_scripts(&mut self, folder: &Path, depth: usize) {
        if depth >= MAX_DEPTH {
            return;
        }
        let Some(file) = normalize(&folder.join("package.json")) else { return };
        let Some(bytes) = (self.read)(&file) else { return };
        let package: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        let scripts = package.get("scripts").and_then(Value::as_object);
        for line in
            scripts.into_iter().flat_map(|scripts| scripts.values()).filter_map(Value::as_str)
        {
            self.lines(line, folder, MAX_DEPTH - 1, true);
        }
    }
}

/// The commands of a shell line. Quoted operators split too much, which only finds less.
fn commands(line: &str) -> Vec<String> {
    let line = line.trim();
    if line.starts_with('#') {
        return Vec::new();
    }
    let pieces = line.replace("&&", "\n").replace("||", "\n");
    pieces.split(['\n', ';', '|', '&']).map(|part| part.trim().to_owned()).collect()
}

/// A path below the top without `.` and `..`. None if it leads out.
fn normalize(path: &Path) -> Option<PathBuf> {
    let mut parts = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => parts.push(name),
            Component::CurDir => {}
            Component::ParentDir => {
                if !parts.pop() {
                    return None;
                }
            }
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    parts.file_name().is_some().then_some(parts)
}
