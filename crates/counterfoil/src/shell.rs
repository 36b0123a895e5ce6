//! Quoting for a POSIX shell. No I/O.

use counterfoil_contract::text::is_unsafe;

/// A word quoted for a POSIX shell, if it needs quotes.
pub(crate) fn quote(word: &str) -> String {
    let needs_no_quotes = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+=,".contains(c);
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
