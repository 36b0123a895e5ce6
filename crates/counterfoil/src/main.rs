//! The command line of Counterfoil.

mod cli;
mod command;
mod digest;
mod doctor;
mod exit;
mod hook;
mod init;
mod input;
mod lay;
mod mcp;
mod output;
mod project;
mod source;
mod tell;
mod watch;

use clap::Parser;
use cli::{Cli, Command};
use exit::Exit;

fn main() -> std::process::ExitCode {
    log_to_stderr();
    let cli = parsed();
    let outcome = match cli.command {
        Command::Check(args) => command::check::run(&args),
        Command::Contract(args) => command::contract::run(&args.command),
        Command::Workflow(args) => command::workflow::run(&args.command),
        Command::Pack(args) => command::pack::run(&args.command),
        Command::Run(args) => command::run::run(&args),
        Command::Resume(args) => command::run::resume(&args),
        Command::Cancel(args) => command::runs::cancel(&args),
        Command::Runs(args) => command::runs::list(&args),
        Command::Show(args) => command::runs::show(&args),
        Command::Answer(args) => command::runs::answer(&args),
        Command::Undo(args) => command::undo::run(&args),
        Command::Export(args) => command::export::run(&args),
        Command::Replay(args) => command::replay::run(&args),
        Command::Claims(args) => command::claims::run(&args.command),
        Command::Verify(args) => command::verify::run(&args),
        Command::Mcp(args) => command::mcp::run(&args),
        Command::Explain(args) => command::explain::run(&args),
        Command::Demo(args) => command::demo::run(&args),
        Command::Init(args) => command::init::run(&args),
        Command::Doctor(args) => command::doctor::run(&args),
        Command::Hook(args) => Ok(command::hook::run(&args.command)),
        Command::Completions { shell } => command::shell::completions(shell),
        Command::Man => command::shell::man(),
    };
    match outcome {
        Ok(exit) => exit.into(),
        Err(error) => {
            output::error(&error);
            Exit::Usage.into()
        }
    }
}

/// What was said on the command line. To who runs a hook, the code for a wrong command line would
/// mean something else.
fn parsed() -> Cli {
    Cli::try_parse().unwrap_or_else(|error| {
        let is_hook = std::env::args_os().nth(1).is_some_and(|word| word == "hook");
        if is_hook && error.use_stderr() {
            let _ = error.print();
            std::process::exit(Exit::Bad as i32)
        }
        error.exit()
    })
}

/// Structured events go to stderr, as JSON lines, when somebody asks for them with
/// `COUNTERFOIL_LOG`.
fn log_to_stderr() {
    if let Ok(filter) = std::env::var("COUNTERFOIL_LOG") {
        let _ = tracing_subscriber::fmt()
            .json()
            .with_writer(std::io::stderr)
            .with_env_filter(tracing_subscriber::EnvFilter::new(filter))
            .try_init();
    }
}
