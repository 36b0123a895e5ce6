//! Decides which changes of a step are forbidden: outside of the paths it may write, or to
//! protected files. Pure: it evaluates a list of changes and reads no file. Files are restored
//! elsewhere.
//!
//! The rules, in order:
//!
//! 1. A path that `protect` matches must not change, unless the last matching glob begins with `!`.
//! 2. Where `writes` is given, only paths that it matches may change. It matches nothing above the
//!    folder.
//! 3. The paths in [`defaults`] and the files of the workflow must not change, unless a glob of
//!    `writes` matches the path *and contains the protected name literally*: `AGENTS.md`,
//!    `docs/AGENTS.md` and `**/AGENTS.md` allow writing `docs/AGENTS.md`; `**`, `docs/**` and
//!    `*.md` do not. `.github` and `.github/workflows/**` allow writing a CI file.
//!
//! Globs follow the globset crate: they are case-sensitive, `*` and `?` stop at `/`, `**` does not,
//! and they are relative to the folder. A path that ends in a name without wildcards matches the
//! file, or everything below the folder of that name.

mod error;

pub use error::{GlobProblem, RuleError};

use crate::relative_path::normalize_or_climb;
use counterfoil_contract::claim::{ClaimKind, ClaimPolicy, ClaimReport, Evidence, Verdict};
use counterfoil_contract::text::{display_path, escape_control, join_limited, pluralize};
use counterfoil_workspace::snapshot::{Change, Changes};
use globset::{Candidate, GlobBuilder, GlobSet, GlobSetBuilder};
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// The maximum number of globs in a list.
const MAX_GLOBS: usize = 2_000;

/// The maximum number of paths that a report lists.
const MAX_LISTED: usize = 20;

/// The description of a file that belongs to the workflow.
const WORKFLOW_FILE: &str = "a file of the workflow";

/// A path that is protected by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DefaultProtection {
    /// The glob of the protected paths.
    pub glob: &'static str,
    /// What the paths are, as in "a CI file".
    pub what: &'static str,
}

/// All paths that are protected by default. The list is in a file of its own because it names
/// third-party products.
pub fn defaults() -> &'static [DefaultProtection] {
    &DEFAULTS
}

static DEFAULTS: LazyLock<Vec<DefaultProtection>> = LazyLock::new(|| {
    let mut what = "";
    let mut list = Vec::new();
    for line in include_str!("protect/defaults.txt").lines().map(str::trim) {
        if let Some(heading) = line.strip_prefix('[') {
            what = heading.trim_end_matches(']');
        } else if !line.is_empty() && !line.starts_with('#') {
            list.push(DefaultProtection { glob: line, what });
        }
    }
    list
});

/// The defaults, compiled once: every step is checked against them.
static DEFAULT_GLOBS: LazyLock<Result<Globs, RuleError>> =
    LazyLock::new(|| Globs::new("defaults", DEFAULTS.iter().map(|default| default.glob)));

/// A forbidden change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForbiddenChange {
    /// The path of the changed file.
    pub path: PathBuf,
    /// How the file changed.
    pub change: Change,
    /// The rule that forbids the change.
    pub reason: ForbiddenReason,
}

/// The rule that forbids a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ForbiddenReason {
    /// This glob of `protect` matches the path.
    Protected(String),
    /// No glob of `writes` matches the path.
    Outside,
    /// The path is protected by default. The text says what it is.
    Default(&'static str),
}

impl std::fmt::Display for ForbiddenReason {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Protected(glob) => write!(out, "protected by `{}`", escape_control(glob)),
            Self::Outside => out.write_str("outside of what this step may write"),
            Self::Default(what) => out.write_str(what),
        }
    }
}

/// The compiled rules about what a step may write.
#[derive(Debug)]
pub struct WriteRules {
    writes: Option<Globs>,
    protect: Globs,
    /// The indices of those globs in `protect` that begin with `!`.
    exceptions: HashSet<usize>,
    defaults: &'static Globs,
    workflow_files: HashSet<PathBuf>,
}

