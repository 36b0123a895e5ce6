//! The definition of a contract: what a contract file holds, or what a Rust type gives.

use crate::claim::Claim;
use crate::policy::{Coerce, Framing, Policy, Rename, RepairPolicy, Several, Unwrap};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The definition of a contract. Compile it with [`Contract::compile`](crate::Contract::compile).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    /// The id, `namespace/name`.
    pub contract: String,
    /// The version, from 1.
    pub version: u32,
    /// Where in the text the result is.
    #[serde(default)]
    pub framing: Framing,
    /// What the result is, in one line.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub summary: String,
    /// The agent that returns the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Other ids of the contract.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// Why the contract is deprecated, and what to use instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<String>,
    /// One line that shows a result, as a template over `result`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display: Option<String>,
    /// The JSON Schema (2020-12) of the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    /// The short form of a schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fields: Option<Map<String, Value>>,
    /// Conditions that the schema cannot express.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<Rule>,
    /// The claims that can be verified, by field.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub claims: BTreeMap<String, Claim>,
    /// Fields that are filled in before the result is validated, by field, each with an expression
    /// over `run`. The agent is not asked for them. A value that it gives must be the same, or is
    /// kept if the field is written with a question mark (`at?`).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub filled: BTreeMap<String, String>,
    /// How strictly a text is read.
    #[serde(default, skip_serializing_if = "is_default")]
    pub policy: Policy,
    /// Results that satisfy the contract.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<Value>,
    /// The examples that agents are shown, by their numbers from 0. If there are none, the most
    /// informative ones are chosen.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "one_or_more")]
    pub shown: Vec<usize>,
    /// When a result lets the work pass, as an expression over `result`. Agents are never shown
    /// only examples that do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approves: Option<String>,
    /// Results that the contract rejects, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counter_examples: Vec<CounterExample>,
}

/// Reads one number or a list of numbers.
fn one_or_more<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<usize>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Numbers {
        One(usize),
        More(Vec<usize>),
    }
    Ok(match Numbers::deserialize(deserializer)? {
        Numbers::One(number) => vec![number],
        Numbers::More(numbers) => numbers,
    })
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// A result that the contract rejects.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CounterExample {
    /// The result.
    pub value: Value,
    /// The code of the violation, or the id of the rule that is broken.
    pub because: String,
}

/// A condition that a schema cannot express.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Rule {
    /// The id, unique in the contract.
    pub id: String,
    /// The items that the rule applies to, as a pointer pattern such as `/findings/*`. The
    /// expressions can then use `item`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub each: Option<String>,
    /// When the rule applies, as an expression over `result`; always, if omitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// Fields that must be present, not null and not blank.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub require: Vec<String>,
    /// Fields that must be absent or empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub forbid: Vec<String>,
    /// An expression that must be true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub check: Option<String>,
    /// Values that must be unique, as a pointer pattern such as `/findings/*/id`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unique: Option<String>,
    /// The message of the violation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The hint of the violation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The field that the violation points at; by default the first field that the check reads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// Whether a broken rule is only a warning.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub warn: bool,
}

impl Rule {
    /// A rule that requires an expression to be true.
    pub fn check(id: &str, check: &str, message: &str) -> Self {
        Self {
            id: id.into(),
            check: Some(check.into()),
            message: Some(message.into()),
            ..Self::default()
        }
    }

    /// A rule that requires fields when an expression is true.
    pub fn require(id: &str, when: &str, fields: &[&str]) -> Self {
        Self {
            id: id.into(),
            when: Some(when.into()),
            require: fields.iter().map(|field| (*field).to_owned()).collect(),
            ..Self::default()
        }
    }

    /// A rule that forbids fields when an expression is true.
    pub fn forbid(id: &str, when: &str, fields: &[&str]) -> Self {
        Self {
            id: id.into(),
            when: Some(when.into()),
            forbid: fields.iter().map(|field| (*field).to_owned()).collect(),
            ..Self::default()
        }
    }

    /// A rule that requires unique values.
    pub fn unique(id: &str, pattern: &str) -> Self {
        Self { id: id.into(), unique: Some(pattern.into()), ..Self::default() }
    }

    /// Applies the rule to each item of a list.
    #[must_use]
    pub fn each(mut self, pattern: &str) -> Self {
        self.each = Some(pattern.into());
        self
    }

    /// Applies the rule only when an expression is true.
    #[must_use]
    pub fn when(mut self, when: &str) -> Self {
        self.when = Some(when.into());
        self
    }

    /// Sets the field that the violation points at.
    #[must_use]
    pub fn at(mut self, pointer: &str) -> Self {
        self.at = Some(pointer.into());
        self
    }

    /// Sets the hint of the violation.
    #[must_use]
    pub fn hint(mut self, hint: &str) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Makes a broken rule a warning.
    #[must_use]
    pub fn warns(mut self) -> Self {
        self.warn = true;
        self
    }
}

impl Definition {
    /// A definition with a schema.
    pub fn new(id: &str, version: u32, framing: Framing, schema: Value) -> Self {
        Self {
            contract: id.to_owned(),
            version,
            framing,
            summary: String::new(),
            agent: None,
            aliases: Vec::new(),
            deprecated: None,
            display: None,
            schema: Some(schema),
            fields: None,
            rules: Vec::new(),
            claims: BTreeMap::new(),
            filled: BTreeMap::new(),
            policy: Policy::default(),
            examples: Vec::new(),
            shown: Vec::new(),
            approves: None,
            counter_examples: Vec::new(),
        }
    }

