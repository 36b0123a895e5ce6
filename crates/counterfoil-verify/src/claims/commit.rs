//! Commits that a result names: each is one, belongs to the work, and together they hold the files
//! that they should.

use super::World;
use super::git::git;
use super::judged::Judged;
use super::path::Meant;
use super::read;
use super::scene::Scene;
use super::shown::{self, few, number};
use counterfoil_contract::claim::{EffectiveClaim, Evidence, Verdict};
use counterfoil_workspace::git::Answer;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

/// Letters that an abbreviated name has at least.
const SHORTEST: usize = 7;
/// Commits whose files are listed; a step makes few.
const MOST_LISTED: usize = 500;

pub(super) async fn hold(
    held: &EffectiveClaim,
    value: &Value,
    scene: &Scene,
    world: &mut World<'_>,
) -> Option<Judged> {
    let found = read::field(&held.field, value)?;
    let named = match read::strings(&found) {
        Ok(named) if named.is_empty() => return None,
        Ok(named) => named,
        Err(why) => {
            let claimed = found.first().map(|found| found.value.clone()).unwrap_or_default();
            return Some(Judged::unverifiable(claimed, why));
        }
    };
    let claimed = shown::list(named.iter().map(|(_, name)| shown::plain(name)));
    // Files are held against the commits that the same part of the result names.
    let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (tokens, name) in &named {
        let pattern =
            held.claim.files.as_deref().map(|files| read::bound(files, tokens)).unwrap_or_default();
        groups.entry(pattern).or_default().push(name.clone());
    }
    let names: Vec<String> = named.into_iter().map(|(_, name)| name).collect();
    let mut commits = match look(&names, scene, world).await {
        Ok(commits) => commits,
        Err(why) => {
            return Some(Judged::unverifiable(claimed, format!("git cannot be asked: {why}")));
        }
    };
    let mut wanted = Vec::new();
    for (pattern, names) in groups.into_iter().filter(|(pattern, _)| !pattern.is_empty()) {
        let Some(Ok(files)) = read::field(&pattern, value).map(|found| read::files(&found)) else {
            continue;
        };
        let paths = files
            .into_iter()
            .flat_map(|file| std::iter::once(file.path).chain(file.from))
            .collect();
        wanted.push((names, paths));
    }
    if !wanted.is_empty()
        && let Err(why) = list_files(&mut commits, world).await
    {
        return Some(Judged::unverifiable(claimed, format!("git cannot be asked: {why}")));
    }
    let mut judged = judge(&names, &commits, &wanted, scene);
    judged.claimed = claimed;
    Some(judged)
}

/// What git knows of a name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Commit {
    /// Its full name.
    id: String,
    /// Whether it is in the history of what is checked out.
    is_reachable: bool,
    /// When it was made.
    made: Option<SystemTime>,
    /// The files it changes, from the repository's top; empty if they were not listed.
    files: HashSet<PathBuf>,
}

/// What a name stands for.
type Known = HashMap<String, Result<Commit, String>>;

