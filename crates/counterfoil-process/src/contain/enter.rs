//! The process that restricts itself and then becomes the command.

use super::Restriction;
use super::places::{Access, Place};
use super::probe::Landlock;
use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreatedAttr, RulesetStatus, Scope,
};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Why a restricted process did not become its command.
#[derive(Debug, thiserror::Error)]
pub enum EnterError {
    /// It could not restrict itself.
    #[error("{0}")]
    NotContained(String),
    /// The program could not be started.
    #[error("`{program}` cannot be started: {source}")]
    Program {
        /// The program.
        program: String,
        /// The error of the operating system.
        source: std::io::Error,
    },
}

/// The devices that every command may write.
const DEVICES: [&str; 8] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
];
/// The version whose rights are handled where the kernel knows them.
const NEWEST: ABI = ABI::V6;
/// The first version that restricts TCP.
const WITH_NETWORK: ABI = ABI::V4;

/// Restricts this process and replaces it by the command. Returns only if that fails. This process
/// must have one thread.
pub fn enter(restriction: &Restriction) -> EnterError {
    match restrict(restriction) {
        Err(why) => EnterError::NotContained(why),
        Ok(()) => {
            let Some((program, arguments)) = restriction.argv.split_first() else {
                return EnterError::NotContained("there is no program to run".to_owned());
            };
            let source = Command::new(program).args(arguments).exec();
            EnterError::Program { program: program.to_string_lossy().into_owned(), source }
        }
    }
}

fn restrict(restriction: &Restriction) -> Result<(), String> {
    if restriction.mounts {
        mount_places(&restriction.places)?;
    }
    // From here on, what the working directory was before the mounts must not be used.
    std::env::set_current_dir(&restriction.cwd)
        .map_err(|error| format!("{} cannot be entered: {error}", restriction.cwd.display()))?;
    restrict_with_rules(&restriction.places, restriction.network)
}

/// Mounts the places in name spaces of this process.
fn mount_places(places: &[Place]) -> Result<(), String> {
    new_namespaces()?;
    // In the new name space, and before anything is covered.
    let open = |path: &Path| {
        use rustix::fs::{CWD, Mode, OFlags, openat};
        openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
            .map_err(|error| format!("{} cannot be opened: {error}", path.display()))
    };
    let mut sources: Vec<Option<OwnedFd>> = Vec::new();
    for place in places {
        sources.push(match place.access {
            Access::Read | Access::Write => Some(open(&place.path)?),
            Access::Private | Access::Hidden => None,
        });
    }
    for (place, source) in places.iter().zip(&sources) {
        mount_place(place, source.as_ref())
            .map_err(|error| format!("{} cannot be mounted: {error}", place.path.display()))?;
    }
    for place in places.iter().filter(|place| place.access == Access::Hidden && place.folder) {
        let flags = MsFlags::MS_REMOUNT | MsFlags::MS_BIND | MsFlags::MS_RDONLY;
        mount(None::<&str>, &place.path, None::<&str>, flags, None::<&str>)
            .map_err(|error| format!("{} stays writable: {error}", place.path.display()))?;
    }
    Ok(())
}

/// Enters a user name space, in which this process is the same user, and a mount name space.
fn new_namespaces() -> Result<(), String> {
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    let (user, group) = (user.as_raw(), group.as_raw());
    unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS)
        .map_err(|error| format!("user name spaces are not allowed: {error}"))?;
    let write = |file: &str, text: String| {
        std::fs::write(file, text).map_err(|error| format!("{file} cannot be written: {error}"))
    };
    write("/proc/self/setgroups", "deny".to_owned())?;
    write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    write("/proc/self/gid_map", format!("{group} {group} 1"))?;
    let flags = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    mount(None::<&str>, "/", None::<&str>, flags, None::<&str>)
        .map_err(|error| format!("the mounts cannot be made private: {error}"))
}

fn mount_place(place: &Place, source: Option<&OwnedFd>) -> std::io::Result<()> {
    let bind = |source: &Path| -> std::io::Result<()> {
        let flags = MsFlags::MS_BIND | MsFlags::MS_REC;
        Ok(mount(Some(source), &place.path, None::<&str>, flags, None::<&str>)?)
    };
    if let Some(source) = source {
        make_mount_point(&place.path, place.folder)?;
        bind(Path::new(&format!("/proc/self/fd/{}", source.as_raw_fd())))?;
    }
    match place.access {
        Access::Write => Ok(()),
        Access::Read => make_read_only(&place.path),
        Access::Hidden if !place.folder => bind(Path::new("/dev/null")),
        Access::Hidden | Access::Private => {
            let mode = if place.access == Access::Private { "mode=1777" } else { "mode=0755" };
            let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
            Ok(mount(Some("tmpfs"), &place.path, Some("tmpfs"), flags, Some(mode))?)
        }
    }
}

