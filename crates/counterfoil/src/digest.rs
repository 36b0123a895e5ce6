//! Digests: what tells contents apart.

use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;

/// SHA-256 in hex.
pub(crate) fn of(bytes: &[u8]) -> String {
    let mut hex = String::with_capacity(LENGTH);
    for byte in Sha256::digest(bytes) {
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

/// Whether a text has the form of a digest.
pub(crate) fn is_one(text: &str) -> bool {
    text.len() == LENGTH && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

const LENGTH: usize = 64;
