//! `counterfoil demo contracts`: the contract engine on three texts an agent might have written.

use crate::exit::Exit;
use crate::output;
use anyhow::Result;
use counterfoil_contract::render::prompt;
use counterfoil_contract::{Contract, diagnostic};
use std::fmt::Write;

/// What stands before each text.
struct Scene {
    title: &'static str,
    file: &'static str,
    text: &'static str,
    lesson: &'static str,
}

const SCENES: [Scene; 3] = [
    Scene {
        title: "1. An answer with a draft before it",
        file: "accepted.txt",
        text: include_str!("../../../demo/accepted.txt"),
        lesson: "The last object that satisfies the contract counts; the draft is reported, not guessed at.",
    },
    Scene {
        title: "2. An answer that is nearly JSON",
        file: "repaired.txt",
        text: include_str!("../../../demo/repaired.txt"),
        lesson: "Every repair is recorded with its place; applying them to the text gives exactly this value.",
    },
    Scene {
        title: "3. An answer that contradicts itself",
        file: "violated.txt",
        text: include_str!("../../../demo/violated.txt"),
        lesson: "Nothing passes for success that is not. This is what the agent is asked, in the same session:",
    },
];

pub(crate) fn run() -> Result<Exit> {
    let contract = counterfoil_packs::registry().get("execution-loop/qa")?;
    let mut out = format!(
        "A QA agent must hand back {}: {}\n",
        contract.reference(),
        contract.definition().summary
    );
    for scene in &SCENES {
        scene.show(&contract, &mut out)?;
    }
    out.push_str(
        "\nTry it on a text of your own:\n  counterfoil check answer.txt --contract execution-loop/qa\n  counterfoil contract list\n  counterfoil contract prompt execution-loop/qa\n",
    );
    output::data(&out)?;
    Ok(Exit::Good)
}

impl Scene {
    fn show(&self, contract: &Contract, out: &mut String) -> Result<()> {
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
                contract.show(value),
                serde_json::to_string_pretty(value)?
            );
        }
        let _ = writeln!(out, "\n{}", self.lesson);
        if !report.is_accepted() {
            for line in prompt::repair(contract, &report).lines() {
                let _ = writeln!(out, "  > {line}");
            }
        }
        Ok(())
    }
}
