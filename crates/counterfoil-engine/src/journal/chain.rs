//! The chain of digests. The digest of each event covers the digest before it, so that a changed,
//! missing or inserted event breaks the chain at that point.

use sha2::{Digest as _, Sha256};

/// The first half of a SHA-256 hash.
pub(super) type Digest = [u8; 16];

/// The start of the chain. It depends on the run and its bundle, so that events cannot be moved to
/// another run.
pub(super) fn origin(run: &str, bundle: &str) -> Digest {
    let mut hash = Sha256::new();
    // A fixed label of the format: journals from before the product was renamed stay readable.
    hash.update(b"countersign journal 1");
    sized(&mut hash, run.as_bytes());
    sized(&mut hash, bundle.as_bytes());
    half(hash)
}

/// The digest of one event.
pub(super) fn link(previous: &Digest, seq: u64, at: i64, kind: &str, body: &[u8]) -> Digest {
    let mut hash = Sha256::new();
    hash.update(previous);
    hash.update(seq.to_be_bytes());
    hash.update(at.to_be_bytes());
    // The length separates the kind from the body.
    sized(&mut hash, kind.as_bytes());
    hash.update(body);
    half(hash)
}

/// The digest of a snapshot, which is not part of the chain.
pub(super) fn snapshot_digest(run: &str, seq: u64, body: &[u8]) -> Digest {
    let mut hash = Sha256::new();
    sized(&mut hash, run.as_bytes());
    hash.update(seq.to_be_bytes());
    hash.update(body);
    half(hash)
}

/// SHA-256 in hex.
pub(super) fn sha256_hex(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

fn sized(hash: &mut Sha256, bytes: &[u8]) {
    hash.update((bytes.len() as u64).to_be_bytes());
    hash.update(bytes);
}

fn half(hash: Sha256) -> Digest {
    let mut digest = Digest::default();
    for (to, from) in digest.iter_mut().zip(hash.finalize()) {
        *to = from;
    }
    digest
}
