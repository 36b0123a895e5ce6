//! The help of the whole program: the commands by what people want to do.

use super::Cli;
use crate::schema;
use clap::CommandFactory;
use std::fmt::Write;

/// The commands by task, in the order in which people meet them. A test compares them with the commands
/// that there are.
const GROUPS: [(&str, &[&str]); 6] = [
    ("Start", &["demo", "new", "init", "doctor"]),
    ("Run workflows", &["run", "resume", "answer", "cancel"]),
    ("Look at runs", &["runs", "show", "ui", "serve", "claims", "receipt", "undo", "clean"]),
    ("Check results without a run", &["check", "verify", "replay", "export"]),
    ("Contracts, workflows and packs", &["contract", "workflow", "pack", "schema", "explain"]),
    ("Connect agents and shells", &["mcp", "hook", "completions", "man"]),
];

const EXAMPLES: &str = "  counterfoil demo                 see a run without an agent or an account
  counterfoil run execution-loop --task \"Add a flag\" --agent claude
  counterfoil show                 the last run on one screen
  counterfoil check answer.txt --contract execution-loop/qa";

/// The whole command line, with its commands grouped in the help.
pub(crate) fn command() -> clap::Command {
    let command =
        Cli::command().mut_subcommand("schema", |command| command.after_help(schema::list()));
    let template = template(&command);
    command.help_template(template)
}

fn template(command: &clap::Command) -> String {
    let mut text = String::from("{about}\n\n{usage-heading} {usage}\n");
    let (header, literal) = (command.get_styles().get_header(), command.get_styles().get_literal());
    for (title, names) in GROUPS {
        let _ = write!(text, "\n{header}{title}:{header:#}\n");
        for name in names {
            let about = command.find_subcommand(name).and_then(clap::Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(text, "  {literal}{name:<12}{literal:#} {about}");
        }
    }
    let _ = write!(
        text,
        "\n{header}Options:{header:#}\n{{options}}\n\n{header}Examples:{header:#}\n{EXAMPLES}\n\n\
         For details, run `counterfoil COMMAND --help`.{{after-help}}\n"
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_help_lists_every_command_once() {
        let command = Cli::command();
        let all: BTreeSet<&str> = command
            .get_subcommands()
            .filter(|command| !command.is_hide_set())
            .map(clap::Command::get_name)
            .collect();
        let grouped: Vec<&str> =
            GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        assert_eq!(grouped.len(), all.len());
        assert_eq!(grouped.into_iter().collect::<BTreeSet<_>>(), all);
    }

    #[test]
    fn no_line_is_cut_by_a_terminal_of_80_columns() {
        let help = command().term_width(80).render_help().to_string();
        let long: Vec<&str> = help.lines().filter(|line| line.chars().count() > 80).collect();
        assert!(long.is_empty(), "{long:#?}");
    }
}
