//! The texts of a scaffold's files, checked as a whole.

use super::agent_file::AgentFile;
use super::names::{self, Names};
use super::success::Success;
use super::{claims, reply};
use crate::schema::FileKind;
use counterfoil_contract::claim::ClaimKind;
use counterfoil_contract::text::truncate;
use counterfoil_contract::{Contract, Definition, Framing};
use counterfoil_flow::{Rejected, check};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Where the schemas for editors are, relative to the folder of the workflow.
const SCHEMAS: &str = "schemas";

/// A new contract or workflow: what it is named, and what it is made from.
#[derive(Clone, Debug)]
pub(crate) struct Scaffold {
    /// The names of the contract, the files, the workflow and the agent.
    pub(crate) names: Names,
    /// The subagent that it is for.
    pub(crate) agent: Option<AgentFile>,
    /// An example of the result, with its schema.
    pub(crate) example: Option<(Value, Value)>,
    /// Whether the contract shows the example to agents.
    pub(crate) shows_example: bool,
}

impl Scaffold {
    /// Leaves out an example that no contract can show, such as one with placeholders: its fields
    /// stay if a contract can have them. Returns why it is left out.
    pub(crate) fn leave_out_bad_example(&mut self) -> Option<String> {
        let why = match contract_files(self).err()? {
            ScaffoldError::Contract(error) => match error.problems.first() {
                Some(problem) => problem.message.clone(),
                None => error.to_string(),
            },
            error => error.to_string(),
        };
        self.shows_example = false;
        if contract_files(self).is_ok() {
            return Some(why);
        }
        let example = self.example.take();
        if contract_files(self).is_ok() {
            return Some(why);
        }
        // It is not because of the example: the files say what it is when they are made.
        (self.example, self.shows_example) = (example, true);
        None
    }
}

/// A scaffold that cannot be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ScaffoldError {
    #[error(
        "the example is no result of a contract (`counterfoil explain` has a page for each code)"
    )]
    Contract(#[from] counterfoil_contract::LoadError),
    #[error("the contract cannot be written: {0}")]
    Write(String),
    #[error(
        "no example of {0} can be turned into a reply of a script; add an example to the contract, or use a framing of JSON"
    )]
    NoReply(String),
    #[error("the scaffold is not valid")]
    Workflow(#[from] Box<Rejected>),
}

/// The prompt that is the task alone.
const TASK: &str = "{{ task }}";

/// The files of a scaffold by their paths.
type Files = BTreeMap<String, String>;

/// The contract, and the files of a new one: the contract, a workflow with one step that tries it, and a script.
pub(crate) fn contract_files(scaffold: &Scaffold) -> Result<(Files, Contract), ScaffoldError> {
    let Names { contract: id, file, workflow } = &scaffold.names;
    let (contract, text) = new_contract(scaffold)?;
    let name = names::yaml(workflow);
    let main = format!("try-{file}");
    let mut files = Files::from([(contract_path(file), text)]);
    let instructions = scaffold.agent.as_ref().map(|agent| agent.instructions.as_str());
    // It has another name than that of a workflow, which may be made of the same subagent later.
    let prompt = match instructions {
        Some(instructions) => {
            let path = prompt_path(&main);
            files.insert(path.clone(), prompt(instructions, false));
            path
        }
        None => quoted(TASK),
    };
    files.insert(
        format!("{main}.yaml"),
        format!(
            "# yaml-language-server: $schema={SCHEMAS}/{}\n\
             # One step that returns a result of {id}, to try the contract.\n\
             workflow: {trial}\nversion: 1\ninputs:\n  task: string\nagents:\n  {name}: {{ contract: {id}, prompt: {prompt}{access} }}\n\
             contracts: [{path}]\nstart: work\nstates:\n  work: {{ agent: {name}, go: done }}\n  done: {{ end: done }}\n",
            FileKind::Workflow.file_name(),
            trial = names::trial(workflow),
            access = access(scaffold),
            path = contract_path(file),
        ),
    );
    files.insert(
        format!("{main}.script.yaml"),
        script(&name, &contract, instructions.unwrap_or(TASK), Some(&own_reply(scaffold)), None)?,
    );
    Ok((checked(&format!("{main}.yaml"), files)?, contract))
}

