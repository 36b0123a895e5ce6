//! The keys at the top of a file of YAML or JSON, found without parsing it: files that are neither
//! contracts nor workflows can be large, and files that are can have mistakes.

/// The keys at the top of a text, in any layout of YAML or JSON, without their quotes.
pub fn top_keys(text: &str) -> Vec<&str> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut rest = text;
    while !rest.is_empty() {
        let line = rest.split_inclusive('\n').next().unwrap_or(rest);
        let content = without_start(line);
        if !content.trim().is_empty() && !content.starts_with(['#', '%']) {
            let indent = line.len() - content.len();
            return if content.starts_with('{') {
                flow_keys(&rest[indent..])
            } else {
                // After `---`, the other lines tell the indentation.
                let indent = if line.starts_with("---") { 0 } else { indent };
                block_keys(rest, indent)
            };
        }
        rest = &rest[line.len()..];
    }
    Vec::new()
}

/// A line without what can stand before the content of a document: blanks, `---`, tags and anchors.
fn without_start(line: &str) -> &str {
    let mut content = line.strip_prefix("---").unwrap_or(line).trim_start();
    while content.starts_with(['!', '&']) {
        let Some((_, after)) = content.split_once(char::is_whitespace) else { return "" };
        content = after.trim_start();
    }
    content
}

/// The keys of a mapping with one key in a line. Lines that are further to the right belong to values.
fn block_keys(text: &str, indent: usize) -> Vec<&str> {
    text.lines().filter_map(|line| block_key(line, indent)).filter(|key| !key.is_empty()).collect()
}

fn block_key(line: &str, indent: usize) -> Option<&str> {
    let content = line.trim_start_matches([' ', '\t']);
    if line.len() - content.len() != indent {
        return None;
    }
    // With the value in the next line.
    if let Some(key) = content.strip_prefix("? ") {
        return Some(unquoted(key.trim()));
    }
    if let Some(quote) = content.chars().next().filter(|char| matches!(char, '"' | '\'')) {
        let (key, after) = content.get(1..)?.split_once(quote)?;
        return after.trim_start().starts_with(':').then_some(key);
    }
    let (key, after) = content.split_once(':')?;
    (after.is_empty() || after.starts_with(char::is_whitespace)).then(|| key.trim_end())
}

/// The keys of a mapping in braces, which begins the text.
fn flow_keys(text: &str) -> Vec<&str> {
    let bytes = text.as_bytes();
    let mut keys = Vec::new();
    let mut depth = 0_usize;
    // Where a key began, and whether only blanks and comments follow so far.
    let (mut start, mut blank) = (None, false);
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'{' | b'[' => {
                depth += 1;
                (start, blank) = ((depth == 1).then_some(at + 1), true);
            }
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    break;
                }
            }
            b',' if depth == 1 => (start, blank) = (Some(at + 1), true),
            b':' if depth == 1 => {
                if let Some(key) = start.take().and_then(|start| text.get(start..at)) {
                    keys.push(unquoted(key.trim()));
                }
            }
            b'#' if at == 0 || bytes[at - 1].is_ascii_whitespace() => {
                at += text[at..].find('\n').unwrap_or(text.len() - at);
                start = start.map(|start| if blank { at } else { start });
                continue;
            }
            // In a plain word, a quote is a character.
            b'"' | b'\'' if at > 0 && !bytes[at - 1].is_ascii_alphanumeric() => {
                at = string_end(bytes, at);
                blank = false;
                continue;
            }
            _ => blank &= byte.is_ascii_whitespace(),
        }
        at += 1;
    }
    keys
}

/// The offset after the quoted string that starts at `start`.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let quote = bytes.get(start);
    let mut at = start + 1;
    while let Some(byte) = bytes.get(at) {
        if Some(byte) == quote {
            return at + 1;
        }
        at += if *byte == b'\\' && quote == Some(&b'"') { 2 } else { 1 };
    }
    bytes.len()
}

fn unquoted(key: &str) -> &str {
    let quoted = |quote: char| key.strip_prefix(quote).and_then(|key| key.strip_suffix(quote));
    quoted('"').or_else(|| quoted('\'')).unwrap_or(key)
}

