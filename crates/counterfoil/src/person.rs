//! Who gives a command: a person's decisions over a run are refused from inside of an attempt, and
//! recorded with their origin.

use anyhow::{Result, bail};
use counterfoil_flow::{DecidedBy, Origin};
use counterfoil_process::enclosure;

/// The file name of this program, by which the engine is found among the ancestors.
const PROGRAM: &str = "counterfoil";

/// Refuses a command that decides over a run if an attempt gives it: what an agent starts must not
/// answer the questions that a person is asked.
pub(crate) fn require_outside_of_attempts(command: &str) -> Result<()> {
    if let Some(enclosure) = enclosure(PROGRAM) {
        bail!(
            "`counterfoil {command}` is refused inside of an attempt ({enclosure}): only a person \
             decides over a run, never an agent or command that a run started; give the command in \
             a terminal of your own"
        );
    }
    Ok(())
}

/// The person or program that gives this command.
pub(crate) fn current() -> DecidedBy {
    let from = origin();
    let by = std::env::var("USER").ok().filter(|name| !name.is_empty());
    DecidedBy { by: by.unwrap_or_else(|| from.user.clone()), from: Some(Box::new(from)) }
}

/// This process as the operating system knows it. Nothing of it comes from the environment.
fn origin() -> Origin {
    let uid = nix::unistd::Uid::current();
    let account = nix::unistd::User::from_uid(uid).ok().flatten().map(|user| user.name);
    Origin {
        user: account.unwrap_or_else(|| uid.to_string()),
        host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        terminal: terminal(),
        pid: std::process::id(),
        program: parent_program(),
    }
}

/// The terminal of standard input, error or output, without `/dev/`.
fn terminal() -> Option<String> {
    let name = |stream: std::os::fd::BorrowedFd<'_>| rustix::termios::ttyname(stream, Vec::new());
    let found = name(rustix::stdio::stdin())
        .or_else(|_| name(rustix::stdio::stderr()))
        .or_else(|_| name(rustix::stdio::stdout()))
        .ok()?;
    let path = found.to_string_lossy();
    Some(path.strip_prefix("/dev/").unwrap_or(&path).to_owned())
}

/// The name of the program that started this process. Empty where it is not known.
fn parent_program() -> String {
    let parent = rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get());
    counterfoil_process::program_name(parent)
}
