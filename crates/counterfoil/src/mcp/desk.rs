//! The desk at which results are handed in: which tools there are, and what a call of one comes to.
//! Nothing is written here.

use super::answer::Answer;
use super::form::{CONTRACT, Form, RESULT, chosen, closed, named, own};
use counterfoil_agents::agent::adapter::Server;
use counterfoil_contract::render::prompt;
use counterfoil_contract::render::vendor::{self, Target, raise};
use counterfoil_contract::{Contract, Report, Type};
use rmcp::model::{MetaObject, Tool, ToolAnnotations};
use serde_json::{Map, Value, json};
use std::sync::Arc;

const TEXT: &str = "text";

/// What is offered, and in whose dialect.
#[derive(Debug)]
pub(crate) struct Desk {
    contracts: Vec<Arc<Contract>>,
    target: Target,
    form: Form,
}

/// A result that was handed in.
pub(super) struct Handed<'d> {
    /// What it is held to.
    pub(super) contract: &'d Contract,
    /// The result as it was meant: without wrapping, and without the nulls of the dialect. Null if
    /// there was none.
    pub(super) value: Value,
    /// What came of it.
    pub(super) report: Report,
}

impl Desk {
    /// A desk for these contracts; there is at least one.
    pub(crate) fn new(contracts: Vec<Arc<Contract>>, target: Target) -> Self {
        let form = Form::of(&contracts, target);
        Self { contracts, target, form }
    }

    /// What an agent is told of the server as a whole.
    pub(super) fn instructions(&self) -> String {
        let whose = match self.contracts.as_slice() {
            [one] => format!("the contract {}", one.reference()),
            _ => "one of several contracts, which `get_contract` lists".to_owned(),
        };
        format!(
            "Counterfoil takes the result of your work and holds it to {whose}. When the work is done, call `{}` with the whole result. If it \
             is not accepted, the answer says what is wrong and where: correct that and call it again. The last result that was accepted \
             counts. Once one is accepted you are done.",
            Server::TOOL
        )
    }

    /// The tools.
    pub(super) fn tools(&self) -> Vec<Tool> {
        let [submit, get, check] = Server::TOOLS;
        let what = match self.contracts.as_slice() {
            [one] => format!("`{}`{}", one.reference(), summary(one)),
            all => {
                let each: Vec<String> = all
                    .iter()
                    .map(|one| format!("`{}`{}", one.reference(), summary(one)))
                    .collect();
                format!("one of these contracts: {}", each.join("; "))
            }
        };
        let form = match self.form {
            Form::Bare => "The arguments are the result itself.".to_owned(),
            Form::Wrapped => format!("The result stands under `{RESULT}`."),
            Form::Named => format!("Name the `{CONTRACT}`; the result stands under `{RESULT}`."),
        };
        // Without it, clients that keep the tools of servers out of the prompt hide this one until
        // somebody searches for it.
        let at_hand =
            MetaObject::from(Map::from_iter([("anthropic/alwaysLoad".to_owned(), json!(true))]));
        let read_only = ToolAnnotations::new().read_only(true).open_world(false);
        vec![
            Tool::new(
                submit,
                format!(
                    "Hand in the result of your work, held to {what}. {form} Call it when the work is done, with the whole result. If it is not \
                     accepted, the answer says what is wrong and where: correct that and call it again. The last accepted result counts; \
                     once it is accepted, stop: no further text is needed."
                ),
                self.form.schema(&self.contracts, self.target),
            )
            .with_title("Hand in the result")
            .with_meta(at_hand)
            .with_annotations(
                ToolAnnotations::new().read_only(false).destructive(false).idempotent(true).open_world(false),
            ),
            Tool::new(
                get,
                format!(
                    "Read what the result must be: its fields and rules in words, its schema, an example. Read it before you call `{submit}`, if \
                     the schema of that tool leaves anything open."
                ),
                self.named_only(),
            )
            .with_title("Read the contract")
            .with_annotations(read_only.clone()),
            Tool::new(
                check,
                format!(
                    "Check a result without handing it in: give the `{RESULT}`, or a `{TEXT}` that holds it. The answer says everything that is \
                     wrong. This hands nothing in: only `{submit}` does, and it checks too."
                ),
                self.checkable(),
            )
            .with_title("Check a result")
            .with_annotations(read_only),
        ]
    }

    /// Arguments that at most name a contract.
    fn named_only(&self) -> Map<String, Value> {
        let mut properties = Vec::new();
        if self.form == Form::Named {
            properties.push((
                CONTRACT,
                named(&self.contracts, "Which contract; without it, all are listed"),
            ));
        }
        closed(properties, &[], self.target)
    }

    /// Arguments that hold a result or a text.
    fn checkable(&self) -> Map<String, Value> {
        let mut result = json!({"description": "The result, as the contract describes it"});
        if let [one] = self.contracts.as_slice()
            && let Some(ty) = shape(one)
        {
            result["type"] = json!(ty);
        }
        let text = json!({"type": "string", "description": "A text that holds the result, as it would be answered without tools"});
        let mut properties = vec![(RESULT, result), (TEXT, text)];
        let mut required = Vec::new();
        if self.form == Form::Named {
            properties
                .insert(0, (CONTRACT, named(&self.contracts, "The contract that it is held to")));
            required.push(CONTRACT);
        }
        closed(properties, &required, self.target)
    }

