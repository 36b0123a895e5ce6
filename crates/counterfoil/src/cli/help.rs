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

/// The most columns of a line of help, so that it fits every usual terminal, page and mail.
const WIDTH: usize = 80;

const EXAMPLES: &str = "  counterfoil demo                 see a run without an agent or an account
  counterfoil run execution-loop --task \"Add a flag\" --agent claude
  counterfoil show                 the last run on one screen
  counterfoil check answer.txt --contract execution-loop/qa";

/// The whole command line, with its commands grouped in the help.
pub(crate) fn command() -> clap::Command {
    let command =
        Cli::command().mut_subcommand("schema", |command| command.after_help(schema::list()));
    let template = template(&command);
    command.help_template(template).max_term_width(WIDTH)
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

    /// The help of a command and of those below it: the name, the page, and the text that ends it.
    fn pages(command: &mut clap::Command, all: &mut Vec<(String, String, String)>) {
        let end = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        for page in [command.render_help(), command.render_long_help()] {
            all.push((command.get_name().to_owned(), page.to_string(), end.clone()));
        }
        for below in command.get_subcommands_mut() {
            pages(below, all);
        }
    }

    #[test]
    fn no_line_is_cut_by_a_terminal_of_80_columns() {
        let mut command = command();
        command.build();
        let mut all = Vec::new();
        pages(&mut command, &mut all);
        assert!(all.len() > 2 * GROUPS.iter().map(|(_, names)| names.len()).sum::<usize>());
        for (name, page, end) in all {
            let long: Vec<&str> =
                page.lines().filter(|line| line.chars().count() > WIDTH).collect();
            assert!(long.is_empty(), "{name}: {long:#?}");
            // Examples and lists would not be readable if they were wrapped: they fit.
            for line in end.lines().filter(|line| line.starts_with("  ")) {
                assert!(page.lines().any(|shown| shown == line), "{name} wraps: {line}");
            }
        }
    }
}
