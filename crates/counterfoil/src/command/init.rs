//! `counterfoil init`

use crate::cli::InitArgs;
use crate::exit::Exit;
use crate::init::{Change, Plan, Record, Standing, Undone, discard, plan, put, standing, survey};
use crate::tell::setup;
use crate::{input, output, project};
use anyhow::{Context, Result, anyhow, bail};
use std::io::{BufRead, IsTerminal};
use std::path::Path;

/// What init added, for taking it out again.
const RECORD: &str = ".counterfoil/init.json";
/// Keeps the state folder out of commits, as the engine does.
const IGNORE: &str = ".counterfoil/.gitignore";
/// An answer is not longer.
const LONGEST_ANSWER: u64 = 64;

pub(crate) fn run(args: &InitArgs) -> Result<Exit> {
    let root = input::repository(args.repo.as_deref())?;
    if !root.is_dir() {
        bail!("{} is not a folder; name a repository with --repo DIR", root.display());
    }
    let (record, recorded) = record(&root)?;
    if args.undo {
        undo(args, &root, &record, recorded.as_deref())
    } else {
        add(args, &root, record, recorded.as_deref())
    }
}

fn add(args: &InitArgs, root: &Path, mut record: Record, recorded: Option<&str>) -> Result<Exit> {
    let path = std::env::var_os("PATH");
    let survey = survey(root, path.as_deref());
    let plan = plan(&survey);
    output::words(&setup::found(root, &survey));
    let notes: String = plan.notes.iter().map(|note| format!("note: {note}\n")).collect();
    output::words(&notes);
    if plan.files.is_empty() {
        output::words("there is nothing to add\n");
        return Ok(Exit::Good);
    }
    show(
        plan.files
            .iter()
            .map(|file| (file.file, file.before.as_deref(), Some(file.after.as_str()))),
    )?;
    if !agreed(args, "Write this?", "counterfoil init --yes")? {
        return Ok(Exit::Bad);
    }
    // The record first: what is in it and was not done is passed over later, and nothing is done
    // that is not in it.
    record.changes.extend(plan.files.iter().map(|file| file.change.clone()));
    keep(root, &record, recorded)?;
    write(root, &plan)?;
    output::words(&format!(
        "written; `counterfoil init --undo` takes it out again, by {RECORD}; `counterfoil doctor` says what is in the way\n"
    ));
    Ok(Exit::Good)
}

fn write(root: &Path, plan: &Plan) -> Result<()> {
    for file in &plan.files {
        put(root, file.file, file.before.as_deref(), &file.after)?;
    }
    Ok(())
}

fn undo(args: &InitArgs, root: &Path, record: &Record, recorded: Option<&str>) -> Result<Exit> {
    if record.changes.is_empty() {
        output::words(&format!(
            "there is nothing to take out: there is no {RECORD} in {}\n",
            root.display()
        ));
        return Ok(Exit::Good);
    }
    let (taken, left) = taken_out(root, record);
    for (_, words) in &left {
        output::words(&format!("note: {words}\n"));
    }
    let files = taken.iter().filter(|one| Some(&one.now) != one.then.as_ref());
    show(
        files.clone().map(|one| (one.file.as_str(), Some(one.now.as_str()), one.then.as_deref())),
    )?;
    if files.clone().next().is_some()
        && !agreed(args, "Take this out?", "counterfoil init --undo --yes")?
    {
        return Ok(Exit::Bad);
    }
    for one in files {
        match &one.then {
            Some(then) => put(root, &one.file, Some(&one.now), then)?,
            None => {
                discard(root, &one.file, &one.now)?;
                if one.folder
                    && let Some(folder) = root.join(&one.file).parent()
                {
                    // Only one that is empty goes.
                    let _ = std::fs::remove_dir(folder);
                }
            }
        }
    }
    // They were gone through from the newest on, and are kept from the oldest on.
    let stuck: Vec<Change> = left.into_iter().rev().filter_map(|(change, _)| change).collect();
    let is_done = stuck.is_empty();
    if is_done {
        forget(root, recorded)?;
        output::words("everything that init added is out\n");
    } else {
        keep(root, &Record { changes: stuck }, recorded)?;
        output::words(&format!("the rest is out; what is left stays in {RECORD}\n"));
    }
    Ok(is_done.into())
}

