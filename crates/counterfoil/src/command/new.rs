//! The command `counterfoil new`.

use crate::cli::{NewCommand, SourceArgs};
use crate::exit::Exit;
use crate::scaffold::{
    self, AgentFile, BlockUse, Scaffold, Subject, contract_files, workflow_files,
};
use crate::schema::FileKind;
use crate::{input, output, render, unpack};
use anyhow::{Context, Result, bail};
use counterfoil_contract::Contract;
use counterfoil_contract::suggest::did_you_mean;
use counterfoil_contract::text::{display_path, join_limited};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, IsTerminal, Read};
use std::path::{Path, PathBuf};

/// The size limit of a file that is read.
const MAX_BYTES: usize = 1 << 20;
/// The most bytes that are read of an answer.
const MAX_ANSWER_BYTES: u64 = 64 << 10;
/// How often a question is asked.
const MAX_TRIES: usize = 3;
/// The most fields that a message lists.
const MAX_FIELDS: usize = 40;
/// The namespace of contracts in a folder whose name cannot be one.
const NAMESPACE: &str = "own";

pub(crate) fn run(command: &NewCommand) -> Result<Exit> {
    let (subject, name, source) = match command {
        NewCommand::Contract { name, source } => (Subject::Contract, name, source),
        NewCommand::Workflow { name, source } => (Subject::Workflow, name, source),
    };
    let folder = source.dir.clone().unwrap_or_else(|| ".".into());
    let scaffold = read(subject, name, source, &folder)?;
    let file = &scaffold.names.file;
    let (made, workflow) = match subject {
        Subject::Contract => {
            // Its workflow only tries the contract.
            let made = contract_files(&scaffold).map(|(files, contract)| (files, contract, false));
            (made.map_err(anyhow::Error::from), format!("try-{file}"))
        }
        Subject::Workflow => (new_workflow(&scaffold, &folder), file.clone()),
    };
    let (files, contract, always_done) = match &source.from_example {
        Some(example) => made.with_context(|| display_path(example))?,
        None => made?,
    };
    let written = write(&folder, &files)?;
    if let (Some(agent), Some(file)) = (&scaffold.agent, &source.from_agent) {
        let prompt = PathBuf::from(format!("prompts/{workflow}.md"));
        let prompt = source.dir.as_ref().map_or_else(|| prompt.clone(), |dir| dir.join(&prompt));
        // An example of its own comes first.
        let block = match (&source.from_example, &scaffold.example) {
            (Some(_), _) | (None, None) => BlockUse::None,
            (None, Some(_)) if scaffold.shows_example => BlockUse::Example,
            (None, Some(_)) => BlockUse::Fields,
        };
        let taken = scaffold::taken_from(agent, &display_path(&prompt), block);
        output::write_message("note", &format!("taken from {}: {taken}", display_path(file)));
    }
    let folder = source.dir.as_ref().map(|folder| display_path(folder)).unwrap_or_default();
    // Files are written also where the configuration of the project cannot be read.
    let config = super::workflow::project_config().ok();
    let checks: Option<BTreeSet<&str>> =
        config.as_ref().map(|config| config.verify.checks.keys().map(String::as_str).collect());
    let text = render::scaffold::written(
        &folder,
        &written,
        &workflow,
        &contract,
        checks.as_ref(),
        always_done,
    );
    output::write_stderr(&text);
    Ok(Exit::Success)
}

/// The files of a workflow, and whether it ends as done whatever the result says. A contract of its
/// name that is there already is used.
fn new_workflow(
    scaffold: &Scaffold,
    folder: &Path,
) -> Result<(BTreeMap<String, String>, Contract, bool)> {
    let path = folder.join(format!("contracts/{}.yaml", scaffold.names.file));
    if scaffold.example.is_some() || path.symlink_metadata().is_err() {
        return Ok(workflow_files(scaffold, None)?);
    }
    let contract = Contract::from_file(&path)?;
    Ok(workflow_files(scaffold, Some((contract, &read_text(&path)?)))?)
}

