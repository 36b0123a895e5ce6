//! What `doctor` says of the `command:` agents that a project configures. No I/O.

use super::probe::CommandProbe;
use super::{Finding, Level};
use counterfoil_agents::command_agent::program_name;
use counterfoil_agents::config::{OutputDialect, Settings};

/// The most variables that a line names.
const MAX_NAMED: usize = 5;

/// The findings, and a line for each agent that can be run.
pub(super) fn check(commands: &[CommandProbe]) -> (Vec<Finding>, Vec<String>) {
    let (mut findings, mut passed) = (Vec::new(), Vec::new());
    for command in commands {
        let mut fail = |message: String, fix: &str| {
            findings.push(Finding {
                level: Level::Fail,
                about: command.key.clone(),
                message,
                fix: fix.to_owned(),
            });
        };
        let argv = match &command.argv {
            Ok(argv) => argv,
            Err(why) => {
                fail(why.clone(), "correct the command line");
                continue;
            }
        };
        let program = program_name(argv);
        if let Err(why) = command.settings.command.check(argv) {
            let table = format!("correct [agents.{}.command] in counterfoil.toml", command.agent);
            fail(why, &table);
        } else if let Some(missing) = &command.missing {
            fail(
                format!("the project uses `{missing}`, but there is no such program"),
                "install it, put it on PATH, or correct the command line",
            );
        } else {
            passed.push(format!("{}: {program}, {}", command.key, words(command)));
            let ignored = ignored(&command.settings);
            if !ignored.is_empty() {
                findings.push(Finding {
                    level: Level::Warn,
                    about: command.key.clone(),
                    message: format!(
                        "a command does not heed {} of its tables",
                        ignored.join(", ")
                    ),
                    fix: "write what it needs into its command line".to_owned(),
                });
            }
        }
    }
    (findings, passed)
}

/// The keys that mean nothing to a command.
fn ignored(settings: &Settings) -> Vec<&'static str> {
    let keys = [
        ("`program`", settings.program.is_some()),
        ("`model`", settings.model.is_some()),
        ("`flags`", !settings.flags.is_empty()),
        ("`channels`", settings.channels.is_some()),
        ("`access`", settings.access.is_some()),
    ];
    keys.into_iter().filter(|(_, is_set)| *is_set).map(|(key, _)| key).collect()
}

/// How an agent is run.
fn words(command: &CommandProbe) -> String {
    let settings = &command.settings;
    let output = match settings.command.dialect() {
        OutputDialect::Text => "its output is text".to_owned(),
        dialect => format!("its output is {}", dialect.name()),
    };
    let repairs = match &settings.command.resume {
        Some(_) => "repairs continue its conversation",
        None => "repairs run it anew",
    };
    let usage = match (&settings.command.usage, settings.command.dialect()) {
        (None, OutputDialect::Text | OutputDialect::Jsonl) => ", its usage is not known",
        _ => "",
    };
    let passed = match settings.pass.as_slice() {
        [] => "the common variables".to_owned(),
        names => format!("the common variables and {}", some(names)),
    };
    let hidden = match command.hidden_keys.as_slice() {
        [] => String::new(),
        names => format!(", not {} (`pass`)", some(names)),
    };
    format!("{output}, {repairs}{usage}; it sees {passed}{hidden}")
}

fn some(names: &[String]) -> String {
    let more = match names.len().saturating_sub(MAX_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    names.iter().take(MAX_NAMED).map(String::as_str).collect::<Vec<_>>().join(", ") + &more
}
