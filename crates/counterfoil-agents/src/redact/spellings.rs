//! The spellings of a value in a text that quotes it: as JSON, as JSON in JSON, or with the escapes
//! of a programming language.

use std::fmt::Write;

/// Whether a value is written differently where it is quoted.
pub(super) fn differ(value: &str) -> bool {
    value.chars().any(is_escaped)
}

/// Whether some encoder escapes a character: many write `&`, `<` and `+` as `\u0026` and so on, and
/// some write `/` as `\/`.
fn is_escaped(char: char) -> bool {
    !char.is_ascii_alphanumeric()
}

/// A pattern for a value in all its spellings. Every quotation adds backslashes, so that any number
/// of them is accepted.
pub(super) fn pattern(value: &str) -> String {
    let mut pattern = String::with_capacity(value.len() * 2);
    for char in value.chars() {
        let literal = regex::escape(char.encode_utf8(&mut [0; 4]));
        let code = u32::from(char);
        let _ = match char {
            _ if !is_escaped(char) => write!(pattern, "{literal}"),
            '\\' => write!(pattern, r"\\+(?:u005[cC])?"),
            // Kept short: most secrets have such a character.
            ' '..='~' => write!(pattern, r"(?:\\*{literal}|\\+u00{})", either_case(code)),
            _ => write!(pattern, "(?:{literal}|{})", escapes(char)),
        };
    }
    pattern
}

/// A pattern for two hexadecimal digits.
fn either_case(code: u32) -> String {
    let digit = |digit: char| match digit {
        'a'..='f' => format!("[{digit}{}]", digit.to_ascii_uppercase()),
        _ => digit.to_string(),
    };
    format!("{code:02x}").chars().map(digit).collect()
}

/// A pattern for the escapes of a character.
fn escapes(char: char) -> String {
    let code = u32::from(char);
    let mut forms = format!(r"u\{{0{{0,5}}(?i:{code:x})\}}");
    for (index, unit) in char.encode_utf16(&mut [0; 2]).iter().enumerate() {
        let before = if index == 0 { "|" } else { r"\\+" };
        let _ = write!(forms, "{before}u(?i:{unit:04x})");
    }
    if code <= 0xff {
        let _ = write!(forms, "|x(?i:{code:02x})");
    }
    if let Some((letter, _)) = LETTERS.iter().find(|(_, meant)| *meant == char) {
        let _ = write!(forms, "|{letter}");
    }
    format!(r"\\+(?:{forms})")
}

/// The characters that are escaped by a letter.
const LETTERS: [(char, char); 7] = [
    ('n', '\n'),
    ('r', '\r'),
    ('t', '\t'),
    ('b', '\u{8}'),
    ('f', '\u{c}'),
    ('e', '\u{1b}'),
    ('0', '\0'),
];

/// A text without its escapes. All spellings of a value have the same.
pub(super) struct Unescaped {
    pub(super) text: String,
    /// Where each character begins, here and in the original.
    pub(super) starts: Vec<(usize, usize)>,
}

pub(super) fn unescape(text: &str) -> Unescaped {
    let mut unescaped = Unescaped {
        text: String::with_capacity(text.len()),
        starts: Vec::with_capacity(text.len()),
    };
    let mut at = 0;
    loop {
        let rest = text.get(at..).unwrap_or_default();
        let after = rest.trim_start_matches('\\');
        let slashes = rest.len() - after.len();
        let escape = if slashes > 0 { escaped(after) } else { None };
        let next = escape.or_else(|| after.chars().next().map(|char| (char, char.len_utf8())));
        let Some((char, length)) = next else { return unescaped };
        unescaped.starts.push((unescaped.text.len(), at));
        unescaped.text.push(char);
        at += slashes + length;
    }
}

/// The character that an escape stands for, and the length of the escape after its backslashes.
fn escaped(after: &str) -> Option<(char, usize)> {
    match after.chars().next()? {
        'u' => unicode(after),
        'x' => Some((char::from_u32(hex(after.get(1..3)?)?)?, 3)),
        letter => LETTERS.iter().find(|(known, _)| *known == letter).map(|(_, char)| (*char, 1)),
    }
}

fn unicode(after: &str) -> Option<(char, usize)> {
    if let Some(code) = after.strip_prefix("u{") {
        let end = code.bytes().take(7).position(|byte| byte == b'}')?;
        return Some((char::from_u32(hex(code.get(..end)?)?)?, end + 3));
    }
    let first = hex(after.get(1..5)?)?;
    if let Some(char) = char::from_u32(first) {
        return Some((char, 5));
    }
    // The first half of a character.
    let rest = after.get(5..)?;
    let second = rest.trim_start_matches('\\');
    let slashes = rest.len() - second.len();
    let second = hex(second.strip_prefix('u')?.get(..4)?)?;
    let halves = [u16::try_from(first).ok()?, u16::try_from(second).ok()?];
    let char = char::decode_utf16(halves).next()?.ok()?;
    Some((char, 10 + slashes))
}

