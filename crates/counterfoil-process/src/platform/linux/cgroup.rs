//! A control group for each child, where the kernel provides one: every descendant stays in it,
//! whatever it does to its session, parents and environment, and all of them are killed at once.
//!
//! It supplements the process scan and never replaces it: the child is added after it was started,
//! so what it starts before that is found by the scan. A failure here only means going without a
//! control group. It never fails a run.

mod hierarchy;
mod scope;

use super::rlimit_tag::RlimitTag;
use crate::membership::Process;
use hierarchy::Hierarchy;
use rustix::io::Errno;
use rustix::process::getuid;
pub(super) use scope::CgroupScope;
use std::collections::HashSet;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{LazyLock, Once};
use std::time::Duration;
use std::{fs, io, thread};

/// The environment variable that disables control groups when it is set to `off`.
const SWITCH: &str = "COUNTERFOIL_CGROUP";
/// The prefix of the names of all our groups.
const PREFIX: &str = "counterfoil-";
/// How many nested groups are visited.
const MAX_NESTED_GROUPS: usize = 256;
/// How many descendants are added to a group with the child: more than it can start before it is
/// added.
const MAX_ADDED_DESCENDANTS: usize = 64;
/// An empty group younger than this may be one whose child is about to be added.
const STALE_AGE: Duration = Duration::from_mins(1);
/// How often to check, one millisecond apart, whether all processes in a group are dead.
const MAX_POLLS: u32 = 1000;

/// The hierarchy in which groups can be created, if there is one.
static HIERARCHY: LazyLock<Option<Hierarchy>> = LazyLock::new(|| {
    if std::env::var_os(SWITCH).is_some_and(|value| value == "off") {
        return None;
    }
    Hierarchy::find()
});

/// Creating a group was refused; do not try again.
static REFUSED: AtomicBool = AtomicBool::new(false);

fn hierarchy() -> Option<&'static Hierarchy> {
    HIERARCHY.as_ref().filter(|_| !REFUSED.load(Ordering::Relaxed))
}

/// Whether a group can be created here, filled and killed. Tested once, with a process that does
/// nothing.
pub(super) fn works() -> bool {
    static WORKS: LazyLock<bool> = LazyLock::new(|| {
        let tried = hierarchy().map(try_cgroup);
        if let Some(Err(error)) = &tried {
            tracing::debug!(%error, "control groups are not available");
        }
        matches!(tried, Some(Ok(true)))
    });
    *WORKS && hierarchy().is_some()
}

fn try_cgroup(hierarchy: &Hierarchy) -> io::Result<bool> {
    let group = Group::make(hierarchy, "probe")?;
    let mut child = Command::new("sh")
        .args(["-c", "read nothing"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let taken = match Process::read(child.id().cast_signed()) {
        Some(process) => group.add(&process),
        None => Err(Errno::SRCH.into()),
    };
    if taken.is_err() {
        child.kill()?;
    }
    group.kill();
    let mut killed = false;
    for _ in 0..MAX_POLLS {
        if let Some(status) = child.try_wait()? {
            killed = status.signal() == Some(9);
            break;
        }
        thread::sleep(Duration::from_millis(1));
    }
    if !killed {
        // The process is dead already, or it must be killed this way.
        child.kill()?;
        child.wait()?;
    }
    taken?;
    let folder = group.folder.clone();
    drop(group);
    Ok(killed && !folder.exists())
}

/// One of our groups. Dropping it kills all its processes and removes it.
#[derive(Debug)]
struct Group {
    folder: PathBuf,
}

impl Group {
    /// Creates an empty group for a child.
    fn make(hierarchy: &Hierarchy, marker: &str) -> io::Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let prefix = prefix(marker);
        let us = std::process::id();
        let mut refused = io::Error::from(io::ErrorKind::AlreadyExists);
        // A process in another namespace may have the same process id.
        for _ in 0..16 {
            let name = format!("{prefix}{us}-{}", NEXT.fetch_add(1, Ordering::Relaxed));
            let folder = hierarchy.own().join(name);
            match fs::create_dir(&folder) {
                Ok(()) => {
                    let group = Self { folder };
                    // Kernels before 5.14 cannot kill a group.
                    fs::metadata(group.folder.join("cgroup.kill"))?;
                    return Ok(group);
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => refused = error,
                Err(error) => return Err(error),
            }
        }
        Err(refused)
    }

    /// Adds a process. If its id was reused by another process meanwhile, that one is moved back.
    fn add(&self, process: &Process) -> io::Result<()> {
        let pid = process.id.pid;
        fs::write(self.folder.join("cgroup.procs"), pid.to_string())?;
        if Process::read(pid).is_some_and(|now| now.id != process.id)
            && let Some(outside) = self.folder.parent()
        {
            fs::write(outside.join("cgroup.procs"), pid.to_string())?;
            return Err(Errno::SRCH.into());
        }
        Ok(())
    }

    /// Adds the processes that a member started before it was added.
    fn add_descendants(&self, member: &Process) {
        for descendant in member.descendants(MAX_ADDED_DESCENDANTS) {
            if let Err(error) = self.add(&descendant) {
                tracing::debug!(%error, pid = descendant.id.pid, "a descendant could not be added to the control group");
            }
        }
    }

    /// The folders of the group and its nested groups, outermost first.
    fn folders(&self) -> Vec<PathBuf> {
        let mut folders = vec![self.folder.clone()];
        let mut at = 0;
        while let Some(folder) = folders.get(at) {
            at += 1;
            let Ok(entries) = fs::read_dir(folder) else { continue };
            let nested = entries.filter_map(Result::ok);
            let nested = nested.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
            let capacity = MAX_NESTED_GROUPS.saturating_sub(folders.len());
            let nested: Vec<PathBuf> = nested.map(|entry| entry.path()).take(capacity).collect();
            folders.extend(nested);
        }
        folders
    }

    /// Adds the ids of its processes, as far as they are visible in our namespace.
    fn members(&self, members: &mut HashSet<i32>) {
        for folder in self.folders() {
            let processes = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
            members.extend(
                processes.lines().filter_map(|pid| pid.parse::<i32>().ok()).filter(|pid| *pid > 0),
            );
        }
    }

    /// Whether a process in it or in a nested group is alive. A group that is gone has none.
    fn is_populated(&self) -> bool {
        let events = fs::read_to_string(self.folder.join("cgroup.events")).unwrap_or_default();
        events.lines().any(|line| line == "populated 1")
    }

    /// Kills all its processes, including those that fork meanwhile, unless this process was moved
    /// into it.
    fn kill(&self) {
        if self.contains_this_process() {
            tracing::warn!(group = %self.folder.display(), "this process was moved into the control group of a child; the group is not killed");
            return;
        }
        if let Err(error) = fs::write(self.folder.join("cgroup.kill"), "1") {
            tracing::debug!(%error, group = %self.folder.display(), "the control group cannot be killed");
        }
    }

    fn contains_this_process(&self) -> bool {
        let ours = hierarchy::cgroup_of_process("self");
        let name = self.folder.file_name();
        ours.is_some_and(|ours| {
            ours.components().any(|component| Some(component.as_os_str()) == name)
        })
    }

    /// Removes it and its nested groups, innermost first.
    fn remove(&self) -> io::Result<()> {
        match fs::remove_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) if error.kind() != io::ErrorKind::ResourceBusy => return Err(error),
            Ok(()) => return Ok(()),
            Err(_) => {}
        }
        self.folders().iter().rev().try_for_each(fs::remove_dir)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if self.is_populated() {
            self.kill();
        }
        for _ in 0..MAX_POLLS {
            if !self.is_populated() {
                break;
            }
            if self.contains_this_process() {
                return;
            }
            thread::sleep(Duration::from_millis(1));
        }
        if let Err(error) = self.remove() {
            tracing::debug!(%error, group = %self.folder.display(), "the control group could not be removed");
        }
    }
}

