//! Verifies commits that a result names: each exists, belongs to the work, and together they
//! contain the expected files.

use super::assessment::ClaimAssessment;
use super::extract;
use super::format::{self, join_limited};
use super::git::git;
use super::path::ResolvedPath;
use super::state::VerificationState;
use super::{CommitsBefore, Refs, VerifyContext};
use counterfoil_contract::claim::{EffectiveClaim, Evidence, Verdict};
use counterfoil_contract::text::{display_path, pluralize};
use counterfoil_workspace::git::GitOutput;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::PathBuf;

/// The minimum length of an abbreviated commit id.
const MIN_ABBREVIATION: usize = 7;
/// The maximum number of commits whose files are listed.
const MAX_LISTED_COMMITS: usize = 500;

pub(super) async fn verify(
    effective: &EffectiveClaim,
    value: &Value,
    state: &VerificationState,
    context: &mut VerifyContext<'_>,
) -> Option<ClaimAssessment> {
    let found = extract::field_values(&effective.field, value)?;
    let named = match extract::strings(&found) {
        Ok(named) if named.is_empty() => return None,
        Ok(named) => named,
        Err(why) => {
            let claimed = found.first().map(|found| found.value.clone()).unwrap_or_default();
            return Some(ClaimAssessment::unverifiable(claimed, why.to_string()));
        }
    };
    let claimed = format::json_list(named.iter().map(|(_, name)| format::display_text(name)));
    // Files are compared with the commits that the same part of the result names.
    let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (tokens, name) in &named {
        let pattern = effective
            .claim
            .files
            .as_deref()
            .map(|files| extract::bind_pattern(files, tokens))
            .unwrap_or_default();
        groups.entry(pattern).or_default().push(name.clone());
    }
    let names: Vec<String> = named.into_iter().map(|(_, name)| name).collect();
    let mut commits = match look_up(&names, state, context).await {
        Ok(commits) => commits,
        Err(why) => {
            return Some(ClaimAssessment::unverifiable(
                claimed,
                format!("the commits cannot be looked up: {why}"),
            ));
        }
    };
    let mut wanted = Vec::new();
    for (pattern, names) in groups.into_iter().filter(|(pattern, _)| !pattern.is_empty()) {
        let Some(Ok(files)) =
            extract::field_values(&pattern, value).map(|found| extract::files(&found))
        else {
            continue;
        };
        let paths = files
            .into_iter()
            .flat_map(|file| std::iter::once(file.path).chain(file.from))
            .collect();
        wanted.push((names, paths));
    }
    if !wanted.is_empty()
        && let Err(why) = list_files(&mut commits, context).await
    {
        return Some(ClaimAssessment::unverifiable(
            claimed,
            format!("the commits cannot be looked up: {why}"),
        ));
    }
    let mut assessment = assess(&names, &commits, &wanted, context.commits_before, state);
    assessment.claimed = claimed;
    Some(assessment)
}

/// What git knows about a commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Commit {
    /// The full commit id.
    id: String,
    /// Whether it is reachable from HEAD.
    is_reachable: bool,
    /// Whether a branch or tag contains it, where HEAD does not.
    is_on_branch: bool,
    /// Whether it did not exist before the step, or is not in the history of the base; none if that is
    /// not known.
    is_new: Option<bool>,
    /// The files that it changes, relative to the top folder; empty if they were not listed.
    files: HashSet<PathBuf>,
}

/// The commits by the names that the result uses, or the reasons why they were not found.
type CommitLookup = HashMap<String, Result<Commit, String>>;

