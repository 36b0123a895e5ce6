//! Contracts from Rust types.

use crate::contract::{Contract, Rejection};
use crate::definition::Definition;
use crate::policy::{Framing, Policy};
use crate::problem::LoadError;
use schemars::{JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::any::TypeId;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

/// A Rust type that an agent hands back. Keep your serde and schemars derives; say here what they
/// cannot.
///
/// ```
/// use counterfoil_contract::{AgentOutput, Definition, Framing, Rule};
/// use schemars::JsonSchema;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Debug, Serialize, Deserialize, JsonSchema)]
/// struct Check { ok: bool, fix_info: Option<String> }
///
/// impl AgentOutput for Check {
///     fn definition() -> Definition {
///         Definition::of::<Self>("acme/check", 1, Framing::AnyJson)
///             .rule(Rule::require("fix-info-when-failed", "!result.ok", &["fix_info"]))
///     }
/// }
///
/// let check: Check = counterfoil_contract::parse(r#"Done: {"ok": true}"#).unwrap();
/// assert!(check.ok);
/// let rejection = counterfoil_contract::parse::<Check>(r#"Done: {"ok": false}"#).unwrap_err();
/// assert_eq!(rejection.report.violations[0].pointer, "/fix_info");
/// ```
pub trait AgentOutput: Serialize + DeserializeOwned + JsonSchema + 'static {
    /// The contract, as it would be written down.
    fn definition() -> Definition;
}

/// Every contract compiled from a type lives as long as the program.
type Compiled = HashMap<TypeId, Result<&'static Contract, LoadError>>;
static COMPILED: LazyLock<Mutex<Compiled>> = LazyLock::new(Mutex::default);

/// The compiled contract of a type; compiled at the first call.
pub fn contract_of<T: AgentOutput>() -> Result<&'static Contract, LoadError> {
    let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    compiled
        .entry(TypeId::of::<T>())
        .or_insert_with(|| {
            Contract::compile(T::definition()).map(|contract| &*Box::leak(Box::new(contract)))
        })
        .clone()
}

/// Why a text gives no value.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ParseError {
    /// The text is not accepted.
    #[error(transparent)]
    Rejected(#[from] Rejection),
    /// The type's own contract does not load.
    #[error(transparent)]
    Contract(#[from] LoadError),
}

/// Finds the result in a text, holds it to the type's contract, and gives it.
///
/// # Panics
///
/// If the type's own contract does not load: that is a mistake in the program, which a test of
/// [`contract_of`] finds.
#[allow(clippy::panic)] // The signature people want; the fallible form is `contract_of`.
pub fn parse<T: AgentOutput>(text: &str) -> Result<T, Rejection> {
    match contract_of::<T>() {
        Ok(contract) => contract.parse(text),
        Err(error) => panic!("{error}"),
    }
}

/// The same under the name other systems give it: a validated value or a description of what is
/// wrong.
pub fn validate_output<T: AgentOutput>(raw: &str) -> Result<T, Rejection> {
    parse(raw)
}

/// Finds a value of any type with a schema, with no contract written.
pub fn parse_as<T: DeserializeOwned + JsonSchema>(
    text: &str,
    policy: &Policy,
) -> Result<T, ParseError> {
    let contract = Contract::from_schema(&schema_of::<T>(), Framing::AnyJson, policy.clone())?;
    Ok(contract.parse(text)?)
}

/// The JSON Schema (2020-12) of a type.
pub fn schema_of<T: JsonSchema>() -> Value {
    let mut schema =
        SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>().to_value();
    if let Value::Object(map) = &mut schema {
        map.remove("$schema");
    }
    tidy(&mut schema);
    schema
}

/// Leaves out what says nothing: formats of Rust integers, bounds that only repeat the type.
fn tidy(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            let rust_format = map.get("format").and_then(Value::as_str).is_some_and(|format| {
                matches!(
                    format,
                    "int8"
                        | "int16"
                        | "int32"
                        | "int64"
                        | "uint8"
                        | "uint16"
                        | "uint32"
                        | "uint64"
                        | "uint"
                        | "int"
                        | "float"
                        | "double"
                )
            });
            if rust_format {
                map.remove("format");
            }
            for member in map.values_mut() {
                tidy(member);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(tidy),
        _ => {}
    }
}

impl Definition {
    /// A definition with the schema of a type.
    pub fn of<T: JsonSchema>(id: &str, version: u32, framing: Framing) -> Self {
        Self::new(id, version, framing, schema_of::<T>())
    }
}

/// A path inside the repository: relative, with no `..`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RepoPath(pub String);

impl JsonSchema for RepoPath {
    fn schema_name() -> Cow<'static, str> {
        "RepoPath".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({"type": "string", "format": "repo-path"})
    }
}

impl AsRef<str> for RepoPath {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

/// A point in time, as RFC 3339 writes it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(pub String);

impl JsonSchema for Timestamp {
    fn schema_name() -> Cow<'static, str> {
        "Timestamp".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({"type": "string", "format": "date-time"})
    }
}

/// The schema of the value itself, with its id.
pub(crate) fn with_id(schema: &Value, reference: &str) -> Value {
    let mut out = serde_json::Map::new();
    out.insert("$schema".into(), json!("https://json-schema.org/draft/2020-12/schema"));
    out.insert("$id".into(), json!(format!("urn:counterfoil:{reference}")));
    if let Value::Object(map) = schema {
        for (key, value) in map {
            out.entry(key.clone()).or_insert_with(|| value.clone());
        }
    }
    Value::Object(out)
}
