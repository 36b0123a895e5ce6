//! Which changes of a step may not be: outside of what it may write, or to what no agent may touch.
//! Pure: it looks at a list of changes and reads no file; putting things back is done elsewhere.
//!
//! The rules, in order:
//!
//! 1. A path that `protect` matches may never change, unless the last glob that matches it begins
//!    with `!`.
//! 2. Where `writes` is given, only what it matches may change. Nothing above the folder is matched
//!    by it.
//! 3. What [`defaults`] lists, and the files that the run itself is made of, may not change, unless
//!    a glob of `writes` matches the path *and spells out the name that is protected*: `AGENTS.md`,
//!    `docs/AGENTS.md` and `**/AGENTS.md` let `docs/AGENTS.md` be written, `**`, `docs/**` and
//!    `*.md` do not; `.github` and `.github/workflows/**` let a CI file be written.
//!
//! Globs are those of the globset crate: case counts, `*` and `?` stop at `/`, `**` does not, they
//! begin at the folder. A path without wildcards at its end means the file or everything below the
//! folder of that name.

use crate::wording::{counted, listed, plain, shown};
use counterfoil_contract::claim::{ClaimKind, ClaimPolicy, ClaimReport, Evidence, Verdict};
use counterfoil_workspace::tree::{Change, Changes};
use globset::{Candidate, GlobBuilder, GlobSet, GlobSetBuilder};
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

/// The longest glob, in bytes, and the most of them: what one list may cost.
const MAX_GLOB: usize = 1_000;
const MAX_GLOBS: usize = 2_000;

/// How many paths a report lists.
const SHOWN: usize = 20;

/// What a file that the run is made of is called.
const OWN: &str = "a file of the workflow";

/// What is protected without being asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guarded {
    /// Where it stands.
    pub glob: &'static str,
    /// What it is: "a CI file".
    pub what: &'static str,
}

/// Everything that is protected without being asked for. The list is a file of its own, since it
/// names the products of others.
pub fn defaults() -> Vec<Guarded> {
    let mut what = "";
    let mut list = Vec::new();
    for line in include_str!("protect/defaults.txt").lines().map(str::trim) {
        if let Some(heading) = line.strip_prefix('[') {
            what = heading.trim_end_matches(']');
        } else if !line.is_empty() && !line.starts_with('#') {
            list.push(Guarded { glob: line, what });
        }
    }
    list
}

/// A change that may not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breach {
    /// The file.
    pub path: PathBuf,
    /// What became of it.
    pub change: Change,
    /// Why it may not be.
    pub why: Why,
}

/// Why a change may not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// This glob of `protect` matches it.
    Protected(String),
    /// Nothing of `writes` matches it.
    Outside,
    /// It is protected without being asked for, being this.
    Default(&'static str),
}

impl std::fmt::Display for Why {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Protected(glob) => write!(out, "protected by `{}`", plain(glob)),
            Self::Outside => out.write_str("outside of what this step may write"),
            Self::Default(what) => out.write_str(what),
        }
    }
}

/// What a step may write and may not, compiled.
#[derive(Debug)]
pub struct Rules {
    writes: Option<Globs>,
    protect: Globs,
    /// Those of `protect` that let paths through again, by their place.
    but: HashSet<usize>,
    defaults: Globs,
    /// What each of the defaults is, in their order.
    named: Vec<&'static str>,
    own: HashSet<PathBuf>,
}

impl Rules {
    /// The rules of a step. `writes` and `protect` are globs; `own` are the files that the run is
    /// made of, as paths relative to the folder that the changes are relative to. An error
    /// names the glob, what is wrong with it and what to write instead.
    pub fn new(
        writes: Option<&[String]>,
        protect: &[String],
        own: &[String],
    ) -> Result<Self, String> {
        let defaults = defaults();
        Ok(Self {
            writes: writes.map(|globs| Globs::new("writes", globs)).transpose()?,
            protect: Globs::new(
                "protect",
                protect.iter().map(|glob| glob.strip_prefix('!').unwrap_or(glob)),
            )?,
            but: (0..protect.len()).filter(|at| protect[*at].starts_with('!')).collect(),
            defaults: Globs::new("defaults", defaults.iter().map(|guarded| guarded.glob))?,
            named: defaults.iter().map(|guarded| guarded.what).collect(),
            own: own.iter().filter_map(|path| normal(path)).collect(),
        })
    }

