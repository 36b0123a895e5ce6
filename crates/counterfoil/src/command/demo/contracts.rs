//! The command `counterfoil demo contracts`: checks three example answers of an agent.

use crate::exit::Exit;
use crate::output;
use crate::render::shell_quote;
use anyhow::Result;
use counterfoil_contract::{Contract, diagnostic};
use std::fmt::Write;

/// An example answer, with a title and an explanation.
struct Example {
    title: &'static str,
    file: &'static str,
    text: &'static str,
    explanation: &'static str,
}

const EXAMPLES: [Example; 3] = [
    Example {
        title: "1. An answer that follows a draft",
        file: "accepted.txt",
        text: include_str!("../../../demo/accepted.txt"),
        explanation: "The last object that satisfies the contract is the result; the draft is reported.",
    },
    Example {
        title: "2. An answer that is almost JSON",
        file: "repaired.txt",
        text: include_str!("../../../demo/repaired.txt"),
        explanation: "Every repair is reported with its position; applied to the text, the repairs give exactly this value.",
    },
    Example {
        title: "3. An answer that contradicts itself",
        file: "violated.txt",
        text: include_str!("../../../demo/violated.txt"),
        explanation: "The answer is rejected. The agent gets this prompt in the same session:",
    },
];

/// A text to begin with that the contract accepts.
const OWN_TEXT: &str = r#"All is well: {"dod_achieved": true, "checks": [{"criterion": "It builds", "passed": true}]}"#;

pub(crate) fn run() -> Result<Exit> {
    let contract = counterfoil_packs::registry().get("execution-loop/qa")?;
    let mut out = format!(
        "A QA agent must return {}: {}\n",
        contract.reference(),
        contract.definition().summary
    );
    for example in &EXAMPLES {
        example.render(&contract, &mut out)?;
    }
    let program = shell_quote(&super::program());
    let _ = writeln!(
        out,
        "\nTry it on your own text:\n  \
         echo {} | {program} check --contract {id}\n  \
         {program} contract list\n  \
         {program} contract prompt {id}",
        shell_quote(OWN_TEXT),
        id = contract.id(),
    );
    output::write_stdout(&out)?;
    Ok(Exit::Success)
}

impl Example {
    fn render(&self, contract: &Contract, out: &mut String) -> Result<()> {
        let report = contract.check(self.text);
        let rule = "─".repeat(72);
        let _ = writeln!(out, "\n{rule}\n{}\n{rule}\n", self.title);
        for line in self.text.lines() {
            let _ = writeln!(out, "  │ {line}");
        }
        let style = diagnostic::Style { width: 96, color: false, unicode: true };
        let _ = write!(out, "\n{}", diagnostic::render(&report, self.file, self.text, style));
        for repair in &report.provenance.repairs {
            let _ = writeln!(
                out,
                "  repaired {}:{}: {}",
                repair.span.line,
                repair.span.column,
                repair.kind.name()
            );
        }
        if let Some(value) = &report.value {
            let _ = writeln!(
                out,
                "  {}\n\n{}",
                contract.display_line(value),
                serde_json::to_string_pretty(value)?
            );
        }
        let _ = writeln!(out, "\n{}", self.explanation);
        if !report.is_accepted() {
            for line in contract.repair(&report).lines() {
                let _ = writeln!(out, "  > {line}");
            }
        }
        Ok(())
    }
}
