//! The inputs of a run.

use crate::error::InputError;
use counterfoil_flow::{Workflow, value};
use serde_json::{Map, Value};

/// Validates the inputs of a run and adds defaults.
pub(crate) fn validate_inputs(
    workflow: &Workflow,
    mut inputs: Map<String, Value>,
) -> Result<Map<String, Value>, InputError> {
    check_inputs(workflow, &inputs)?;
    for (name, input) in &workflow.main.inputs {
        if let Some(given) = inputs.get(name) {
            // Agents would be started with nothing to do.
            if input.default.is_none()
                && given.as_str().is_some_and(|text| text.trim().is_empty())
                && workflow.prompts_read(name)
            {
                return Err(InputError::Empty { name: name.clone() });
            }
            continue;
        }
        let Some(default) = &input.default else {
            return Err(InputError::Missing { name: name.clone() });
        };
        inputs.insert(name.clone(), default.clone());
    }
    Ok(inputs)
}

/// Checks that the workflow has these inputs, and their types.
pub(crate) fn check_inputs(
    workflow: &Workflow,
    inputs: &Map<String, Value>,
) -> Result<(), InputError> {
    let known = &workflow.main.inputs;
    for (name, given) in inputs {
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
    Ok(())
}