    /// The changes that may not be, in the order of their paths.
    pub fn violations(&self, changes: &Changes) -> Vec<Breach> {
        let judged = changes.files.iter().filter_map(|(path, change)| {
            let why = self.judge(path)?;
            Some(Breach { path: path.clone(), change: *change, why })
        });
        judged.collect()
    }

    fn judge(&self, path: &Path) -> Option<Why> {
        let candidate = Candidate::new(path);
        if let Some(glob) = self.protecting(&candidate) {
            return Some(Why::Protected(glob.to_owned()));
        }
        let allowed = match &self.writes {
            None => Vec::new(),
            // `**` matches `..` too, which nobody means by it.
            Some(_) if path.starts_with("..") => return Some(Why::Outside),
            Some(writes) => writes.matching(&candidate),
        };
        if self.writes.is_some() && allowed.is_empty() {
            return Some(Why::Outside);
        }
        let spelled = |name: &OsStr| {
            let writes = self.writes.as_ref();
            writes.is_some_and(|globs| allowed.iter().any(|index| globs.spells_out(*index, name)))
        };
        self.by_default(path, spelled)
    }

    /// The first glob of `protect` that holds a path, unless a later one lets it through again.
    fn protecting(&self, path: &Candidate<'_>) -> Option<&str> {
        let matching = self.protect.matching(path);
        if matching.iter().max().is_none_or(|last| self.but.contains(last)) {
            return None;
        }
        let first = matching.into_iter().filter(|at| !self.but.contains(at)).min()?;
        self.protect.written.get(first).map(String::as_str)
    }

    /// What protects a path without being asked for, unless its name is spelled out in `writes`.
    fn by_default(&self, path: &Path, spelled: impl Fn(&OsStr) -> bool) -> Option<Why> {
        if let Some(own) = path.ancestors().find(|part| self.own.contains(*part)) {
            return (!own.file_name().is_some_and(&spelled)).then_some(Why::Default(OWN));
        }
        // The folder of a run may be a part of the repository: what stands at its top is as good as
        // here.
        let mut parts = path.components();
        while parts.as_path().starts_with("..") {
            parts.next();
        }
        let below = parts.as_path();
        let file = below.file_name().unwrap_or_default();
        let held = self.defaults.matching(&Candidate::new(below)).into_iter().find(|index| {
            let name = self.defaults.words.get(*index).and_then(|words| words.last());
            !spelled(name.map_or(file, OsStr::new))
        })?;
        self.named.get(held).copied().map(Why::Default)
    }
}

/// A list of globs, compiled to one matcher.
#[derive(Debug)]
struct Globs {
    set: GlobSet,
    /// The glob that each pattern of the set came from.
    from: Vec<usize>,
    /// The globs as they were written.
    written: Vec<String>,
    /// The parts of each glob that stand for themselves.
    words: Vec<Vec<String>>,
}

impl Globs {
    fn new<S: AsRef<str>>(list: &str, globs: impl IntoIterator<Item = S>) -> Result<Self, String> {
        let mut set = GlobSetBuilder::new();
        let (mut from, mut written, mut words) = (Vec::new(), Vec::new(), Vec::new());
        for (index, glob) in globs.into_iter().enumerate() {
            if index >= MAX_GLOBS {
                return Err(format!(
                    "`{list}` has more than {MAX_GLOBS} globs: name folders instead of files"
                ));
            }
            let glob = glob.as_ref();
            let wrong = |why: &str| format!("the glob `{}` in `{list}` {why}", plain(&cut(glob)));
            for pattern in patterns(glob).map_err(|why| wrong(&why))? {
                let compiled = GlobBuilder::new(&pattern).literal_separator(true).build();
                set.add(
                    compiled
                        .map_err(|error| wrong(&format!("cannot be read: {}", error.kind())))?,
                );
                from.push(index);
            }
            words.push(literal_parts(glob).map(str::to_owned).collect());
            written.push(glob.to_owned());
        }
        let set = set
            .build()
            .map_err(|error| format!("the globs of `{list}` cannot be compiled: {error}"))?;
        Ok(Self { set, from, written, words })
    }