/// The prefix of the names of the groups of a marker.
fn prefix(marker: &str) -> String {
    format!("{PREFIX}{}-", RlimitTag::for_marker(marker))
}

/// Whether a process is in the group of a child, whatever its marker.
pub(super) fn is_in_child_group(pid: i32) -> bool {
    let is_group = |name: &str| {
        let tag = name.strip_prefix(PREFIX).and_then(|rest| rest.split_once('-'));
        tag.is_some_and(|(tag, _)| tag.len() == 16 && tag.bytes().all(|b| b.is_ascii_hexdigit()))
    };
    hierarchy::cgroup_of_process(&pid.to_string()).is_some_and(|place| {
        place.components().any(|part| part.as_os_str().to_str().is_some_and(is_group))
    })
}

/// The groups that a killed supervisor left behind: those in our own cgroup, and those that contain
/// a live process, since the supervisor may have run in another cgroup.
fn leftover_groups(hierarchy: &Hierarchy, marker: &str) -> Vec<Group> {
    let prefix = prefix(marker);
    let is_ours = |name: Option<&std::ffi::OsStr>| {
        name.and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(&prefix))
    };
    let here = fs::read_dir(hierarchy.own()).into_iter().flatten().filter_map(Result::ok);
    let mut folders: HashSet<PathBuf> =
        here.filter(|entry| is_ours(Some(&entry.file_name()))).map(|entry| entry.path()).collect();
    for entry in fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok) {
        let name = entry.file_name();
        let Some(pid) = name.to_str().filter(|name| name.parse::<i32>().is_ok()) else { continue };
        let Some(place) = hierarchy::cgroup_of_process(pid) else { continue };
        let group = place.ancestors().find(|place| is_ours(place.file_name()));
        folders.extend(group.and_then(|group| hierarchy.folder(group)));
    }
    folders.into_iter().map(|folder| Group { folder }).collect()
}

/// Removes, once, the empty groups that supervisors of this user left in our cgroup.
fn remove_stale(hierarchy: &Hierarchy) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for entry in fs::read_dir(hierarchy.own()).into_iter().flatten().filter_map(Result::ok) {
            let ours = entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX));
            if ours && is_stale(&entry.path()) {
                let removed = fs::remove_dir(entry.path());
                tracing::debug!(group = %entry.path().display(), ?removed, "removing a stale control group");
            }
        }
    });
}

fn is_stale(folder: &Path) -> bool {
    let Ok(found) = folder.metadata() else { return false };
    let old = found.modified().is_ok_and(|made| made.elapsed().is_ok_and(|age| age > STALE_AGE));
    found.is_dir() && found.uid() == getuid().as_raw() && old
}
