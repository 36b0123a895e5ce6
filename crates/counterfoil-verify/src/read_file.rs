//! Reads files of a workspace whole, without following links.

use crate::inventory;
use std::io::{self, Read};
use std::path::Path;

/// The bytes of a regular file, up to one byte more than the inventory parses; none if it does not
/// exist.
pub(crate) fn read_file(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match path.symlink_metadata() {
        Ok(meta) if meta.is_file() => {}
        Ok(_) => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    }
    let mut bytes = Vec::new();
    let max = inventory::MAX_BYTES as u64 + 1;
    std::fs::File::open(path)?.take(max).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}
