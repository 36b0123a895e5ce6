//! Takes shell lines apart into their commands and words. It knows as much of the language as is
//! needed to see which files a line names: quotes, operators, parentheses, substitutions.

use std::collections::BTreeMap;

/// A shell line.
pub(super) struct Line {
    /// Its parts between operators that are not quoted. A parenthesis is a part of its own, and a
    /// redirected input stands apart from its operator.
    pub(super) commands: Vec<String>,
    /// The texts of its substitutions, which are lines themselves.
    pub(super) substitutions: Vec<String>,
}

/// Takes a shell line apart.
pub(super) fn read_line(line: &str) -> Line {
    let line = line.trim();
    let line = if line.starts_with('#') { "" } else { line };
    let mut parts = vec![String::new()];
    let mut inner: Vec<String> = Vec::new();
    let mut quote = None;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        let Some(part) = parts.last_mut() else { break };
        if quote == Some('\'') {
            quote = quote.filter(|_| c != '\'');
            part.push(c);
            continue;
        }
        match c {
            '\\' => {
                part.push(c);
                part.extend(chars.next());
            }
            '$' if chars.peek() == Some(&'(') => {
                let text = substitution(&mut chars);
                // Its text stays in the word, without the quotes that it may have of its own.
                part.push_str("$(");
                part.extend(text.chars().filter(|c| !matches!(c, '"' | '\'' | '\\' | ' ' | '\t')));
                part.push(')');
                inner.push(text);
            }
            '`' => {
                let text: String = chars.by_ref().take_while(|c| *c != '`').collect();
                part.push_str("$()");
                inner.push(text);
            }
            '"' => {
                quote = if quote.is_some() { None } else { Some('"') };
                part.push(c);
            }
            _ if quote.is_some() => part.push(c),
            '\'' => {
                quote = Some('\'');
                part.push(c);
            }
            '(' | ')' => parts.extend([c.to_string(), String::new()]),
            ';' | '|' | '&' => parts.push(String::new()),
            '<' => part.push_str(" < "),
            _ => part.push(c),
        }
    }
    let commands =
        parts.iter().map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect();
    Line { commands, substitutions: inner }
}

/// The text of a substitution, whose `$` was read, without its parentheses.
fn substitution(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> String {
    let mut text = String::new();
    let mut depth = 0usize;
    for c in chars.by_ref() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            break;
        }
        text.push(c);
    }
    text.strip_prefix('(').map(str::to_owned).unwrap_or(text)
}

/// A word without the variable or the substitution that it begins with: the rest of `$HERE/lib.sh`
/// or `$(dirname $0)/lib.sh` is looked for in the folders that these usually name. None if more of it
/// is not known here.
pub(super) fn without_variable(word: &str) -> Option<&str> {
    let Some(rest) = word.strip_prefix('$') else {
        return (!word.contains('$')).then_some(word);
    };
    let end = match rest.chars().next()? {
        '(' => rest.rfind(')')? + 1,
        '{' => rest.find('}')? + 1,
        _ => rest.find('/')?,
    };
    let path = rest.get(end..)?.strip_prefix('/')?;
    (!path.contains('$')).then_some(path)
}

/// Whether a word sets a variable: `A=1`.
pub(super) fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

/// A word with the values of variables that are known, also of `${NAME:-value}`.
pub(super) fn expand(word: &str, variables: &BTreeMap<String, String>) -> String {
    let mut text = String::new();
    let mut rest = word;
    while let Some(at) = rest.find('$') {
        text.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let (name, default, length) = match after.strip_prefix('{').zip(after.find('}')) {
            Some((_, end)) => {
                let inner = &after[1..end];
                let (name, default) = inner.split_once(":-").unwrap_or((inner, ""));
                (name, default, end + 1)
            }
            None => {
                let end = after.find(|c| !is_name(c)).unwrap_or(after.len());
                (&after[..end], "", end)
            }
        };
        match variables.get(name).map(String::as_str).or((!default.is_empty()).then_some(default)) {
            Some(value) => text.push_str(value),
            None => text.push_str(&rest[at..=at + length]),
        }
        rest = &after[length..];
    }
    text + rest
}
