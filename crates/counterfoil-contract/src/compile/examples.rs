//! Checks the defaults, the examples and the counter-examples of a contract.

use super::defaults;
use crate::code::Code;
use crate::contract::Contract;
use crate::problem::Problem;
use crate::report::Status;
use crate::reporting;
use serde_json::Value;

pub(super) fn check(contract: &Contract) -> Vec<Problem> {
    let mut problems = defaults::check(&contract.schema);
    if let (Some(display), true) = (&contract.display, contract.definition.examples.is_empty())
        && let Err(error) = display.try_render(&Value::Null)
    {
        problems.push(Problem::new(Code::BadDisplay, "display", error, "see the minijinja syntax"));
    }
    for (index, example) in contract.definition.examples.iter().enumerate() {
        let report = reporting::validate_value(contract, example, contract.policy());
        for violation in report.violations {
            problems.push(Problem::new(
                Code::BadExample,
                &format!("examples[{index}]{}", violation.pointer),
                format!("{} ({})", violation.message, violation.code),
                violation.hint,
            ));
        }
        if let Some(display) = &contract.display
            && let Err(error) = display.try_render(example)
        {
            problems.push(Problem::new(
                Code::BadDisplay,
                "display",
                error,
                "the template must fit every example",
            ));
        }
    }
    for (index, counter) in contract.definition.counter_examples.iter().enumerate() {
        let mut report = reporting::validate_value(contract, &counter.value, contract.policy());
        if report.status == Status::Accepted && !report.provenance.coercions.is_empty() {
            // It is not the value as written that is accepted.
            let policy = contract.policy().strictly();
            report = reporting::validate_value(contract, &counter.value, &policy);
        }
        let place = format!("counter_examples[{index}]");
        let by_rule = |id: &str| {
            report.violations.iter().any(|violation| violation.rule.as_deref() == Some(id))
        };
        let codes: Vec<&str> = report.codes().iter().map(|code| code.as_str()).collect();
        if report.status == Status::Accepted {
            problems.push(Problem::new(
                Code::BadExample,
                &place,
                "a counter-example is accepted",
                "it must be refused",
            ));
        } else if !codes.contains(&counter.because.as_str()) && !by_rule(&counter.because) {
            problems.push(Problem::new(
                Code::BadExample,
                &place,
                format!("it is refused by {}, not by {}", codes.join(", "), counter.because),
                "name the code or the rule that refuses it",
            ));
        }
    }
    problems
}
