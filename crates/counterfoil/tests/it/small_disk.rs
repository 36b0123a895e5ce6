//! A small disk that a test mounts and fills, where it may.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;

/// A disk in memory; gone with the value.
pub(crate) struct SmallDisk {
    pub(crate) at: PathBuf,
}

impl SmallDisk {
    /// Mounts a disk of this size, such as `2m`. The error says why it cannot be mounted.
    pub(crate) fn mount(at: PathBuf, size: &str) -> Result<Self, String> {
        fs::create_dir_all(&at).unwrap();
        let options = format!("size={size}");
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(&at).output();
        match mounted {
            Ok(output) if output.status.success() => Ok(Self { at }),
            other => Err(format!("no disk can be mounted: {other:?}")),
        }
    }

    pub(crate) fn remount(&self, option: &str) {
        let options = format!("remount,{option}");
        let status = Command::new("mount").args(["-o", &options]).arg(&self.at).status().unwrap();
        assert!(status.success(), "{options}");
    }

    /// Takes all the room there is.
    pub(crate) fn fill(&self) {
        let mut filler = fs::File::create(self.at.join("filler")).unwrap();
        while filler.write_all(&[0; 1024]).is_ok() {}
        while filler.write_all(&[0]).is_ok() {}
    }

    /// Gives back what [`Self::fill`] took, if it did.
    pub(crate) fn make_room(&self) {
        let _ = fs::remove_file(self.at.join("filler"));
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.at).status();
    }
}
