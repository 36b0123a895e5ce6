//! What a run is given: its inputs, held to their types, and what it may cost.

use crate::engine::Error;
use counterfoil_flow::{Budget, Workflow, value};
use serde_json::{Map, Value};

/// The inputs of a run, held to their types.
pub(crate) fn given(
    workflow: &Workflow,
    mut inputs: Map<String, Value>,
) -> Result<Map<String, Value>, Error> {
    let known = &workflow.main.inputs;
    for (name, given) in &inputs {
        let Some(input) = known.get(name) else {
            let names = known.keys().map(String::as_str);
            let hint = counterfoil_contract::suggest::did_you_mean(name, names.clone())
                .unwrap_or_else(|| format!("its inputs: {}", names.collect::<Vec<_>>().join(", ")));
            return Err(Error::Input(format!("the workflow has no input '{name}'; {hint}")));
        };
        value::fits(given, &input.ty)
            .map_err(|why| Error::Input(format!("input '{name}': {why}")))?;
    }
    for (name, input) in known {
        if inputs.contains_key(name) {
            continue;
        }
        match &input.default {
            Some(default) => {
                inputs.insert(name.clone(), default.clone());
            }
            None => {
                let how = if name == "task" {
                    "--task TEXT".to_owned()
                } else {
                    format!("--input {name}=VALUE")
                };
                return Err(Error::Input(format!(
                    "the workflow needs the input '{name}'; give it with {how}"
                )));
            }
        }
    }
    Ok(inputs)
}

/// What a run may cost: what whoever starts it says, and else what its workflow says.
pub(crate) fn merged(workflow: &Budget, given: &Budget) -> Budget {
    Budget {
        tokens: given.tokens.or(workflow.tokens),
        cost_usd: given.cost_usd.or(workflow.cost_usd),
        time_ms: given.time_ms.or(workflow.time_ms),
        iterations: given.iterations.or(workflow.iterations),
        attempts: given.attempts.or(workflow.attempts),
    }
}