    /// Takes a result and holds it to its contract.
    pub(super) fn submit(&self, arguments: Map<String, Value>) -> Result<Handed<'_>, String> {
        let taken = self.form.take(&self.contracts, own(&self.contracts, arguments))?;
        Ok(match taken.value {
            Some(value) => {
                let value = raise(taken.contract, self.target, value);
                let report = taken.contract.check_value(&value);
                Handed { contract: taken.contract, value, report }
            }
            None => Handed {
                contract: taken.contract,
                value: Value::Null,
                report: taken.contract.check(""),
            },
        })
    }

    /// Says what a contract is.
    pub(super) fn get(&self, mut arguments: Map<String, Value>) -> Answer {
        let named = arguments.shift_remove(CONTRACT).filter(|named| !named.is_null());
        if named.is_none() && self.contracts.len() > 1 {
            return Answer::contracts(self.contracts.iter().map(Arc::as_ref));
        }
        match chosen(&self.contracts, named.as_ref()) {
            Ok(contract) => {
                let schema = vendor::schema(contract, Target::Draft2020).schema;
                let example =
                    prompt::example(contract).map(|example| self.as_arguments(contract, example));
                Answer::contract(contract, &schema, example.as_ref())
            }
            Err(why) => Answer::unusable(&why),
        }
    }

    /// Checks a result or a text, and keeps nothing.
    pub(super) fn check(&self, arguments: Map<String, Value>) -> Answer {
        let mut arguments = own(&self.contracts, arguments);
        let contract = match chosen(&self.contracts, arguments.shift_remove(CONTRACT).as_ref()) {
            Ok(contract) => contract,
            Err(why) => return Answer::unusable(&why),
        };
        // A writer that must fill in everything leaves the other one null.
        let given = |arguments: &mut Map<String, Value>, name: &str| {
            arguments.shift_remove(name).filter(|value| !value.is_null())
        };
        let (text, result) = (given(&mut arguments, TEXT), given(&mut arguments, RESULT));
        let unknown = arguments.keys().next().cloned();
        match (text, result, unknown) {
            (_, _, Some(name)) => Answer::unusable(&format!(
                "`{name}` is not known here; give a `{RESULT}`, or a `{TEXT}` that holds one"
            )),
            (Some(Value::String(text)), None, None) => Answer::checked(&contract.check(&text)),
            (Some(_), None, None) => {
                Answer::unusable(&format!("`{TEXT}` is a text; give a result as `{RESULT}`"))
            }
            (None, Some(result), None) => {
                Answer::checked(&contract.check_value(&raise(contract, self.target, result)))
            }
            (Some(_), Some(_), None) => {
                Answer::unusable(&format!("give either a `{RESULT}` or a `{TEXT}`, not both"))
            }
            (None, None, None) => {
                Answer::unusable(&format!("give a `{RESULT}`, or a `{TEXT}` that holds one"))
            }
        }
    }

    /// A result as the arguments of a call.
    fn as_arguments(&self, contract: &Contract, result: &Value) -> Value {
        match self.form {
            Form::Bare => result.clone(),
            Form::Wrapped => json!({RESULT: result}),
            Form::Named => json!({CONTRACT: contract.reference(), RESULT: result}),
        }
    }
}

fn summary(contract: &Contract) -> String {
    match contract.definition().summary.as_str() {
        "" => String::new(),
        words => format!(" ({words})"),
    }
}

/// The one type that a schema can name for a contract's result, if there is one.
fn shape(contract: &Contract) -> Option<&'static str> {
    match contract.ty() {
        Type::Object(_) | Type::Map(_) => Some("object"),
        Type::List(_) => Some("array"),
        Type::String(_) => Some("string"),
        Type::Bool => Some("boolean"),
        Type::Int => Some("integer"),
        Type::Double => Some("number"),
        Type::Any | Type::Null | Type::Union(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::form::stands_alone;

    #[test]
    fn every_contract_of_the_packs_is_offered_with_a_schema_that_is_one_of_a_tool_and_takes_its_examples()
     {
        let registry = counterfoil_packs::registry();
        for entry in registry.iter() {
            let contract = entry.contract().unwrap();
            for target in Target::ALL {
                let desk = Desk::new(vec![contract.clone()], target);
                let who = format!("{} for {}", contract.reference(), target.name());
                let schema = Value::Object(desk.form.schema(&desk.contracts, target));
                assert!(stands_alone(&schema), "{who}");
                let validator = jsonschema::validator_for(&schema).unwrap();
                for example in &contract.definition().examples {
                    let arguments = desk.as_arguments(&contract, example);
                    // Only the whole dialects say everything that the contract does, and no more.
                    if matches!(target, Target::Draft2020 | Target::Claude) {
                        assert!(validator.is_valid(&arguments), "{who}: {arguments}");
                    }
                    let Value::Object(arguments) = arguments else { panic!("{who}") };
                    let handed = desk.submit(arguments).unwrap();
                    assert!(handed.report.is_accepted(), "{who}: {:?}", handed.report.violations);
                    assert_eq!(&handed.value, example, "{who}");
                }
            }
        }
    }
}
