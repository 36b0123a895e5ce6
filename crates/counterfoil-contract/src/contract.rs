//! The compiled contract: its parts, and access to them.

use crate::attempt::AttemptKeys;
use crate::claim::{Claim, EffectiveClaim};
use crate::definition::Definition;
#[cfg(feature = "rules")]
use crate::definition::Rule;
use crate::display::Display;
use crate::expr::Type;
#[cfg(feature = "rules")]
use crate::expr::{Expr, Expression};
use crate::policy::{Framing, Policy};
use crate::schema::SchemaValidator;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What an agent must return: compiled once, then applied to any number of texts.
#[derive(Clone, Debug)]
pub struct Contract {
    pub(crate) definition: Definition,
    pub(crate) reference: String,
    pub(crate) schema: Value,
    pub(crate) validator: Arc<SchemaValidator>,
    pub(crate) ty: Type,
    pub(crate) attempt_keys: AttemptKeys,
    #[cfg(feature = "rules")]
    pub(crate) rules: Arc<[CompiledRule]>,
    #[cfg(feature = "rules")]
    pub(crate) fields_read: Option<Vec<String>>,
    pub(crate) display: Option<Arc<Display>>,
    /// When a result approves.
    #[cfg(feature = "rules")]
    pub(crate) approves: Option<Arc<Expression>>,
    /// The examples that agents are shown, by their numbers.
    pub(crate) shown_examples: Vec<usize>,
    /// The type and the schema with the fields that agents may leave out; none if there are none.
    pub(crate) optional: Option<(Type, Value)>,
    /// The fields that are filled in, and what remains to be asked; none if no field is.
    pub(crate) filled: Option<Arc<FilledFields>>,
}

/// The fields of a contract that are filled in, and the contract without them.
#[derive(Debug)]
pub(crate) struct FilledFields {
    #[cfg(feature = "rules")]
    pub(crate) fields: Vec<FilledField>,
    /// The objects of which every field is filled in, as pointers.
    #[cfg(feature = "rules")]
    pub(crate) objects: Vec<String>,
    /// The schema in which these fields and objects are optional, for results that rules fill in.
    #[cfg_attr(not(feature = "rules"), expect(dead_code, reason = "only rules fill in fields"))]
    pub(crate) relaxed: SchemaValidator,
    /// The schema, the type and the examples without these fields and objects.
    pub(crate) schema: Value,
    pub(crate) ty: Type,
    pub(crate) examples: Vec<Value>,
}

/// A field that is filled in.
#[cfg(feature = "rules")]
#[derive(Debug)]
pub(crate) struct FilledField {
    pub(crate) pointer: String,
    pub(crate) expression: Expression,
    /// Whether a value that the agent gives is kept.
    pub(crate) keeps: bool,
}

/// A rule with its expressions compiled.
#[cfg(feature = "rules")]
#[derive(Debug)]
pub(crate) struct CompiledRule {
    pub(crate) rule: Rule,
    pub(crate) when: Option<Expr>,
    pub(crate) check: Option<Expr>,
    /// The fields that the expressions read, as pointers from the root or, for a rule on items,
    /// from the item.
    pub(crate) reads: Vec<String>,
    /// Whether they read the result as a whole.
    pub(crate) reads_whole: bool,
    /// The type of the items, for a rule on items.
    pub(crate) item: Option<Type>,
}

impl Contract {
    /// The id, `namespace/name`.
    pub fn id(&self) -> &str {
        &self.definition.contract
    }

    /// The version.
    pub fn version(&self) -> u32 {
        self.definition.version
    }

    /// The id with its version, `namespace/name@1`.
    pub fn reference(&self) -> &str {
        &self.reference
    }

    /// Where in the text the result is.
    pub fn framing(&self) -> Framing {
        self.definition.framing
    }

    /// How strictly a text is read.
    pub fn policy(&self) -> &Policy {
        &self.definition.policy
    }

    /// The definition that was compiled.
    pub fn definition(&self) -> &Definition {
        &self.definition
    }

    /// The claims as they apply to a step that does not adjust them.
    pub fn effective_claims(&self) -> Vec<EffectiveClaim> {
        let claims = self.definition.claims.iter().map(|(field, claim)| EffectiveClaim {
            name: Claim::name(field),
            field: field.clone(),
            claim: claim.clone(),
            findings: None,
        });
        claims.collect()
    }

    /// The claims, by field.
    pub fn claims(&self) -> &BTreeMap<String, Claim> {
        &self.definition.claims
    }

    /// The JSON Schema of a result, without an id.
    pub fn raw_schema(&self) -> &Value {
        &self.schema
    }

    /// The type of a result.
    pub fn ty(&self) -> &Type {
        &self.ty
    }

    /// The examples that agents are shown. If one of them does not approve, the first one does not.
    pub fn shown_examples(&self) -> impl Iterator<Item = &Value> {
        self.shown_examples.iter().filter_map(|number| self.asked_examples().get(*number))
    }

    /// Whether a result lets the work pass; `None` if the contract does not say when.
    pub fn approves(&self, result: &Value) -> Option<bool> {
        #[cfg(feature = "rules")]
        {
            let approves = self.approves.as_ref()?;
            // What cannot be evaluated must not be taken for harmless.
            Some(approves.test(&[("result", result, &self.ty)]).unwrap_or(true))
        }
        #[cfg(not(feature = "rules"))]
        {
            let _ = result;
            None
        }
    }

    /// The JSON Schema of what the agent is asked for: without the fields that are filled in, and
    /// with null where it may leave a field out.
    pub fn asked_schema(&self) -> &Value {
        let optional = || self.optional.as_ref().map_or(&self.schema, |(_, schema)| schema);
        self.filled.as_ref().map_or_else(optional, |filled| &filled.schema)
    }

    /// The type of what the agent is asked for.
    pub fn asked_type(&self) -> &Type {
        let optional = || self.optional.as_ref().map_or(&self.ty, |(ty, _)| ty);
        self.filled.as_ref().map_or_else(optional, |filled| &filled.ty)
    }

    /// The examples of what the agent is asked for.
    pub fn asked_examples(&self) -> &[Value] {
        self.filled.as_ref().map_or(&self.definition.examples, |filled| &filled.examples)
    }

    /// Whether fields are filled in.
    pub fn fills_fields(&self) -> bool {
        self.filled.is_some()
    }

    pub(crate) fn validator(&self) -> &SchemaValidator {
        &self.validator
    }

    #[cfg(feature = "rules")]
    pub(crate) fn compiled_rules(&self) -> &[CompiledRule] {
        &self.rules
    }

    /// The root fields that rules read; `None` if one reads the result as a whole.
    #[cfg(feature = "rules")]
    pub(crate) fn fields_read(&self) -> Option<&[String]> {
        self.fields_read.as_deref()
    }
}
