//! The command `counterfoil demo contracts`: checks three example answers of an agent.

use crate::exit::Exit;
use crate::render::shell_quote;
use crate::{output, wrapping};
use anyhow::Result;
use counterfoil_contract::Contract;
use counterfoil_contract::diagnostic::{self, Style};
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

/// What stands before the lines of a quoted prompt.
const QUOTE: &str = "  > ";

pub(crate) fn run() -> Result<Exit> {
    output::write_stdout(&shown(output::stdout_line_style().width)?)?;
    Ok(Exit::Success)
}

/// What the demo shows. Sentences and the prompt fit the width; examples and commands stay as they are.
fn shown(width: usize) -> Result<String> {
    let contract = counterfoil_packs::registry().get("execution-loop/qa")?;
    let summary = &contract.definition().summary;
    let opening = format!("A QA agent must return {}: {summary}\n", contract.reference());
    let mut out = wrapping::page(&opening, width);
    for example in &EXAMPLES {
        example.render(&contract, width, &mut out)?;
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
    Ok(out)
}

impl Example {
    fn render(&self, contract: &Contract, width: usize, out: &mut String) -> Result<()> {
        let report = contract.check(self.text);
        let rule = "─".repeat(72);
        let _ = writeln!(out, "\n{rule}\n{}\n{rule}\n", self.title);
        for line in self.text.lines() {
            let _ = writeln!(out, "  │ {line}");
        }
        let style = Style { width: 96, color: false, unicode: true };
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
        let _ = writeln!(out, "\n{}", wrapping::page(self.explanation, width));
        if !report.is_accepted() {
            let prompt = contract.repair(&report);
            for line in wrapping::messages(&prompt, width.saturating_sub(QUOTE.len())).lines() {
                let _ = writeln!(out, "{QUOTE}{line}");
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use unicode_width::UnicodeWidthStr;

    #[test]
    fn sentences_and_the_prompt_fit_a_terminal() {
        let narrow = shown(80).unwrap();
        for lines in [
            "Whether the definition of done is\nreached, check by check\n",
            "\nEvery repair is reported with its position; applied to the text, the repairs\n\
             give exactly this value.\n",
            "result; the draft is\nreported.\n",
            "\n  > - /test_results/total (line 9): `test_results.passed` and\n  >   \
             `test_results.failed` together exceed `test_results.total`; correct the\n  >   \
             field that is wrong\n  > \n  > Send only",
        ] {
            assert!(narrow.contains(lines), "{lines}\n{narrow}");
        }
        let quoted = narrow.lines().filter(|line| line.starts_with(QUOTE));
        assert!(quoted.clone().all(|line| line.width() <= 80), "{narrow}");
        let whole = shown(usize::MAX).unwrap();
        let prompt: String = quoted.map(|line| line.trim_start_matches(QUOTE)).collect();
        assert!(prompt.starts_with("Your result was not accepted:"), "{prompt}");
        let words = |text: &str| -> Vec<String> {
            text.split_whitespace().filter(|word| *word != ">").map(str::to_owned).collect()
        };
        assert_eq!(words(&narrow), words(&whole));
        // Commands stay on their lines.
        let commands = |text: &str| text.split_once("Try it").map(|(_, rest)| rest.to_owned());
        assert_eq!(commands(&narrow), commands(&whole));
    }
}
