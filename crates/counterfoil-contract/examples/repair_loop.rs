//! The whole loop around one agent: ask, check the answer, ask again with a repair prompt, and give
//! up after a fixed number of attempts.
//!
//! `cargo run -p counterfoil-contract --example repair_loop`
#![allow(clippy::print_stdout)]

use counterfoil_contract::{
    AgentOutput, Contract, Definition, Framing, LoadError, Report, Rule, contract_of,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The result we want from the agent.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Review {
    /// Whether the change can be merged.
    approved: bool,
    /// How serious the worst finding is.
    severity: Severity,
    /// What to change. Required if the change is not approved.
    fix: Option<String>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Severity {
    None,
    Minor,
    Major,
}

impl AgentOutput for Review {
    fn definition() -> Definition {
        Definition::for_type::<Self>("example/review", 1, Framing::FencedJson)
            .summary("The review of a change")
            .rule(Rule::require("fix-when-not-approved", "!result.approved", &["fix"]))
    }
}

/// Anything that answers a prompt. In your program: a call of a model, or a process.
trait Agent {
    fn ask(&mut self, prompt: &str) -> String;
}

/// Why the loop has no result.
#[derive(Debug)]
enum LoopError {
    /// The contract does not compile: an error of this program, not of the agent.
    Contract(LoadError),
    /// No answer was accepted. The report is about the last one.
    GaveUp { attempts: usize, report: Box<Report> },
}

/// Asks until an answer satisfies the contract, at most `max_attempts` times.
fn ask_for<T: AgentOutput>(
    agent: &mut dyn Agent,
    task: &str,
    max_attempts: usize,
) -> Result<T, LoopError> {
    let contract: &Contract = contract_of::<T>().map_err(LoopError::Contract)?;

    // The first prompt: the task, and how to send the result.
    let mut prompt = format!("{task}\n\n{}", contract.prompt());
    let mut attempts = 0;
    loop {
        attempts += 1;
        let answer = agent.ask(&prompt);
        match contract.parse(&answer) {
            Ok(result) => return Ok(result),
            Err(rejection) if attempts == max_attempts => {
                return Err(LoopError::GaveUp { attempts, report: rejection.report });
            }
            // The next prompt says what is wrong and where, and asks for the result only.
            Err(rejection) => prompt = contract.repair(&rejection.report),
        }
    }
}

/// An agent that makes two mistakes before it answers correctly.
struct ScriptedAgent {
    answers: Vec<&'static str>,
}

impl Agent for ScriptedAgent {
    fn ask(&mut self, prompt: &str) -> String {
        println!("--- prompt ---\n{prompt}");
        let answer = self.answers.remove(0);
        println!("--- answer ---\n{answer}\n");
        answer.to_owned()
    }
}

fn main() {
    let mut agent = ScriptedAgent {
        answers: vec![
            "I looked at the change, and it is fine.",
            "```json\n{\"approved\": false, \"severity\": \"Major\"}\n```",
            "```json\n{\"approved\": false, \"severity\": \"major\", \"fix\": \"handle the error\"}\n```",
        ],
    };
    match ask_for::<Review>(&mut agent, "Review the last commit.", 3) {
        Ok(review) => println!("--- result ---\n{review:?}"),
        Err(LoopError::Contract(error)) => println!("the contract is wrong: {error}"),
        Err(LoopError::GaveUp { attempts, report }) => {
            println!("no result after {attempts} attempts: {:?}", report.codes());
        }
    }
}
