//! The tools of the MCP server, and what their calls return. No I/O.

use super::arguments::{
    ArgumentLayout, Arguments, CONTRACT, RESULT, closed_object, contract_name_schema,
    find_contract, may_be_object, may_have_field, parse_quoted, without_client_arguments,
};
use super::response::ToolResponse;
use counterfoil_agents::adapters::Server;
use counterfoil_contract::expr::Type;
use counterfoil_contract::render::prompt;
use counterfoil_contract::render::vendor::{self, Target, raise};
use counterfoil_contract::shown::Shown;
use counterfoil_contract::{Context, Contract, Policy, Report};
use rmcp::model::{MetaObject, Tool, ToolAnnotations};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// The tool that returns a contract.
pub(super) const GET_CONTRACT: &str = "get_contract";
/// The tool that checks a result without submitting it.
pub(super) const CHECK_RESULT: &str = "check_result";
/// The argument of `run_check`.
const NAME: &str = "name";
/// The argument of `check` that holds a text with a result.
const TEXT: &str = "text";

/// The tools for a set of contracts, in the schema dialect of a vendor.
#[derive(Debug)]
pub(crate) struct SubmissionTools {
    contracts: Vec<Arc<Contract>>,
    target: Target,
    layout: ArgumentLayout,
    context: Option<Arc<Context>>,
    /// Whether results are received.
    receives: bool,
    /// Whether contracts can be asked for and results checked. An attempt needs neither: its prompt
    /// says which result to return, and how.
    consults: bool,
    /// The names of the project's checks that the agent can have run.
    checks: Vec<String>,
}

/// A submitted result.
pub(super) struct Submitted<'d> {
    /// The contract of the result.
    pub(super) contract: &'d Contract,
    /// The result without its wrapping and without the nulls that the dialect requires. Null if the
    /// arguments had no result.
    pub(super) value: Value,
    /// The validation report.
    pub(super) report: Report,
}

impl SubmissionTools {
    /// Creates the tools for these contracts, of which there must be at least one.
    pub(crate) fn new(contracts: Vec<Arc<Contract>>, target: Target) -> Self {
        let layout = ArgumentLayout::for_contracts(&contracts, target);
        Self {
            contracts,
            target,
            layout,
            context: None,
            receives: true,
            consults: true,
            checks: Vec::new(),
        }
    }

    /// The tools that one attempt needs: for its result, if it is submitted, and for these checks
    /// of the project.
    pub(crate) fn for_attempt(
        contract: Arc<Contract>,
        target: Target,
        context: Option<Context>,
        receives: bool,
        checks: Vec<String>,
    ) -> Self {
        let context = context.map(Arc::new);
        let tools = Self::new(vec![contract], target);
        Self { context, receives, consults: false, checks, ..tools }
    }

    /// How a result is read.
    fn policy(&self, contract: &Contract) -> Policy {
        match &self.context {
            Some(context) => contract.policy().with_context(context),
            None => contract.policy().clone(),
        }
    }

    /// The instructions of the server.
    pub(super) fn instructions(&self) -> String {
        if !self.receives {
            return format!(
                "Counterfoil runs the checks of this project. Call `{}` with the name of one.",
                Server::RUN_CHECK
            );
        }
        let contract = match self.contracts.as_slice() {
            [one] => format!("the contract {}", one.reference()),
            _ => "one of several contracts, which `get_contract` lists".to_owned(),
        };
        format!(
            "Counterfoil validates the result of your work against {contract}. When the work is done, call `{}` with the complete result. If it \
             is not accepted, the response lists what is wrong and where: fix that and call it again. The last result counts. \
             Once a result is accepted, you are done.",
            Server::TOOL
        )
    }

    /// The tool definitions.
    pub(super) fn tools(&self) -> Vec<Tool> {
        let mut tools = Vec::new();
        if self.receives {
            tools.push(self.submit_tool());
        }
        if self.consults {
            tools.extend(self.consulting_tools());
        }
        if !self.checks.is_empty() {
            tools.push(self.run_check_tool());
        }
        tools
    }

