//! Finds the scripts that a check runs: files of the repository that its command names as programs,
//! and those that they run in turn.

use crate::config::CheckCommand;
use globset::Glob;
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
    /// Globs of files that its command runs one after the other.
    globs: BTreeSet<String>,
    /// Files that would be run instead of an installed program.
    pub(crate) shadows: BTreeSet<PathBuf>,
}

impl Scripts {
    /// Whether the check runs a file, or would run it.
    pub(crate) fn contains(&self, path: &Path) -> bool {
        self.runs(path) || self.shadows.contains(path)
    }

    /// Whether the check runs a file.
    pub(crate) fn runs(&self, path: &Path) -> bool {
        let matches =
            |glob: &String| Glob::new(glob).is_ok_and(|glob| glob.compile_matcher().is_match(path));
        self.files.contains(path) || self.globs.iter().any(matches)
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
        let text = ["\"$PWD\"/", "${PWD}/", "$PWD/", "$(pwd)/"]
            .iter()
            .fold(text.to_owned(), |text, here| text.replace(here, ""));
        let text = text.replace("\\\n", " ");
        for line in text.lines() {
            for part in commands(line) {
                if let Some(words) = shlex::split(&part) {
                    self.command(&words, &mut folder, depth, is_direct);
                }
            }
            self.indirect(line, &folder, depth);
        }
    }

    /// Searches a line for files that shells run without their names: what is piped into a shell, and
    /// what a loop gives to one.
    fn indirect(&mut self, line: &str, folder: &Path, depth: usize) {
        let parts: Vec<Vec<String>> =
            commands(line).iter().filter_map(|part| shlex::split(part)).collect();
        let program = |words: &Vec<String>| {
            let skipped = |word: &&String| PREFIXES.contains(&word.as_str()) || word.contains('=');
            let mut words = words.iter().skip_while(skipped);
            let name = words.next().filter(|word| SHELLS.contains(&word.as_str()))?;
            Some((name.clone(), words.find(|word| !word.starts_with('-')).cloned()))
        };
        let shells: Vec<Option<String>> =
            parts.iter().filter_map(program).map(|(_, script)| script).collect();
        let reads_pipe = line.contains('|') && shells.contains(&None);
        let reads_variable = shells.iter().flatten().any(|script| script.contains('$'));
        if !reads_pipe && !reads_variable {
            return;
        }
        for word in parts.iter().flatten().filter(|word| !word.starts_with(['-', '$', '<', '>'])) {
            let path = folder.join(word.trim_start_matches("./"));
            match normalize(&path) {
                Some(path) if word.contains(['*', '?', '[']) => {
                    self.found.globs.extend(path.to_str().map(str::to_owned));
                }
                Some(_) if word.contains(['.', '/']) => self.add(&path, folder, depth, true),
                _ => {}
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
        let input = arguments.iter().position(|word| *word == "<");
        let input = input.and_then(|at| arguments.get(at + 1)).copied();
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
            let named = arguments.iter().find(|word| !word.starts_with(['-', '<', '>']));
            if let Some(script) = input.or(named.copied())
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
        // What a variable holds is not known here.
        let Some(path) = normalize(path).filter(|path| !path.to_string_lossy().contains('$'))
        else {
            return;
        };
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

/// The commands of a shell line: its parts between operators that are not quoted. A redirected input
/// stands apart from its operator.
fn commands(line: &str) -> Vec<String> {
    let line = line.trim();
    if line.starts_with('#') {
        return Vec::new();
    }
    let mut parts = vec![String::new()];
    let (mut quote, mut is_escaped) = (None, false);
    for c in line.chars() {
        let is_plain = quote.is_none() && !is_escaped;
        if is_plain && matches!(c, ';' | '|' | '&') {
            parts.push(String::new());
            continue;
        }
        let Some(part) = parts.last_mut() else { break };
        if is_plain && c == '<' {
            part.push_str(" < ");
            continue;
        }
        part.push(c);
        if is_escaped {
            is_escaped = false;
        } else if c == '\\' && quote != Some('\'') {
            is_escaped = true;
        } else if quote == Some(c) {
            quote = None;
        } else if quote.is_none() && matches!(c, '\'' | '"') {
            quote = Some(c);
        }
    }
    parts.iter().map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect()
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