impl WriteRules {
    /// Compiles the rules of a step. `writes` and `protect` are globs. `workflow_files` are paths,
    /// relative to the same folder as the changes.
    ///
    /// # Errors
    ///
    /// A glob is not valid. The error names the glob and says what to write instead.
    pub fn new(
        writes: Option<&[String]>,
        protect: &[String],
        workflow_files: &[String],
    ) -> Result<Self, RuleError> {
        Ok(Self {
            writes: writes.map(|globs| Globs::new("writes", globs)).transpose()?,
            protect: Globs::new(
                "protect",
                protect.iter().map(|glob| glob.strip_prefix('!').unwrap_or(glob)),
            )?,
            exceptions: (0..protect.len()).filter(|at| protect[*at].starts_with('!')).collect(),
            defaults: DEFAULT_GLOBS.as_ref().map_err(RuleError::clone)?,
            workflow_files: workflow_files.iter().filter_map(|path| normalize(path)).collect(),
        })
    }

    /// The files and folders that `protect` names up to its first wildcard. What is there is
    /// protected even if git ignores it.
    pub fn protected_places(&self) -> Vec<PathBuf> {
        let globs = self.protect.sources.iter().enumerate();
        let named = globs.filter(|(index, _)| !self.exceptions.contains(index));
        named.filter_map(|(_, glob)| literal_prefix(glob)).collect()
    }

    /// Whether `writes` matches a path and contains the name of the file literally: the step is
    /// meant to change this file.
    pub fn names(&self, path: &Path) -> bool {
        let (Some(writes), Some(name)) = (&self.writes, path.file_name()) else { return false };
        let matching = writes.matching(&Candidate::new(path));
        matching.into_iter().any(|index| writes.spells_out(index, name))
    }

    /// The forbidden changes, in the order of their paths.
    pub fn violations(&self, changes: &Changes) -> Vec<ForbiddenChange> {
        let forbidden = changes.files.iter().filter_map(|(path, change)| {
            let reason = self.reason_for(path)?;
            Some(ForbiddenChange { path: path.clone(), change: *change, reason })
        });
        forbidden.collect()
    }

    /// The changes of protected files, in the order of their paths, whatever the step may write.
    pub fn protected(&self, changes: &Changes) -> Vec<ForbiddenChange> {
        let forbidden = changes.files.iter().filter_map(|(path, change)| {
            let glob = self.protecting_glob(&Candidate::new(path));
            let reason = match glob {
                Some(glob) => ForbiddenReason::Protected(glob.to_owned()),
                None => self.default_protection(path, |_| false)?,
            };
            Some(ForbiddenChange { path: path.clone(), change: *change, reason })
        });
        forbidden.collect()
    }

    fn reason_for(&self, path: &Path) -> Option<ForbiddenReason> {
        let candidate = Candidate::new(path);
        if let Some(glob) = self.protecting_glob(&candidate) {
            return Some(ForbiddenReason::Protected(glob.to_owned()));
        }
        let allowed = match &self.writes {
            None => Vec::new(),
            // `**` also matches `..`, which is never intended.
            Some(_) if path.starts_with("..") => return Some(ForbiddenReason::Outside),
            Some(writes) => writes.matching(&candidate),
        };
        if self.writes.is_some() && allowed.is_empty() {
            return Some(ForbiddenReason::Outside);
        }
        let is_spelled_out = |name: &OsStr| {
            let writes = self.writes.as_ref();
            writes.is_some_and(|globs| allowed.iter().any(|index| globs.spells_out(*index, name)))
        };
        self.default_protection(path, is_spelled_out)
    }

    /// The first glob of `protect` that matches a path, unless a later one excludes it.
    fn protecting_glob(&self, path: &Candidate<'_>) -> Option<&str> {
        let matching = self.protect.matching(path);
        if matching.iter().max().is_none_or(|last| self.exceptions.contains(last)) {
            return None;
        }
        let first = matching.into_iter().filter(|at| !self.exceptions.contains(at)).min()?;
        self.protect.sources.get(first).map(String::as_str)
    }

    /// The default protection of a path, unless `writes` contains its name literally.
    fn default_protection(
        &self,
        path: &Path,
        is_spelled_out: impl Fn(&OsStr) -> bool,
    ) -> Option<ForbiddenReason> {
        if let Some(own) = path.ancestors().find(|part| self.workflow_files.contains(*part)) {
            return (!own.file_name().is_some_and(&is_spelled_out))
                .then_some(ForbiddenReason::Default(WORKFLOW_FILE));
        }
        // The folder of a run may be below the top of the repository. Paths above the folder are
        // protected like paths in it.
        let mut parts = path.components();
        while parts.as_path().starts_with("..") {
            parts.next();
        }
        let below = parts.as_path();
        let file = below.file_name().unwrap_or_default();
        let index = self.defaults.matching(&Candidate::new(below)).into_iter().find(|index| {
            let name = self.defaults.literals.get(*index).and_then(|literals| literals.last());
            !is_spelled_out(name.map_or(file, OsStr::new))
        })?;
        DEFAULTS.get(index).map(|default| ForbiddenReason::Default(default.what))
    }
}

