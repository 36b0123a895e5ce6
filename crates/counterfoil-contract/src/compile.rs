//! Compiles a definition to a contract and reports all problems at once.

mod approves;
mod asked;
mod claims;
mod defaults;
mod examples;
mod filled;
mod paths;
#[cfg(feature = "rules")]
mod rules;

use crate::attempt::AttemptKeys;
use crate::code::Code;
use crate::contract::Contract;
use crate::definition::{Definition, check_id};
use crate::display::Display;
use crate::expr::{MAX_SCHEMA_PARTS, Type};
use crate::policy::{Framing, MAX_DEPTH, MAX_VALUES, Policy, UnknownFields};
use crate::problem::{LoadError, Problem};
use crate::schema::build_validator;
use crate::work::{self, MAX_COMPILE_TIME};
use serde_json::Value;
use std::sync::Arc;

/// Where a definition comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// From somebody who can correct it.
    Author,
    /// From a run or a recording, whose version has compiled it. Paths that do not select what they
    /// seem to, and that newer versions refuse, do here what they did then.
    Store,
}

impl Contract {
    /// Compiles a definition: validates its schema, type-checks its rules, and checks its examples.
    ///
    /// # Errors
    ///
    /// If a part of the definition is not valid: all problems that were found.
    pub fn compile(definition: Definition) -> Result<Self, LoadError> {
        compile(definition, Origin::Author)
    }

    /// Compiles a definition that is stored with a run or a recording, so that it was compiled before,
    /// perhaps by an older version. Mistakes that older versions let pass are not refused.
    ///
    /// # Errors
    ///
    /// If a part of the definition is not valid: all problems that were found.
    pub fn compile_stored(definition: Definition) -> Result<Self, LoadError> {
        compile(definition, Origin::Store)
    }

    /// The same contract with another answer to unknown fields.
    ///
    /// # Errors
    ///
    /// If an example of the contract has a field that is refused.
    pub fn with_unknown_fields(&self, unknown_fields: UnknownFields) -> Result<Self, LoadError> {
        let policy = self.policy().with_unknown_fields(unknown_fields);
        let definition = Definition { policy, ..self.definition.clone() };
        // The schema and the rules are the same.
        within_time(self.id(), || check_examples(Self { definition, ..self.clone() }))
    }

    /// A contract for a JSON Schema, without an id of its own.
    ///
    /// # Errors
    ///
    /// If the schema or the policy is not valid.
    pub fn from_schema(
        schema: &Value,
        framing: Framing,
        policy: Policy,
    ) -> Result<Self, LoadError> {
        let mut definition = Definition::new("local/schema", 1, framing, schema.clone());
        definition.policy = Policy { placeholders: false, ..policy };
        Self::compile(definition)
    }
}

pub(crate) fn compile(definition: Definition, origin: Origin) -> Result<Contract, LoadError> {
    within_time(&definition.contract.clone(), || compile_now(definition, origin))
}

/// Compiles a contract, unless that takes too long.
fn within_time(
    name: &str,
    compile: impl FnOnce() -> Result<Contract, LoadError>,
) -> Result<Contract, LoadError> {
    work::within_processor_time(MAX_COMPILE_TIME, || {
        let compiled = compile();
        if !work::is_over() {
            return compiled;
        }
        let seconds = MAX_COMPILE_TIME.as_secs();
        let message = format!("the contract takes more than {seconds} seconds to compile");
        let hint = "make its schema, its rules and its examples smaller";
        Err(LoadError::one(name, Problem::new(Code::BadSchema, "", message, hint)))
    })
}

fn compile_now(mut definition: Definition, origin: Origin) -> Result<Contract, LoadError> {
    let name = definition.contract.clone();
    let mut problems = Vec::new();
    check_head(&definition, &mut problems);
    let schema = match resolve_schema(&mut definition) {
        Ok(schema) => schema,
        Err(mut more) => {
            problems.append(&mut more);
            return Err(LoadError { name, problems });
        }
    };
    let validator = match build_validator(&schema) {
        Ok(validator) => validator,
        Err(problem) => {
            problems.push(problem);
            return Err(LoadError { name, problems });
        }
    };
    let (ty, is_cut) = Type::within_limits(&schema);
    if is_cut {
        problems.push(Problem::new(
            Code::BadSchema,
            "schema",
            format!("the schema has more than {MAX_SCHEMA_PARTS} parts, with what it refers to"),
            "write fewer alternatives; a schema that is referred to counts each time",
        ));
        return Err(LoadError { name, problems });
    }
    #[cfg(feature = "rules")]
    let rules = rules::compile_rules(&definition.rules, &ty, origin, &mut problems);
    #[cfg(not(feature = "rules"))]
    refuse_rules(&definition, &mut problems);
    #[cfg(feature = "rules")]
    let approves = approves::compile(&definition, &ty, &mut problems);
    claims::check(&definition, &ty, &mut problems);
    paths::check_policy(&definition, &ty, origin, &mut problems);
    let optional = asked::compile(&schema, &mut problems);
    let asked = optional.as_ref().unwrap_or(&schema);
    let filled = filled::compile(&definition, &schema, asked, &ty, &mut problems);
    let display =
        definition.display.as_deref().and_then(|template| match Display::compile(template) {
            Ok(display) => Some(display),
            Err(error) => {
                problems.push(Problem::new(
                    Code::BadDisplay,
                    "display",
                    error,
                    "see the minijinja syntax",
                ));
                None
            }
        });
    if !problems.is_empty() {
        return Err(LoadError { name, problems });
    }
    let reference = format!("{}@{}", definition.contract, definition.version);
    check_examples(Contract {
        #[cfg(feature = "rules")]
        fields_read: rules::fields_read(&rules),
        #[cfg(feature = "rules")]
        rules: rules.into(),
        attempt_keys: AttemptKeys::default(),
        definition,
        reference,
        schema,
        validator: Arc::new(validator),
        ty,
        display: display.map(Arc::new),
        #[cfg(feature = "rules")]
        approves: approves.map(Arc::new),
        shown_examples: Vec::new(),
        optional: optional.map(|schema| (Type::from_schema(&schema), schema)),
        filled: filled.map(Arc::new),
    })
}

