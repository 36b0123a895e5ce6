//! Temporary directories.

use std::process::Command;
use std::sync::LazyLock;
use tempfile::TempDir;

/// Creates a temporary directory in memory, if `/dev/shm` has enough space and `TMPDIR` is not set,
/// otherwise on the disk. It is for tests with many small runs, which mostly wait for the disk.
pub fn memory_dir() -> TempDir {
    const MEMORY: &str = "/dev/shm";
    const MIN_FREE_KIB: u64 = 512 << 10;
    static USE_MEMORY: LazyLock<bool> = LazyLock::new(|| {
        if std::env::var_os("TMPDIR").is_some() {
            return false;
        }
        let output = Command::new("df").args(["-kP", MEMORY]).output();
        let table = output.map(|output| output.stdout).unwrap_or_default();
        let table = String::from_utf8_lossy(&table).into_owned();
        let free = table.lines().last().and_then(|line| line.split_whitespace().nth(3));
        free.and_then(|free| free.parse().ok()).is_some_and(|free: u64| free > MIN_FREE_KIB)
    });
    let in_memory = USE_MEMORY.then(|| tempfile::tempdir_in(MEMORY).ok()).flatten();
    in_memory.unwrap_or_else(|| TempDir::new().unwrap())
}
