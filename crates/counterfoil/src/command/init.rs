//! The command `counterfoil init`.

use crate::cli::{InitArgs, StateLocation};
use crate::exit::Exit;
use crate::init::{
    Bindings, CONFIG_SCHEMA, FileChange, FileState, InitRecord, Plan, SUBAGENTS, Survey,
    UndoResult, current_binding, file_state, plan, project_file, subagents, survey,
    unasked_bindings,
};
use crate::render::{self, setup};
use crate::{input, output, project, shell};
use anyhow::{Context, Result, anyhow, bail};
use counterfoil_contract::suggest::did_you_mean;
use counterfoil_contract::text::{display_path, join_limited};
use counterfoil_engine::config::FILE;
use std::collections::BTreeSet;
use std::io::{BufRead, IsTerminal};
use std::path::Path;

/// The file that records what init added, so that it can be undone.
const RECORD: &str = ".counterfoil/init.json";
/// The file that keeps the state folder out of commits. The engine writes the same one.
const IGNORE: &str = ".counterfoil/.gitignore";
/// The most agents that are asked about.
const MAX_QUESTIONS: usize = 20;
/// The most bytes that are read of an answer at the prompt.
const MAX_ANSWER_BYTES: u64 = 64;

pub(crate) fn run(args: &InitArgs) -> Result<Exit> {
    let root = input::repository(args.repo.as_deref())?;
    if !root.is_dir() {
        bail!("{} is not a folder; name a repository with --repo DIR", display_path(&root));
    }
    let (record, recorded) = read_record(&root)?;
    if args.undo {
        undo(args, &root, &record, recorded.as_deref())
    } else {
        add(args, &root, record, recorded.as_deref())
    }
}

fn add(
    args: &InitArgs,
    root: &Path,
    mut record: InitRecord,
    recorded: Option<&str>,
) -> Result<Exit> {
    let path = std::env::var_os("PATH");
    let survey = survey(root, path.as_deref());
    output::write_stderr(&setup::survey(root, &survey));
    let bindings = bindings(args, root, &survey)?;
    let plan = plan(&survey, &bindings);
    for note in &plan.notes {
        output::write_message("note", note);
    }
    let repo = repo_flag(args);
    let problems = plan.problems.iter().map(|problem| format!("cannot be edited: {problem}\n"));
    output::write_stderr(&problems.collect::<String>());
    let is_whole = plan.problems.is_empty();
    if plan.files.is_empty() {
        output::write_stderr(&format!("nothing to add\nnext: counterfoil doctor{repo}\n"));
        return Ok(is_whole.into());
    }
    let (generated, edited): (Vec<_>, Vec<_>) =
        plan.files.iter().partition(|file| file.is_generated);
    print_diffs(
        edited.iter().map(|file| (file.file, file.before.as_deref(), Some(file.after.as_str()))),
    )?;
    for file in generated {
        output::write_stdout(&setup::generated_file(file.file, &file.after))?;
    }
    let bind = |(agent, id): &(String, String)| {
        format!(" --bind {}", shell::quote(&format!("{agent}={id}")))
    };
    let bind: String = args.bind.iter().map(bind).collect();
    if !confirm(args, "Write these changes?", &format!("counterfoil init --yes{bind}{repo}"))? {
        return Ok(Exit::Failure);
    }
    // The record comes first, so that every edit is recorded. Undo skips a recorded edit that was
    // not made.
    record.changes.extend(plan.files.iter().map(|file| file.change.clone()));
    write_record(root, &record, recorded)?;
    write_plan(root, &plan)?;
    let written: Vec<&str> = plan.files.iter().map(|file| file.file).collect();
    output::write_stderr(&format!(
        "wrote {} (recorded in {RECORD})\nnext: counterfoil doctor{repo}\nundo: counterfoil init --undo{repo}\n",
        written.join(", ")
    ));
    Ok(is_whole.into())
}

/// The option with which a command finds the same repository.
fn repo_flag(args: &InitArgs) -> String {
    let location = StateLocation { repo: args.repo.clone(), state: None };
    render::location_flags(&location)
}

