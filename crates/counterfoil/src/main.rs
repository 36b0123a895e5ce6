//! The command line of Counterfoil.

mod cli;
mod command;
mod completion;
mod digest;
mod doctor;
mod exit;
mod gate;
mod hint;
mod hook;
mod init;
mod input;
mod log;
mod mcp;
mod notify;
mod output;
mod person;
mod progress;
mod project;
mod redaction;
mod render;
mod report;
mod scaffold;
mod schema;
mod shell;
mod source;
mod state_folder;
#[cfg(feature = "opentelemetry")]
mod telemetry;
mod terminal;
mod unique_keys;
mod unpack;
mod user_file;
mod wrapping;

use clap::FromArgMatches as _;
use cli::{Cli, Command};
use counterfoil_contract::text::{display_path, escape_control};
use exit::Exit;
use std::ffi::OsString;
use std::path::Path;

fn main() -> std::process::ExitCode {
    output::write_panics();
    survive_file_limit();
    clap_complete::CompleteEnv::with_factory(completion::command)
        .var(completion::VARIABLE)
        .complete();
    let cli = parse_arguments();
    let repo = cli.command.project().and_then(|project| project.given);
    redaction::set_repository(repo);
    log::start(cli.log_format, matches!(cli.command, Command::Hook(_)));
    command::watch::watch_children();
    warn_about_old_names(&cli.command);
    let outcome = match cli.command {
        Command::Check(args) => command::check::run(&args),
        Command::Contract(args) => command::contract::run(&args.command),
        Command::Workflow(args) => command::workflow::run(&args.command),
        Command::Pack(args) => command::pack::run(&args.command),
        Command::Run(args) => command::run::run(&args),
        Command::Resume(args) => command::run::resume(&args),
        Command::Cancel(args) => command::runs::cancel(&args),
        Command::Runs(args) => command::runs::list(&args),
        Command::Show(args) => command::show::show(&args),
        Command::Ui(args) => command::serve::ui(&args),
        Command::Serve(args) => command::serve::serve(&args),
        Command::Answer(args) => command::runs::answer(&args),
        Command::Undo(args) => command::undo::run(&args),
        Command::Clean(args) => command::clean::run(&args),
        Command::Export(args) => command::export::run(&args),
        Command::Receipt(args) => command::receipt::run(&args),
        Command::Replay(args) => command::replay::run(&args),
        Command::Claims(args) => command::claims::run(args.stats()),
        Command::Verify(args) => command::verify::run(&args),
        Command::Mcp(args) => command::mcp::run(&args),
        Command::Explain(args) => command::explain::run(&args),
        Command::Demo(args) => command::demo::run(&args),
        Command::New(args) => command::new::run(&args.command),
        Command::Schema(args) => command::schema::run(&args),
        Command::Init(args) => command::init::run(&args),
        Command::Doctor(args) => command::doctor::run(&args),
        Command::Hook(args) => Ok(command::hook::run(&args.command)),
        Command::Completions { shell } => command::completions::completions(shell),
        Command::Man(args) => command::completions::man(&args),
        Command::Contained(args) => Ok(command::contained::run(args)),
        Command::Watch => Ok(command::watch::run()),
    };
    match outcome {
        Ok(exit) => exit.into(),
        Err(error) => {
            output::write_error(&error);
            Exit::from_error(&error).into()
        }
    }
}

/// Handles SIGXFSZ, so that a write beyond the limit on the size of files (`ulimit -f`) is an error
/// and does not kill this process. Programs that it starts have the default again.
fn survive_file_limit() {
    use signal_hook::consts::signal::SIGXFSZ;
    let reached = std::sync::Arc::<std::sync::atomic::AtomicBool>::default();
    if let Err(error) = signal_hook::flag::register(SIGXFSZ, reached) {
        output::write_message("warning", &format!("SIGXFSZ cannot be handled: {error}"));
    }
}

/// Parses the command line. For a hook, a usage error must not have exit code 2, which would send
/// the agent's result back.
fn parse_arguments() -> Cli {
    let mut arguments: Vec<OsString> = std::env::args_os().collect();
    // Usage lines show the name by which the program was called.
    if let Some(name) = arguments.first_mut() {
        *name = display_path(Path::new(name)).into();
    }
    parse(&arguments).unwrap_or_else(|error| {
        let is_hook = arguments.get(1).is_some_and(|argument| argument == "hook");
        let code = if is_hook && error.use_stderr() {
            i32::from(Exit::Failure.code())
        } else {
            error.exit_code()
        };
        let written = output::write_usage(&error, usage_error(&arguments).as_ref());
        std::process::exit(written.map_or_else(
            |error| {
                output::write_error(&error);
                i32::from(Exit::from_error(&error).code())
            },
            |()| code,
        ))
    })
}

/// The error about arguments without unsafe characters: its only escape sequences are colours.
fn usage_error(arguments: &[OsString]) -> Option<clap::Error> {
    let safe = arguments.iter().map(|argument| escape_control(&argument.to_string_lossy()));
    parse(safe).err()
}

/// Parses arguments; the help has its commands in groups.
fn parse<T: Into<OsString> + Clone>(
    arguments: impl IntoIterator<Item = T>,
) -> Result<Cli, clap::Error> {
    let mut command = cli::command();
    let matches = command.try_get_matches_from_mut(arguments)?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

/// Warns about project files that have the former name of this program.
fn warn_about_old_names(command: &Command) {
    let Some(cli::ProjectRepo { given: repo }) = command.project() else { return };
    let Ok(folder) = input::repository(repo) else { return };
    let current = std::env::current_dir().ok().filter(|_| repo.is_none());
    if let Some(warning) = project::old_names_warning(current.as_deref().unwrap_or(&folder)) {
        output::write_message("warning", &warning);
    }
}