/// The files of a new workflow: the workflow, its prompt, a script, and its contract unless there is
/// one already. Also whether the workflow ends as done whatever the result says.
pub(crate) fn workflow_files(
    scaffold: &Scaffold,
    existing: Option<(Contract, &str)>,
) -> Result<(Files, Contract, bool), ScaffoldError> {
    let Names { file, workflow, .. } = &scaffold.names;
    let name = names::yaml(workflow);
    let path = contract_path(file);
    let mut files = Files::new();
    let is_new = existing.is_none();
    let contract = match existing {
        Some((contract, text)) => {
            files.insert(path.clone(), text.to_owned());
            contract
        }
        None => {
            let (contract, text) = new_contract(scaffold)?;
            files.insert(path.clone(), text);
            contract
        }
    };
    // The fields of our own contract are known, so the workflow can go on by them.
    let repeats = is_new && scaffold.example.is_none();
    let reply = is_new.then(|| own_reply(scaffold));
    let instructions = scaffold.agent.as_ref().map(|agent| agent.instructions.as_str());
    let prompt = prompt(instructions.unwrap_or_default(), repeats);
    let replied = |success: Option<&Success>| {
        script(&name, &contract, instructions.unwrap_or_default(), reply.as_ref(), success)
    };
    // Guards that no reply of a script can pass would make a scaffold that never ends as done.
    let success = if repeats { None } else { Success::of(&contract) };
    let guarded = success.and_then(|success| Some((replied(Some(&success)).ok()?, success)));
    let (script, success) = match guarded {
        Some((script, success)) => (script, Some(success)),
        None => (replied(None)?, None),
    };
    let states = match &success {
        _ if repeats => REPEATING.to_owned(),
        Some(success) => {
            GUARDED.replace("<REASON>", &success.reason()).replace("<GUARD>", &success.guard())
        }
        None => ONE_STEP.replace("<GUARD>", &guard(&contract)),
    };
    let text = format!(
        "# yaml-language-server: $schema={SCHEMAS}/{}\n\
         workflow: {name}\nversion: 1\nsummary: {}\ninputs:\n  task: string\n{}agents:\n  {name}: {{ contract: {}, prompt: {}{} }}\n\
         contracts: [{path}]\n{}",
        FileKind::Workflow.file_name(),
        quoted(&summary(scaffold, "Do a task")),
        if repeats { "variables:\n  left: string?\n" } else { "" },
        contract.id(),
        prompt_path(file),
        access(scaffold),
        states
            .replace("<AGENT>", &name)
            .replace("<CLAIMS>", &if is_new { required_claims(&contract) } else { String::new() }),
    );
    files.insert(format!("{file}.yaml"), text);
    files.insert(format!("{file}.script.yaml"), script);
    files.insert(prompt_path(file), prompt);
    let mut files = checked(&format!("{file}.yaml"), files)?;
    if !is_new {
        files.remove(&path);
    }
    Ok((files, contract, !repeats && success.is_none()))
}

const REPEATING: &str = "\
limits:
  rounds: { max: 3, then: exhausted }      # how often it is asked to go on
start: work
states:
  work:
    agent: <AGENT>
    next:
      - { when: result.done, go: done }
      - { set: { left: result.summary }, go: work, counts: rounds }
  done:      { end: done }
  exhausted: { end: exhausted }
";

const ONE_STEP: &str = "\
start: work
states:
  work:
    agent: <AGENT>
<CLAIMS>    next:
      - { go: done }                       # <GUARD>
  done: { end: done }
";

const GUARDED: &str = "\
start: work
states:
  work:
    agent: <AGENT>
<CLAIMS>    next:
      # The run is done if the result says so, and failed otherwise.
      - { when: <GUARD>, go: done }
      - { go: failed, reason: <REASON> }
  done:   { end: done }
  failed: { end: failed }
";

