//! The kinds of file systems, as `statfs` reports them.

use std::path::Path;

/// File systems without executable bits.
const WITHOUT_MODES: [u64; 8] = [
    // FAT.
    0x4d44,
    // exFAT.
    0x2011_bab0,
    // NTFS, with either driver of the kernel.
    0x5346_544e,
    0x7366_746e,
    // SMB, versions 1 and 2.
    0xff53_4d42,
    0xfe53_4d42,
    // The drives of Windows in WSL, versions 2 and 1.
    0x0102_1997,
    0x5346_4846,
];

/// Whether the files in a folder are known to have no executable bits, by the kind of its file
/// system.
pub fn is_without_modes(folder: &Path) -> bool {
    let kind = rustix::fs::statfs(folder).ok().and_then(|found| u64::try_from(found.f_type).ok());
    kind.is_some_and(has_no_modes)
}

fn has_no_modes(kind: u64) -> bool {
    WITHOUT_MODES.contains(&kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_systems_of_windows_have_no_modes() {
        for kind in ["FAT 4d44", "NTFS 5346544e", "SMB fe534d42", "WSL 01021997"] {
            let (name, magic) = kind.split_once(' ').unwrap();
            assert!(has_no_modes(u64::from_str_radix(magic, 16).unwrap()), "{name}");
        }
        for kind in ["ext4 ef53", "tmpfs 01021994", "Btrfs 9123683e", "overlay 794c7630"] {
            let (name, magic) = kind.split_once(' ').unwrap();
            assert!(!has_no_modes(u64::from_str_radix(magic, 16).unwrap()), "{name}");
        }
    }

    #[test]
    fn a_folder_has_modes_unless_its_file_system_is_known_to_have_none() {
        for folder in ["/proc", "/a/folder/that/does/not/exist"] {
            assert!(!is_without_modes(Path::new(folder)), "{folder}");
        }
    }
}