    /// The tool that receives a result.
    fn submit_tool(&self) -> Tool {
        let contracts = match self.contracts.as_slice() {
            [one] => format!("`{}`{}", one.reference(), summary(one)),
            all => {
                let each: Vec<String> = all
                    .iter()
                    .map(|one| format!("`{}`{}", one.reference(), summary(one)))
                    .collect();
                format!("one of these contracts: {}", each.join("; "))
            }
        };
        let usage = match self.layout {
            ArgumentLayout::Bare => "The arguments are the result itself.".to_owned(),
            ArgumentLayout::Wrapped => format!("Pass the result as `{RESULT}`."),
            ArgumentLayout::Named => {
                format!("Name the `{CONTRACT}` and pass the result as `{RESULT}`.")
            }
        };
        // Without this, clients that load tools on demand hide the tool until it is searched for.
        let always_load =
            MetaObject::from(Map::from_iter([("anthropic/alwaysLoad".to_owned(), json!(true))]));
        Tool::new(
            Server::TOOL,
            format!(
                "Submit the result of your work, validated against {contracts}. {usage} Call it when the work is done, with the complete \
                 result. If it is not accepted, the response lists what is wrong and where: fix that and call it again. The last \
                 result counts. Once it is accepted, stop: no further text is needed."
            ),
            self.layout.schema(&self.contracts, self.target),
        )
        .with_title("Submit the result")
        .with_meta(always_load)
        .with_annotations(
            ToolAnnotations::new().read_only(false).destructive(false).idempotent(true).open_world(false),
        )
    }

    /// The tools for those who work with contracts themselves.
    fn consulting_tools(&self) -> [Tool; 2] {
        let submit = Server::TOOL;
        let read_only = ToolAnnotations::new().read_only(true).open_world(false);
        [
            Tool::new(
                GET_CONTRACT,
                format!(
                    "Get the contract of the result: its fields and rules, its schema and an example. Call it before `{submit}` if the schema of \
                     that tool is not enough."
                ),
                self.get_schema(),
            )
            .with_title("Get the contract")
            .with_annotations(read_only.clone()),
            Tool::new(
                CHECK_RESULT,
                format!(
                    "Check a result without submitting it: pass the `{RESULT}`, or a `{TEXT}` that contains it. The response lists everything that \
                     is wrong. Nothing is submitted; `{submit}` validates and submits."
                ),
                self.check_schema(),
            )
            .with_title("Check a result")
            .with_annotations(read_only),
        ]
    }

    /// The tool that runs a check of the project.
    fn run_check_tool(&self) -> Tool {
        let name =
            json!({"type": "string", "enum": self.checks, "description": "The name of the check"});
        Tool::new(
            Server::RUN_CHECK,
            "Run a check of the project, such as its tests, on the files as they are now, and get its output: what failed first. The engine \
             runs it itself, so it works without permission to run commands. It may take minutes. The result is recorded as evidence.",
            closed_object(vec![(NAME, name)], &[NAME], self.target),
        )
        .with_title("Run a check")
        .with_meta(MetaObject::from(Map::from_iter([(
            "anthropic/alwaysLoad".to_owned(),
            json!(true),
        )])))
        .with_annotations(
            ToolAnnotations::new().read_only(false).destructive(false).idempotent(true).open_world(false),
        )
    }

    /// The check that a call of `run_check` names.
    pub(super) fn check_name(&self, arguments: &Map<String, Value>) -> Result<String, String> {
        let known = || self.checks.join(", ");
        match arguments.get(NAME) {
            Some(Value::String(name)) if self.checks.contains(name) => Ok(name.clone()),
            Some(Value::String(name)) => {
                Err(format!("there is no check '{name}'; available: {}", known()))
            }
            _ => Err(format!("pass the `{NAME}` of a check, one of: {}", known())),
        }
    }