/// The claims that are required at once: those that need nothing but the repository. A check has to
/// be configured first.
fn required_claims(contract: &Contract) -> String {
    let claims = contract.effective_claims();
    let of_repository = claims.iter().filter(|effective| {
        matches!(effective.claim.kind, ClaimKind::FilesChanged | ClaimKind::Commit)
    });
    let names: Vec<String> =
        of_repository.map(|effective| format!("{}: require", effective.name)).collect();
    if names.is_empty() {
        return String::new();
    }
    format!(
        "    # The agent is asked again if one of these is refuted; `run --strict-claims` does so for all.\n    \
         claims: {{ {} }}\n",
        names.join(", ")
    )
}

/// How a transition is guarded, with a field of the result if one can decide.
fn guard(contract: &Contract) -> String {
    let example = contract.definition().examples.first().and_then(Value::as_object);
    let is_plain = |name: &str| name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_');
    let decides =
        example.into_iter().flatten().find(|(name, value)| value.is_boolean() && is_plain(name));
    match decides {
        Some((name, _)) => format!("add guards, as in {{ when: result.{name}, go: done }}"),
        None => "add guards with `when`, an expression over the fields of `result`".to_owned(),
    }
}

fn contract_path(file: &str) -> String {
    format!("contracts/{file}.yaml")
}

fn prompt_path(workflow: &str) -> String {
    format!("prompts/{workflow}.md")
}

fn access(scaffold: &Scaffold) -> &'static str {
    if is_read_only(scaffold) { ", access: read-only" } else { "" }
}

fn is_read_only(scaffold: &Scaffold) -> bool {
    scaffold.agent.as_ref().is_some_and(|agent| agent.is_read_only)
}

/// The first line of what the agent is for, or another text.
fn summary(scaffold: &Scaffold, otherwise: &str) -> String {
    let own = scaffold.agent.as_ref().and_then(summary_of);
    own.unwrap_or_else(|| otherwise.to_owned())
}

/// The first line of an agent's description, if it has one.
pub(super) fn summary_of(agent: &AgentFile) -> Option<String> {
    const MAX_CHARS: usize = 120;
    let line = agent.description.as_deref()?.lines().map(str::trim).find(|line| !line.is_empty());
    Some(truncate(line?, MAX_CHARS).into_owned())
}

/// A text in quotes, as JSON and YAML have them.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// A contract with its text.
fn new_contract(scaffold: &Scaffold) -> Result<(Contract, String), ScaffoldError> {
    let header = format!(
        "# yaml-language-server: $schema=../{SCHEMAS}/{}\n",
        FileKind::Contract.file_name()
    );
    let what = format!("What the agent {} returns", scaffold.names.workflow);
    let text = match &scaffold.example {
        Some((example, schema)) => {
            let definition =
                Definition::new(&scaffold.names.contract, 1, Framing::default(), schema.clone())
                    .summary(&summary(scaffold, &what))
                    .agent(&scaffold.names.workflow);
            let definition = if scaffold.shows_example {
                definition.example(example.clone())
            } else {
                definition
            };
            let claims = claims::of(example).into_iter();
            let definition = claims
                .fold(definition, |definition, (field, claim)| definition.claim(field, claim));
            definition_text(&definition)?
        }
        None => own_contract(scaffold, &what),
    };
    let text = header + &text;
    Ok((Contract::compile(Definition::from_yaml(&text, "the new contract")?)?, text))
}

/// A definition as YAML, or as JSON where YAML would not give it back.
fn definition_text(definition: &Definition) -> Result<String, ScaffoldError> {
    let yaml = definition.to_yaml().ok();
    let is_same = |text: &String| {
        Definition::from_yaml(text, "").is_ok_and(|parsed| parsed == *definition)
            && !text.contains(counterfoil_contract::text::is_unsafe)
    };
    match yaml.filter(is_same) {
        Some(text) => Ok(text),
        None => serde_json::to_string_pretty(definition)
            .map(|text| text + "\n")
            .map_err(|error| ScaffoldError::Write(error.to_string())),
    }
}

