//! The kinds of secrets: keys with a known form, and values that follow the name of a secret.

use super::PatternError;
use regex::{Regex, RegexBuilder};

/// The largest compiled size of a project's own pattern.
const MAX_COMPILED_PATTERN_BYTES: usize = 1 << 20;
/// The longest pattern.
const MAX_PATTERN_BYTES: usize = 1000;

/// The names of secrets, or the ends of such names.
macro_rules! names {
    () => {
        "api[_-]?key|secret|secret[_-]?(?:access[_-]?)?key|passwd|password|passphrase|token|private[_-]?key|access[_-]?key|credentials?|\
         signing[_-]?key|encryption[_-]?key|session[_-]?key|[_-]pass|[_-]pat"
    };
}

/// One kind of secret.
pub(super) struct Kind {
    /// The kind in the placeholder.
    pub(super) name: &'static str,
    /// The pattern. The group `s` is the secret, or the whole match without such a group.
    pub(super) form: &'static str,
    /// Whether a match is a secret.
    pub(super) accepts: fn(&str) -> bool,
}

/// Secrets with a form of their own.
pub(super) const OWN_FORMS: [Kind; 28] = [
    Kind { name: "key", form: r"\bsk-ant-[A-Za-z0-9_-]{6,}", accepts: always },
    Kind { name: "key", form: r"\bsk-[A-Za-z0-9_-]{8,}", accepts: mixed },
    Kind {
        name: "github-token",
        form: r"\b(?:gh[pousr]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{16,})",
        accepts: always,
    },
    Kind { name: "gitlab-token", form: r"\bglpat-[A-Za-z0-9_-]{16,}", accepts: always },
    Kind { name: "slack-token", form: r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}", accepts: mixed },
    Kind {
        name: "aws-key",
        form: r"\b(?:AKIA|ASIA|AGPA|AIDA|AROA|AIPA|ANPA|ANVA|ABIA|ACCA)[A-Z0-9]{16}\b",
        accepts: always,
    },
    Kind {
        name: "google-key",
        form: r"\b(?:AIza[A-Za-z0-9_-]{30,}|ya29\.[A-Za-z0-9_-]{20,}|GOCSPX-[A-Za-z0-9_-]{20,})",
        accepts: always,
    },
    Kind {
        name: "jwt",
        form: r"\beyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{5,}(?:\.[A-Za-z0-9_-]*)?",
        accepts: always,
    },
    // Secret and restricted keys, and secrets of webhooks. Publishable keys (`pk_`) are public.
    Kind {
        name: "stripe-key",
        form: r"\b(?:[sr]k_(?:org_)?(?:live|test|prod)_[A-Za-z0-9]{10,}|whsec_[A-Za-z0-9+/=_-]{16,})",
        accepts: mixed_or_long,
    },
    Kind { name: "npm-token", form: r"\bnpm_[A-Za-z0-9]{30,}", accepts: always },
    // A macaroon, in Base64.
    Kind { name: "pypi-token", form: r"\bpypi-AgE[A-Za-z0-9_-]{16,}", accepts: always },
    Kind { name: "huggingface-token", form: r"\b(?:hf|api_org)_[A-Za-z0-9]{24,}", accepts: always },
    Kind {
        name: "sendgrid-key",
        form: r"\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}",
        accepts: always,
    },
    Kind { name: "digitalocean-token", form: r"(?i)\bdo[opr]_v1_[a-f0-9]{32,}", accepts: always },
    // A key or an account, and the token of an account after its name.
    Kind {
        name: "twilio-key",
        form: r"\b(?:AC[0-9a-f]{32}:[0-9a-f]{32}|(?:SK|AC)[0-9a-f]{32})\b",
        accepts: always,
    },
    Kind {
        name: "telegram-token",
        form: r"\b(?:bot)?(?P<s>[0-9]{6,12}:[A-Za-z0-9_-]{32,40})",
        accepts: telegram,
    },
    // A client secret of Entra ID.
    Kind {
        name: "azure-key",
        form: r"(?:^|[^A-Za-z0-9_~.-])(?P<s>[A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{30,40})",
        accepts: always,
    },
    // Keys in connection strings, and signatures in links.
    Kind {
        name: "azure-key",
        form: r"(?i)\b(?:Shared)?(?:Account|Access|Secret)Key\s*=\s*(?P<s>[A-Za-z0-9+/_-]{16,}={0,2})",
        accepts: mixed,
    },
    Kind {
        name: "azure-key",
        form: r"[?&](?:amp;)?sig=(?P<s>[A-Za-z0-9%+/_-]{16,}={0,2})",
        accepts: mixed,
    },
    // Keys with the signature of the service that issued them.
    Kind { name: "azure-key", form: r"[A-Za-z0-9+/_-]{40,}={0,2}", accepts: has_azure_signature },
    // Bech32, which people may write in small letters too.
    Kind {
        name: "age-key",
        form: r"(?i)\bage-(?:secret-key-(?:[a-z0-9]{1,12}-)?|plugin-[a-z0-9+.-]{1,40}-)1[02-9ac-hj-np-z]{16,}",
        accepts: always,
    },
    Kind {
        name: "bearer",
        form: r"(?i)\bbearer\s+(?P<s>[A-Za-z0-9._~+/=-]{8,})",
        accepts: mixed_or_long,
    },
    Kind {
        name: "password",
        form: r#"\b[A-Za-z][A-Za-z0-9+.-]{0,20}://[^\s/:@"'\\]*:(?P<s>[^\s/@"'\\]+)@"#,
        accepts: is_plausible,
    },
    // What is left of secrets before the mark of a place where a text was shortened: too little for
    // the forms above.
    Kind {
        name: "secret",
        form: r"\b(?P<s>(?:sk-(?:ant-)?|gh[pousr]_|github_pat_|glpat-|xox[abeoprs]-|ya29\.|GOCSPX-|[sr]k_(?:org_)?(?:live|test|prod)_|whsec_|npm_|pypi-AgE|hf_|api_org_|SG\.|AIza|eyJ|(?i:do[opr]_v1_|age-(?:secret-key-|plugin-))|(?:AKIA|ASIA|AGPA|AIDA|AROA|AIPA|ANPA|ANVA|ABIA|ACCA)[A-Z0-9]|(?:SK|AC)[0-9a-f]{4}|[A-Za-z0-9_~.-]{3}[0-9]Q~)[A-Za-z0-9_.~+/=:%-]{3,})…",
        accepts: always,
    },
    Kind {
        name: "secret",
        form: r"(?P<s>[A-Za-z0-9+]{32,}[A-Za-z0-9+/=_-]*)…",
        accepts: is_random,
    },
    Kind {
        name: "secret",
        form: r"\b(?:bot)?(?P<s>[0-9]{6,12}:[A-Za-z0-9_-]{4,})…",
        accepts: mixed,
    },
    Kind {
        name: "secret",
        form: r#"(?i)(?:\bbearer\s+|\b(?:Shared)?(?:Account|Access|Secret)Key\s*=\s*|[?&](?:amp;)?sig=)(?P<s>[^\s@"'\\…]{4,})…"#,
        accepts: is_plausible,
    },
    Kind {
        name: "secret",
        form: r#"\b[A-Za-z][A-Za-z0-9+.-]{0,20}://[^\s/:@"'\\]*:(?P<s>[^\s/@"'\\…]{4,})…"#,
        accepts: is_plausible,
    },
];

