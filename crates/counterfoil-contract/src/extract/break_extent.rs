//! How far something that is not JSON can still be read: the keys of an object without double
//! quotes, and the placeholders of a template.

use super::closing_quote::Quote;

/// Bytes after a break that are read.
pub(super) const MAX_LOOK_AHEAD: usize = 256;

/// Whether a byte can begin a key that is not in double quotes.
pub(super) fn is_odd_key_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || matches!(byte, b'\'' | b'_' | b'$') || byte >= 0x80
}

/// The placeholders of a template, such as `<path>` or `true|false`, where JSON breaks. What was
/// seen ahead of one break is remembered for the next one, so that a text full of breaks is scanned
/// once.
#[derive(Debug, Default)]
pub(super) struct Placeholders {
    /// What ends a value.
    stop: NextByte,
    brace: NextByte,
    bar: NextByte,
    pub(super) examined: u64,
}

impl Placeholders {
    /// How far the placeholders from offset `at` on and what is between them reach, at most to the
    /// end of the object. None if the window ended first.
    pub(super) fn extent(
        &mut self,
        bytes: &[u8],
        base: usize,
        at: usize,
        eof: bool,
    ) -> Option<usize> {
        let window = bytes.get(at - base..).unwrap_or(&[]);
        let begins = window.first().is_some_and(|byte| {
            byte.is_ascii_alphabetic() || matches!(byte, b'<' | b'.' | b'|') || *byte == 0xe2
        });
        if !begins {
            return Some(0);
        }
        let whole = eof || window.len() >= MAX_LOOK_AHEAD;
        let window = &window[..window.len().min(MAX_LOOK_AHEAD)];
        let view = View { bytes, base, limit: at + window.len() };
        let stops = |byte: u8| matches!(byte, b',' | b'}' | b']' | b'\n' | b'{');
        let stop = self.stop.find(view, at, stops, &mut self.examined);
        if stop.is_none() && !whole {
            return None;
        }
        let is_mark = window.starts_with(b"<")
            || window.starts_with(b"...")
            || window.starts_with("…".as_bytes());
        if !is_mark {
            let value = View { limit: stop.unwrap_or(view.limit), ..view };
            let bar = self.bar.find(value, at, |byte| byte == b'|', &mut self.examined);
            if bar.is_none() {
                return Some(0);
            }
        }
        // A brace is a stop too.
        let brace = stop.and_then(|stop| {
            self.brace.find(view, stop, |byte| matches!(byte, b'}' | b'{'), &mut self.examined)
        });
        match brace {
            Some(brace) => Some(brace - at),
            None if whole => Some(window.len()),
            None => None,
        }
    }
}

/// A part of the text: bytes, the offset of the first one, and the offset up to which is looked.
#[derive(Clone, Copy)]
struct View<'b> {
    bytes: &'b [u8],
    base: usize,
    limit: usize,
}

/// The next byte of a kind. No byte is looked at twice.
#[derive(Debug, Default)]
struct NextByte {
    /// From here on, up to `scanned`, there is none but `found`.
    since: usize,
    scanned: usize,
    found: Option<usize>,
}

impl NextByte {
    /// The offset of the first byte of the kind from `at` on, before the limit.
    fn find(
        &mut self,
        view: View<'_>,
        at: usize,
        is_kind: impl Fn(u8) -> bool,
        examined: &mut u64,
    ) -> Option<usize> {
        let is_known = at >= self.since && at <= self.scanned;
        if !is_known || self.found.is_some_and(|found| found < at) {
            let scanned = if is_known { self.scanned.max(at) } else { at };
            *self = Self { since: at, scanned, found: None };
        }
        if self.found.is_none() && self.scanned < view.limit {
            let ahead = &view.bytes[self.scanned - view.base..view.limit - view.base];
            let found = ahead.iter().position(|byte| is_kind(*byte));
            let length = found.map_or(ahead.len(), |found| found + 1);
            *examined += length as u64;
            self.found = found.map(|found| self.scanned + found);
            self.scanned += length;
        }
        self.found.filter(|found| *found < view.limit)
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

/// Whether an item of a list begins with a quote of another kind than JSON's.
pub(super) enum OddItem {
    /// The length of the quote, 0 if there is none or if the list is the text of a Markdown link, and
    /// how much was read to know it.
    Known { quote: usize, seen: usize },
    /// The window ended first.
    Unknown,
}

/// Reads an item that begins with a byte of such a quote. No bracket is read over, so a text with many
/// of them is read once.
pub(super) fn odd_item_extent(window: &[u8], eof: bool) -> OddItem {
    let whole = eof || window.len() >= MAX_LOOK_AHEAD;
    let window = &window[..window.len().min(MAX_LOOK_AHEAD)];
    if !whole && window.len() < 3 {
        return OddItem::Unknown;
    }
    let Some((_, quote)) = Quote::opening(window) else {
        return OddItem::Known { quote: 0, seen: window.len().min(3) };
    };
    let content = &window[quote..];
    let Some(found) = memchr::memchr3(b'\n', b'[', b']', content) else {
        return if whole { OddItem::Known { quote, seen: window.len() } } else { OddItem::Unknown };
    };
    let is_link = match (content[found], content.get(found + 1)) {
        (b']', None) if !whole => return OddItem::Unknown,
        (b']', next) => next == Some(&b'('),
        _ => false,
    };
    OddItem::Known { quote: if is_link { 0 } else { quote }, seen: quote + found + 1 }
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
    fn items_without_double_quotes() {
        let quote = |text: &str, eof| match odd_item_extent(text.as_bytes(), eof) {
            OddItem::Known { quote, .. } => Some(quote),
            OddItem::Unknown => None,
        };
        for (text, length) in [
            ("'a', 'b']", 1),
            ("'a", 1),
            ("“a”] (b)", 3),
            ("‘a\n](b)", 3),
            ("“a”](b)", 0),
            ("✓] done", 0),
            ("… and more]", 0),
        ] {
            assert_eq!(quote(text, true), Some(length), "{text}");
        }
        for text in ["'", "'a", "'abc]"] {
            assert_eq!(quote(text, false), None, "{text}");
        }
        assert!(matches!(odd_item_extent(&"✓".as_bytes()[..2], false), OddItem::Unknown));
        assert_eq!(quote(&format!("'{}", "a".repeat(MAX_LOOK_AHEAD)), false), Some(1));
    }

    #[test]
    fn placeholders_after_a_break() {
        let extent = |text: &str| Placeholders::default().extent(text.as_bytes(), 0, 0, true);
        assert_eq!(extent("|false, \"b\": <n>}"), Some(16));
        assert_eq!(extent("<path>}"), Some(6));
        assert_eq!(extent("oops, \"a|b\"}"), Some(0));
        assert_eq!(extent("}"), Some(0));
        assert_eq!(Placeholders::default().extent(b"<pa", 0, 0, false), None);
    }

    #[test]
    fn what_was_seen_ahead_is_remembered() {
        let text = "[<a, b|c [<d {e} <f>, x|y} |g, <h".repeat(40);
        let mut known = Placeholders::default();
        for (at, _) in text.char_indices() {
            for eof in [false, true] {
                let fresh = Placeholders::default().extent(text.as_bytes(), 0, at, eof);
                assert_eq!(known.extent(text.as_bytes(), 0, at, eof), fresh, "{at}");
            }
        }
        assert!(known.examined <= 3 * text.len() as u64, "{}", known.examined);
    }
}