/// The contracts for agents: those on the command line, and at a terminal those that the user agrees
/// to.
fn bindings(args: &InitArgs, root: &Path, survey: &Survey) -> Result<Bindings> {
    let mut bindings = Bindings::new();
    for (agent, id) in &args.bind {
        project::contract(id, &[], Some(root))?;
        if current_binding(survey, agent).is_none() {
            require_subagent(survey, agent)?;
        }
        if let Some(other) = current_binding(survey, agent).filter(|other| other != id) {
            bail!("agent '{agent}' is bound to {other} already; change that in {FILE}");
        }
        if bindings.insert(agent.clone(), id.clone()).is_some() {
            bail!("--bind {agent}=… is given twice; keep one");
        }
    }
    if args.yes || !is_at_terminal() {
        return Ok(bindings);
    }
    for (agent, id) in unasked_bindings(survey, &bindings).into_iter().take(MAX_QUESTIONS) {
        let question = format!(
            "Does the agent '{agent}' return what the contract {id} asks for? Bind it (`counterfoil \
             contract show {id}` shows the contract)?"
        );
        if ask(&question)? {
            bindings.insert(agent, id);
        }
    }
    Ok(bindings)
}

/// Returns an error if an agent is none of the subagents. A project without subagents may have other
/// agents, so there only a name that is similar to one of the user's is refused.
fn require_subagent(survey: &Survey, agent: &str) -> Result<()> {
    let users = std::env::home_dir().map(|home| subagents(&home)).unwrap_or_default().named;
    let own = &survey.subagents.named;
    if own.contains_key(agent) || users.contains_key(agent) {
        return Ok(());
    }
    let known: BTreeSet<&str> = own.keys().chain(users.keys()).map(String::as_str).collect();
    let hint = match did_you_mean(agent, known.iter().copied()) {
        Some(hint) => hint,
        None if own.is_empty() => return Ok(()),
        None => format!(
            "there {} {}; bind an agent that is defined elsewhere in {FILE}",
            if known.len() == 1 { "is" } else { "are" },
            join_limited(known, MAX_QUESTIONS)
        ),
    };
    bail!("there is no subagent '{agent}' in {SUBAGENTS} or ~/{SUBAGENTS}; {hint}")
}

/// Whether a person can be asked.
fn is_at_terminal() -> bool {
    std::io::stdin().is_terminal() && output::stderr_is_terminal()
}