/// Secrets that are identified by the text before them.
pub(super) const CONTEXT_FORMS: [Kind; 8] = [
    Kind {
        name: "authorization",
        form: r#"(?i)\b(?:proxy-)?authorization[\\"']*\s*[:=]\s*[\\"']*(?:(?:basic|bearer|token|digest|negotiate|apikey)\s+)?(?P<s>[^\s"'\\,;]{4,})"#,
        accepts: is_plausible,
    },
    Kind {
        name: "api-key",
        form: r#"(?i)\b(?:x-[a-z-]{0,20})?api-key[\\"']*\s*[:=]\s*[\\"']*(?P<s>[^\s"'\\,;]{4,})"#,
        accepts: is_plausible,
    },
    Kind {
        name: "cookie",
        form: r#"(?i)\b(?:set-)?cookie[\\"']*\s*:\s*[\\"']*(?P<s>[^\r\n"'\\]{4,})"#,
        accepts: mixed_or_long,
    },
    // A quoted value, including spaces.
    Kind {
        name: "secret",
        form: concat!(
            "(?i)(?:",
            names!(),
            r#")(?:\\*["'])?\s*(?::|=>?)\s*(?:"(?P<s>(?:[^"\\\r\n]|\\[^\r\n]){4,})"|'(?P<t>[^'\\\r\n]{4,})'|\\+["'](?P<u>[^"'\\\r\n]{4,}))"#
        ),
        accepts: is_plausible,
    },
    // The argument after an option, on a command line or in a list of arguments.
    Kind {
        name: "secret",
        form: concat!(
            r"(?i)(?:^|[^A-Za-z0-9_-])--?[a-z0-9_-]*(?:",
            names!(),
            r#")[\\"']*(?:\s*,\s*|\s+(?:-\s+)?)[\\"']*(?P<s>[^\s"'\\,;(){}\[\]<>&|]{6,})"#
        ),
        accepts: mixed,
    },
    // An unquoted value that is not an ordinary word.
    Kind {
        name: "secret",
        form: concat!(
            "(?i)(?:",
            names!(),
            r#")\s*(?:=|:\s?)\s*(?P<s>[^\s"'\\,;(){}\[\]<>&|]{6,})"#
        ),
        accepts: mixed,
    },
    // Values before the mark of a place where a text was shortened: quoted ones without the closing
    // quote, and unquoted ones.
    Kind {
        name: "secret",
        form: concat!(
            "(?i)(?:",
            names!(),
            r#")(?:\\*["'])?\s*(?::|=>?)\s*\\*["'](?P<s>[^"'\\\r\n…]{4,})…"#
        ),
        accepts: is_plausible,
    },
    Kind {
        name: "secret",
        form: concat!(
            "(?i)(?:",
            names!(),
            r#")(?:\\*["'])?\s*(?:=|:\s?)\s*(?P<s>[^\s"'\\,;(){}\[\]<>&|…]{4,})…"#
        ),
        accepts: is_plausible,
    },
];

