//! Tries what this system offers: `bwrap`, Landlock, and mounts in a user name space.

use super::landlock_argv::COMMAND;
use super::{Kind, bwrap};
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Whether a kind of containment can be used, and why not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Support<T> {
    /// It can be used.
    Yes(T),
    /// It cannot be used, for this reason, with the way out.
    No(String),
}

/// What Landlock can do here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Landlock {
    /// Whether it can restrict TCP.
    pub network: bool,
    /// Whether folders can be mounted in a user name space. Without it, nothing new can be made
    /// directly in the top folder of the work tree, and nothing is hidden.
    pub mounts: bool,
}

/// What this system offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Availability {
    /// The path of `bwrap`.
    pub bwrap: Support<PathBuf>,
    /// Landlock.
    pub landlock: Support<Landlock>,
}

impl Availability {
    /// The kind to recommend: `bwrap` hides and cuts off more than Landlock.
    pub fn recommended(&self) -> Option<Kind> {
        match (&self.bwrap, &self.landlock) {
            (Support::Yes(_), _) => Some(Kind::Bwrap),
            (_, Support::Yes(_)) => Some(Kind::Landlock),
            _ => None,
        }
    }
}

impl fmt::Display for Landlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = |can: bool| if can { "yes" } else { "no" };
        write!(f, "network {} mounts {}", words(self.network), words(self.mounts))
    }
}

impl std::str::FromStr for Landlock {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut words = text.split_whitespace();
        let mut answer = |name: &str| match (words.next(), words.next()) {
            (Some(found), Some("yes")) if found == name => Ok(true),
            (Some(found), Some("no")) if found == name => Ok(false),
            _ => Err(format!("{text:?} says nothing about {name}")),
        };
        Ok(Self { network: answer("network")?, mounts: answer("mounts")? })
    }
}

/// Tries everything. `executable` is our own program, which restricts itself.
pub(super) fn availability(executable: Option<&Path>) -> Availability {
    Availability { bwrap: try_bwrap(), landlock: try_landlock(executable) }
}

/// Tries `bwrap`.
pub(super) fn try_bwrap() -> Support<PathBuf> {
    if !cfg!(target_os = "linux") {
        return Support::No("bwrap is not available on this platform, only on Linux".to_owned());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let program = std::env::split_paths(&path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(bwrap::PROGRAM))
        .find(|program| program.is_file());
    let Some(program) = program else {
        return Support::No(
            "`bwrap` is not on PATH; install the package bubblewrap, or use contain = \"landlock\""
                .to_owned(),
        );
    };
    let trial = bwrap::argv(&program, &[], true, Path::new("/"), &["true".into()]);
    let mut command = Command::new(&trial[0]);
    match answer(command.args(&trial[1..])) {
        Ok(_) => Support::Yes(program),
        Err(why) => Support::No(format!(
            "`bwrap` does not work here: {why}; allow user name spaces (on Ubuntu: sysctl \
             kernel.apparmor_restrict_unprivileged_userns=0), or use contain = \"landlock\""
        )),
    }
}

/// Tries Landlock in a process of its own, because a process that restricted itself stays so.
pub(super) fn try_landlock(executable: Option<&Path>) -> Support<Landlock> {
    if !cfg!(target_os = "linux") {
        return Support::No("Landlock is not available on this platform, only on Linux".to_owned());
    }
    let Some(executable) = executable else {
        return Support::No(
            "the path of this program, which restricts itself, is unknown".to_owned(),
        );
    };
    let mut command = Command::new(executable);
    let answered = answer(command.args([COMMAND, "--probe"]));
    match answered.and_then(|text| text.parse()) {
        Ok(landlock) => Support::Yes(landlock),
        Err(why) => Support::No(format!(
            "Landlock does not work here: {why}; it needs Linux 5.13 or later with `landlock` among \
             the security modules (/sys/kernel/security/lsm), or use contain = \"bwrap\""
        )),
    }
}

/// The output of a program, or the last line of its complaint.
fn answer(command: &mut Command) -> Result<String, String> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    let last = complaint.lines().rev().map(str::trim).find(|line| !line.is_empty());
    Err(last.map_or_else(|| format!("it ended with {}", output.status), str::to_owned))
}

/// Restricts this process to find out what Landlock can do here.
///
/// # Errors
///
/// Landlock is not available.
pub fn probe_here() -> Result<Landlock, String> {
    #[cfg(target_os = "linux")]
    return super::enter::probe();
    #[cfg(not(target_os = "linux"))]
    Err("Landlock is not available on this platform".to_owned())
}