    /// The arguments of `get_contract`: at most the name of a contract.
    fn get_schema(&self) -> Map<String, Value> {
        let mut properties = Vec::new();
        if self.layout == ArgumentLayout::Named {
            properties.push((
                CONTRACT,
                contract_name_schema(
                    &self.contracts,
                    "The contract; if omitted, all contracts are listed",
                ),
            ));
        }
        closed_object(properties, &[], self.target)
    }

    /// The arguments of `check`: a result or a text.
    fn check_schema(&self) -> Map<String, Value> {
        let mut result = json!({"description": "The result, as the contract describes it"});
        if let [one] = self.contracts.as_slice()
            && let Some(ty) = json_type(one)
        {
            result["type"] = json!(ty);
        }
        let text = json!({"type": "string", "description": "A text that contains the result, as in an answer without tools"});
        let mut properties = vec![(RESULT, result), (TEXT, text)];
        let mut required = Vec::new();
        if self.layout == ArgumentLayout::Named {
            let name = contract_name_schema(&self.contracts, "The contract of the result");
            properties.insert(0, (CONTRACT, name));
            required.push(CONTRACT);
        }
        closed_object(properties, &required, self.target)
    }

    /// Validates a submitted result.
    pub(super) fn submit(&self, arguments: Map<String, Value>) -> Result<Submitted<'_>, String> {
        let arguments = without_client_arguments(&self.contracts, arguments);
        let Arguments { contract, value } = self.layout.decode(&self.contracts, arguments)?;
        Ok(match value {
            Some(value) => {
                let value = raise(contract, self.target, value);
                let report = contract.check_value_shown(
                    &value,
                    &self.policy(contract),
                    &Shown::of(contract),
                );
                Submitted { contract, value, report }
            }
            None => Submitted { contract, value: Value::Null, report: contract.check("") },
        })
    }

    /// Returns a contract, or the list of contracts.
    pub(super) fn get(&self, mut arguments: Map<String, Value>) -> ToolResponse {
        let name = arguments.shift_remove(CONTRACT).filter(|name| !name.is_null());
        if name.is_none() && self.contracts.len() > 1 {
            return ToolResponse::contracts(self.contracts.iter().map(Arc::as_ref));
        }
        match find_contract(&self.contracts, name.as_ref()) {
            Ok(contract) => {
                let schema = vendor::schema(contract, Target::Draft2020).schema;
                let examples: Vec<Value> = prompt::examples(contract)
                    .into_iter()
                    .map(|example| self.as_arguments(contract, example))
                    .collect();
                ToolResponse::contract(contract, &schema, &examples)
            }
            Err(why) => ToolResponse::invalid_arguments(&why),
        }
    }

    /// Validates a result or a text. Nothing is stored.
    pub(super) fn check(&self, arguments: Map<String, Value>) -> ToolResponse {
        let mut arguments = without_client_arguments(&self.contracts, arguments);
        let name = arguments.shift_remove(CONTRACT);
        let contract = match find_contract(&self.contracts, name.as_ref()) {
            Ok(contract) => contract,
            Err(why) => return ToolResponse::invalid_arguments(&why),
        };
        // The result itself, as the tool that submits takes it.
        if self.is_unwrapped(contract, &arguments) {
            return self.checked(contract, Value::Object(arguments));
        }
        // A model that must fill in every argument sets the other one to null.
        let take = |arguments: &mut Map<String, Value>, name: &str| {
            arguments.shift_remove(name).filter(|value| !value.is_null())
        };
        let (text, result) = (take(&mut arguments, TEXT), take(&mut arguments, RESULT));
        let unknown = arguments.keys().next().cloned();
        match (text, result, unknown) {
            (_, _, Some(name)) => ToolResponse::invalid_arguments(&format!(
                "`{name}` is not a known argument; pass a `{RESULT}`, or a `{TEXT}` that contains one"
            )),
            (Some(Value::String(text)), None, None) => {
                ToolResponse::checked(&contract.check_with(&text, &self.policy(contract)))
            }
            (Some(_), None, None) => ToolResponse::invalid_arguments(&format!(
                "`{TEXT}` must be a string; pass a result as `{RESULT}`"
            )),
            (None, Some(result), None) => self.checked(contract, parse_quoted(contract, result)),
            (Some(_), Some(_), None) => ToolResponse::invalid_arguments(&format!(
                "pass either a `{RESULT}` or a `{TEXT}`, not both"
            )),
            (None, None, None) => ToolResponse::invalid_arguments(&format!(
                "pass a `{RESULT}`, or a `{TEXT}` that contains one"
            )),
        }
    }

    /// Whether arguments of `check_result` are a result without its wrapping: one of them, which is no
    /// argument of the tool, can be a field of the contract.
    fn is_unwrapped(&self, contract: &Contract, arguments: &Map<String, Value>) -> bool {
        let is_field =
            |name: &str| name != RESULT && name != TEXT && may_have_field(contract, name);
        self.layout != ArgumentLayout::Named
            && may_be_object(contract)
            && arguments.keys().any(|name| is_field(name))
    }

    /// The report about a result that is not submitted.
    fn checked(&self, contract: &Contract, result: Value) -> ToolResponse {
        let value = raise(contract, self.target, result);
        ToolResponse::checked(&contract.check_value_with(&value, &self.policy(contract)))
    }

    /// A result as the arguments of a call.
    fn as_arguments(&self, contract: &Contract, result: &Value) -> Value {
        match self.layout {
            ArgumentLayout::Bare => result.clone(),
            ArgumentLayout::Wrapped => json!({RESULT: result}),
            ArgumentLayout::Named => json!({CONTRACT: contract.reference(), RESULT: result}),
        }
    }
}

