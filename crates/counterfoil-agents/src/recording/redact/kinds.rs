//! What a secret looks like: keys by their form, and values by what stands before them.

use regex::{Regex, RegexBuilder};

/// A pattern of a project's own may not compile to more than this.
const LARGEST_PATTERN: usize = 1 << 20;
/// A longer pattern is not read.
const LONGEST_PATTERN: usize = 1000;

/// What secrets are called, or what they are called ends with.
macro_rules! names {
    () => {
        "api[_-]?key|secret|secret[_-]?(?:access[_-]?)?key|passwd|password|passphrase|token|private[_-]?key|access[_-]?key|credentials?|\
         signing[_-]?key|encryption[_-]?key|session[_-]?key|[_-]pass|[_-]pat"
    };
}

/// One kind of secret.
pub(super) struct Kind {
    /// As it stands in the place of the secret.
    pub(super) name: &'static str,
    /// How it is found; the group `s` is the secret, without it everything that matches.
    pub(super) form: &'static str,
    /// Whether what was found is one.
    pub(super) holds: fn(&str) -> bool,
}

/// Secrets that are known by their own form, wherever they stand.
pub(super) const FORMS: [Kind; 10] = [
    Kind { name: "key", form: r"\bsk-ant-[A-Za-z0-9_-]{6,}", holds: always },
    Kind { name: "key", form: r"\bsk-[A-Za-z0-9_-]{8,}", holds: mixed },
    Kind {
        name: "github-token",
        form: r"\b(?:gh[pousr]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{16,})",
        holds: always,
    },
    Kind { name: "gitlab-token", form: r"\bglpat-[A-Za-z0-9_-]{16,}", holds: always },
    Kind { name: "slack-token", form: r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}", holds: mixed },
    Kind {
        name: "aws-key",
        form: r"\b(?:AKIA|ASIA|AGPA|AIDA|AROA|AIPA|ANPA|ANVA|ABIA|ACCA)[A-Z0-9]{16}\b",
        holds: always,
    },
    Kind {
        name: "google-key",
        form: r"\b(?:AIza[A-Za-z0-9_-]{30,}|ya29\.[A-Za-z0-9_-]{20,}|GOCSPX-[A-Za-z0-9_-]{20,})",
        holds: always,
    },
    Kind {
        name: "jwt",
        form: r"\beyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{5,}(?:\.[A-Za-z0-9_-]*)?",
        holds: always,
    },
    Kind {
        name: "bearer",
        form: r"(?i)\bbearer\s+(?P<s>[A-Za-z0-9._~+/=-]{8,})",
        holds: mixed_or_long,
    },
    Kind {
        name: "password",
        form: r#"\b[A-Za-z][A-Za-z0-9+.-]{0,20}://[^\s/:@"'\\]*:(?P<s>[^\s/@"'\\]+)@"#,
        holds: plausible,
    },
];

/// Secrets that are known by what stands before them.
pub(super) const BEHIND: [Kind; 5] = [
    Kind {
        name: "authorization",
        form: r#"(?i)\b(?:proxy-)?authorization[\\"']*\s*[:=]\s*[\\"']*(?:(?:basic|bearer|token|digest|negotiate|apikey)\s+)?(?P<s>[^\s"'\\,;]{4,})"#,
        holds: plausible,
    },
    Kind {
        name: "api-key",
        form: r#"(?i)\b(?:x-[a-z-]{0,20})?api-key[\\"']*\s*[:=]\s*[\\"']*(?P<s>[^\s"'\\,;]{4,})"#,
        holds: plausible,
    },
    Kind {
        name: "cookie",
        form: r#"(?i)\b(?:set-)?cookie[\\"']*\s*:\s*[\\"']*(?P<s>[^\r\n"'\\]{4,})"#,
        holds: mixed_or_long,
    },
    // In quotes all of it, with its blanks, whatever it is made of.
    Kind {
        name: "secret",
        form: concat!(
            "(?i)(?:",
            names!(),
            r#")(?:\\*["'])?\s*(?::|=>?)\s*(?:"(?P<s>(?:[^"\\\r\n]|\\[^\r\n]){4,})"|'(?P<t>[^'\\\r\n]{4,})'|\\+["'](?P<u>[^"'\\\r\n]{4,}))"#
        ),
        holds: plausible,
    },
    // Without quotes a word, where it cannot be one of a sentence.
    Kind {
        name: "secret",
        form: concat!(
            "(?i)(?:",
            names!(),
            r#")\s*(?:=|:\s?)\s*(?P<s>[^\s"'\\,;(){}\[\]<>&|]{6,})"#
        ),
        holds: mixed,
    },
];

/// Names of fields and variables whose value is a secret. Not `pass` alone, which tests do.
pub(super) const NAMES: &str = concat!("(?i)(?:", names!(), "|cookie|authorization)$");

fn always(_: &str) -> bool {
    true
}

/// Letters and digits: no word of a sentence.
pub(super) fn mixed(text: &str) -> bool {
    plausible(text)
        && text.bytes().any(|byte| byte.is_ascii_digit())
        && text.bytes().any(|byte| byte.is_ascii_alphabetic())
}

fn mixed_or_long(text: &str) -> bool {
    mixed(text) || (plausible(text) && text.len() >= 24)
}

/// Words that stand where a secret would, in examples, schemas and forms.
const WORDS: [&str; 24] = [
    "string",
    "text",
    "number",
    "integer",
    "boolean",
    "object",
    "array",
    "null",
    "none",
    "true",
    "false",
    "required",
    "optional",
    "undefined",
    "hidden",
    "secret",
    "password",
    "token",
    "missing",
    "invalid",
    "empty",
    "bearer",
    "basic",
    "example",
];

/// Whether something can be a secret at all: no word for one, no place for one, no number.
pub(super) fn plausible(text: &str) -> bool {
    let text = text.trim();
    let stands_for_one =
        ["<", "${", "$(", "{{", "%(", "[", "{", "process.env", "os.environ", "env."];
    text.len() >= 4
        && !stands_for_one.iter().any(|start| text.starts_with(start))
        && !WORDS.iter().any(|word| text.eq_ignore_ascii_case(word))
        && text.parse::<f64>().is_err()
        && text
            .chars()
            .any(|char| !matches!(char, '*' | '.' | 'x' | 'X' | '-' | '_' | '…' | '•' | '?'))
}

/// Whether a value is so much of its own that it is taken out wherever it stands, not only behind
/// its name.
pub(super) fn telling(text: &str) -> bool {
    text.len() >= 8 && mixed(text) && !text.contains(char::is_whitespace)
}

/// A pattern of a project's own, or what is wrong with it and the way out.
pub fn pattern(text: &str) -> Result<Regex, String> {
    if text.len() > LONGEST_PATTERN {
        return Err(format!(
            "it is longer than {LONGEST_PATTERN} bytes; write several shorter ones"
        ));
    }
    let regex =
        RegexBuilder::new(text).size_limit(LARGEST_PATTERN).build().map_err(
            |error| match error {
                regex::Error::CompiledTooBig(_) => {
                    "it is too large; use smaller counts in `{…}`".to_owned()
                }
                // The last line says what is wrong; those before draw it.
                error => {
                    let words = error.to_string();
                    words
                        .lines()
                        .last()
                        .unwrap_or_default()
                        .trim_start_matches("error: ")
                        .to_owned()
                }
            },
        )?;
    if regex.is_match("") {
        return Err(
            "it matches nothing at all, and so everywhere; let it need a character".to_owned()
        );
    }
    Ok(regex)
}