/// Checks the examples of a contract by its policy, and chooses those that agents are shown.
fn check_examples(mut contract: Contract) -> Result<Contract, LoadError> {
    let asked = contract.filled.as_ref().map_or(&contract.ty, |filled| &filled.ty);
    contract.attempt_keys = AttemptKeys::new(asked, contract.policy());
    let mut problems = examples::check(&contract);
    if problems.is_empty() {
        contract.shown_examples = approves::choose_examples(&contract);
        problems = approves::check(&contract);
    }
    if !problems.is_empty() {
        return Err(LoadError { name: contract.id().to_owned(), problems });
    }
    Ok(contract)
}

/// Rules are never ignored: without the `rules` feature a contract that has some does not load.
#[cfg(not(feature = "rules"))]
fn refuse_rules(definition: &Definition, problems: &mut Vec<Problem>) {
    for (index, rule) in definition.rules.iter().enumerate() {
        problems.push(Problem::new(
            Code::BadRule,
            &format!("rules[{index}]"),
            format!(
                "the rule '{}' cannot be evaluated: this build has no support for rules",
                rule.id
            ),
            "enable the feature `rules` of counterfoil-contract",
        ));
    }
    if definition.approves.is_some() {
        problems.push(Problem::new(
            Code::BadRule,
            "approves",
            "`approves` cannot be evaluated: this build has no support for rules",
            "enable the feature `rules` of counterfoil-contract",
        ));
    }
}

fn check_head(definition: &Definition, problems: &mut Vec<Problem>) {
    if let Err(message) = check_id(&definition.contract) {
        problems.push(Problem::new(
            Code::BadId,
            "contract",
            message,
            "write namespace/name in lower case",
        ));
    }
    for (index, alias) in definition.aliases.iter().enumerate() {
        if alias.is_empty() || alias.contains(['@', ' ']) || *alias == definition.contract {
            problems.push(Problem::new(
                Code::BadId,
                &format!("aliases[{index}]"),
                format!("'{alias}' cannot be an alias"),
                "an alias has no spaces and no version, and is not the id itself",
            ));
        }
    }
    if definition.version == 0 {
        problems.push(Problem::new(
            Code::BadId,
            "version",
            "versions count from 1",
            "write version: 1",
        ));
    }
    if definition.policy.max_depth > MAX_DEPTH || definition.policy.max_depth == 0 {
        problems.push(Problem::new(
            Code::BadPolicy,
            "policy.max_depth",
            format!("a depth limit of {} is not possible", definition.policy.max_depth),
            format!("choose 1 to {MAX_DEPTH}"),
        ));
    }
    if definition.policy.max_values > MAX_VALUES || definition.policy.max_values == 0 {
        problems.push(Problem::new(
            Code::BadPolicy,
            "policy.max_values",
            format!("a limit of {} values is not possible", definition.policy.max_values),
            format!("choose 1 to {MAX_VALUES}"),
        ));
    }
}

fn resolve_schema(definition: &mut Definition) -> Result<Value, Vec<Problem>> {
    match (&definition.schema, &definition.fields) {
        (Some(_), Some(_)) => Err(vec![Problem::new(
            Code::BadSchema,
            "fields",
            "a contract has a schema or fields, not both",
            "remove one of them",
        )]),
        (None, None) => Err(vec![Problem::new(
            Code::BadSchema,
            "",
            "a contract needs a schema or fields",
            "add fields: with a name and a type for each",
        )]),
        (Some(schema), None) => Ok(schema.clone()),
        (None, Some(fields)) => crate::fields::to_schema(fields).map_err(|problems| {
            problems
                .into_iter()
                .map(|problem| {
                    Problem::new(
                        Code::BadField,
                        &problem.path,
                        problem.message,
                        "see docs/contracts.md",
                    )
                })
                .collect()
        }),
    }
}

/// Whether a path of a claim, such as `findings/*/file`, exists in a type. Stored definitions may have
/// such paths elsewhere too.
fn path_exists(path: &str, root: &Type) -> bool {
    path.is_empty() || root.at(path.trim_start_matches('/').split(['/', '.'])).is_some()
}
