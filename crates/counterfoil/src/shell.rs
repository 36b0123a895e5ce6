//! Quoting for a POSIX shell. No I/O.

use counterfoil_contract::text::is_unsafe;

/// A word quoted for a POSIX shell, if it needs quotes. One with a comma has them, too, so that it is
/// whole in a list.
pub(crate) fn quote(word: &str) -> String {
    let needs_no_quotes = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+=".contains(c);
    if !word.is_empty() && word.chars().all(needs_no_quotes) {
        return word.to_owned();
    }
    if word.contains(|c: char| c == '\n' || is_unsafe(c)) {
        // In a form that stays on its line.
        let escape = |c: char| match c {
            '\'' | '\\' => format!("\\{c}"),
            c if c == '\n' || is_unsafe(c) => {
                let mut buffer = [0; 4];
                c.encode_utf8(&mut buffer).bytes().map(|byte| format!("\\x{byte:02x}")).collect()
            }
            c => c.to_string(),
        };
        return format!("$'{}'", word.chars().map(escape).collect::<String>());
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::quote;

    #[test]
    fn words_are_quoted_that_a_shell_or_a_list_would_divide() {
        for (word, quoted) in [
            ("qa=execution-loop/qa", "qa=execution-loop/qa"),
            ("", "''"),
            ("as it is", "'as it is'"),
            ("a,b", "'a,b'"),
            ("kim's", r"'kim'\''s'"),
            ("say \"$x\"", "'say \"$x\"'"),
            ("a\nb'", r"$'a\x0ab\''"),
        ] {
            assert_eq!(quote(word), quoted);
        }
    }
}
