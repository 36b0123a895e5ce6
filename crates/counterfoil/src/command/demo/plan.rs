//! The description of a demo in a pack.

use super::PackFiles;
use crate::report::demo::SuggestedCommand;
use anyhow::{Context, Result, anyhow, bail};
use counterfoil_contract::load::yaml_error;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// The path of the description in a pack.
pub(crate) const FILE: &str = "demo/demo.yaml";
/// The possible outcomes of a run.
const OUTCOMES: [&str; 7] =
    ["done", "blocked", "failed", "waiting", "cancelled", "exhausted", "budget"];

/// What a demo runs and shows.
#[derive(Debug, PartialEq)]
pub(super) struct Plan {
    /// The input `task`.
    pub(super) task: Option<String>,
    /// The other inputs.
    inputs: BTreeMap<String, Value>,
    /// What the demo shows, in a sentence or two.
    pub(super) about: String,
    /// Commands that show the results afterwards.
    pub(super) look: Vec<SuggestedCommand>,
    /// The expected outcome of the run.
    pub(super) ends: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPlan {
    #[serde(default)]
    task: Option<String>,
    #[serde(default)]
    inputs: BTreeMap<String, Value>,
    about: String,
    #[serde(default)]
    look: Vec<Value>,
    #[serde(default = "done")]
    ends: String,
}

fn done() -> String {
    "done".to_owned()
}

impl Plan {
    /// Loads the description from a pack.
    pub(super) fn load(pack: &PackFiles) -> Result<Self> {
        let text = std::str::from_utf8(pack.require(FILE)?)
            .with_context(|| format!("{FILE} of {} is not UTF-8", pack.location))?;
        Self::parse(text).with_context(|| format!("{FILE} of {} is not valid", pack.location))
    }

    fn parse(text: &str) -> Result<Self> {
        let options = serde_saphyr::options! { with_snippet: false };
        let raw: RawPlan = serde_saphyr::from_str_with_options(text, options)
            .map_err(|error| anyhow!("{}", yaml_error(&error)))?;
        if !OUTCOMES.contains(&raw.ends.as_str()) {
            bail!(
                "`ends: {}` is not an outcome of a run; use one of {}",
                raw.ends,
                OUTCOMES.join(", ")
            );
        }
        let look = raw.look.iter().map(parse_look).collect::<Result<_>>()?;
        let (task, inputs, about, ends) = (raw.task, raw.inputs, raw.about, raw.ends);
        Ok(Self { task, inputs, about: about.trim().to_owned(), look, ends })
    }

    /// The inputs in the form of the command line.
    pub(super) fn input_texts(&self) -> Vec<(String, String)> {
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        self.inputs.iter().map(|(name, value)| (name.clone(), text(value))).collect()
    }
}

/// Parses `command: why`, which YAML reads as a string if quoted and as a mapping otherwise.
fn parse_look(raw: &Value) -> Result<SuggestedCommand> {
    let pair = match raw {
        Value::String(line) => line.split_once(": ").or(Some((line, ""))),
        Value::Object(fields) if fields.len() == 1 => {
            fields.iter().next().and_then(|(command, why)| Some((command.as_str(), why.as_str()?)))
        }
        _ => None,
    };
    let Some((command, why)) = pair.filter(|(command, _)| !command.trim().is_empty()) else {
        bail!("an entry of `look` must be \"command: why\", not {raw}");
    };
    Ok(SuggestedCommand { command: command.trim().to_owned(), description: why.trim().to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_complete_plan_is_parsed() {
        let plan = Plan::parse(
            "task: Add it\ninputs: { n: 3, who: kim }\nabout: |\n  You see it.\nends: blocked\n\
             look:\n  - \"git -C {repo} log: a commit\"\n  - counterfoil runs: all runs\n  - cat a\n",
        )
        .unwrap();
        assert_eq!(
            plan.input_texts(),
            [("n".to_owned(), "3".to_owned()), ("who".to_owned(), "kim".to_owned())]
        );
        assert_eq!((plan.about.as_str(), plan.ends.as_str()), ("You see it.", "blocked"));
        let looks: Vec<(&str, &str)> = plan
            .look
            .iter()
            .map(|look| (look.command.as_str(), look.description.as_str()))
            .collect();
        assert_eq!(
            looks,
            [("git -C {repo} log", "a commit"), ("counterfoil runs", "all runs"), ("cat a", "")]
        );
    }

    #[test]
    fn an_invalid_plan_is_an_error() {
        for (text, expected) in [
            ("about: x\nends: well", "one of done, blocked"),
            ("about: x\nlook: [3]", "command: why"),
            ("about: x\nlook: ['']", "command: why"),
            ("about: x\nsurprise: 1", "surprise"),
            ("task: x", "about"),
        ] {
            let error = format!("{:#}", Plan::parse(text).unwrap_err());
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