fn is_commit_id(name: &str) -> bool {
    (MIN_ABBREVIATION..=64).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

async fn look_up(
    names: &[String],
    state: &VerificationState,
    context: &VerifyContext<'_>,
) -> Result<CommitLookup, String> {
    let mut known = CommitLookup::new();
    let mut asked: Vec<&str> = Vec::new();
    for name in names {
        if is_commit_id(name) {
            if known.insert(name.clone(), Err("there is no such commit".to_owned())).is_none() {
                asked.push(name);
            }
        } else {
            let why =
                format!("it is not a commit id of {MIN_ABBREVIATION} to 64 hexadecimal digits");
            known.insert(name.clone(), Err(why));
        }
    }
    if asked.is_empty() {
        return Ok(known);
    }
    let head =
        git(&["rev-parse", "--quiet", "--verify", "HEAD^{commit}"], Vec::new(), context).await?;
    let is_repository = head.ok()
        || git(&["rev-parse", "--git-dir"], Vec::new(), context)
            .await
            .is_ok_and(|answer| answer.ok());
    if !is_repository {
        return Err(first_line(&head).unwrap_or_else(|| {
            format!(
                "{} is in no repository that git can read",
                display_path(state.resolver.folder())
            )
        }));
    }
    let input =
        asked.iter().flat_map(|name| [*name, "^{commit}\n"]).collect::<String>().into_bytes();
    let answer =
        git(&["cat-file", "--batch-check=%(objectname) %(objecttype)"], input, context).await?;
    let text = String::from_utf8_lossy(&answer.stdout);
    for (name, line) in asked.iter().zip(text.lines()) {
        let answer = match line.rsplit_once(' ') {
            Some((id, "commit")) => Ok(Commit { id: id.to_owned(), ..Commit::default() }),
            Some((_, "ambiguous")) => Err("the abbreviation is ambiguous".to_owned()),
            _ => continue,
        };
        known.insert((*name).to_owned(), answer);
    }
    add_history(&mut known, head.ok(), context).await?;
    Ok(known)
}

/// Adds to each commit whether it is new and whether HEAD reaches it.
async fn add_history(
    known: &mut CommitLookup,
    has_head: bool,
    context: &VerifyContext<'_>,
) -> Result<(), String> {
    let ids: HashSet<String> = known.values().flatten().map(|commit| commit.id.clone()).collect();
    if ids.is_empty() {
        return Ok(());
    }
    let input: String = ids.iter().flat_map(|id| [id.as_str(), "\n"]).collect();
    let no_others = BTreeSet::new();
    let (tips, others) = match context.commits_before {
        CommitsBefore::Refs(refs) => {
            // A list of commits without parents, or grafts, could hide what is old.
            let is_same = read_refs(context).await?.is_some_and(|now| now.shallow == refs.shallow);
            let others = refs.unreached.as_ref().filter(|_| is_same);
            (refs.tips().into_iter().map(str::to_owned).collect(), others)
        }
        CommitsBefore::Revision(revision) => (vec![revision.clone()], Some(&no_others)),
        CommitsBefore::Unknown(_) => (Vec::new(), None),
    };
    let excluded: String = tips.iter().map(|tip| format!("^{tip}\n")).collect();
    let new: Option<HashSet<String>> = match others {
        Some(others) => {
            let mut new = reachable(format!("{input}{excluded}"), context).await?;
            new.retain(|id| !others.contains(id));
            Some(new)
        }
        None => None,
    };
    // What a name reaches that may have moved is not known to be old.
    let may_have_moved = match context.commits_before {
        CommitsBefore::Revision(revision) if has_head => may_have_moved(revision, context).await?,
        _ => false,
    };
    // The commits that are not reachable from HEAD.
    let unreachable: HashSet<String> =
        if has_head { reachable(format!("{input}^HEAD\n"), context).await? } else { ids };
    for commit in known.values_mut().flatten() {
        commit.is_reachable = !unreachable.contains(&commit.id);
        commit.is_new = new.as_ref().map(|new| new.contains(&commit.id));
        if may_have_moved && commit.is_reachable && commit.is_new == Some(false) {
            commit.is_new = None;
        }
        if !commit.is_reachable {
            let contains = format!("--contains={}", commit.id);
            let refs = ["refs/heads", "refs/tags", "refs/remotes"];
            let arguments = ["for-each-ref", "--count=1", &contains];
            let arguments: Vec<&str> = arguments.into_iter().chain(refs).collect();
            let answer = git(&arguments, Vec::new(), context).await?;
            commit.is_on_branch = answer.ok() && !answer.stdout.is_empty();
        }
    }
    Ok(())
}

/// Whether a revision may have moved with commits that were made after it: it is a name, such as HEAD
/// or a branch, and HEAD has no commit that it does not have. The id of a commit does not move.
async fn may_have_moved(revision: &str, context: &VerifyContext<'_>) -> Result<bool, String> {
    if is_commit_id(revision) {
        let commit = format!("{revision}^{{commit}}");
        let named = ["rev-parse", "--quiet", "--verify", "--end-of-options", &commit];
        let answer = git(&named, Vec::new(), context).await?;
        // A branch can be called like an id.
        let id = String::from_utf8_lossy(&answer.stdout).into_owned();
        if answer.ok() && id.starts_with(&revision.to_lowercase()) {
            return Ok(false);
        }
    }
    Ok(reachable(format!("HEAD\n^{revision}\n"), context).await?.is_empty())
}

/// The commits that `rev-list` lists for some revisions.
async fn reachable(
    revisions: String,
    context: &VerifyContext<'_>,
) -> Result<HashSet<String>, String> {
    let answer = git(&["rev-list", "--stdin"], revisions.into_bytes(), context).await?;
    if !answer.ok() {
        return Err(first_line(&answer).unwrap_or_else(|| "its history cannot be read".to_owned()));
    }
    Ok(String::from_utf8_lossy(&answer.stdout).lines().map(str::to_owned).collect())
}

async fn read_refs(context: &VerifyContext<'_>) -> Result<Option<Refs>, String> {
    let folder = context.folder.to_owned();
    let read = tokio::task::spawn_blocking(move || Refs::read_names(&folder)).await;
    read.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
}

async fn list_files(known: &mut CommitLookup, context: &VerifyContext<'_>) -> Result<(), String> {
    let mut listed: HashMap<String, HashSet<PathBuf>> = HashMap::new();
    for commit in known.values_mut().flatten() {
        if let Some(files) = listed.get(&commit.id) {
            commit.files.clone_from(files);
            continue;
        }
        if listed.len() == MAX_LISTED_COMMITS {
            return Err(format!("more than {MAX_LISTED_COMMITS} commits are named"));
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
        let answer = git(&arguments, Vec::new(), context).await?;
        if !answer.ok() {
            return Err(first_line(&answer)
                .unwrap_or_else(|| "the files of a commit cannot be listed".to_owned()));
        }
        commit.files = answer
            .stdout
            .split(|byte| *byte == 0)
            .filter(|name| !name.is_empty())
            .map(path_from_bytes)
            .collect();
        listed.insert(commit.id.clone(), commit.files.clone());
    }
    Ok(())
}

fn path_from_bytes(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    PathBuf::from(std::ffi::OsStr::from_bytes(bytes))
}

fn first_line(answer: &GitOutput) -> Option<String> {
    answer.stderr.lines().next().map(|line| format::truncate(line, 300))
}

/// Assesses each named commit, and the files that groups of commits must contain.
fn assess(
    names: &[String],
    known: &CommitLookup,
    wanted: &[(Vec<String>, Vec<String>)],
    before: &CommitsBefore,
    state: &VerificationState,
) -> ClaimAssessment {
    let mut wrong = Vec::new();
    let mut observed = Vec::new();
    let mut untold = Vec::new();
    let mut notes = Vec::new();
    let mut seen = HashSet::new();
    for name in names.iter().filter(|name| seen.insert(name.as_str())) {
        let displayed = format::display_text(name);
        match known.get(name) {
            None => wrong.push(format!("{displayed} (there is no such commit)")),
            Some(Err(why)) => wrong.push(format!("{displayed} ({why})")),
            Some(Ok(commit)) => match (commit.is_new, commit.is_reachable) {
                (Some(true), true) => observed.push(describe_commit(&displayed, commit)),
                (Some(true), false) if !commit.is_on_branch => {
                    wrong.push(format!("{displayed} (no branch contains it)"));
                }
                (Some(true), false) => {
                    observed.push(describe_commit(&displayed, commit));
                    notes.push(format!(
                        "{displayed} was made during the step, and is not in the history of HEAD"
                    ));
                }
                (Some(false), is_reachable) => match before {
                    CommitsBefore::Revision(revision) if is_reachable => {
                        wrong.push(format!("{displayed} (it is in the history of {revision})"));
                    }
                    _ if is_reachable => {
                        wrong.push(format!("{displayed} (it existed before {})", state.since));
                    }
                    _ => wrong.push(format!(
                        "{displayed} (it is not in the history of HEAD, and it existed before {})",
                        state.since
                    )),
                },
                (None, _) => untold.push(match before {
                    CommitsBefore::Revision(revision) => format!(
                        "{displayed} is in the history of {revision}: compare with a revision from before it"
                    ),
                    _ => format!(
                        "whether {displayed} existed before {} cannot be told{}",
                        state.since,
                        match before {
                            CommitsBefore::Unknown(why) if why.is_empty() => String::new(),
                            CommitsBefore::Unknown(why) => format!(": {why}"),
                            CommitsBefore::Refs(Refs { unreached: None, .. }) =>
                                ": which commits there were is not known".to_owned(),
                            _ => ": the list of commits without parents has changed".to_owned(),
                        }
                    ),
                }),
            },
        }
    }
    let total = seen.len();
    let mut reasons = Vec::new();
    if !wrong.is_empty() {
        let not = if wrong.len() == 1 { "was not found" } else { "were not found" };
        reasons.push(format!(
            "{} of {} {not}: {}",
            wrong.len(),
            pluralize(total, "commit"),
            join_limited(&wrong)
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
            .filter(|path| !contains_file(path, &commits, state))
            .map(|path| format::display_text(path))
            .collect();
        if !missing.is_empty() {
            let does = if commits.len() == 1 { "does not contain" } else { "do not contain" };
            let which = join_limited(names);
            reasons.push(format!(
                "{which} {does} {} of {}: {}",
                missing.len(),
                pluralize(paths.len(), "file"),
                join_limited(&missing)
            ));
        }
    }
    let verdict = match (reasons.is_empty(), untold.is_empty()) {
        (false, _) => Verdict::Refuted,
        (true, false) => Verdict::Unverifiable,
        (true, true) => Verdict::Verified,
    };
    if reasons.is_empty() {
        reasons.append(&mut untold);
    }
    let listed: HashSet<&PathBuf> =
        known.values().flatten().flat_map(|commit| &commit.files).collect();
    let mut text = format!("{} found", pluralize(observed.len(), "commit"));
    if !wanted.is_empty() {
        text.push_str(&format!(", with {} in total", pluralize(listed.len(), "file")));
    }
    ClaimAssessment::new(verdict, Value::Null, format::json_list(observed))
        .with_reason(reasons.join("; "))
        .with_evidence(Evidence::new("commit", text))
        .with_notes(notes.into_iter().take(format::MAX_ITEMS))
}

/// An abbreviated commit id is shown with the full id.
fn describe_commit(displayed: &str, commit: &Commit) -> String {
    if displayed == commit.id { commit.id.clone() } else { format!("{displayed} is {}", commit.id) }
}

fn contains_file(text: &str, commits: &[&Commit], state: &VerificationState) -> bool {
    let ResolvedPath::Inside(path, _) = state.resolver.resolve(text) else { return false };
    let from_top = state.resolver.relative_to_top(&path);
    let also = state
        .resolver
        .resolve_from_top(text)
        .and_then(|path| state.resolver.relative_to_top(&path));
    from_top
        .iter()
        .chain(&also)
        .any(|path| commits.iter().any(|commit| commit.files.contains(path)))
}