fn is_name(name: &str) -> bool {
    (SHORTEST..=64).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

async fn look(names: &[String], scene: &Scene, world: &World<'_>) -> Result<Known, String> {
    let mut known = Known::new();
    let mut asked: Vec<&str> = Vec::new();
    for name in names {
        if is_name(name) {
            if known.insert(name.clone(), Err("there is no such commit".to_owned())).is_none() {
                asked.push(name);
            }
        } else {
            let why =
                format!("it is no commit's name: that has {SHORTEST} to 64 hexadecimal digits");
            known.insert(name.clone(), Err(why));
        }
    }
    if asked.is_empty() {
        return Ok(known);
    }
    let head =
        git(&["rev-parse", "--quiet", "--verify", "HEAD^{commit}"], Vec::new(), world).await?;
    let is_repository = head.ok()
        || git(&["rev-parse", "--git-dir"], Vec::new(), world).await.is_ok_and(|said| said.ok());
    if !is_repository {
        return Err(first_line(&head).unwrap_or_else(|| {
            format!("{} is in no repository that git can read", scene.frame.folder().display())
        }));
    }
    let input =
        asked.iter().flat_map(|name| [*name, "^{commit}\n"]).collect::<String>().into_bytes();
    let said =
        git(&["cat-file", "--batch-check=%(objectname) %(objecttype)"], input, world).await?;
    let text = String::from_utf8_lossy(&said.stdout);
    for (name, line) in asked.iter().zip(text.lines()) {
        let answer = match line.rsplit_once(' ') {
            Some((id, "commit")) => Ok(Commit { id: id.to_owned(), ..Commit::default() }),
            Some((_, "ambiguous")) => Err("several objects begin so".to_owned()),
            _ => continue,
        };
        known.insert((*name).to_owned(), answer);
    }
    date(&mut known, head.ok(), world).await?;
    Ok(known)
}

/// Says of each commit when it was made, and whether it belongs to what is checked out.
async fn date(known: &mut Known, has_head: bool, world: &World<'_>) -> Result<(), String> {
    let ids: HashSet<String> = known.values().flatten().map(|commit| commit.id.clone()).collect();
    if ids.is_empty() {
        return Ok(());
    }
    let input: String = ids.iter().flat_map(|id| [id.as_str(), "\n"]).collect();
    let arguments =
        ["log", "--no-walk=unsorted", "--stdin", "--format=%H %ct", "--no-show-signature"];
    let dated = git(&arguments, input.clone().into_bytes(), world).await?;
    let times: HashMap<String, SystemTime> = String::from_utf8_lossy(&dated.stdout)
        .lines()
        .filter_map(|line| {
            let (id, seconds) = line.split_once(' ')?;
            let made = SystemTime::UNIX_EPOCH
                .checked_add(Duration::from_secs(seconds.trim().parse().ok()?))?;
            Some((id.to_owned(), made))
        })
        .collect();
    // Those that HEAD does not reach.
    let apart: HashSet<String> = if has_head {
        let said =
            git(&["rev-list", "--stdin"], format!("{input}^HEAD\n").into_bytes(), world).await?;
        if !said.ok() {
            return Err(
                first_line(&said).unwrap_or_else(|| "its history cannot be read".to_owned())
            );
        }
        String::from_utf8_lossy(&said.stdout).lines().map(str::to_owned).collect()
    } else {
        ids
    };
    for commit in known.values_mut().flatten() {
        commit.made = times.get(&commit.id).copied();
        commit.is_reachable = !apart.contains(&commit.id);
    }
    Ok(())
}

async fn list_files(known: &mut Known, world: &World<'_>) -> Result<(), String> {
    let mut listed: HashMap<String, HashSet<PathBuf>> = HashMap::new();
    for commit in known.values_mut().flatten() {
        if let Some(files) = listed.get(&commit.id) {
            commit.files.clone_from(files);
            continue;
        }
        if listed.len() == MOST_LISTED {
            return Err(format!("more than {MOST_LISTED} commits are named"));
        }
        let arguments = [
            "diff-tree",
            "--root",
            "--no-commit-id",
            "--name-only",
            "--no-renames",
            "-r",
            "-z",
            "-m",
            "--first-parent",
        ];
        let arguments: Vec<&str> = arguments.into_iter().chain([commit.id.as_str()]).collect();
        let said = git(&arguments, Vec::new(), world).await?;
        if !said.ok() {
            return Err(first_line(&said)
                .unwrap_or_else(|| "the files of a commit cannot be listed".to_owned()));
        }
        commit.files = said
            .stdout
            .split(|byte| *byte == 0)
            .filter(|name| !name.is_empty())
            .map(path_of)
            .collect();
        listed.insert(commit.id.clone(), commit.files.clone());
    }
    Ok(())
}

fn path_of(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    PathBuf::from(std::ffi::OsStr::from_bytes(bytes))
}

fn first_line(said: &Answer) -> Option<String> {
    said.words.lines().next().map(|line| shown::cut(line, 300))
}

/// The judgement: each name, and the files that groups of them must hold.
fn judge(
    names: &[String],
    known: &Known,
    wanted: &[(Vec<String>, Vec<String>)],
    scene: &Scene,
) -> Judged {
    let mut wrong = Vec::new();
    let mut observed = Vec::new();
    let mut notes = Vec::new();
    let mut seen = HashSet::new();
    for name in names.iter().filter(|name| seen.insert(name.as_str())) {
        let shown = shown::plain(name);
        let during = |commit: &Commit| match (commit.made, scene.began) {
            // A commit's time has whole seconds.
            (Some(made), Some(began)) => Some(made + Duration::from_secs(1) > began),
            _ => None,
        };
        match known.get(name) {
            None => wrong.push(format!("{shown} (there is no such commit)")),
            Some(Err(why)) => wrong.push(format!("{shown} ({why})")),
            Some(Ok(commit)) if commit.is_reachable => {
                observed.push(identity(&shown, commit));
                if during(commit) == Some(false) {
                    notes.push(format!("{shown} was made before {}", scene.since));
                }
            }
            Some(Ok(commit)) if during(commit) == Some(true) => {
                observed.push(identity(&shown, commit));
                notes.push(format!(
                    "{shown} was made during the step, and is not in the history of HEAD"
                ));
            }
            Some(Ok(_)) => {
                wrong.push(format!(
                    "{shown} (it is not in the history of HEAD, nor was it made during the step)"
                ));
            }
        }
    }
    let total = seen.len();
    let mut reasons = Vec::new();
    if !wrong.is_empty() {
        let not = if wrong.len() == 1 { "was not found" } else { "were not found" };
        reasons.push(format!(
            "{} of {} {not}: {}",
            wrong.len(),
            number(total, "commit"),
            few(&wrong)
        ));
    }
    for (names, paths) in wanted {
        let commits: Vec<&Commit> =
            names.iter().filter_map(|name| known.get(name)?.as_ref().ok()).collect();
        if commits.is_empty() {
            continue;
        }
        let missing: Vec<String> = paths
            .iter()
            .filter(|path| !holds(path, &commits, scene))
            .map(|path| shown::plain(path))
            .collect();
        if !missing.is_empty() {
            let does = if commits.len() == 1 { "does not hold" } else { "do not hold" };
            let which = few(names);
            reasons.push(format!(
                "{which} {does} {} of {}: {}",
                missing.len(),
                number(paths.len(), "file"),
                few(&missing)
            ));
        }
    }
    let verdict = if reasons.is_empty() { Verdict::Verified } else { Verdict::Refuted };
    let listed: HashSet<&PathBuf> =
        known.values().flatten().flat_map(|commit| &commit.files).collect();
    let mut text = format!("{} found", number(observed.len(), "commit"));
    if !wanted.is_empty() {
        text.push_str(&format!(", with {} in all", number(listed.len(), "file")));
    }
    Judged::new(verdict, Value::Null, shown::list(observed))
        .because(reasons.join("; "))
        .with(Evidence::new("commit", text))
        .with_notes(notes.into_iter().take(shown::MOST))
}

/// A name that is short is told with what it stands for.
fn identity(shown: &str, commit: &Commit) -> String {
    if shown == commit.id { commit.id.clone() } else { format!("{shown} is {}", commit.id) }
}

fn holds(text: &str, commits: &[&Commit], scene: &Scene) -> bool {
    let Meant::Inside(path, _) = scene.frame.meant(text) else { return false };
    let from_top = scene.frame.seen_from_top(&path);
    let also = scene.frame.meant_from_top(text).and_then(|path| scene.frame.seen_from_top(&path));
    from_top
        .iter()
        .chain(&also)
        .any(|path| commits.iter().any(|commit| commit.files.contains(path)))
}
