//! What the command line gives a run: the task, the inputs and the agents.

use crate::cli::RunArgs;
use crate::input;
use anyhow::{Context, Result, bail};
use counterfoil_flow::{Workflow, value};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::Path;

/// The size limit of a task that is read from a file.
const MAX_TASK_BYTES: usize = 4 << 20;

/// The task: the text itself, or the content of a file for `@FILE`.
pub(super) fn task(args: &RunArgs) -> Result<Option<String>> {
    let Some(task) = &args.task else { return Ok(None) };
    let Some(file) = task.strip_prefix('@') else { return Ok(Some(task.clone())) };
    let (name, bytes) = input::read(Path::new(file), MAX_TASK_BYTES)?;
    if bytes.len() > MAX_TASK_BYTES {
        bail!("the task file {name} is larger than {MAX_TASK_BYTES} bytes");
    }
    let text = String::from_utf8(bytes).with_context(|| format!("{name} is not UTF-8"))?;
    Ok(Some(text))
}

/// The inputs of a run: the task, and the values of other inputs as given on the command line.
pub(crate) fn inputs(
    task: Option<String>,
    values: &[(String, String)],
    workflow: &Workflow,
) -> Result<Map<String, Value>> {
    let mut inputs = Map::new();
    inputs.extend(task.map(|task| ("task".to_owned(), Value::String(task))));
    for (name, text) in values {
        let value = match workflow.main.inputs.get(name) {
            Some(input) => value::parse_argument(text, &input.ty)
                .map_err(|why| anyhow::anyhow!("input '{name}': {why}"))?,
            // The engine reports an unknown input.
            None => Value::String(text.clone()),
        };
        inputs.insert(name.clone(), value);
    }
    Ok(inputs)
}

/// Parses `--agent`: `NAME=SPEC` for one agent, `SPEC` for all others.
pub(super) fn specs(agents: &[String]) -> Result<(BTreeMap<String, String>, Option<String>)> {
    let mut named = BTreeMap::new();
    let mut rest = None;
    for agent in agents {
        let one = agent.split_once('=').filter(|(name, _)| {
            !name.is_empty()
                && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '/'))
        });
        match one {
            Some((name, spec)) => {
                if named.insert(name.to_owned(), absolute(spec)).is_some() {
                    bail!("--agent {name}=… is given twice; keep one");
                }
            }
            None => {
                if rest.replace(absolute(agent)).is_some() {
                    bail!("--agent SPEC is given twice; use --agent NAME=SPEC for single agents");
                }
            }
        }
    }
    Ok((named, rest))
}

/// A spec with the absolute path of its script or program, if it is a path: paths on the command line
/// begin at the current folder, and the run can be resumed from another one.
fn absolute(spec: &str) -> String {
    let is_relative = |path: &str| path.contains('/') && !path.starts_with('/');
    match spec.split_once(':') {
        Some(("script", file)) => match std::path::absolute(file) {
            Ok(path) if !file.is_empty() => format!("script:{}", path.display()),
            _ => spec.to_owned(),
        },
        Some((kind @ ("acp" | "command"), line)) => {
            let Some(mut argv) = shlex::split(line) else { return spec.to_owned() };
            let program = argv.first().filter(|program| is_relative(program));
            let Some(path) = program.and_then(|program| std::path::absolute(program).ok()) else {
                return spec.to_owned();
            };
            argv[0] = path.display().to_string();
            match shlex::try_join(argv.iter().map(String::as_str)) {
                Ok(line) => format!("{kind}:{line}"),
                Err(_) => spec.to_owned(),
            }
        }
        _ => spec.to_owned(),
    }
}