fn hex(digits: &str) -> Option<u32> {
    if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    u32::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use crate::redact::{RedactionLevel, Redactor};
    use serde_json::Value;

    /// Values that are written differently where they are quoted.
    const VALUES: [&str; 9] = [
        r#"Tr0ub4dor"3xq\77zz"#,
        "two\tcolumns and\nthree\r\nlines",
        "caf\u{e9}-cr\u{e8}me-\u{1f511}-9",
        r"C:\new\temp\key7",
        "bell\u{7}nul\0esc\u{1b}[1m",
        r#""quoted-9""#,
        r"ends-with-9\",
        "Tr0ub4dor&3xq77zz",
        "p4/ss+w<o>r=d'9",
    ];

    fn json(text: &str) -> String {
        let quoted = Value::from(text).to_string();
        quoted[1..quoted.len() - 1].to_owned()
    }

    fn ascii(text: &str) -> String {
        let unit = |unit: u16| match u8::try_from(unit) {
            Ok(byte) if byte.is_ascii() => char::from(byte).to_string(),
            _ => format!("\\u{unit:04x}"),
        };
        json(text).encode_utf16().map(unit).collect()
    }

    /// As encoders write that guard against HTML, with `\/` for a slash.
    fn html(text: &str) -> String {
        let json = json(text);
        let special = |char: char| match char {
            '&' | '<' | '>' | '+' | '=' | '\'' => format!("\\u{:04X}", u32::from(char)),
            '/' => r"\/".to_owned(),
            _ => char.to_string(),
        };
        json.chars().map(special).collect()
    }

    fn debug(text: &str) -> String {
        let quoted = format!("{text:?}");
        quoted[1..quoted.len() - 1].to_owned()
    }

    #[test]
    fn a_known_value_is_redacted_in_each_of_its_spellings() {
        let quotations: [fn(&str) -> String; 5] =
            [json, ascii, html, debug, |text| text.to_owned()];
        for value in VALUES {
            let mut redactor = Redactor::new(&[]).unwrap();
            redactor.learn_variables([("DEPLOY_KEY_SECRET".to_owned(), value.to_owned())]);
            for inner in quotations {
                for outer in quotations {
                    for last in quotations {
                        let written = last(&outer(&inner(value)));
                        let redacted = redactor
                            .redact_text(&format!("(a {written} b)"), RedactionLevel::KnownForms);
                        assert_eq!(redacted, "(a [redacted:variable#1] b)", "{written}");
                    }
                }
            }
        }
        let mut redactor = Redactor::new(&[]).unwrap();
        redactor.learn_variables([("A_TOKEN".to_owned(), VALUES[2].to_owned())]);
        let written = r"caf\u{E9}-cr\u{00e8}me-\u{1F511}-9";
        assert_eq!(
            redactor.redact_text(written, RedactionLevel::KnownForms),
            "[redacted:variable#1]"
        );
    }

    #[test]
    fn a_known_value_is_redacted_in_json_in_json() {
        let mut redactor = Redactor::new(&[]).unwrap();
        redactor.learn_variables([("PGPASSWORD".to_owned(), VALUES[7].to_owned())]);
        let log = r#"{"dsn":"app:Tr0ub4dor\u00263xq77zz@db"}"#;
        let line = serde_json::json!({"type": "tool_result", "content": log}).to_string();
        let redacted = redactor.redact_bytes(line.as_bytes(), RedactionLevel::KnownForms).unwrap();
        let redacted = String::from_utf8(redacted).unwrap();
        assert!(redacted.contains("app:[redacted:variable#1]@db"), "{redacted}");
    }

    #[test]
    fn a_value_whose_spellings_are_too_many_is_redacted_as_it_is() {
        let mut redactor = Redactor::new(&[]).unwrap();
        let value = |n: usize| format!("k{n:05}{}", "-+9".repeat(600));
        let values = (0..30).map(|n| (format!("KEY{n}_TOKEN"), value(n)));
        redactor.learn_variables(values);
        for n in 0..30 {
            let redacted = redactor.redact_text(&value(n), RedactionLevel::KnownForms);
            assert_eq!(redacted, format!("[redacted:variable#{}]", n + 1));
        }
    }

    #[test]
    fn what_is_left_of_a_known_value_is_redacted_in_each_of_its_spellings() {
        let mut redactor = Redactor::new(&[]).unwrap();
        redactor.learn_variables([("DEPLOY_KEY_SECRET".to_owned(), VALUES[0].to_owned())]);
        for written in [
            r#"Tr0ub4dor"3x"#,
            r#"Tr0ub4dor\"3x"#,
            r#"Tr0ub4dor\\\"3xq\\\\7"#,
            // In the middle of an escape.
            r"Tr0ub4dor\",
            r"Tr0ub4dor\\u00",
        ] {
            let redacted =
                redactor.redact_text(&format!("(a {written}… b)"), RedactionLevel::KnownForms);
            assert!(redacted.starts_with("(a [redacted:variable#"), "{redacted}");
            assert!(redacted.ends_with("]… b)"), "{redacted}");
        }
    }

    #[test]
    fn other_texts_with_escapes_stay() {
        let mut redactor = Redactor::new(&[]).unwrap();
        redactor.learn_variables(
            VALUES
                .iter()
                .enumerate()
                .map(|(n, value)| (format!("KEY{n}_TOKEN"), (*value).to_owned())),
        );
        for text in
            [r#"Tr0ub4dor\"4xq"#, r"C:\\new\\temp", r"\u{zz} \x \u12 \ud83d\u0041 \", "quoted-9"]
        {
            assert_eq!(redactor.redact_text(text, RedactionLevel::KnownForms), text);
        }
    }
}
