//! SHA-256 digests as lowercase hex.

use sha2::{Digest as _, Sha256};

/// The number of hex digits in a SHA-256 digest.
const HEX_LENGTH: usize = 64;

/// The SHA-256 digest of some bytes.
pub(crate) fn sha256_hex(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// Whether a text has the form of a SHA-256 digest.
pub(crate) fn is_sha256_hex(text: &str) -> bool {
    text.len() == HEX_LENGTH && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
