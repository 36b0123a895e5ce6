//! Definitions as YAML. JSON is YAML, so one reader serves both.

mod plain_numbers;
mod words;

use super::{CONTRACT_KEYS, check_size, misspelt_key, syntax_error};
use crate::contract::Contract;
use crate::definition::Definition;
use crate::problem::LoadError;
use plain_numbers::PlainNumbers;

pub use words::yaml_error;

/// A definition that cannot be written as YAML.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the definition cannot be written as YAML: {0}")]
pub struct WriteYamlError(String);

impl Definition {
    /// Reads a definition from YAML or JSON. `name` names it in errors.
    ///
    /// # Errors
    ///
    /// If the text is not YAML, or not a definition.
    pub fn from_yaml(text: &str, name: &str) -> Result<Self, LoadError> {
        check_size(text, name)?;
        let options = serde_saphyr::options! {
            with_snippet: false,
            strict_booleans: true,
            duplicate_keys: serde_saphyr::DuplicateKeyPolicy::Error,
        };
        serde_saphyr::from_str_with_options(text, options).map_err(|error| {
            let line =
                error.location().map(|location| usize::try_from(location.line()).unwrap_or(0));
            let mut refused = syntax_error(name, yaml_error(&error), line);
            if let Some(near) = misspelt_key(text, "contract", &CONTRACT_KEYS) {
                for problem in &mut refused.problems {
                    problem.hint = format!("did you mean 'contract' and not '{near}'?");
                }
            }
            refused
        })
    }

    /// Writes the definition as YAML.
    ///
    /// # Errors
    ///
    /// If a value of the definition has no YAML form.
    pub fn to_yaml(&self) -> Result<String, WriteYamlError> {
        let value =
            serde_json::to_value(self).map_err(|error| WriteYamlError(error.to_string()))?;
        serde_saphyr::to_string(&PlainNumbers(&value))
            .map_err(|error| WriteYamlError(error.to_string()))
    }
}

impl Contract {
    /// Reads and compiles a contract from YAML or JSON.
    ///
    /// # Errors
    ///
    /// If the text is not YAML, not a definition, or does not compile.
    pub fn from_yaml(text: &str) -> Result<Self, LoadError> {
        Self::compile(Definition::from_yaml(text, "contract")?)
    }
}