    /// Sets the version, from 1.
    #[must_use]
    pub fn version(mut self, version: u32) -> Self {
        self.version = version;
        self
    }

    /// Sets the summary: what the result is, in one line.
    #[must_use]
    pub fn summary(mut self, summary: &str) -> Self {
        summary.clone_into(&mut self.summary);
        self
    }

    /// Sets the agent that returns the result.
    #[must_use]
    pub fn agent(mut self, agent: &str) -> Self {
        self.agent = Some(agent.to_owned());
        self
    }

    /// Adds another id.
    #[must_use]
    pub fn alias(mut self, alias: &str) -> Self {
        self.aliases.push(alias.to_owned());
        self
    }

    /// Marks the contract as deprecated, with what to use instead.
    #[must_use]
    pub fn deprecated(mut self, why: &str) -> Self {
        self.deprecated = Some(why.to_owned());
        self
    }

    /// Sets the template of the line that shows a result.
    #[must_use]
    pub fn display(mut self, template: &str) -> Self {
        self.display = Some(template.to_owned());
        self
    }

    /// Adds a rule.
    #[must_use]
    pub fn rule(mut self, rule: Rule) -> Self {
        self.rules.push(rule);
        self
    }

    /// Declares a claim on a field.
    #[must_use]
    pub fn claim(mut self, field: &str, claim: Claim) -> Self {
        self.claims.insert(field.to_owned(), claim);
        self
    }

    /// Fills in a field with an expression over `run`, instead of asking the agent for it.
    #[must_use]
    pub fn fills(mut self, field: &str, expression: &str) -> Self {
        self.filled.insert(field.to_owned(), expression.to_owned());
        self
    }

    /// Allows repairs of the syntax.
    #[must_use]
    pub fn repairs_syntax(mut self) -> Self {
        self.policy.repair = RepairPolicy::Syntax;
        self
    }

    /// Allows coercion of the fields at these pointer patterns.
    #[must_use]
    pub fn coerces(mut self, patterns: &[&str]) -> Self {
        self.policy.coerce =
            Coerce::Fields(patterns.iter().map(|pattern| (*pattern).to_owned()).collect());
        self
    }

    /// Accepts a field under another name, in the objects that a pointer pattern selects.
    #[must_use]
    pub fn renames(mut self, at: &str, from: &str, to: &str) -> Self {
        self.policy.rename.push(Rename {
            at: at.to_owned(),
            from: from.to_owned(),
            to: to.to_owned(),
        });
        self
    }

    /// Sets the envelopes to remove.
    #[must_use]
    pub fn unwraps(mut self, unwrap: Unwrap) -> Self {
        self.policy.unwrap = unwrap;
        self
    }

    /// Reports the valid items of a list when the result is rejected.
    #[must_use]
    pub fn salvages(mut self, pointer: &str) -> Self {
        self.policy.salvage.push(pointer.to_owned());
        self
    }

    /// Makes fields required that have a default. A strict check rejects a result without them; a
    /// lenient one uses the default and adds a warning.
    #[must_use]
    pub fn expects(mut self, fields: &[&str]) -> Self {
        if let Some(Value::Object(schema)) = &mut self.schema {
            let required = schema.entry("required").or_insert_with(|| Value::Array(Vec::new()));
            if let Value::Array(names) = required {
                for field in fields {
                    if !names.iter().any(|name| name == field) {
                        names.push((*field).into());
                    }
                }
            }
        }
        self
    }

    /// Adds an example.
    #[must_use]
    pub fn example(mut self, value: Value) -> Self {
        self.examples.push(value);
        self
    }

    /// Sets the examples that agents are shown, by their numbers from 0.
    #[must_use]
    pub fn shows(mut self, examples: &[usize]) -> Self {
        self.shown = examples.to_vec();
        self
    }

    /// Sets when a result lets the work pass, as an expression over `result`.
    #[must_use]
    pub fn approves(mut self, when: &str) -> Self {
        self.approves = Some(when.to_owned());
        self
    }

    /// Rejects a text with several valid results that differ, so that the agent is asked.
    #[must_use]
    pub fn asks_if_several(mut self) -> Self {
        self.policy.several = Several::Ask;
        self
    }

    /// Adds a counter-example, which a code or a rule rejects.
    #[must_use]
    pub fn counter_example(mut self, because: &str, value: Value) -> Self {
        self.counter_examples.push(CounterExample { value, because: because.to_owned() });
        self
    }
}

/// The field of a key in `filled`: that of `at?` is `at`.
pub(crate) fn filled_field(key: &str) -> &str {
    key.strip_suffix('?').unwrap_or(key)
}

/// Checks that a text can be the id of a contract.
///
/// # Errors
///
/// If it cannot: why not.
pub fn check_id(id: &str) -> Result<(), String> {
    let Some((namespace, name)) = id.split_once('/') else {
        return Err(format!("'{id}' has no namespace"));
    };
    for part in [namespace, name] {
        let good = !part.is_empty()
            && part.bytes().all(|byte| {
                byte.is_ascii_lowercase()
                    || byte.is_ascii_digit()
                    || matches!(byte, b'-' | b'_' | b'.')
            })
            && part.as_bytes()[0].is_ascii_alphanumeric();
        if !good {
            return Err(format!(
                "'{part}' in '{id}' is not a name of lower-case letters, digits, - _ and ."
            ));
        }
    }
    Ok(())
}