/// The key at the top of a text that is probably meant to be `key`, among others that such a file has.
pub fn misspelt_key<'t>(text: &'t str, key: &str, others: &[&str]) -> Option<&'t str> {
    let keys = top_keys(text);
    if keys.contains(&key) || !keys.iter().any(|other| others.contains(other)) {
        return None;
    }
    keys.into_iter().find(|near| {
        // The plural is a key of its own.
        near.strip_suffix('s') != Some(key)
            && strsim::osa_distance(&near.to_lowercase(), key) <= MAX_MISTAKES
    })
}

/// How many letters of a misspelt key are wrong at most.
const MAX_MISTAKES: usize = 2;

/// What is said of bytes that are not UTF-8, with the encoding if they show it.
pub fn not_utf8(bytes: &[u8]) -> String {
    let encoding = match bytes {
        [0xff, 0xfe, ..] => "UTF-16 (little endian)",
        [0xfe, 0xff, ..] => "UTF-16 (big endian)",
        // The first characters of a file are ASCII.
        [first, 0, second, 0, ..] if *first != 0 && *second != 0 => "UTF-16 (little endian)",
        [0, first, 0, second, ..] if *first != 0 && *second != 0 => "UTF-16 (big endian)",
        _ => return "it is not UTF-8".to_owned(),
    };
    format!("it is in {encoding} and not in UTF-8; save it as UTF-8")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_in_every_layout() {
        for text in [
            "workflow: x\nstart: a\nstates:\n  a: { end: done }\n",
            "# first\n\n---\nworkflow: x\nstart: a\nstates:\n  more: 1\n",
            "  workflow: x\n  start: a\n  states:\n    a: 1\n",
            "'workflow' : x\n\"start\": a\nstates: {a: {b: c}}\n",
            "{workflow: x, start: a, states: {a: {end: done}, b: [c, {d: e}]}}",
            "--- {workflow: x, 'start': a, # a: comment, here\n states: {}}",
            "{\n  \"workflow\": \"x, {y: z\",\n  \"start\": \"a\\\"b: c,\",\n  \"states\": {\"a\": 1}\n}\n",
            "!!map\nworkflow: x\nstart: it's, a: b\nstates: 1\n",
            "%YAML 1.2\n---\n? workflow\n: x\nstart: a\nstates: |\n  key: 1\n",
            "\u{feff}{workflow: x, start: it's, states: 1}",
        ] {
            assert_eq!(top_keys(text), ["workflow", "start", "states"], "{text}");
        }
        for text in ["", "[1, 2]", "- a\n- b\n", "just text", "}{", "{", "{\"", "---"] {
            assert_eq!(top_keys(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn comments_around_a_key_are_no_part_of_it() {
        let text = "{ # one: a\n # two: b\n workflow: x, # three\n\n start # four\n: a, states: 1}";
        assert_eq!(top_keys(text), ["workflow", "start # four", "states"]);
    }

    /// If every comment were compared with all the text before it, this would take hours.
    #[test]
    fn many_comments_are_read_once() {
        let blanks = " ".repeat(2_000_000);
        let text = format!("{{{blanks}a{}\n: 1, b: 2}}", "\n#".repeat(1_000_000));
        let keys = top_keys(&text);
        assert_eq!(keys.len(), 2);
        assert!(keys[0].starts_with("a\n#"));
        assert_eq!(keys[1], "b");
    }

    #[test]
    fn a_misspelt_key_is_found_beside_another_one() {
        let others = ["start", "states"];
        for (text, expected) in [
            ("workflw: x\nstart: a\n", Some("workflw")),
            ("{start: a, Wrokflow: x}", Some("Wrokflow")),
            ("workflows: x\nstart: a\n", None),
            ("workflw: x\nversion: 1\n", None),
            ("workflow: x\nworkflw: y\nstart: a\n", None),
            ("words: x\nstart: a\n", None),
        ] {
            assert_eq!(misspelt_key(text, "workflow", &others), expected, "{text}");
        }
    }

    #[test]
    fn the_encoding_is_named_if_it_shows() {
        let text = "workflow: x";
        let little: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
        assert!(not_utf8(&little).contains("UTF-16 (little"));
        assert!(not_utf8(&big).contains("UTF-16 (big"));
        assert!(not_utf8(&[&[0xff, 0xfe], &little[..]].concat()).contains("UTF-16 (little"));
        assert_eq!(not_utf8(b"caf\xe9"), "it is not UTF-8");
    }
}