/// A list of globs, compiled to one matcher.
#[derive(Debug)]
struct Globs {
    set: GlobSet,
    /// The index of the glob that each pattern of the set belongs to.
    from: Vec<usize>,
    /// The globs as they are written.
    sources: Vec<String>,
    /// The literal path components of each glob.
    literals: Vec<Vec<String>>,
}

impl Globs {
    fn new<S: AsRef<str>>(
        list: &str,
        globs: impl IntoIterator<Item = S>,
    ) -> Result<Self, RuleError> {
        let mut set = GlobSetBuilder::new();
        let (mut from, mut sources, mut literals) = (Vec::new(), Vec::new(), Vec::new());
        for (index, glob) in globs.into_iter().enumerate() {
            if index >= MAX_GLOBS {
                return Err(RuleError::TooMany { list: list.to_owned(), max: MAX_GLOBS });
            }
            let glob = glob.as_ref();
            let invalid = |problem: GlobProblem| RuleError::Invalid {
                list: list.to_owned(),
                glob: glob.to_owned(),
                problem,
            };
            for pattern in patterns(glob).map_err(invalid)? {
                let compiled = GlobBuilder::new(&pattern).literal_separator(true).build();
                let compiled = compiled
                    .map_err(|error| invalid(GlobProblem::Syntax(error.kind().to_string())))?;
                set.add(compiled);
                from.push(index);
            }
            literals.push(literal_parts(glob).map(str::to_owned).collect());
            sources.push(glob.to_owned());
        }
        let set = set.build().map_err(|error| RuleError::Compile {
            list: list.to_owned(),
            message: error.to_string(),
        })?;
        Ok(Self { set, from, sources, literals })
    }

    /// The indices of the globs that match.
    fn matching(&self, path: &Candidate<'_>) -> Vec<usize> {
        if self.set.is_empty() {
            return Vec::new();
        }
        let hits = self.set.matches_candidate(path);
        hits.into_iter().filter_map(|pattern| self.from.get(pattern).copied()).collect()
    }

    /// Whether a glob contains a name as a literal path component.
    fn spells_out(&self, index: usize, name: &OsStr) -> bool {
        self.literals
            .get(index)
            .is_some_and(|literals| literals.iter().any(|word| OsStr::new(word) == name))
    }
}

