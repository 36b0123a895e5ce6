//! The digests of the journal. The digest of each event covers the digest before it, so that a
//! changed, missing or inserted event breaks the chain at that point.
//!
//! With a key, they are authentication codes (HMAC-SHA256): without it nobody can compute them
//! anew. Then the rows of runs and the messages to their drivers carry a code, too.

use hmac::{Hmac, KeyInit as _, Mac as _};
use rusqlite::Row;
use rusqlite::types::ValueRef;
use sha2::{Digest as _, Sha256};

/// The first half of a SHA-256 hash.
pub(super) type Digest = [u8; 16];

/// The length of a key in bytes.
pub(super) const KEY_BYTES: usize = 32;

/// The key of a journal, ready to be used.
#[derive(Clone)]
pub(super) struct Key(Hmac<Sha256>);

impl Key {
    pub(super) fn new(bytes: &[u8; KEY_BYTES]) -> Option<Self> {
        Hmac::new_from_slice(bytes).ok().map(Self)
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Key(..)")
    }
}

/// How the digests of a run are computed.
#[derive(Clone, Copy, Debug)]
pub(super) enum Digests<'a> {
    /// As hashes: the run is older than the key of its journal, or there is none.
    Plain,
    /// With the key of the journal.
    Keyed(&'a Key),
}

impl Digests<'_> {
    /// The start of the chain. It depends on the run and its bundle, so that events cannot be moved
    /// to another run.
    pub(super) fn origin(self, run: &str, bundle: &str) -> Digest {
        // A fixed label of the format: journals from before the product was renamed stay readable.
        let mut hash = self.start(b"countersign journal 1", b"run");
        hash.sized(run.as_bytes());
        hash.sized(bundle.as_bytes());
        hash.half()
    }

    /// The digest of one event.
    pub(super) fn link(
        self,
        previous: &Digest,
        seq: u64,
        at: i64,
        kind: &str,
        body: &[u8],
    ) -> Digest {
        let mut hash = self.start(b"", b"event");
        hash.add(previous);
        hash.add(&seq.to_be_bytes());
        hash.add(&at.to_be_bytes());
        // The length separates the kind from the body.
        hash.sized(kind.as_bytes());
        hash.add(body);
        hash.half()
    }

    /// The digest of a snapshot, which is not part of the chain.
    pub(super) fn snapshot(self, run: &str, seq: u64, body: &[u8]) -> Digest {
        let mut hash = self.start(b"", b"snapshot");
        hash.sized(run.as_bytes());
        hash.add(&seq.to_be_bytes());
        hash.add(body);
        hash.half()
    }

    /// The code of a message to the driver of a run; none without a key.
    pub(super) fn message(
        self,
        run: &str,
        id: i64,
        at: i64,
        kind: &str,
        body: &[u8],
    ) -> Option<Digest> {
        self.is_keyed().then(|| {
            let mut hash = self.start(b"", b"message");
            hash.sized(run.as_bytes());
            hash.add(&id.to_be_bytes());
            hash.add(&at.to_be_bytes());
            hash.sized(kind.as_bytes());
            hash.add(body);
            hash.half()
        })
    }

    /// The seal of a receipt of a run; none without a key.
    pub(super) fn seal(self, run: &str, content: &[u8]) -> Option<Digest> {
        self.is_keyed().then(|| {
            let mut hash = self.start(b"", b"receipt");
            hash.sized(run.as_bytes());
            hash.add(content);
            hash.half()
        })
    }

    /// The code of the first columns of a row; none without a key.
    pub(super) fn row(self, row: &Row<'_>, columns: usize) -> rusqlite::Result<Option<Digest>> {
        if !self.is_keyed() {
            return Ok(None);
        }
        let mut hash = self.start(b"", b"row");
        for column in 0..columns {
            match row.get_ref(column)? {
                ValueRef::Null => hash.sized(b"null"),
                ValueRef::Integer(number) => hash.sized(&number.to_be_bytes()),
                ValueRef::Real(number) => hash.sized(&number.to_bits().to_be_bytes()),
                ValueRef::Text(bytes) | ValueRef::Blob(bytes) => hash.sized(bytes),
            }
        }
        Ok(Some(hash.half()))
    }

    fn is_keyed(self) -> bool {
        matches!(self, Self::Keyed(_))
    }

    /// Begins a digest with a label for what it is about. Those without a key have had others from
    /// the first version on.
    fn start(self, plain: &[u8], keyed: &[u8]) -> Hash {
        match self {
            Self::Plain => {
                let mut hash = Sha256::new();
                hash.update(plain);
                Hash::Plain(hash)
            }
            Self::Keyed(Key(key)) => {
                let mut hash = Hash::Keyed(key.clone());
                hash.sized(keyed);
                hash
            }
        }
    }
}

enum Hash {
    Plain(Sha256),
    Keyed(Hmac<Sha256>),
}

impl Hash {
    fn add(&mut self, bytes: &[u8]) {
        match self {
            Self::Plain(hash) => hash.update(bytes),
            Self::Keyed(hash) => hash.update(bytes),
        }
    }

    fn sized(&mut self, bytes: &[u8]) {
        self.add(&(bytes.len() as u64).to_be_bytes());
        self.add(bytes);
    }

    fn half(self) -> Digest {
        let whole = match self {
            Self::Plain(hash) => hash.finalize(),
            Self::Keyed(hash) => hash.finalize().into_bytes(),
        };
        let mut digest = Digest::default();
        for (to, from) in digest.iter_mut().zip(whole) {
            *to = from;
        }
        digest
    }
}

/// SHA-256 in hex.
pub(super) fn sha256_hex(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}