/// The names of fields and variables with secret values. Not `pass` alone, which test reports use.
pub(super) const SECRET_NAMES: &str = concat!("(?i)(?:", names!(), "|cookie|authorization)$");

/// An item of a list after which a secret follows: an option, a header or an assignment.
pub(super) const LIST_OPENINGS: &str = concat!(
    "(?i)(?:^--?[a-z0-9][a-z0-9_.-]*(?:",
    names!(),
    "|cookie|authorization)|^--?(?:",
    names!(),
    r#"|cookie|authorization)|(?:"#,
    names!(),
    r#"|cookie|authorization)["']?\s*[:=]\s*["']?(?:(?:basic|bearer|token|digest|negotiate|apikey)\s*)?)$"#
);

/// The name of a way to authenticate, which stands before a secret.
pub(super) const AUTH_SCHEMES: &str = "(?i)^(?:basic|bearer|digest|negotiate|apikey)$";

fn always(_: &str) -> bool {
    true
}

/// Whether a value contains both letters and digits, unlike ordinary words.
fn mixed(text: &str) -> bool {
    is_plausible(text)
        && text.bytes().any(|byte| byte.is_ascii_digit())
        && text.bytes().any(|byte| byte.is_ascii_alphabetic())
}

pub(super) fn mixed_or_long(text: &str) -> bool {
    mixed(text) || (is_plausible(text) && text.len() >= 24)
}

/// Whether a number and a text are the token of a bot, and not a time and a hash.
fn telegram(text: &str) -> bool {
    let hash = text.split_once(':').map(|(_, hash)| hash).unwrap_or_default();
    is_random(hash)
}