/// What the scaffold is made from.
fn read(subject: Subject, name: &str, source: &SourceArgs, folder: &Path) -> Result<Scaffold> {
    let names = scaffold::names(subject, name, &namespace(folder))?;
    let agent = source.from_agent.as_deref().map(read_agent).transpose()?;
    let example = match (&source.from_example, &agent) {
        (Some(file), _) => Some(read_example(file)?),
        (None, Some(agent)) => agent.example.clone(),
        (None, None) => None,
    };
    if example.is_none() && source.optional.is_some() {
        bail!("--optional names fields of an example; give one with --from-example");
    }
    if let (None, Some(file)) = (&example, &source.from_agent) {
        let why = agent.as_ref().and_then(|agent| agent.unread_example.as_deref());
        let why = match why {
            Some(why) => format!("shows a result in a JSON block that cannot be read ({why})"),
            None => "shows no result in a JSON block".to_owned(),
        };
        let message = format!("{} {why}; the contract has general fields", display_path(file));
        output::write_message("note", &message);
    }
    if let (Some(agent), Some(file), None) = (&agent, &source.from_agent, &source.from_example)
        && !agent.other_fields.is_empty()
    {
        let message = format!(
            "{} shows more than one JSON block; the contract has the fields of the last one, and not {}: \
             add them to its schema if they are fields of a result, too",
            display_path(file),
            join_limited(&agent.other_fields, MAX_FIELDS)
        );
        output::write_message("note", &message);
    }
    let example = match example {
        Some(example) => {
            let optional = optional_fields(&example, source.optional.as_deref())?;
            let schema = scaffold::schema_of(&example, &optional);
            Some((example, schema))
        }
        None => None,
    };
    let mut scaffold = Scaffold { names, agent, example, shows_example: true };
    if let (Some(file), None) = (&source.from_agent, &source.from_example)
        && scaffold.example.is_some()
        && let Some(why) = scaffold.leave_out_bad_example()
    {
        let line = scaffold.agent.as_ref().map_or(0, |agent| agent.example_line);
        let has =
            if scaffold.example.is_some() { "its fields and no example" } else { "general fields" };
        let message = format!(
            "{}:{line}: the result in this JSON block cannot be an example: {why}; the contract has {has}",
            display_path(file)
        );
        output::write_message("note", &message);
    }
    Ok(scaffold)
}

/// A namespace from the name of a folder.
fn namespace(folder: &Path) -> String {
    let folder = folder.canonicalize().ok();
    let name = folder.as_deref().and_then(Path::file_name).unwrap_or_default();
    let lower = name.to_string_lossy().to_lowercase();
    let words: Vec<&str> =
        lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let name = words.join("-");
    if name.len() <= 60 && name.starts_with(|c: char| c.is_ascii_lowercase()) {
        name
    } else {
        NAMESPACE.to_owned()
    }
}

fn read_agent(file: &Path) -> Result<AgentFile> {
    let text = read_text(file)?;
    if serde_json::from_str::<Value>(&text).is_ok_and(|value| value.is_object()) {
        bail!(
            "{} is a JSON object and no subagent's file; give an example answer with --from-example",
            display_path(file)
        );
    }
    let agent = scaffold::parse_agent_file(&text);
    if agent.instructions.is_empty() {
        bail!("{} has no instructions; a subagent's file is Markdown", display_path(file));
    }
    Ok(agent)
}

fn read_example(file: &Path) -> Result<Value> {
    let text = read_text(file)?;
    let value: Value = serde_json::from_str(&text)
        .with_context(|| format!("{} is not JSON", display_path(file)))?;
    if !value.is_object() {
        bail!("{} holds no JSON object; a result is an object", display_path(file));
    }
    Ok(value)
}

fn read_text(file: &Path) -> Result<String> {
    let (name, bytes) = input::read(file, MAX_BYTES)?;
    if bytes.len() > MAX_BYTES {
        bail!("{name} is larger than {MAX_BYTES} bytes");
    }
    String::from_utf8(bytes).with_context(|| format!("{name} is not UTF-8"))
}

