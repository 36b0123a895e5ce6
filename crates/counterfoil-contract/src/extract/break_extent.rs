//! How far something that is not JSON can still be read: the keys of an object without double
//! quotes, and the placeholders of a template.

/// Bytes after a break that are read.
const MAX_LOOK_AHEAD: usize = 256;

/// Whether a byte can begin a key that is not in double quotes.
pub(super) fn is_odd_key_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || matches!(byte, b'\'' | b'_' | b'$') || byte >= 0x80
}

/// Where JSON breaks at a placeholder such as `<path>` or `true|false`: how far the placeholders
/// and what is between them reach, at most to the end of the object. None if the window ended first.
pub(super) fn placeholder_extent(window: &[u8], eof: bool) -> Option<usize> {
    let begins = window.first().is_some_and(|byte| {
        byte.is_ascii_alphabetic() || matches!(byte, b'<' | b'.' | b'|') || *byte == 0xe2
    });
    if !begins {
        return Some(0);
    }
    let whole = eof || window.len() >= MAX_LOOK_AHEAD;
    let window = &window[..window.len().min(MAX_LOOK_AHEAD)];
    let value = window.iter().position(|byte| matches!(byte, b',' | b'}' | b']' | b'\n' | b'{'));
    let is_placeholder = |value: &[u8]| {
        memchr::memchr(b'|', value).is_some()
            || value.starts_with(b"<")
            || value.starts_with(b"...")
            || value.starts_with("…".as_bytes())
    };
    match value {
        Some(length) if !is_placeholder(&window[..length]) => Some(0),
        None if whole && !is_placeholder(window) => Some(0),
        None if !whole => None,
        _ => {
            let end = window.iter().position(|byte| matches!(byte, b'}' | b'{'));
            if end.is_none() && !whole { None } else { Some(end.unwrap_or(window.len())) }
        }
    }
}

/// Whether an object begins with a key that is not in double quotes.
pub(super) enum OddKey {
    No,
    /// Its value begins at `value`; the keys of the object can be read up to `end`.
    Yes {
        value: usize,
        end: usize,
    },
    /// The window ended first.
    Unknown,
}

/// Reads the first key of an object that does not begin with a double quote.
pub(super) fn odd_key_extent(window: &[u8], eof: bool) -> OddKey {
    let whole = eof || window.len() >= MAX_LOOK_AHEAD;
    let window = &window[..window.len().min(MAX_LOOK_AHEAD)];
    let stops = |byte: &u8| matches!(byte, b':' | b'\n' | b'{' | b'[' | b'}');
    let Some(key) = window.iter().position(stops) else {
        return if whole { OddKey::No } else { OddKey::Unknown };
    };
    let name = window[..key].trim_ascii();
    let quoted = matches!(name, [b'\'', .., b'\'']) || matches!(name, [0xe2, .., 0x98..=0x9d]);
    let bare = name.iter().all(|byte| byte.is_ascii_alphanumeric() || b"_-$.".contains(byte));
    if window[key] != b':' || !(quoted || bare) {
        return OddKey::No;
    }
    let value = key + 1;
    let bracket = window[value..].iter().position(|byte| matches!(byte, b'{' | b'[' | b'}' | b']'));
    match bracket {
        Some(length) => OddKey::Yes { value, end: value + length },
        None if whole => OddKey::Yes { value, end: window.len() },
        None => OddKey::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(text: &str) -> Option<(&str, &str)> {
        match odd_key_extent(text.as_bytes(), true) {
            OddKey::Yes { value, end } => Some((&text[..value], &text[value..end])),
            OddKey::No | OddKey::Unknown => None,
        }
    }

    #[test]
    fn keys_without_double_quotes() {
        assert_eq!(keys("a: 1, b: 2} c"), Some(("a:", " 1, b: 2")));
        assert_eq!(keys("'a b': [1]"), Some(("'a b':", " ")));
        assert_eq!(keys("“a”: “b”}"), Some(("“a”:", " “b”")));
        assert_eq!(keys("see above}"), None);
        assert_eq!(keys("not a key: 1}"), None);
        assert!(matches!(odd_key_extent(b"half", false), OddKey::Unknown));
    }

    #[test]
    fn placeholders_after_a_break() {
        let extent = |text: &str| placeholder_extent(text.as_bytes(), true);
        assert_eq!(extent("|false, \"b\": <n>}"), Some(16));
        assert_eq!(extent("<path>}"), Some(6));
        assert_eq!(extent("oops, \"a|b\"}"), Some(0));
        assert_eq!(extent("}"), Some(0));
        assert_eq!(placeholder_extent(b"<pa", false), None);
    }
}