/// A contract with fields that most agents can fill.
fn own_contract(scaffold: &Scaffold, what: &str) -> String {
    let (files, claim, example) = if is_read_only(scaffold) {
        (
            "",
            "",
            json!({"done": false, "summary": "EXAMPLE: Two of five modules were read; the parser is left."}),
        )
    } else {
        (
            "  files_changed: [path]\n",
            "claims:\n  files_changed: { kind: files-changed }   # compared with the work tree after each reply\n",
            json!({"done": false, "summary": "EXAMPLE: The parser reads numbers; dates are left.", "files_changed": ["src/parser.rs"]}),
        )
    };
    format!(
        "contract: {}\nversion: 1\nsummary: {}\nagent: {}\nfields:\n  done: boolean             # whether nothing is left to do\n  \
         summary: string           # what was done, and what is left\n{files}{claim}\
         examples:                 # agents are shown them; an answer that repeats one is none\n  \
         # Replace it by a good answer: `contract lint` warns as long as it says EXAMPLE.\n  - {example}\n",
        scaffold.names.contract,
        quoted(&summary(scaffold, what)),
        names::yaml(&scaffold.names.workflow),
    )
}

/// A result that says that nothing was done. That of the contract with our own fields lets the workflow
/// end.
fn own_reply(scaffold: &Scaffold) -> Value {
    const SUMMARY: &str = "This reply is from the script: nothing was done, and nothing is left.";
    if let Some((example, _)) = &scaffold.example {
        let result = claims::without_work(example);
        let result = if scaffold.shows_example { result } else { reply::with_texts(&result) };
        return reply::changed_at(&result, 0).unwrap_or(result);
    }
    let mut reply = json!({"done": true, "summary": SUMMARY});
    if !is_read_only(scaffold) {
        reply["files_changed"] = json!([]);
    }
    reply
}

/// The prompt: the instructions of the subagent word for word, and the task.
fn prompt(instructions: &str, repeats: bool) -> String {
    let mut text = String::new();
    if !instructions.is_empty() {
        text = format!("{}\n\n", literal(instructions));
    }
    text.push_str("The task: {{ task }}\n");
    if repeats {
        text.push_str("{% if left %}\nThis is left of an earlier attempt: {{ left }}\n{% endif %}");
    }
    text
}

/// A text as a template that renders it: what looks like a part of a template there is text.
fn literal(text: &str) -> String {
    let mut template = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(char) = rest.next() {
        match (char, rest.peek()) {
            ('{', Some('{' | '%' | '#')) => template.push_str("{{ \"{\" }}"),
            _ => template.push(char),
        }
    }
    template
}

/// A script whose one reply the contract accepts, and which claims a success if one is given.
fn script(
    agent: &str,
    contract: &Contract,
    prompt: &str,
    reply: Option<&Value>,
    success: Option<&Success>,
) -> Result<String, ScaffoldError> {
    let no_reply = || ScaffoldError::NoReply(contract.reference().to_owned());
    let text = reply::text_for(contract, prompt, reply, success).ok_or_else(no_reply)?;
    Ok(format!(
        "# Replies for `--agent script:FILE`, to run the workflow without an agent program.\nreplies:\n  - agent: {agent}\n    text: {}\n",
        scalar(&text)
    ))
}

/// A text as a block of YAML, or in quotes where a block would not give it back.
fn scalar(text: &str) -> String {
    let is_plain = text.chars().all(|c| c == '\n' || (' '..='~').contains(&c));
    if !is_plain || text.starts_with(' ') {
        return quoted(text);
    }
    let lines: String = text.lines().map(|line| format!("\n      {line}")).collect();
    format!("|{lines}")
}

/// The files, if the workflow among them is valid.
fn checked(workflow: &str, files: Files) -> Result<Files, ScaffoldError> {
    check(workflow, &files, &counterfoil_packs::registry()).map_err(Box::new)?;
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use counterfoil_flow::template::Template;

    #[test]
    fn instructions_are_rendered_word_for_word() {
        for text in ["plain", "{{ a }} {% if b %} {# c #}", "{{{", "{% endraw %}{", "{\"a\": {}}"] {
            assert!(Template::compile(&literal(text)).is_ok(), "{text}");
            assert_eq!(rendered_braces(&literal(text)), text);
        }
    }

    /// What the template gives: its only expression is the brace.
    fn rendered_braces(template: &str) -> String {
        template.replace("{{ \"{\" }}", "{")
    }

    #[test]
    fn texts_become_blocks_or_quoted() {
        assert_eq!(scalar("a\nb\n"), "|\n      a\n      b");
        assert_eq!(scalar("\u{85}"), "\"\u{85}\"");
    }
}