/// The patterns for a glob: the glob itself, and everything below it if it ends in a name.
fn patterns(glob: &str) -> Result<Vec<String>, GlobProblem> {
    if glob.len() > error::MAX_GLOB {
        return Err(GlobProblem::TooLong);
    }
    if glob.trim().is_empty() {
        return Err(GlobProblem::Empty);
    }
    if glob.starts_with('!') {
        return Err(GlobProblem::Exclusion);
    }
    let drive =
        matches!(glob.as_bytes(), [letter, b':', b'/' | b'\\', ..] if letter.is_ascii_alphabetic());
    if drive || glob.starts_with("//") || glob.starts_with('~') {
        return Err(GlobProblem::Absolute);
    }
    let relative = strip_leading(glob);
    if relative.split(['/', '{', '}', ',']).any(|part| part == "..") {
        return Err(GlobProblem::ParentFolder);
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

/// A glob without a leading `/` or `./`.
fn strip_leading(mut glob: &str) -> &str {
    glob = glob.strip_prefix('/').unwrap_or(glob);
    while let Some(rest) = glob.strip_prefix("./") {
        glob = rest.trim_start_matches('/');
    }
    glob
}

/// The characters that make a path component a pattern.
const WILDCARDS: [char; 7] = ['*', '?', '[', ']', '{', '}', '\\'];

/// The literal path components of a glob.
fn literal_parts(glob: &str) -> impl Iterator<Item = &str> {
    let parts = strip_leading(glob).split('/');
    parts.filter(|part| !part.is_empty() && !part.contains(WILDCARDS))
}

/// The path before the first component with a wildcard. None if a wildcard comes first.
fn literal_prefix(glob: &str) -> Option<PathBuf> {
    let parts = strip_leading(glob).split('/').filter(|part| !part.is_empty() && *part != ".");
    let path: PathBuf = parts.take_while(|part| !part.contains(WILDCARDS)).collect();
    path.file_name().is_some().then_some(path)
}

/// A path without `.` and without `..` after a name. None for an absolute path and for one that
/// names no file.
fn normalize(path: &str) -> Option<PathBuf> {
    let path = normalize_or_climb(Path::new(path));
    (path.is_relative() && path.file_name().is_some()).then_some(path)
}

/// The report about forbidden changes. `restored` are the files that were restored, `failed` those
/// that could not be restored, with the reasons.
pub fn report(
    forbidden: &[ForbiddenChange],
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
    if forbidden.is_empty() {
        let text =
            if had_changes { "no protected file was changed" } else { "no file was changed" };
        report.evidence.push(Evidence::new("diff", text));
        return report;
    }
    let back: HashSet<&Path> = restored.iter().map(PathBuf::as_path).collect();
    let stuck: HashMap<&Path, &str> =
        failed.iter().map(|(path, why)| (path.as_path(), why.as_str())).collect();
    let outcomes: Vec<RestoreOutcome<'_>> = forbidden
        .iter()
        .map(|change| match stuck.get(change.path.as_path()) {
            Some(why) => RestoreOutcome::Failed(why),
            None if back.contains(change.path.as_path()) => RestoreOutcome::Restored,
            None => RestoreOutcome::NotAttempted,
        })
        .collect();
    report.verdict = Verdict::Refuted;
    report.reason = reason(forbidden, &outcomes);
    report.observed = listing(forbidden);
    for (change, outcome) in forbidden.iter().zip(&outcomes).take(MAX_LISTED) {
        let text = format!(
            "{} {}: {}; {outcome}",
            change_name(change.change),
            display_path(&change.path),
            change.reason
        );
        report.evidence.push(Evidence::new("diff", text));
    }
    if let Some(more @ 1..) = forbidden.len().checked_sub(MAX_LISTED) {
        let verb = if more == 1 { "is" } else { "are" };
        report.evidence.push(Evidence::new(
            "note",
            format!("{} {verb} not listed", pluralize(more, "more file")),
        ));
    }
    report
}

/// Whether a forbidden change was undone.
enum RestoreOutcome<'a> {
    Restored,
    Failed(&'a str),
    NotAttempted,
}

impl std::fmt::Display for RestoreOutcome<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Restored => out.write_str("restored"),
            Self::Failed(why) => write!(out, "could not be restored: {}", escape_control(why)),
            Self::NotAttempted => out.write_str("not restored"),
        }
    }
}

fn reason(forbidden: &[ForbiddenChange], outcomes: &[RestoreOutcome<'_>]) -> String {
    let (outside, protected): (Vec<_>, Vec<_>) =
        forbidden.iter().partition(|change| change.reason == ForbiddenReason::Outside);
    let mut parts = Vec::new();
    for (changes, noun, place) in [
        (&protected, "protected file", ""),
        (&outside, "file", " outside of what this step may write"),
    ] {
        if !changes.is_empty() {
            let names = join_limited(changes.iter().map(|change| display_path(&change.path)), 5);
            parts.push(format!("{} changed{place}: {names}", pluralize(changes.len(), noun)));
        }
    }
    let restored =
        outcomes.iter().filter(|outcome| matches!(outcome, RestoreOutcome::Restored)).count();
    let failed =
        outcomes.iter().filter(|outcome| matches!(outcome, RestoreOutcome::Failed(_))).count();
    match (restored, failed) {
        (0, 0) => {}
        (_, 0) if restored == outcomes.len() => parts.push("restored".to_owned()),
        (_, 0) => parts.push(format!("{restored} restored")),
        _ => parts.push(format!("{restored} restored, {failed} could not be restored")),
    }
    parts.join("; ")
}

fn listing(forbidden: &[ForbiddenChange]) -> Value {
    let line = |change: &ForbiddenChange| {
        format!("{} {}", change_name(change.change), display_path(&change.path))
    };
    let mut lines: Vec<Value> =
        forbidden.iter().take(MAX_LISTED).map(|change| line(change).into()).collect();
    if forbidden.len() > MAX_LISTED {
        lines.push(format!("and {} more", forbidden.len() - MAX_LISTED).into());
    }
    lines.into()
}

fn change_name(change: Change) -> &'static str {
    match change {
        Change::Added => "added",
        Change::Modified => "modified",
        Change::Deleted => "deleted",
    }
}

#[cfg(test)]
mod tests;
