//! Scans a text for values that can be repaired, from opening bracket to opening bracket. It is
//! resumable as the window grows. When a repair needs more text, it is tried again only after the
//! value can have doubled, so the work stays linear.

use super::closing_quote::{Closers, Window};
use super::fence_lines::FenceLines;
use super::prose::{self, ProseEvent};
use super::repair::{Attempt, Repairer, Scratch};
use super::strict_scan::ThinkMark;
use crate::edit::Edit;

/// A value that needs repairs, with its edits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RepairedValue {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) edits: Vec<Edit>,
}

/// What the scanner reports, in the order of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RepairEvent {
    Value(RepairedValue),
    Think(ThinkMark, usize),
}

#[derive(Debug)]
pub(crate) struct RepairScan {
    pos: usize,
    thinking: bool,
    retry_at: usize,
    closers: Closers,
    fences: FenceLines,
    scratch: Scratch,
    events: Vec<RepairEvent>,
    examined: u64,
}

impl RepairScan {
    pub(crate) fn new(start: usize) -> Self {
        Self {
            pos: start,
            thinking: false,
            retry_at: 0,
            closers: Closers::default(),
            fences: FenceLines::default(),
            scratch: Scratch::default(),
            events: Vec::new(),
            examined: 0,
        }
    }

    /// The first offset that must stay in the window.
    pub(crate) fn keep_from(&self) -> usize {
        self.pos.saturating_sub(prose::LOOK_BACK)
    }

    /// The number of bytes read so far.
    pub(crate) fn examined(&self) -> u64 {
        self.examined + self.closers.examined
    }

    /// Takes the events since the last call.
    pub(crate) fn take_events(&mut self) -> Vec<RepairEvent> {
        std::mem::take(&mut self.events)
    }

    /// Scans the new part of `bytes`, whose first byte has offset `base`; at `eof` to the end.
    pub(crate) fn feed(&mut self, bytes: &[u8], base: usize, eof: bool) {
        self.fences.feed(bytes, base, eof);
        let end = base + bytes.len();
        loop {
            let before = self.pos;
            match prose::next(bytes, base, self.pos, self.thinking, eof) {
                ProseEvent::Opener(at) => {
                    self.examined += (at - before) as u64;
                    self.pos = at;
                    if !eof && end < self.retry_at {
                        return;
                    }
                    if !self.opener(Window { bytes, base, eof }, at) {
                        self.retry_at = end + (end - at).max(1024);
                        return;
                    }
                    self.retry_at = 0;
                }
                ProseEvent::End(at) => {
                    self.examined += (at - before) as u64;
                    self.pos = at;
                    self.fences.forget_before(self.keep_from());
                    return;
                }
                ProseEvent::ThinkOpen(at) => self.think(ThinkMark::Open, at + prose::OPEN_TAG),
                ProseEvent::ThinkClose(at) => self.think(ThinkMark::Close, at),
                ProseEvent::ThinkOrphan(at) => self.think(ThinkMark::Orphan, at),
            }
        }
    }

    fn think(&mut self, think: ThinkMark, to: usize) {
        self.thinking = think == ThinkMark::Open;
        self.events.push(RepairEvent::Think(think, to));
        self.examined += (to - self.pos) as u64;
        self.pos = to;
    }

    /// Tries one bracket; false if more text is needed.
    fn opener(&mut self, window: Window<'_>, at: usize) -> bool {
        // No value that can be repaired begins like this.
        let pair = (window.bytes[at - window.base], window.bytes.get(at + 1 - window.base));
        if let (
            b'{',
            Some(b'{' | b'[' | b']' | b',' | b':' | b')' | b'(' | b';' | b'=' | b'%' | b'|'),
        ) = pair
        {
            self.examined += 1;
            self.pos = at + 1;
            return true;
        }
        match self.attempt(window, at) {
            Attempt::Done { end, edits } => {
                self.found(at, end, edits);
                self.pos = end;
            }
            Attempt::Failed { at: failed, resume, inner } => {
                for start in inner {
                    if let Attempt::Done { end, edits } = self.attempt(window, start)
                        && end <= failed
                    {
                        self.found(start, end, edits);
                    }
                }
                self.pos = resume;
            }
            Attempt::More => return false,
        }
        true
    }