/// The fields that may be missing: as given, or as a person says at the terminal.
fn optional_fields(example: &Value, given: Option<&[String]>) -> Result<BTreeSet<String>> {
    let paths = scaffold::field_paths(example);
    match given {
        Some(given) => known_fields(&paths, given.iter().map(String::as_str)),
        None if std::io::stdin().is_terminal() && output::stderr_is_terminal() => {
            ask(&paths, &mut std::io::stdin().lock())
        }
        None => Ok(BTreeSet::new()),
    }
}

/// The fields with these names. A name that no field has is an error, an empty one is left out.
fn known_fields<'a>(
    paths: &[String],
    names: impl Iterator<Item = &'a str>,
) -> Result<BTreeSet<String>> {
    let names = names.map(str::trim).filter(|name| !name.is_empty());
    let known = |name: &str| {
        if paths.iter().any(|path| path == name) {
            return Ok(name.to_owned());
        }
        let hint = did_you_mean(name, paths.iter().map(String::as_str))
            .unwrap_or_else(|| format!("it has {}", join_limited(paths, MAX_FIELDS)));
        bail!("the example has no field '{name}'; {hint}")
    };
    names.map(known).collect()
}

/// Asks which fields may be missing, again after a wrong answer.
fn ask(paths: &[String], answers: &mut impl BufRead) -> Result<BTreeSet<String>> {
    output::write_stderr(&format!("fields of the example: {}\n", join_limited(paths, MAX_FIELDS)));
    let mut tries = 1;
    loop {
        output::write_stderr("Which of them may be missing? (names with commas; Enter for none) ");
        let mut answer = String::new();
        let read = answers.by_ref().take(MAX_ANSWER_BYTES).read_line(&mut answer);
        if read.context("cannot read the answer")? == 0 {
            output::write_stderr("\n");
            bail!("there is no answer, and nothing was written; name the fields with --optional");
        }
        match known_fields(paths, answer.split(',')) {
            Err(error) if tries < MAX_TRIES => output::write_error(&error),
            fields => return fields,
        }
        tries += 1;
    }
}

/// Writes the files, and the schemas that they name unless they are there. Nothing is overwritten.
fn write(folder: &Path, files: &BTreeMap<String, String>) -> Result<Vec<String>> {
    let schemas = [FileKind::Contract, FileKind::Workflow]
        .map(|kind| (format!("schemas/{}", kind.file_name()), kind.text()));
    let exists = |path: &str| folder.join(path).symlink_metadata().is_ok();
    let existing: Vec<&String> = files.keys().filter(|path| exists(path)).collect();
    if !existing.is_empty() {
        let names = join_limited(
            existing.into_iter().map(|path| display_path(&folder.join(path))),
            MAX_FIELDS,
        );
        bail!(
            "nothing was written, because this is there already: {names}; choose another name or --dir"
        );
    }
    unpack::create_folder(folder)?;
    let missing = schemas.iter().filter(|(path, _)| !exists(path));
    let missing = missing.map(|(path, text)| (path.as_str(), text.as_bytes()));
    let all: Vec<unpack::FileToWrite<'_>> =
        files.iter().map(|(path, text)| (path.as_str(), text.as_bytes())).chain(missing).collect();
    unpack::create_files(folder, &all)?;
    Ok(all.iter().map(|(path, _)| (*path).to_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(typed: &str) -> Result<Vec<String>, String> {
        let paths = ["ok", "score", "note"].map(str::to_owned);
        let fields = ask(&paths, &mut typed.as_bytes());
        fields.map(|fields| fields.into_iter().collect()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_wrong_answer_is_asked_for_again() {
        for (typed, fields) in [
            ("\n", &[] as &[&str]),
            (" score , note \n", &["note", "score"]),
            ("scor\nscore\n", &["score"]),
            ("scor\nok,what\nok\n", &["ok"]),
            ("score", &["score"]),
        ] {
            assert_eq!(answer(typed).unwrap(), fields, "{typed:?}");
        }
        // Not forever, and not after the end of the input.
        let error = answer("scor\nscor\nscor\nscore\n").unwrap_err();
        assert!(error.contains("did you mean 'score'?"), "{error}");
        for typed in ["", "scor\n", "scor\nscor\n"] {
            let error = answer(typed).unwrap_err();
            assert!(error.contains("there is no answer"), "{typed:?}: {error}");
        }
    }
}
