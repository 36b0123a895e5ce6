//! The inputs and the budget of a new run.

use crate::error::InputError;
use counterfoil_flow::{Budget, Workflow, value};
use serde_json::{Map, Value};

/// Validates the inputs of a run and adds defaults.
pub(crate) fn validate_inputs(
    workflow: &Workflow,
    mut inputs: Map<String, Value>,
) -> Result<Map<String, Value>, InputError> {
    let known = &workflow.main.inputs;
    for (name, given) in &inputs {
        let Some(input) = known.get(name) else {
            let names = known.keys().map(String::as_str);
            return Err(InputError::Unknown {
                name: name.clone(),
                similar: counterfoil_contract::suggest::did_you_mean(name, names),
                known: known.keys().cloned().collect(),
            });
        };
        value::fits(given, &input.ty)
            .map_err(|error| InputError::Invalid { name: name.clone(), why: error.reason })?;
    }
    for (name, input) in known {
        if inputs.contains_key(name) {
            continue;
        }
        let Some(default) = &input.default else {
            return Err(InputError::Missing { name: name.clone() });
        };
        inputs.insert(name.clone(), default.clone());
    }
    Ok(inputs)
}

/// The budget of a run: each limit that is given overrides the one of the workflow.
pub(crate) fn merge_budgets(workflow: &Budget, given: &Budget) -> Budget {
    Budget {
        tokens: given.tokens.or(workflow.tokens),
        cost_usd: given.cost_usd.or(workflow.cost_usd),
        time_ms: given.time_ms.or(workflow.time_ms),
        iterations: given.iterations.or(workflow.iterations),
        attempts: given.attempts.or(workflow.attempts),
    }
}