/// A file from which something is taken.
struct Taken {
    file: String,
    now: String,
    then: Option<String>,
    folder: bool,
}

/// Takes all changes out in memory, the newest first. What cannot be is named, with the change if
/// it should stay known.
fn taken_out(root: &Path, record: &Record) -> (Vec<Taken>, Vec<(Option<Change>, String)>) {
    let mut taken: Vec<Taken> = Vec::new();
    let mut left = Vec::new();
    for change in record.changes.iter().rev() {
        let file = &change.file;
        let at = taken.iter().position(|one| one.file == *file);
        let now = match at {
            Some(at) => match &taken[at].then {
                Some(text) => text.clone(),
                None => continue,
            },
            None => match standing(root, file) {
                Standing::Text(text) => text,
                Standing::Missing => continue,
                Standing::Unusable(why) => {
                    left.push((Some(change.clone()), format!("{file}: {why}")));
                    continue;
                }
            },
        };
        let then = match change.undo(&now) {
            Undone::Nothing => continue,
            Undone::Whole(then) => then,
            Undone::Parts(then, theirs) => {
                let stays =
                    |name: &String| (None, format!("{file}: {name} was changed since, and stays"));
                left.extend(theirs.iter().map(stays));
                then
            }
        };
        match at {
            Some(at) => {
                taken[at].then = then;
                taken[at].folder |= change.folder;
            }
            None => taken.push(Taken { file: file.clone(), now, then, folder: change.folder }),
        }
    }
    (taken, left)
}

/// Shows what would be done to files, as diffs.
fn show<'a>(
    files: impl Iterator<Item = (&'a str, Option<&'a str>, Option<&'a str>)>,
) -> Result<()> {
    let style = output::style_of_data();
    let diffs: String =
        files.map(|(file, before, after)| setup::diff(file, before, after, style)).collect();
    output::data(&diffs)
}

/// Whether somebody agrees: by a flag, or at a terminal.
fn agreed(args: &InitArgs, question: &str, way: &str) -> Result<bool> {
    if args.yes {
        return Ok(true);
    }
    if !(std::io::stdin().is_terminal() && std::io::stderr().is_terminal()) {
        output::words(&format!("nothing was written; `{way}` does it\n"));
        return Ok(false);
    }
    output::words(&format!("{question} [y/N] "));
    let mut answer = String::new();
    std::io::Read::take(std::io::stdin().lock(), LONGEST_ANSWER)
        .read_line(&mut answer)
        .context("the answer cannot be read")?;
    let yes = matches!(answer.trim().to_lowercase().as_str(), "y" | "yes");
    if !yes {
        output::words("nothing was written\n");
    }
    Ok(yes)
}

/// What init added before, and the text of the file that says so.
fn record(root: &Path) -> Result<(Record, Option<String>)> {
    match standing(root, RECORD) {
        Standing::Missing => Ok((Record::default(), None)),
        Standing::Text(text) => {
            let record = serde_json::from_str(&text).with_context(|| {
                format!(
                    "{RECORD} is not what init wrote; remove it, and what init added by hand if it should go"
                )
            })?;
            Ok((record, Some(text)))
        }
        Standing::Unusable(why) => Err(anyhow!("{RECORD}: {why}")),
    }
}

fn keep(root: &Path, record: &Record, before: Option<&str>) -> Result<()> {
    let text = serde_json::to_string_pretty(record)? + "\n";
    if !root.join(project::STATE).exists() {
        put(root, IGNORE, None, "*\n")?;
    }
    put(root, RECORD, before, &text)
}

/// Removes the record, and the state folder if nothing else is in it.
fn forget(root: &Path, recorded: Option<&str>) -> Result<()> {
    if let Some(recorded) = recorded {
        discard(root, RECORD, recorded)?;
    }
    let state = root.join(project::STATE);
    let only_ours = std::fs::read_dir(&state)
        .is_ok_and(|entries| entries.flatten().all(|entry| entry.file_name() == ".gitignore"));
    if only_ours && standing(root, IGNORE) == Standing::Text("*\n".to_owned()) {
        discard(root, IGNORE, "*\n")?;
        let _ = std::fs::remove_dir(state);
    }
    Ok(())
}
