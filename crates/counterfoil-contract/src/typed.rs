//! Contracts from Rust types.

use crate::check::Rejection;
use crate::contract::Contract;
use crate::definition::Definition;
use crate::policy::{Framing, Policy};
use crate::problem::LoadError;
use crate::report::Report;
use crate::schema::build_validator;
use schemars::{JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::any::TypeId;
use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

/// A Rust type that an agent returns. Keep your serde and schemars derives; the definition adds
/// what they cannot express: the framing, the rules, the claims.
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
///         Definition::for_type::<Self>("acme/check", 1, Framing::AnyJson)
///             .rule(Rule::require("fix-info-when-failed", "!result.ok", &["fix_info"]))
///     }
/// }
///
/// let check: Check = counterfoil_contract::parse(r#"Done: {"ok": true}"#).unwrap();
/// assert!(check.ok);
/// let error = counterfoil_contract::parse::<Check>(r#"Done: {"ok": false}"#).unwrap_err();
/// assert_eq!(error.report().unwrap().violations[0].pointer, "/fix_info");
/// ```
pub trait AgentOutput: Serialize + DeserializeOwned + JsonSchema + 'static {
    /// The definition of the contract: what a contract file would say.
    fn definition() -> Definition;
}

/// Every contract compiled from a type lives as long as the program.
type CompiledTypes = HashMap<TypeId, Result<&'static Contract, LoadError>>;
static COMPILED: LazyLock<Mutex<CompiledTypes>> = LazyLock::new(Mutex::default);

/// The contract of a type. It is compiled by the first call.
///
/// # Errors
///
/// If the definition of the type does not compile.
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
    /// The contract of the type does not compile.
    #[error(transparent)]
    Contract(#[from] LoadError),
}

impl ParseError {
    /// The report about the text, if the text was checked.
    pub fn report(&self) -> Option<&Report> {
        match self {
            Self::Rejected(rejection) => Some(&rejection.report),
            Self::Contract(_) => None,
        }
    }
}

/// Extracts the result from a text, validates it against the contract of its type, and
/// deserializes it.
///
/// # Errors
///
/// If the text holds no result that satisfies the contract, or if the definition of the type does
/// not compile.
pub fn parse<T: AgentOutput>(text: &str) -> Result<T, ParseError> {
    Ok(contract_of::<T>()?.parse(text)?)
}

/// Another name for [`parse`].
///
/// # Errors
///
/// As for [`parse`].
pub fn validate_output<T: AgentOutput>(raw: &str) -> Result<T, ParseError> {
    parse(raw)
}

/// Extracts a value of any type that has a JSON Schema, without a contract of its own. The schema
/// is compiled once for each type and policy.
///
/// # Errors
///
/// If the text holds no such value, or if the schema of the type or the policy is not valid.
pub fn parse_as<T: DeserializeOwned + JsonSchema + 'static>(
    text: &str,
    policy: &Policy,
) -> Result<T, ParseError> {
    Ok(schema_contract::<T>(policy)?.parse(text)?)
}

/// The contracts of [`parse_as`], the newest first.
static SCHEMA_CONTRACTS: Mutex<VecDeque<SchemaContract>> = Mutex::new(VecDeque::new());
/// More contracts than this are not kept: a program may use any number of policies.
const MAX_SCHEMA_CONTRACTS: usize = 128;

struct SchemaContract {
    ty: TypeId,
    policy: Policy,
    contract: Arc<Contract>,
}

fn schema_contract<T: JsonSchema + 'static>(policy: &Policy) -> Result<Arc<Contract>, LoadError> {
    let ty = TypeId::of::<T>();
    let mut kept = SCHEMA_CONTRACTS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(entry) = kept.iter().find(|entry| entry.ty == ty && entry.policy == *policy) {
        return Ok(Arc::clone(&entry.contract));
    }
    let schema = schema_of::<T>();
    let contract = Arc::new(Contract::from_schema(&schema, Framing::AnyJson, policy.clone())?);
    kept.truncate(MAX_SCHEMA_CONTRACTS - 1);
    kept.push_front(SchemaContract { ty, policy: policy.clone(), contract: Arc::clone(&contract) });
    Ok(contract)
}

/// The JSON Schema (2020-12) of a type.
pub fn schema_of<T: JsonSchema>() -> Value {
    let mut schema =
        SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>().to_value();
    if let Value::Object(map) = &mut schema {
        map.remove("$schema");
    }
    remove_rust_formats(&mut schema);
    schema
}

/// Removes the formats of Rust numbers, which mean nothing outside of Rust.
fn remove_rust_formats(schema: &mut Value) {
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
                remove_rust_formats(member);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(remove_rust_formats),
        _ => {}
    }
}

impl Definition {
    /// A definition whose schema comes from a type.
    pub fn for_type<T: JsonSchema>(id: &str, version: u32, framing: Framing) -> Self {
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

impl Timestamp {
    /// The point in time that a text names; `None` if a field of the form `timestamp` refuses it.
    pub fn parse(text: &str) -> Option<Self> {
        let validator = build_validator(&schema_of::<Self>()).ok()?;
        validator.is_valid(&Value::from(text)).then(|| Self(text.to_owned()))
    }
}

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
