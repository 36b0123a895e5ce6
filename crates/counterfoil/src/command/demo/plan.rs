//! What a pack says about its demo.

use super::Stuff;
use crate::tell::demo::Look;
use anyhow::{Context, Result, anyhow, bail};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// Where it stands in a pack.
pub(crate) const FILE: &str = "demo/demo.yaml";
/// How a run can end.
const OUTCOMES: [&str; 7] =
    ["done", "blocked", "failed", "waiting", "cancelled", "exhausted", "budget"];

/// What is run, and what there is to see.
#[derive(Debug, PartialEq)]
pub(super) struct Plan {
    /// The input `task`.
    pub(super) task: Option<String>,
    /// Other inputs.
    inputs: BTreeMap<String, Value>,
    /// What somebody will see, in a sentence or two.
    pub(super) about: String,
    /// What to look at afterwards.
    pub(super) look: Vec<Look>,
    /// How the run ends if all goes as planned.
    pub(super) ends: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
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
    /// Reads it from a pack.
    pub(super) fn of(stuff: &Stuff) -> Result<Self> {
        let text = std::str::from_utf8(stuff.need(FILE)?)
            .with_context(|| format!("{FILE} of {} is not UTF-8", stuff.place))?;
        Self::read(text).with_context(|| format!("{FILE} of {} cannot be used", stuff.place))
    }

    fn read(text: &str) -> Result<Self> {
        let options = serde_saphyr::options! { with_snippet: false };
        let written: Written = serde_saphyr::from_str_with_options(text, options)
            .map_err(|error| anyhow!("{error}"))?;
        if !OUTCOMES.contains(&written.ends.as_str()) {
            bail!(
                "`ends: {}` is not how a run ends; it is one of {}",
                written.ends,
                OUTCOMES.join(", ")
            );
        }
        let look = written.look.iter().map(look).collect::<Result<_>>()?;
        let (task, inputs, about, ends) =
            (written.task, written.inputs, written.about, written.ends);
        Ok(Self { task, inputs, about: about.trim().to_owned(), look, ends })
    }

    /// The inputs as they would be given on the command line.
    pub(super) fn words(&self) -> Vec<(String, String)> {
        let word = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        self.inputs.iter().map(|(name, value)| (name.clone(), word(value))).collect()
    }
}

/// `command: why`, as a text or as the mapping that YAML makes of it without quotes.
fn look(written: &Value) -> Result<Look> {
    let pair = match written {
        Value::String(line) => line.split_once(": ").or(Some((line, ""))),
        Value::Object(fields) if fields.len() == 1 => {
            fields.iter().next().and_then(|(command, why)| Some((command.as_str(), why.as_str()?)))
        }
        _ => None,
    };
    let Some((command, why)) = pair.filter(|(command, _)| !command.trim().is_empty()) else {
        bail!("an entry of `look` is \"command: why\", not {written}");
    };
    Ok(Look { command: command.trim().to_owned(), why: why.trim().to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_with_everything() {
        let plan = Plan::read(
            "task: Add it\ninputs: { n: 3, who: kim }\nabout: |\n  You see it.\nends: blocked\n\
             look:\n  - \"git -C {repo} log: a commit\"\n  - counterfoil runs: all runs\n  - cat a\n",
        )
        .unwrap();
        assert_eq!(
            plan.words(),
            [("n".to_owned(), "3".to_owned()), ("who".to_owned(), "kim".to_owned())]
        );
        assert_eq!((plan.about.as_str(), plan.ends.as_str()), ("You see it.", "blocked"));
        let looks: Vec<(&str, &str)> =
            plan.look.iter().map(|look| (look.command.as_str(), look.why.as_str())).collect();
        assert_eq!(
            looks,
            [("git -C {repo} log", "a commit"), ("counterfoil runs", "all runs"), ("cat a", "")]
        );
    }

    #[test]
    fn a_plan_that_is_wrong_says_where() {
        for (text, word) in [
            ("about: x\nends: well", "one of done, blocked"),
            ("about: x\nlook: [3]", "command: why"),
            ("about: x\nlook: ['']", "command: why"),
            ("about: x\nsurprise: 1", "surprise"),
            ("task: x", "about"),
        ] {
            let error = format!("{:#}", Plan::read(text).unwrap_err());
            assert!(error.contains(word), "{text}: {error}");
        }
    }
}
