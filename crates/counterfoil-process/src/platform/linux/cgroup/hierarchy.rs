//! Finds the unified cgroup hierarchy, wherever it is mounted, and the cgroup of this process in
//! it.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Component, Path, PathBuf};

/// The mounts of the unified hierarchy (cgroup v2).
#[derive(Debug)]
pub(super) struct Hierarchy {
    /// A later mount covers the earlier ones.
    mounts: Vec<Mount>,
    own: PathBuf,
}

/// A mounted part of the hierarchy.
#[derive(Debug, PartialEq, Eq)]
struct Mount {
    /// The cgroup that is mounted.
    root: PathBuf,
    /// The mount point.
    point: PathBuf,
}

impl Hierarchy {
    /// Finds the hierarchy and the folder of our own cgroup.
    pub(super) fn find() -> Option<Self> {
        let mounts = fs::read("/proc/self/mountinfo").ok()?;
        let mounts: Vec<Mount> =
            mounts.split(|byte| *byte == b'\n').filter_map(Mount::parse).collect();
        let own = folder_of(&mounts, &cgroup_of_process("self")?)?;
        Some(Self { mounts, own })
    }

    /// The folder of our own cgroup. Groups are created there, since no other place is known to be
    /// writable for us.
    pub(super) fn own(&self) -> &Path {
        &self.own
    }

    /// The folder of a cgroup.
    pub(super) fn folder(&self, cgroup: &Path) -> Option<PathBuf> {
        folder_of(&self.mounts, cgroup)
    }
}

fn folder_of(mounts: &[Mount], cgroup: &Path) -> Option<PathBuf> {
    let folders = mounts.iter().rev().filter_map(|mount| mount.folder(cgroup));
    folders.into_iter().find(|folder| folder.join("cgroup.procs").exists())
}

impl Mount {
    /// Parses a line of `mountinfo`. `None` if it is not about the unified hierarchy.
    fn parse(line: &[u8]) -> Option<Self> {
        let mut fields = line.split(|byte| *byte == b' ');
        let root = fields.nth(3)?;
        let point = fields.next()?;
        // Any number of further fields, then a dash, then the type.
        let kind = fields.skip_while(|field| *field != b"-").nth(1)?;
        (kind == b"cgroup2").then(|| Self { root: unescape(root), point: unescape(point) })
    }

    fn folder(&self, cgroup: &Path) -> Option<PathBuf> {
        let within = cgroup.strip_prefix(&self.root).ok()?;
        // A cgroup outside of our namespace is written with `..` and cannot be reached.
        let inside = !within.components().any(|component| component == Component::ParentDir);
        inside.then(|| self.point.join(within))
    }
}

/// Decodes the octal escapes of blanks and backslashes in a path.
fn unescape(field: &[u8]) -> PathBuf {
    let mut path = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((byte, behind)) = rest.split_first() {
        let digits = behind.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(escaped) if *byte == b'\\' => {
                path.push(escaped);
                rest = behind.get(3..).unwrap_or_default();
            }
            _ => {
                path.push(*byte);
                rest = behind;
            }
        }
    }
    PathBuf::from(OsString::from_vec(path))
}

/// The cgroup of a process in the unified hierarchy.
pub(super) fn cgroup_of_process(pid: &str) -> Option<PathBuf> {
    parse_cgroup_path(&fs::read(format!("/proc/{pid}/cgroup")).ok()?)
}

fn parse_cgroup_path(lines: &[u8]) -> Option<PathBuf> {
    let cgroup = lines.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"0::"))?;
    // The group of a dying process may have been removed.
    let gone = cgroup.ends_with(b" (deleted)");
    (cgroup.starts_with(b"/") && !gone).then(|| PathBuf::from(OsString::from_vec(cgroup.to_vec())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mount(line: &str) -> Option<(PathBuf, PathBuf)> {
        Mount::parse(line.as_bytes()).map(|mount| (mount.root, mount.point))
    }

    #[test]
    fn the_unified_hierarchy_is_found_among_the_others() {
        let unified = mount("41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw");
        assert_eq!(unified, Some(("/".into(), "/sys/fs/cgroup/unified".into())));
        let shared = mount(
            "25 30 0:23 / /sys/fs/cgroup rw shared:9 master:1 - cgroup2 cgroup2 rw,nsdelegate",
        );
        assert_eq!(shared, Some(("/".into(), "/sys/fs/cgroup".into())));
        assert_eq!(
            mount("32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu"),
            None
        );
        for half in
            ["", "41", "41 31 0:38 /", "41 31 0:38 / /x rw,relatime", "41 31 0:38 / /x rw -"]
        {
            assert_eq!(mount(half), None, "{half}");
        }
    }

    #[test]
    fn a_mount_point_may_have_blanks_and_backslashes() {
        let found = mount(r"41 31 0:38 /a\134b /with\040blank\9 rw - cgroup2 cgroup2 rw");
        assert_eq!(found, Some((r"/a\b".into(), r"/with blank\9".into())));
    }

    #[test]
    fn a_part_of_the_hierarchy_may_be_mounted() {
        let mount = Mount { root: "/docker/abc".into(), point: "/sys/fs/cgroup".into() };
        assert_eq!(mount.folder("/docker/abc/x".as_ref()), Some("/sys/fs/cgroup/x".into()));
        assert_eq!(mount.folder("/docker/abc".as_ref()), Some("/sys/fs/cgroup".into()));
        assert_eq!(mount.folder("/docker/abcd".as_ref()), None);
        let whole = Mount { root: "/".into(), point: "/cg".into() };
        assert_eq!(whole.folder("/../../other".as_ref()), None, "outside of our namespace");
    }

    #[test]
    fn our_place_is_the_line_without_controllers() {
        let lines = b"9:name=systemd:/a\n1:cpu:/b\n0::/user.slice/x.scope\n";
        assert_eq!(parse_cgroup_path(lines), Some("/user.slice/x.scope".into()));
        for none in ["", "9:name=systemd:/a\n", "0::\n", "0::/gone (deleted)\n"] {
            assert_eq!(parse_cgroup_path(none.as_bytes()), None, "{none}");
        }
    }
}