/// Asks a question at the terminal. Anything but yes is no.
fn ask(question: &str) -> Result<bool> {
    output::write_stderr(&format!("{question} [y/N] "));
    let mut answer = String::new();
    std::io::Read::take(std::io::stdin().lock(), MAX_ANSWER_BYTES)
        .read_line(&mut answer)
        .context("cannot read the answer")?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

fn write_plan(root: &Path, plan: &Plan) -> Result<()> {
    for file in &plan.files {
        project_file::write(root, file.file, file.before.as_deref(), &file.after)?;
    }
    Ok(())
}

fn undo(args: &InitArgs, root: &Path, record: &InitRecord, recorded: Option<&str>) -> Result<Exit> {
    if record.changes.is_empty() {
        output::write_stderr(&format!("nothing to undo: {} has no {RECORD}\n", display_path(root)));
        return Ok(Exit::Success);
    }
    let (undone, remaining) = undo_in_memory(root, record);
    for (_, note) in &remaining {
        output::write_message("note", note);
    }
    let files = undone.iter().filter(|file| Some(&file.before) != file.after.as_ref());
    let is_generated = |file: &&UndoneFile| file.path == CONFIG_SCHEMA && file.after.is_none();
    print_diffs(
        files
            .clone()
            .filter(|file| !is_generated(file))
            .map(|file| (file.path.as_str(), Some(file.before.as_str()), file.after.as_deref())),
    )?;
    for file in files.clone().filter(is_generated) {
        output::write_stdout(&setup::removed_file(&file.path, args.yes))?;
    }
    if files.clone().next().is_some()
        && !confirm(
            args,
            "Undo these changes?",
            &format!("counterfoil init --undo --yes{}", repo_flag(args)),
        )?
    {
        return Ok(Exit::Failure);
    }
    for file in files {
        match &file.after {
            Some(after) => project_file::write(root, &file.path, Some(&file.before), after)?,
            None => {
                project_file::remove(root, &file.path, &file.before)?;
                if file.created_folder
                    && let Some(folder) = root.join(&file.path).parent()
                {
                    // Fails, as it should, if the folder is not empty.
                    let _ = std::fs::remove_dir(folder);
                }
            }
        }
    }
    let changed = remaining.iter().filter(|(change, _)| change.is_none()).count();
    // Changes are undone newest first and recorded oldest first.
    let failed: Vec<FileChange> =
        remaining.into_iter().rev().filter_map(|(change, _)| change).collect();
    let is_done = failed.is_empty();
    if is_done {
        remove_record(root, recorded)?;
        output::write_stderr(&match changed {
            0 => "everything that init added was removed\n".to_owned(),
            1 => "what init added was removed but for one entry that was changed since (above); \
                  remove it by hand if it is not wanted\n"
                .to_owned(),
            more => format!(
                "what init added was removed but for {more} entries that were changed since (above); \
                 remove them by hand if they are not wanted\n"
            ),
        });
    } else {
        write_record(root, &InitRecord { changes: failed }, recorded)?;
        output::write_stderr(&format!(
            "some changes could not be undone and stay recorded in {RECORD}; the others were removed\n"
        ));
    }
    Ok((is_done && changed == 0).into())
}

/// A file in which changes were undone.
struct UndoneFile {
    path: String,
    before: String,
    /// The text without the changes; none if the file is to be removed.
    after: Option<String>,
    created_folder: bool,
}

/// A note about a change that was not undone, with the change if it stays recorded.
type NotUndone = (Option<FileChange>, String);

/// Undoes all changes in memory, newest first. Nothing is written.
fn undo_in_memory(root: &Path, record: &InitRecord) -> (Vec<UndoneFile>, Vec<NotUndone>) {
    let mut undone: Vec<UndoneFile> = Vec::new();
    let mut remaining = Vec::new();
    for change in record.changes.iter().rev() {
        let file = &change.file;
        let index = undone.iter().position(|other| other.path == *file);
        let current = match index {
            Some(index) => match &undone[index].after {
                Some(text) => text.clone(),
                None => continue,
            },
            None => match file_state(root, file) {
                FileState::Text(text) => text,
                FileState::Missing => continue,
                FileState::Unusable(why) => {
                    remaining.push((Some(change.clone()), format!("{file}: {why}")));
                    continue;
                }
            },
        };
        let after = match change.undo(&current) {
            UndoResult::NotPresent => continue,
            UndoResult::Restored(after) => after,
            UndoResult::EntriesRemoved(after, modified) => {
                let note = |name: &String| {
                    (None, format!("{file}: {name} was changed since init added it; it stays"))
                };
                remaining.extend(modified.iter().map(note));
                after
            }
        };
        match index {
            Some(index) => {
                undone[index].after = after;
                undone[index].created_folder |= change.created_folder;
            }
            None => undone.push(UndoneFile {
                path: file.clone(),
                before: current,
                after,
                created_folder: change.created_folder,
            }),
        }
    }
    (undone, remaining)
}

/// Prints the changes of files as diffs.
fn print_diffs<'a>(
    files: impl Iterator<Item = (&'a str, Option<&'a str>, Option<&'a str>)>,
) -> Result<()> {
    let style = output::stdout_style();
    let diffs: String =
        files.map(|(file, before, after)| setup::diff(file, before, after, style)).collect();
    output::write_stdout(&diffs)
}

/// Asks for confirmation at the terminal, unless `--yes` was given. Without a terminal, `command`
/// is suggested instead.
fn confirm(args: &InitArgs, question: &str, command: &str) -> Result<bool> {
    if args.yes {
        return Ok(true);
    }
    if !is_at_terminal() {
        output::write_stderr(&format!("nothing was written; apply the changes with `{command}`\n"));
        return Ok(false);
    }
    let is_yes = ask(question)?;
    if !is_yes {
        output::write_stderr("nothing was written\n");
    }
    Ok(is_yes)
}

/// The record of earlier changes, and the text of its file.
fn read_record(root: &Path) -> Result<(InitRecord, Option<String>)> {
    match file_state(root, RECORD) {
        FileState::Missing => Ok((InitRecord::default(), None)),
        FileState::Text(text) => {
            let record = serde_json::from_str(&text).with_context(|| {
                format!("{RECORD} is damaged; remove it, and remove by hand what init added")
            })?;
            Ok((record, Some(text)))
        }
        FileState::Unusable(why) => Err(anyhow!("{RECORD}: {why}")),
    }
}

fn write_record(root: &Path, record: &InitRecord, before: Option<&str>) -> Result<()> {
    let text = serde_json::to_string_pretty(record)? + "\n";
    if before.is_none() && !root.join(IGNORE).exists() {
        project_file::write(root, IGNORE, None, "*\n")?;
    }
    project_file::write(root, RECORD, before, &text)
}

/// Removes the record, and the state folder if it contains nothing else.
fn remove_record(root: &Path, recorded: Option<&str>) -> Result<()> {
    if let Some(recorded) = recorded {
        project_file::remove(root, RECORD, recorded)?;
    }
    let state = root.join(project::STATE_FOLDER);
    let only_ignore_file = std::fs::read_dir(&state)
        .is_ok_and(|entries| entries.flatten().all(|entry| entry.file_name() == ".gitignore"));
    if only_ignore_file && file_state(root, IGNORE) == FileState::Text("*\n".to_owned()) {
        project_file::remove(root, IGNORE, "*\n")?;
        let _ = std::fs::remove_dir(state);
    }
    Ok(())
}