/// Whether a long value looks random: it has capital and small letters and digits.
fn is_random(text: &str) -> bool {
    text.bytes().any(|byte| byte.is_ascii_uppercase())
        && text.bytes().any(|byte| byte.is_ascii_lowercase())
        && text.bytes().any(|byte| byte.is_ascii_digit())
}

/// The signatures in keys of Azure, with the number of characters before and the numbers of
/// characters after.
const AZURE_SIGNATURES: [(&str, usize, &[usize]); 14] = [
    ("+ASt", 76, &[6]),
    ("ACDb", 76, &[6]),
    ("+ABa", 76, &[6]),
    ("+AMC", 76, &[6]),
    ("+ASb", 33, &[6]),
    ("+AEh", 33, &[6]),
    ("+ARm", 33, &[6]),
    ("AIoT", 33, &[6]),
    ("AZEG", 33, &[6]),
    ("AzFu", 44, &[6]),
    ("AzSe", 42, &[6]),
    ("AZDO", 76, &[4]),
    ("+ACR", 42, &[6]),
    ("JQQJ", 52, &[28, 30]),
];

/// Whether a key has the signature of a service of Azure in its place.
fn has_azure_signature(text: &str) -> bool {
    let text = text.trim_end_matches('=').as_bytes();
    AZURE_SIGNATURES.iter().any(|(signature, before, after)| {
        after.iter().any(|after| {
            let at = text.len().checked_sub(signature.len() + after);
            at.is_some_and(|at| at >= *before && text[at..].starts_with(signature.as_bytes()))
        })
    })
}

/// A value without the punctuation of the sentence that it ends.
pub(super) fn trim_sentence(text: &str) -> &str {
    let marks = ['.', ',', ';', ':', '!', '?', '…', '`', '*', '\u{201d}', '\u{2019}'];
    let trimmed = text.trim_end_matches(marks);
    if trimmed.is_empty() { text } else { trimmed }
}

/// Words in the place of a secret in examples, schemas and forms.
const PLACEHOLDER_WORDS: [&str; 24] = [
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

/// Whether a value can be a secret: not a placeholder and not a number.
pub(super) fn is_plausible(text: &str) -> bool {
    let text = text.trim();
    let placeholder_prefixes =
        ["<", "${", "$(", "{{", "%(", "[", "{", "process.env", "os.environ", "env."];
    text.len() >= 4
        && !placeholder_prefixes.iter().any(|start| text.starts_with(start))
        && !PLACEHOLDER_WORDS.iter().any(|word| text.eq_ignore_ascii_case(word))
        && text.parse::<f64>().is_err()
        && text
            .chars()
            .any(|char| !matches!(char, '*' | '.' | 'x' | 'X' | '-' | '_' | '…' | '•' | '?'))
}

/// Whether a value is distinctive enough to be redacted everywhere, not only after its name.
pub(super) fn is_distinctive(text: &str) -> bool {
    text.len() >= 8 && mixed(text) && !text.contains(char::is_whitespace)
}

/// Compiles a project's own pattern.
///
/// # Errors
///
/// The pattern is invalid, too large, or matches the empty text.
pub fn compile_pattern(text: &str) -> Result<Regex, PatternError> {
    let invalid = |why: String| PatternError { pattern: text.to_owned(), why };
    if text.len() > MAX_PATTERN_BYTES {
        return Err(invalid(format!(
            "it is longer than {MAX_PATTERN_BYTES} bytes; write several shorter ones"
        )));
    }
    let built = RegexBuilder::new(text).size_limit(MAX_COMPILED_PATTERN_BYTES).build();
    let regex = built.map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => {
            invalid("it is too large; use smaller counts in `{…}`".to_owned())
        }
        // The last line is the message; the lines before show the position.
        error => {
            let message = error.to_string();
            let line = message.lines().last().unwrap_or_default();
            invalid(line.trim_start_matches("error: ").to_owned())
        }
    })?;
    if regex.is_match("") {
        return Err(invalid(
            "it matches the empty text, and so everywhere; require a character".to_owned(),
        ));
    }
    Ok(regex)
}