/// Creates the file or folder to mount on, if a folder above was covered.
fn make_mount_point(path: &Path, folder: bool) -> std::io::Result<()> {
    if path.symlink_metadata().is_ok() {
        return Ok(());
    }
    if folder {
        return std::fs::create_dir_all(path);
    }
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)?;
    }
    File::create(path).map(|_| ())
}

/// Makes the mount at a path and those below it read-only. A user name space may not drop the other
/// flags of a mount.
fn make_read_only(path: &Path) -> std::io::Result<()> {
    for (at, options) in mounts_at_or_below(path)? {
        let mut flags = MsFlags::MS_REMOUNT | MsFlags::MS_BIND | MsFlags::MS_RDONLY;
        for option in options.split(',') {
            flags |= match option {
                "nosuid" => MsFlags::MS_NOSUID,
                "nodev" => MsFlags::MS_NODEV,
                "noexec" => MsFlags::MS_NOEXEC,
                "noatime" => MsFlags::MS_NOATIME,
                "nodiratime" => MsFlags::MS_NODIRATIME,
                "relatime" => MsFlags::MS_RELATIME,
                _ => MsFlags::empty(),
            };
        }
        mount(None::<&str>, &at, None::<&str>, flags, None::<&str>)?;
    }
    Ok(())
}

/// The mount points at a path and below it, with their options.
fn mounts_at_or_below(path: &Path) -> std::io::Result<Vec<(PathBuf, String)>> {
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    let table = std::fs::read("/proc/self/mountinfo")?;
    let mut found = Vec::new();
    for line in table.split(|byte| *byte == b'\n') {
        let mut words = line.split(|byte| *byte == b' ').skip(4);
        let (Some(at), Some(options)) = (words.next(), words.next()) else { continue };
        let at = PathBuf::from(std::ffi::OsString::from_vec(unescape(at)));
        if at.as_os_str().as_bytes().starts_with(b"/") && at.starts_with(path) {
            found.push((at, String::from_utf8_lossy(options).into_owned()));
        }
    }
    Ok(found)
}

/// Replaces the octal escapes of a mount table.
fn unescape(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        let code = after.get(..3).filter(|_| *first == b'\\');
        let code = code.and_then(|code| std::str::from_utf8(code).ok());
        match code.and_then(|code| u8::from_str_radix(code, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[3..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    bytes
}

/// Restricts this process with Landlock: everything can be read and executed, only writable places
/// can be written. It also keeps the mounts as they are.
fn restrict_with_rules(places: &[Place], network: bool) -> Result<(), String> {
    let wrong = |error: &dyn std::fmt::Display| format!("Landlock refuses: {error}");
    let writable = |place: &&Place| matches!(place.access, Access::Write | Access::Private);
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(ABI::V1))
        .map_err(|error| wrong(&error))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))
        .map_err(|error| wrong(&error))?
        .scope(Scope::from_all(NEWEST))
        .map_err(|error| wrong(&error))?;
    if !network {
        ruleset = ruleset
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessNet::from_all(WITH_NETWORK))
            .map_err(|error| wrong(&error))?
            .set_compatibility(CompatLevel::BestEffort);
    }
    let mut created = ruleset.create().map_err(|error| wrong(&error))?;
    let all = AccessFs::from_all(NEWEST);
    let read = AccessFs::from_read(NEWEST);
    let devices = DEVICES.iter().map(Path::new).filter(|device| device.exists());
    let devices = devices.map(|device| (device, device.is_dir()));
    let paths = places.iter().filter(writable).map(|place| (place.path.as_path(), place.folder));
    for (path, folder) in paths.chain(devices) {
        let file = PathFd::new(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let access = if folder { all } else { all & AccessFs::from_file(NEWEST) };
        created =
            created.add_rule(PathBeneath::new(file, access)).map_err(|error| wrong(&error))?;
    }
    let root = PathFd::new("/").map_err(|error| wrong(&error))?;
    created = created.add_rule(PathBeneath::new(root, read)).map_err(|error| wrong(&error))?;
    let status = created.restrict_self().map_err(|error| wrong(&error))?;
    if status.ruleset == RulesetStatus::NotEnforced || !status.no_new_privs {
        return Err("Landlock is not enforced by this kernel".to_owned());
    }
    Ok(())
}

/// Restricts this process to find out what can be done here.
pub(super) fn probe() -> Result<Landlock, String> {
    let network = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessNet::from_all(WITH_NETWORK))
        .and_then(Ruleset::create)
        .is_ok();
    let private = Place { path: "/tmp".into(), access: Access::Private, folder: true };
    let mounts = mount_places(&[private]).is_ok();
    restrict_with_rules(&[], true)?;
    Ok(Landlock { network, mounts })
}