    fn attempt(&mut self, window: Window<'_>, at: usize) -> Attempt {
        let (attempt, examined) =
            Repairer::new(window, &mut self.closers, &self.fences, &mut self.scratch).attempt(at);
        self.examined += examined;
        attempt
    }

    /// Reports a value. One without edits is strict JSON, which the strict scanner finds.
    fn found(&mut self, start: usize, end: usize, edits: Vec<Edit>) {
        if !edits.is_empty() {
            self.events.push(RepairEvent::Value(RepairedValue { start, end, edits }));
        }
    }
}

/// Repairs single values of one complete text.
#[derive(Debug, Default)]
pub(crate) struct BlockRepairer {
    closers: Closers,
    fences: Option<FenceLines>,
    scratch: Scratch,
}

impl BlockRepairer {
    /// Repairs the value that begins at `start`.
    pub(crate) fn repair(&mut self, bytes: &[u8], base: usize, start: usize) -> Attempt {
        let fences = self.fences.get_or_insert_with(|| {
            let mut fences = FenceLines::default();
            fences.feed(bytes, base, true);
            fences
        });
        Repairer::new(
            Window { bytes, base, eof: true },
            &mut self.closers,
            fences,
            &mut self.scratch,
        )
        .attempt(start)
        .0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edit::{RepairKind, apply};
    use proptest::prelude::*;

    fn offer_repaired(text: &str) -> Vec<String> {
        let mut scan = RepairScan::new(0);
        scan.feed(text.as_bytes(), 0, true);
        scan.take_events()
            .into_iter()
            .filter_map(|event| match event {
                RepairEvent::Value(found) => {
                    Some(apply(&text[found.start..found.end], found.start, &found.edits))
                }
                RepairEvent::Think(..) => None,
            })
            .collect()
    }

    fn kinds(text: &str) -> Vec<RepairKind> {
        let mut scan = RepairScan::new(0);
        scan.feed(text.as_bytes(), 0, true);
        let mut kinds: Vec<_> = scan
            .take_events()
            .into_iter()
            .flat_map(|event| match event {
                RepairEvent::Value(found) => found.edits.iter().map(|edit| edit.kind).collect(),
                RepairEvent::Think(..) => Vec::new(),
            })
            .collect();
        kinds.dedup();
        kinds
    }

    #[test]
    fn every_kind_of_repair() {
        use RepairKind as K;
        let cases: &[(&str, &str, &[K])] = &[
            (r#"{"a": 1,}"#, r#"{"a": 1}"#, &[K::TrailingComma]),
            (r#"{"a": [1, 2,],}"#, r#"{"a": [1, 2]}"#, &[K::TrailingComma]),
            ("{\"a\": 1\n\"b\": 2}", "{\"a\": 1,\n\"b\": 2}", &[K::MissingComma]),
            (r#"{"a": ["x" "y"]}"#, r#"{"a": ["x", "y"]}"#, &[K::MissingComma]),
            (r#"{"a": 1,, "b": 2}"#, r#"{"a": 1, "b": 2}"#, &[K::ExtraComma]),
            (r#"{'a': 'it\'s "x"'}"#, r#"{"a": "it's \"x\""}"#, &[K::SingleQuotes]),
            (r"{'a': 'it's fine'}", r#"{"a": "it's fine"}"#, &[K::SingleQuotes]),
            ("{a: 1, b-c: 2}", r#"{"a": 1, "b-c": 2}"#, &[K::BareKey]),
            (
                "{\"a\": success, \"b\": all good}",
                r#"{"a": "success", "b": "all good"}"#,
                &[K::BareValue],
            ),
            ("{\"a\": 1 // one\n}", "{\"a\": 1 \n}", &[K::Comment]),
            ("{/* x */\"a\": 1 # y\n}", "{\"a\": 1 \n}", &[K::Comment]),
            (
                r#"{"a": True, "b": [None, False]}"#,
                r#"{"a": true, "b": [null, false]}"#,
                &[K::PythonLiteral],
            ),
            ("{“a”: “b”}", r#"{"a": "b"}"#, &[K::SmartQuotes]),
            ("{\"a\": \"x\ny\"}", r#"{"a": "x\ny"}"#, &[K::RawNewline]),
            (
                r#"{"a": "he said "no" twice", "b": 1}"#,
                r#"{"a": "he said \"no\" twice", "b": 1}"#,
                &[K::UnescapedQuote],
            ),
            (r#"{"a": "C:\dir\x"}"#, r#"{"a": "C:\\dir\\x"}"#, &[K::BadEscape]),
            ("{\"a\": \"\"\"x \"y\"\nz\"\"\"}", r#"{"a": "x \"y\"\nz"}"#, &[K::TripleQuotes]),
            (r#"{"a": [1, {"b": 2}"#, r#"{"a": [1, {"b": 2}]}"#, &[K::MissingCloser]),
            (r#"{"a": [1, 2}"#, r#"{"a": [1, 2]}"#, &[K::MissingCloser]),
            (r#"{"a": "cut of"#, r#"{"a": "cut of"}"#, &[K::TruncatedString, K::MissingCloser]),
            ("{\u{1b}[1m\"a\"\u{1b}[0m: 1}", r#"{"a": 1}"#, &[K::AnsiCode]),
            ("{\"a\": \"x\ty\"}", r#"{"a": "x\u0009y"}"#, &[K::RawControl]),
        ];
        for (text, expected, repairs) in cases {
            assert_eq!(offer_repaired(text), [*expected], "{text}");
            assert_eq!(kinds(text), *repairs, "{text}");
        }
    }

    #[test]
    fn nothing_is_guessed() {
        for text in [
            r#"{"a": 12"#,
            r#"{"a": 1, "b"#,
            r#"{"a": 1, "b":"#,
            r#"{"a": tru"#,
            r#"{"a": ["#,
            r#"{"a": NaN}"#,
            r#"{"a": -Infinity}"#,
            r#"{"a": , "b": 1}"#,
            r#"{"a": [1,,2]}"#,
            r#"{"a": [1, ...]}"#,
            r#"{"a": true|false}"#,
            "{",
            "[INFO] started",
            "{see above}",
        ] {
            assert_eq!(offer_repaired(text), Vec::<String>::new(), "{text}");
        }
    }

    #[test]
    fn a_fence_ends_a_truncated_value_but_not_a_string_that_contains_one() {
        let cut = "```json\n{\"a\": \"x\n```\nThanks!\n";
        assert_eq!(offer_repaired(cut), [r#"{"a": "x"}"#]);
        let raw = "```json\n{\"a\": \"use:\n```js\nf()\n```\nok\"}\n```\n";
        assert_eq!(offer_repaired(raw), [r#"{"a": "use:\n```js\nf()\n```\nok"}"#]);
    }

    #[test]
    fn values_closed_inside_a_failed_one_are_found() {
        assert_eq!(offer_repaired("[ {'a': 1}, garbage"), [r#"{"a": 1}"#]);
    }

    proptest! {
        #[test]
        fn any_chunking_gives_the_same(text in r#"[\[\]{}"',:<>/#`a-c1\\ \n]{0,80}"#, cut in 1usize..7) {
            let mut whole = RepairScan::new(0);
            whole.feed(text.as_bytes(), 0, true);
            let mut parts = RepairScan::new(0);
            let mut at = 0;
            while at < text.len() {
                at = (at + cut).min(text.len());
                let keep = parts.keep_from();
                parts.feed(&text.as_bytes()[keep..at], keep, false);
            }
            let keep = parts.keep_from();
            parts.feed(&text.as_bytes()[keep..], keep, true);
            prop_assert_eq!(whole.take_events(), parts.take_events());
        }

        #[test]
        fn edits_make_strict_json(text in r#"[\[\]{}"',:/#a-c1\\ \n]{0,60}"#) {
            for json in offer_repaired(&text) {
                let parsed = crate::json::parse(&json, 128, false);
                prop_assert!(parsed.is_ok(), "{:?} became {:?}: {:?}", text, json, parsed.err());
            }
        }
    }
}