    /// The globs that match, by their place in the list.
    fn matching(&self, path: &Candidate<'_>) -> Vec<usize> {
        if self.set.is_empty() {
            return Vec::new();
        }
        let hits = self.set.matches_candidate(path);
        hits.into_iter().filter_map(|pattern| self.from.get(pattern).copied()).collect()
    }

    /// Whether a glob has a part that is exactly this name.
    fn spells_out(&self, index: usize, name: &OsStr) -> bool {
        self.words.get(index).is_some_and(|words| words.iter().any(|word| OsStr::new(word) == name))
    }
}

/// The patterns that a glob stands for: itself, and everything below it where it ends in a name.
fn patterns(glob: &str) -> Result<Vec<String>, String> {
    if glob.len() > MAX_GLOB {
        return Err(format!("is longer than {MAX_GLOB} bytes"));
    }
    if glob.trim().is_empty() {
        return Err("is empty: write `**` for everything".to_owned());
    }
    if glob.starts_with('!') {
        return Err("begins with `!`, but there is no exclusion: put what may not be written into `protect`"
            .to_owned());
    }
    let drive =
        matches!(glob.as_bytes(), [letter, b':', b'/' | b'\\', ..] if letter.is_ascii_alphabetic());
    if drive || glob.starts_with("//") || glob.starts_with('~') {
        return Err("is absolute: write it relative to the folder of the run".to_owned());
    }
    let relative = trimmed(glob);
    if relative.split(['/', '{', '}', ',']).any(|part| part == "..") {
        return Err("has `..`: only paths below the folder of the run can be named".to_owned());
    }
    let stem = relative.trim_end_matches('/');
    if stem.is_empty() || stem == "." {
        return Ok(vec!["**".to_owned()]);
    }
    let last = stem.rsplit('/').next().unwrap_or(stem);
    let folder = relative.ends_with('/') || !last.contains(['*', '?', '[']);
    let mut patterns = vec![stem.to_owned()];
    if folder {
        patterns.push(format!("{stem}/**"));
    }
    Ok(patterns)
}

/// A glob without what only says that it begins at the folder.
fn trimmed(mut glob: &str) -> &str {
    glob = glob.strip_prefix('/').unwrap_or(glob);
    while let Some(rest) = glob.strip_prefix("./") {
        glob = rest.trim_start_matches('/');
    }
    glob
}

/// The parts of a glob that stand for themselves.
fn literal_parts(glob: &str) -> impl Iterator<Item = &str> {
    let parts = trimmed(glob).split('/');
    parts.filter(|part| !part.is_empty() && !part.contains(['*', '?', '[', ']', '{', '}', '\\']))
}

fn cut(glob: &str) -> String {
    if glob.chars().count() > 80 {
        glob.chars().take(79).chain(['…']).collect()
    } else {
        glob.to_owned()
    }
}