fn summary(contract: &Contract) -> String {
    match contract.definition().summary.as_str() {
        "" => String::new(),
        summary => format!(" ({summary})"),
    }
}

/// The JSON type of a contract's result, if there is exactly one.
fn json_type(contract: &Contract) -> Option<&'static str> {
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
    use crate::mcp::arguments::is_tool_schema;
    use counterfoil_contract::Code;

    #[test]
    fn every_contract_of_the_packs_has_a_tool_schema_that_accepts_its_examples() {
        let registry = counterfoil_packs::registry();
        for entry in registry.iter() {
            let contract = entry.contract().unwrap();
            let shown = Shown::of(&contract);
            for target in Target::ALL {
                let tools = SubmissionTools::new(vec![contract.clone()], target);
                let case = format!("{} for {}", contract.reference(), target.name());
                let schema = Value::Object(tools.layout.schema(&tools.contracts, target));
                assert!(is_tool_schema(&schema), "{case}");
                let validator = jsonschema::validator_for(&schema).unwrap();
                for example in &contract.definition().examples {
                    let arguments = tools.as_arguments(&contract, example);
                    // The other dialects cannot express every rule of a contract.
                    if matches!(target, Target::Draft2020 | Target::Claude) {
                        assert!(validator.is_valid(&arguments), "{case}: {arguments}");
                    }
                    let Value::Object(arguments) = arguments else { panic!("{case}") };
                    let submitted = tools.submit(arguments).unwrap();
                    assert_eq!(&submitted.value, example, "{case}");
                    let report = contract.check_value(&submitted.value);
                    assert!(report.is_accepted(), "{case}: {:?}", report.violations);
                    // What agents are shown is valid, but not a result.
                    let allowed: &[Code] =
                        if shown.repeats_value(example) { &[Code::OnlyQuoted] } else { &[] };
                    let codes = submitted.report.codes();
                    assert!(codes.iter().all(|code| allowed.contains(code)), "{case}: {codes:?}");
                }
            }
        }
    }
}
