//! The token of a server.

use sha2::{Digest as _, Sha256};
use std::fmt;

/// The number of random bytes of a secret.
const SECRET_BYTES: usize = 32;

/// The secret that programs send with each request. It is not shown in debug output.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// A new random token.
    ///
    /// # Errors
    ///
    /// The system has no random numbers.
    pub fn random() -> Result<Self, getrandom::Error> {
        Ok(Self(random_secret()?))
    }

    /// A token that was made before.
    pub fn from_text(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The token itself.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Whether a text is the token.
    pub(crate) fn is(&self, text: &str) -> bool {
        !self.0.is_empty() && same_secret(&self.0, text)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Token(…)")
    }
}

/// A new random secret, in hex.
pub(super) fn random_secret() -> Result<String, getrandom::Error> {
    let mut bytes = [0; SECRET_BYTES];
    getrandom::fill(&mut bytes)?;
    Ok(hex::encode(bytes))
}

/// Compares two secrets. The time that it takes depends on their hashes, which tell nothing about the
/// secrets.
pub(super) fn same_secret(one: &str, other: &str) -> bool {
    Sha256::digest(one) == Sha256::digest(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_token_is_the_token_and_it_is_not_printed() {
        let token = Token::random().unwrap();
        assert_eq!(token.reveal().len(), 64);
        assert!(token.is(token.reveal()));
        assert!(!token.is(""));
        assert!(!token.is(&token.reveal()[1..]));
        assert!(!Token::from_text("").is(""), "without a token nobody has it");
        assert_ne!(token, Token::random().unwrap());
        assert!(!format!("{token:?}").contains(token.reveal()));
    }
}
