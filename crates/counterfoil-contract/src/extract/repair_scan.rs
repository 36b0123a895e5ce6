//! Scans a text for values that can be repaired, from opening bracket to opening bracket. It is
//! resumable as the window grows. When a repair needs more text, it is tried again only after the
//! value can have doubled, so the work stays linear.

use super::closing_quote::{Closers, Window};
use super::doubt::Refusal;
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

/// A value that is not repaired, with the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RefusedValue {
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// The edits of the first reading; none if that has no end.
    pub(crate) edits: Vec<Edit>,
    pub(crate) refusal: Refusal,
}

/// What the scanner reports, in the order of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RepairEvent {
    Value(RepairedValue),
    Refused(RefusedValue),
    Think(ThinkMark, usize),
}

/// The scan pauses when it has so many events, so that they need little memory.
const MAX_EVENTS: usize = 256;

#[derive(Debug)]
pub(crate) struct RepairScan {
    pos: usize,
    thinking: bool,
    retry_at: usize,
    accept_truncated: bool,
    counts_items: bool,
    /// The end of the last value.
    closed_at: usize,
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
            accept_truncated: false,
            counts_items: false,
            closed_at: 0,
            closers: Closers::default(),
            fences: FenceLines::default(),
            scratch: Scratch::default(),
            events: Vec::new(),
            examined: 0,
        }
    }

    /// Closes what is open at the end of the text or block.
    pub(crate) fn accept_truncated(mut self, accept: bool) -> Self {
        self.accept_truncated = accept;
        self
    }

    /// A list counts from its first string on, not only from its first comma on: the result is a list
    /// of scalars.
    pub(crate) fn counts_items(mut self, counts: bool) -> Self {
        self.counts_items = counts;
        self
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
    /// `strict_end` tells where the strict JSON ends that begins at an offset: it is passed over. False
    /// if there are many events: take them, and call it again.
    pub(crate) fn feed(
        &mut self,
        bytes: &[u8],
        base: usize,
        eof: bool,
        strict_end: impl Fn(usize) -> Option<usize>,
    ) -> bool {
        self.fences.feed(bytes, base, eof);
        let end = base + bytes.len();
        loop {
            if self.events.len() >= MAX_EVENTS {
                return false;
            }
            let before = self.pos;
            match prose::next(bytes, base, self.pos, self.thinking, eof) {
                ProseEvent::Opener(at) => {
                    self.examined += (at - before) as u64;
                    self.pos = at;
                    // An index in prose is no list of scalars.
                    let is_index = self.counts_items
                        && at != self.closed_at
                        && bytes[at - base] == b'['
                        && prose::is_selecting(&bytes[..at - base]);
                    if is_index {
                        self.retry_at = 0;
                        self.pos = strict_end(at).unwrap_or(at + 1);
                        continue;
                    }
                    if let Some(strict_end) = strict_end(at) {
                        self.retry_at = 0;
                        self.pos = strict_end;
                        self.closed_at = strict_end;
                        continue;
                    }
                    if !eof && end < self.retry_at {
                        return true;
                    }
                    if !self.opener(Window { bytes, base, eof }, at) {
                        self.retry_at = end + (end - at).max(1024);
                        return true;
                    }
                    self.retry_at = 0;
                }
                ProseEvent::End(at) => {
                    self.examined += (at - before) as u64;
                    self.pos = at;
                    self.fences.forget_before(self.keep_from());
                    return true;
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
            Attempt::Refused { end, edits, refusal } => {
                self.refused(at, end, edits, refusal);
                self.pos = end;
            }
            Attempt::Failed { at: failed, resume, inner } => {
                let mut attempts = Vec::with_capacity(inner.len());
                for start in inner {
                    match self.attempt(window, start) {
                        Attempt::More => return false,
                        attempt => attempts.push((start, attempt)),
                    }
                }
                for (start, attempt) in attempts {
                    match attempt {
                        Attempt::Done { end, edits } if end <= failed => {
                            self.found(start, end, edits);
                        }
                        Attempt::Refused { end, edits, refusal } if end <= failed => {
                            self.refused(start, end, edits, refusal);
                        }
                        _ => {}
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
            Repairer::new(window, &mut self.closers, &self.fences, &mut self.scratch)
                .accept_truncated(self.accept_truncated)
                .counts_items(self.counts_items)
                .attempt(at);
        self.examined += examined;
        attempt
    }

    fn refused(&mut self, start: usize, end: usize, edits: Vec<Edit>, refusal: Refusal) {
        let refused = RefusedValue { start, end, edits, refusal };
        self.events.push(RepairEvent::Refused(refused));
    }

    /// Reports a value. One without edits is strict JSON, which the strict scanner finds.
    fn found(&mut self, start: usize, end: usize, edits: Vec<Edit>) {
        self.closed_at = end;
        if !edits.is_empty() {
            self.events.push(RepairEvent::Value(RepairedValue { start, end, edits }));
        }
    }
}

/// Repairs single values of one complete text.
#[derive(Debug, Default)]
pub(crate) struct BlockRepairer {
    accept_truncated: bool,
    counts_items: bool,
    closers: Closers,
    fences: Option<FenceLines>,
    scratch: Scratch,
    examined: u64,
}

impl BlockRepairer {
    /// A repairer that closes what is open at the end of the block, if that is accepted.
    pub(crate) fn new(accept_truncated: bool) -> Self {
        Self { accept_truncated, ..Self::default() }
    }

    /// A list counts from its first string on.
    pub(crate) fn counts_items(mut self, counts: bool) -> Self {
        self.counts_items = counts;
        self
    }

    /// Repairs the value that begins at `start`.
    pub(crate) fn repair(&mut self, bytes: &[u8], base: usize, start: usize) -> Attempt {
        if !matches!(bytes.get(start - base), Some(b'{' | b'[')) {
            return Attempt::Failed { at: start, resume: start, inner: Vec::new() };
        }
        let fences = self.fences.get_or_insert_with(|| {
            let mut fences = FenceLines::default();
            fences.feed(bytes, base, true);
            fences
        });
        let (attempt, examined) = Repairer::new(
            Window { bytes, base, eof: true },
            &mut self.closers,
            fences,
            &mut self.scratch,
        )
        .accept_truncated(self.accept_truncated)
        .counts_items(self.counts_items)
        .attempt(start);
        self.examined += examined;
        attempt
    }

    /// How many bytes were examined.
    pub(crate) fn examined(&self) -> u64 {
        self.examined + self.closers.examined
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edit::{RepairKind, apply};
    use proptest::prelude::*;

    fn events(text: &str, accept_truncated: bool) -> Vec<RepairEvent> {
        let mut scan = RepairScan::new(0).accept_truncated(accept_truncated);
        assert!(scan.feed(text.as_bytes(), 0, true, |_| None));
        scan.take_events()
    }

    fn offer_repaired(text: &str) -> Vec<String> {
        offer(text, false)
    }

    fn offer(text: &str, accept_truncated: bool) -> Vec<String> {
        events(text, accept_truncated)
            .into_iter()
            .filter_map(|event| match event {
                RepairEvent::Value(found) => {
                    Some(apply(&text[found.start..found.end], found.start, &found.edits))
                }
                RepairEvent::Refused(..) | RepairEvent::Think(..) => None,
            })
            .collect()
    }

    fn kinds(text: &str) -> Vec<RepairKind> {
        let mut kinds: Vec<_> = events(text, true)
            .into_iter()
            .flat_map(|event| match event {
                RepairEvent::Value(found) => found.edits.iter().map(|edit| edit.kind).collect(),
                RepairEvent::Refused(..) | RepairEvent::Think(..) => Vec::new(),
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
            (r#"{"a": [{"x": 1} {"y": 2}]}"#, r#"{"a": [{"x": 1}, {"y": 2}]}"#, &[K::MissingComma]),
            (r#"{"a": true,, "b": 2}"#, r#"{"a": true, "b": 2}"#, &[K::ExtraComma]),
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
            ("{\u{1b}[1m\"a\"\u{1b}[0m: 1}", r#"{"a": 1}"#, &[K::AnsiCode]),
            ("{\"a\": \"x\ty\"}", r#"{"a": "x\u0009y"}"#, &[K::RawControl]),
        ];
        for (text, expected, repairs) in cases {
            assert_eq!(offer_repaired(text), [*expected], "{text}");
            assert_eq!(kinds(text), *repairs, "{text}");
        }
    }

    #[test]
    fn what_is_cut_off_is_closed_only_if_that_is_accepted() {
        use RepairKind as K;
        for (text, expected, repairs) in [
            (r#"{"a": [1, {"b": 2}"#, r#"{"a": [1, {"b": 2}]}"#, &[K::MissingCloser][..]),
            (r#"{"a": "cut of"#, r#"{"a": "cut of"}"#, &[K::TruncatedString, K::MissingCloser]),
            (
                r#"{"a": "x", "b": {"c": true"#,
                r#"{"a": "x", "b": {"c": true}}"#,
                &[K::MissingCloser],
            ),
        ] {
            assert_eq!(offer_repaired(text), Vec::<String>::new(), "{text}");
            assert!(
                matches!(
                    events(text, false)[..],
                    [RepairEvent::Refused(RefusedValue { refusal: Refusal::Truncated { .. }, .. })]
                ),
                "{text}"
            );
            assert_eq!(offer(text, true), [expected], "{text}");
            assert_eq!(kinds(text), repairs, "{text}");
        }
        for text in [
            r#"{"a": [1, 2,"#,
            r#"{"a": ["x", "#,
            r#"{"a": {"b": 1}, "c": ["#,
            r#"{"a": [[1, 2], ["x"],"#,
            r#"{"a": 12"#,
            r#"{"a": 1, "b"#,
            r#"{"a": 1, "b":"#,
            r#"{"a": tru"#,
        ] {
            assert_eq!(offer(text, true), Vec::<String>::new(), "{text}");
        }
    }

    #[test]
    fn what_can_be_read_in_two_ways_is_refused() {
        for text in [
            // Where a string ends.
            r#"{"a": "x"y"}"#,
            r#"{"a": "x, "b": "y"}"#,
            r#"{"s": "text", k": "v"}"#,
            r#"{"a": "alpha" and "beta"}"#,
            r#"{"a":"x""b":"y"}"#,
            r#"["a""b"]"#,
            r#"{"a": "the "n" key"}"#,
            r"{'a': 'the users' list'}",
            // A backslash.
            r#"{"a": "C:\dir"}"#,
            r#"{"a": "it\'s"}"#,
            r#"{"a": "C:\new\dir\x"}"#,
            // Items without a comma.
            r#"["a" "b"]"#,
            "[1\n2]",
            r"[{} {}]",
            "{\"a\": 15 \"b\": 1}",
            // Comments that may be JSON, and marks that may be text.
            "{\"a\": 1, # \"b\": 2,\n\"c\": 3}",
            "[1, # 2,\n3]",
            "{\"a\": 1# one\n}",
            "{\"a\": http // x\n}",
            // Words.
            r#"{"a": tru}"#,
            r#"{"a": x}"#,
            r#"{"a": x5}"#,
            r#"{"a": true, true: 1}"#,
            r#"{"a": foo, b: bar}"#,
            r#"{"a": [foo, bar]}"#,
            // Styles of quotes.
            r#"{"a": ['x', 'y']}"#,
            r#"{"a": “x", "b": 1}"#,
            r#"{"a": '5" disk', "b": "c"}"#,
            // Where the value ends.
            r#"{"a": 1,}"b": 2}"#,
            r#"{"a": 'x'}'}"#,
            r#"{"a": 12,, "b": 1}"#,
            r#"{"a": [1, 2}"#,
            r#"{"a": [1, {"b": 2]}"#,
            r#"{"tags": ["a", "b", "note": "fine"}"#,
        ] {
            let found = events(text, true);
            assert!(
                matches!(
                    found[..],
                    [RepairEvent::Refused(RefusedValue { refusal: Refusal::Ambiguous(_), .. })]
                ),
                "{text}: {found:?}"
            );
        }
    }

    #[test]
    fn what_has_one_reading_is_repaired() {
        for (text, expected) in [
            (r#"{"a": "see "the docs", page 2"}"#, r#"{"a": "see \"the docs\", page 2"}"#),
            (r#"{"a": "class="big" here"}"#, r#"{"a": "class=\"big\" here"}"#),
            (r#"{"a": "\d+\.\d+"}"#, r#"{"a": "\\d+\\.\\d+"}"#),
            (r#"{'a': "it's", 'b': 'x'}"#, r#"{"a": "it's", "b": "x"}"#),
            (r#"{"a": 'x', "b": 'y'}"#, r#"{"a": "x", "b": "y"}"#),
            ("{\"a\": 1, // don't\n}", "{\"a\": 1 \n}"),
            ("{\"a\": \"x\" # one of \"x\" or \"y\"\n}", "{\"a\": \"x\" \n}"),
            ("{\"a\": \"x\"\n \"b\": 1,}", "{\"a\": \"x\",\n \"b\": 1}"),
            ("{tags: [red, green], ok: yes}", r#"{"tags": ["red", "green"], "ok": "yes"}"#),
        ] {
            assert_eq!(offer_repaired(text), [expected], "{text}");
        }
    }

    #[test]
    fn nothing_is_guessed() {
        for text in [
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
        assert_eq!(offer(cut, true), [r#"{"a": "x"}"#]);
        assert_eq!(offer_repaired(cut), Vec::<String>::new());
        let raw = "```json\n{\"a\": \"use:\n```js\nf()\n```\nok\"}\n```\n";
        assert_eq!(offer_repaired(raw), [r#"{"a": "use:\n```js\nf()\n```\nok"}"#]);
    }

    #[test]
    fn values_closed_inside_a_failed_one_are_found() {
        assert_eq!(offer_repaired("[ {'a': 1}, garbage"), [r#"{"a": 1}"#]);
    }

    fn whole(text: &str, accept: bool) -> Vec<RepairEvent> {
        let mut scan = RepairScan::new(0).accept_truncated(accept);
        assert!(scan.feed(text.as_bytes(), 0, true, |_| None));
        scan.take_events()
    }

    fn in_parts(text: &str, cut: usize, accept: bool) -> Vec<RepairEvent> {
        let mut scan = RepairScan::new(0).accept_truncated(accept);
        let mut at = 0;
        while at < text.len() {
            at = (at + cut).min(text.len());
            let keep = scan.keep_from();
            scan.feed(&text.as_bytes()[keep..at], keep, false, |_| None);
        }
        let keep = scan.keep_from();
        scan.feed(&text.as_bytes()[keep..], keep, true, |_| None);
        scan.take_events()
    }

    #[test]
    fn what_follows_a_value_is_waited_for() {
        for text in ["\\<['']1\n1{>>[{/\n", "<[1 1,}[\"[\"`:", "<[['']{:`:>,"] {
            assert_eq!(in_parts(text, 1, false), whole(text, false), "{text}");
        }
    }

    fn without_passing_over(text: &str, accept: bool) -> Vec<RepairEvent> {
        let mut scan = RepairScan::new(0).accept_truncated(accept);
        scan.closers.blanks.is_off = true;
        assert!(scan.feed(text.as_bytes(), 0, true, |_| None));
        scan.take_events()
    }

    #[test]
    fn the_same_doubt_is_named_first_when_comments_are_passed_over() {
        for text in [
            // The doubt about a string is nearer to the cause of a bracket in doubt than a comment.
            "/* [\"x \"[\"y\" /*[\"x \",\n#\" /* a long comment */\n#\n}",
            // A comment is noted before the bracket behind it, whose list begins before the comment.
            "/* [\"x \" /* 1, */ [\"x\", \"y\", # [\"x \" a long comment\n\n# 1\n}",
            // A comment is noted before the comma that is missing behind it.
            "[\"x\" /* [\"x\" a long comment */\n# 1\n \"y\"]",
        ] {
            for accept in [false, true] {
                assert_eq!(events(text, accept), without_passing_over(text, accept), "{text}");
            }
        }
    }

    proptest! {
        #[test]
        fn passing_over_comments_changes_nothing(
            pieces in prop::collection::vec(
                prop::sample::select(vec![
                    "[", "{", "\"", "\n", "\n#", "\n# ", "\n//", "/*", "*/", "a: ", "\"k\": ", "1", ",", "]", "}",
                    "\n> ", "x", " ", "\n```\n", "\n</think>", "'", "[\"x \"", "\" /* a long comment */",
                    "/* [\"x \"[\"y\" /*", "                ", "\u{1b}[31m\u{1b}[1m\u{1b}[0m", " # [\"x \"[\":\" #x",
                ]),
                0..40,
            ),
        ) {
            let text = pieces.concat();
            for accept_truncated in [false, true] {
                prop_assert_eq!(
                    events(&text, accept_truncated),
                    without_passing_over(&text, accept_truncated)
                );
            }
        }
    }

    proptest! {
        #[test]
        fn any_chunking_gives_the_same(text in r#"[\[\]{}"',:<>/#`a-c1\\ \n]{0,80}"#, cut in 1usize..7, accept in any::<bool>()) {
            prop_assert_eq!(whole(&text, accept), in_parts(&text, cut, accept));
        }

        #[test]
        fn edits_make_strict_json(text in r#"[\[\]{}"',:/#a-c1\\ \n]{0,60}"#) {
            for json in offer(&text, true) {
                let parsed = crate::json::parse(&json, crate::policy::Limits::of_depth(128));
                prop_assert!(parsed.is_ok(), "{:?} became {:?}: {:?}", text, json, parsed.err());
            }
        }
    }
}
