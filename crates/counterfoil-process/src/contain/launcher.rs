//! Starts commands as the settings say, or not at all.

use super::places::places;
use super::probe::{self, Availability, Landlock, Support};
use super::surroundings;
use super::{
    Kind, NOT_CONTAINED, NOT_CONTAINED_PREFIX, Restriction, Settings, bwrap, landlock_argv,
};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// Turns commands into argument lists that start them contained. Clones share what was found out
/// about the system.
#[derive(Clone, Debug, Default)]
pub struct Launcher {
    settings: Settings,
    executable: Option<PathBuf>,
    state: Option<PathBuf>,
    bwrap: Arc<OnceLock<Support<PathBuf>>>,
    landlock: Arc<OnceLock<Support<Landlock>>>,
}

/// A command cannot be contained as configured, so it is not started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it cannot be contained (contain = \"{kind}\"): {why}")]
pub struct Unavailable {
    /// The configured kind.
    pub kind: Kind,
    /// Why not, and the way out.
    pub why: String,
}

/// A contained command that ended before its program ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetupFailure {
    /// The containment could not be set up.
    Containment(String),
    /// The program does not exist or cannot be executed.
    Program(String),
}

impl Launcher {
    /// Creates a launcher. `executable` is our own program, which has the command that restricts
    /// itself; `state` is the state folder.
    pub fn new(settings: Settings, executable: Option<PathBuf>, state: Option<&Path>) -> Self {
        Self { settings, executable, state: state.map(Path::to_owned), ..Self::default() }
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Tries what this system offers.
    pub fn availability(&self) -> Availability {
        probe::availability(self.executable.as_deref())
    }

    /// What distinguishes outcomes of a command under these settings from others; none if commands
    /// are not contained.
    pub fn fingerprint(&self) -> Option<String> {
        let Settings { kind, network, writable, hidden } = &self.settings;
        (*kind != Kind::None)
            .then(|| format!("{kind} network={network} writable={writable:?} hidden={hidden:?}"))
    }

    /// The argument list that starts a command in a folder.
    ///
    /// # Errors
    ///
    /// The configured kind is not available here, or a path of the settings does not exist.
    pub fn argv(&self, argv: Vec<OsString>, cwd: &Path) -> Result<Vec<OsString>, Unavailable> {
        let kind = self.settings.kind;
        let unavailable = |why: String| Unavailable { kind, why };
        match kind {
            Kind::None => Ok(argv),
            Kind::Bwrap => {
                let program = match self.bwrap.get_or_init(probe::try_bwrap) {
                    Support::Yes(program) => program,
                    Support::No(why) => return Err(unavailable(why.clone())),
                };
                let around = self.surroundings(&argv, cwd).map_err(unavailable)?;
                let cwd = cwd.canonicalize().unwrap_or_else(|_| cwd.to_owned());
                Ok(bwrap::argv(program, &places(&around), self.settings.network, &cwd, &argv))
            }
            Kind::Landlock => {
                let found =
                    self.landlock.get_or_init(|| probe::try_landlock(self.executable.as_deref()));
                let (landlock, executable) = match (found, &self.executable) {
                    (Support::Yes(landlock), Some(executable)) => (*landlock, executable),
                    (Support::No(why), _) => return Err(unavailable(why.clone())),
                    (_, None) => return Err(unavailable("this program is unknown".to_owned())),
                };
                missing(landlock, &self.settings).map_err(unavailable)?;
                let around = self.surroundings(&argv, cwd).map_err(unavailable)?;
                let mut places = places(&around);
                if !landlock.mounts {
                    places = landlock_argv::without_mounts(&places, &surroundings::entries);
                }
                let restriction = Restriction {
                    places,
                    mounts: landlock.mounts,
                    network: self.settings.network,
                    cwd: cwd.canonicalize().unwrap_or_else(|_| cwd.to_owned()),
                    argv,
                };
                Ok(landlock_argv::argv(executable, &restriction))
            }
        }
    }

    fn surroundings(
        &self,
        argv: &[OsString],
        cwd: &Path,
    ) -> Result<super::places::Surroundings, String> {
        // What the command names stays visible, also in a folder for temporary files.
        let named = argv.iter().map(PathBuf::from).filter(|word| word.is_absolute());
        let named = named.chain(self.executable.clone()).collect::<Vec<_>>();
        let variable = |name: &str| std::env::var_os(name);
        surroundings::find(&self.settings, cwd, self.state.as_deref(), &named, &variable)
    }

    /// Why a command ended before its program ran, from its exit code and the beginning of what it
    /// wrote to standard error. A command that imitates such a message is treated as not run.
    pub fn setup_failure(&self, code: i32, errors: &str) -> Option<SetupFailure> {
        let first = errors.lines().find(|line| !line.trim().is_empty())?.trim();
        match self.settings.kind {
            Kind::None => None,
            Kind::Bwrap => {
                let why = first.strip_prefix("bwrap: ").filter(|_| code == 1)?.to_owned();
                Some(match why.strip_prefix("execvp ") {
                    Some(program) => SetupFailure::Program(program.to_owned()),
                    None => SetupFailure::Containment(why),
                })
            }
            Kind::Landlock => {
                let why = first.strip_prefix(NOT_CONTAINED_PREFIX)?;
                (code == NOT_CONTAINED).then(|| SetupFailure::Containment(why.to_owned()))
            }
        }
    }
}

/// What the settings ask of Landlock that it cannot do here.
fn missing(landlock: Landlock, settings: &Settings) -> Result<(), String> {
    if !settings.network && !landlock.network {
        return Err(
            "network = false needs Linux 6.7 or later (Landlock ABI 4); update the kernel, \
             use contain = \"bwrap\", or allow the network"
                .to_owned(),
        );
    }
    if !settings.hidden.is_empty() && !landlock.mounts {
        return Err("`hidden` needs user name spaces, which this system refuses; allow them, or \
             remove `hidden` from [contain]"
            .to_owned());
    }
    Ok(())
}

#[cfg(test)]
#[path = "launcher/tests.rs"]
mod tests;
