//! The reference page of a contract.

use super::claims::{consequence, describe};
use super::prompt::{frame_result, root_fields, rules};
use crate::claim::Claim;
use crate::contract::Contract;
use crate::policy::{Coerce, RepairPolicy};
use std::fmt::Write;

/// Renders the reference page as Markdown.
pub fn page(contract: &Contract) -> String {
    let definition = contract.definition();
    let mut text = format!("# {}\n\n", contract.reference());
    if let Some(why) = &definition.deprecated {
        let _ = writeln!(text, "> Deprecated: {why}\n");
    }
    if !definition.summary.is_empty() {
        let _ = writeln!(text, "{}\n", definition.summary);
    }
    let _ = writeln!(text, "| | |\n|---|---|");
    let _ = writeln!(text, "| framing | `{}` |", contract.framing().name());
    if let Some(agent) = &definition.agent {
        let _ = writeln!(text, "| agent | {agent} |");
    }
    if !definition.aliases.is_empty() {
        let _ = writeln!(text, "| aliases | {} |", definition.aliases.join(", "));
    }
    let _ = writeln!(text, "| reading | {} |", policy_summary(contract));
    if let Some(display) = &definition.display {
        let _ = writeln!(text, "| display | `{}` |", display.replace('|', "\\|"));
    }
    text.push_str("\n## Fields\n\n| field | type | required | what |\n|---|---|---|---|\n");
    for (name, field) in root_fields(contract) {
        let required = match (field.required, &field.default) {
            (true, None) => "yes".to_owned(),
            (true, Some(default)) => format!("yes; a lenient reader uses `{default}`"),
            (false, None) => "no".to_owned(),
            (false, Some(default)) => format!("no; default `{default}`"),
        };
        let what =
            field.description.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
        let _ = writeln!(
            text,
            "| `{name}` | {} | {required} | {what} |",
            field.ty.short_name().replace('|', "\\|")
        );
    }
    let rules = rules(contract);
    if !rules.is_empty() {
        text.push_str("\n## Rules\n\n");
        for rule in rules {
            let _ = writeln!(text, "- {rule}");
        }
    }
    let warnings: Vec<_> = definition.rules.iter().filter(|rule| rule.warn).collect();
    if !warnings.is_empty() {
        text.push_str("\nWarnings only:\n\n");
        for rule in warnings {
            let _ = writeln!(
                text,
                "- {}",
                rule.message.as_deref().or(rule.check.as_deref()).unwrap_or(&rule.id)
            );
        }
    }
    if !definition.claims.is_empty() {
        text.push_str(
            "\n## Claims\n\n| field | verified against | when refuted | guards |\n|---|---|---|---|\n",
        );
        for (field, claim) in &definition.claims {
            let (meaning, consequence) = (describe(claim), consequence(claim));
            let _ = writeln!(
                text,
                "| `{field}` | {meaning} | {consequence} | `claims.{}` |",
                Claim::name(field)
            );
        }
    }
    text.push_str("\n## Examples\n\n");
    for example in &definition.examples {
        let _ = writeln!(text, "````text\n{}````\n", frame_result(contract, example));
    }
    if !definition.counter_examples.is_empty() {
        text.push_str("## Refused\n\n");
        for counter in &definition.counter_examples {
            let _ = writeln!(
                text,
                "By {}:\n\n````text\n{}````\n",
                counter.because,
                frame_result(contract, &counter.value)
            );
        }
    }
    let _ = write!(text, "## What the agent is told\n\n````text\n{}````\n", contract.prompt());
    text
}

fn policy_summary(contract: &Contract) -> String {
    let policy = contract.policy();
    let mut parts = vec![match policy.repair {
        RepairPolicy::None => "no repairs".to_owned(),
        RepairPolicy::Syntax => "syntax is repaired".to_owned(),
    }];
    parts.push(match &policy.coerce {
        Coerce::None => "no coercion".into(),
        Coerce::All => "values are coerced".into(),
        Coerce::Fields(fields) => format!("{} are coerced", fields.join(", ")),
    });
    if !policy.salvage.is_empty() {
        let lists: Vec<&str> = policy
            .salvage
            .iter()
            .map(|list| if list.is_empty() { "its fields" } else { list })
            .collect();
        parts.push(format!("salvages {}", lists.join(", ")));
    }
    if policy.closed {
        parts.push("closed to unknown fields".into());
    } else if policy.refuses_unknown_fields() {
        parts.push("refuses unknown fields that have a value".into());
    }
    parts.join(", ")
}