/// A path without `.` and without `..` that something before it takes back. None if nothing below
/// or above a folder is named.
fn normal(path: &str) -> Option<PathBuf> {
    let mut parts = PathBuf::new();
    for part in Path::new(path).components() {
        match part {
            Component::Normal(name) => parts.push(name),
            Component::CurDir => {}
            Component::ParentDir if parts.file_name().is_some() => {
                parts.pop();
            }
            Component::ParentDir => parts.push(".."),
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    parts.file_name().is_some().then_some(parts)
}

/// What became of the claim that nothing was written that may not be. `restored` are the breaches
/// that were put back as they were, `failed` those that could not be, and why.
pub fn report(
    breaches: &[Breach],
    restored: &[PathBuf],
    failed: &[(PathBuf, String)],
    policy: ClaimPolicy,
    had_changes: bool,
) -> ClaimReport {
    let mut report = ClaimReport {
        claim: "protected".to_owned(),
        field: String::new(),
        kind: ClaimKind::Protected,
        policy,
        verdict: Verdict::Verified,
        claimed: Value::Null,
        observed: Value::Null,
        reason: String::new(),
        evidence: Vec::new(),
        tree: None,
    };
    if breaches.is_empty() {
        let text = if had_changes {
            "nothing that is protected was changed"
        } else {
            "nothing was changed"
        };
        report.evidence.push(Evidence::new("diff", text));
        return report;
    }
    let back: HashSet<&Path> = restored.iter().map(PathBuf::as_path).collect();
    let stuck: HashMap<&Path, &str> =
        failed.iter().map(|(path, why)| (path.as_path(), why.as_str())).collect();
    let fates: Vec<Fate<'_>> = breaches
        .iter()
        .map(|breach| match stuck.get(breach.path.as_path()) {
            Some(why) => Fate::Stuck(why),
            None if back.contains(breach.path.as_path()) => Fate::Restored,
            None => Fate::Left,
        })
        .collect();
    report.verdict = Verdict::Refuted;
    report.reason = reason(breaches, &fates);
    report.observed = listing(breaches);
    for (breach, fate) in breaches.iter().zip(&fates).take(SHOWN) {
        let text =
            format!("{} {}: {}; {fate}", became(breach.change), shown(&breach.path), breach.why);
        report.evidence.push(Evidence::new("diff", text));
    }
    if let Some(more @ 1..) = breaches.len().checked_sub(SHOWN) {
        let verb = if more == 1 { "is" } else { "are" };
        report.evidence.push(Evidence::new(
            "note",
            format!("{} {verb} not listed", counted(more, "more file")),
        ));
    }
    report
}

/// What was done about a breach.
enum Fate<'a> {
    Restored,
    Stuck(&'a str),
    Left,
}

impl std::fmt::Display for Fate<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Restored => out.write_str("restored"),
            Self::Stuck(why) => write!(out, "could not be restored: {}", plain(why)),
            Self::Left => out.write_str("left as it is"),
        }
    }
}

fn reason(breaches: &[Breach], fates: &[Fate<'_>]) -> String {
    let (outside, guarded): (Vec<_>, Vec<_>) =
        breaches.iter().partition(|breach| breach.why == Why::Outside);
    let mut parts = Vec::new();
    let guard = if guarded.len() == 1 { "that is protected" } else { "that are protected" };
    for (files, what) in [(&guarded, guard), (&outside, "outside of what this step may write")] {
        if !files.is_empty() {
            let names = listed(files, 5, |breach| shown(&breach.path));
            parts.push(format!("{} changed {what}: {names}", counted(files.len(), "file")));
        }
    }
    let restored = fates.iter().filter(|fate| matches!(fate, Fate::Restored)).count();
    let stuck = fates.iter().filter(|fate| matches!(fate, Fate::Stuck(_))).count();
    match (restored, stuck) {
        (0, 0) => {}
        (_, 0) if restored == fates.len() => parts.push("restored".to_owned()),
        (_, 0) => parts.push(format!("{restored} restored")),
        _ => parts.push(format!("{restored} restored, {stuck} could not be")),
    }
    parts.join("; ")
}

fn listing(breaches: &[Breach]) -> Value {
    let line = |breach: &Breach| format!("{} {}", became(breach.change), shown(&breach.path));
    let mut lines: Vec<Value> =
        breaches.iter().take(SHOWN).map(|breach| line(breach).into()).collect();
    if breaches.len() > SHOWN {
        lines.push(format!("and {} more", breaches.len() - SHOWN).into());
    }
    lines.into()
}

fn became(change: Change) -> &'static str {
    match change {
        Change::Added => "added",
        Change::Modified => "modified",
        Change::Deleted => "deleted",
    }
}

#[cfg(test)]
mod tests;
