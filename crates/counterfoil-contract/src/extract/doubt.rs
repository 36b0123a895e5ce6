//! Doubts about a repair: places where another repair of the same rank gives another value.
//!
//! A repair is a guess about what was meant. It is made only if no other document becomes this text
//! by a single slip (a character or a token left out, added or changed). Otherwise the value is
//! refused, and both readings are named.

use super::closing_quote::{Quote, is_bare, next_mark};
use super::string_edits::Text;
use crate::edit::{Edit, RepairKind};

/// The longest part of the text that a reading quotes, in characters.
const MAX_EXCERPT: usize = 40;

/// Why a value that begins like a result is not repaired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The text, or the block around the value, ends inside it.
    Truncated { at: usize },
    /// Two repairs give two different values.
    Ambiguous(Ambiguity),
    /// It needs more repairs than the limit.
    TooMany { at: usize },
}

impl Refusal {
    /// Whether the value may have been given up before an offset, at the end of a text or of a line,
    /// so that what follows has nothing to do with it.
    pub(crate) fn may_end_before(&self, offset: usize) -> bool {
        match self {
            Self::Truncated { .. } => true,
            Self::Ambiguous(found) => found.cut_at.is_some_and(|end| end < offset),
            Self::TooMany { .. } => false,
        }
    }
}

/// A place that can be read in two ways. Offsets are those of the whole text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ambiguity {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) readings: [String; 2],
    pub(crate) hint: &'static str,
    /// Where the first line of the string in question ends, if nothing closes that string: the text
    /// may have been cut off there.
    pub(crate) cut_at: Option<usize>,
}

/// What is in doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DoubtKind {
    /// Whether a quote inside a string belongs to it.
    Quote,
    /// Whether a backslash is text, an accident or half of an escape.
    Escape,
    /// Whether two items without a comma are two.
    Comma,
    /// Whether what follows a comment mark is a comment or part of the result.
    Comment,
    /// Whether a word is a text or a mistyped literal or number.
    Word,
    /// Whether a comma stands in place of the last digit of a number, or a digit in place of a comma.
    Digit,
    /// Whether strings in another style of quotes are several or one.
    Style,
    /// Whether words without quotes are several values or one text.
    Unquoted,
    /// Whether the value ends at its closing bracket.
    End,
    /// Whether a bracket of the other kind is missing before a closing one.
    Closer,
}

/// A doubt about the bytes from `start` to `end` of the window; `mid` is the place in question.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Doubt {
    pub(crate) kind: DoubtKind,
    pub(crate) start: usize,
    pub(crate) mid: usize,
    pub(crate) end: usize,
}

impl Doubt {
    /// The two readings in words, for a report.
    pub(crate) fn ambiguity(self, bytes: &[u8], base: usize) -> Ambiguity {
        let start = boundary_before(bytes, self.start);
        let mid = boundary_after(bytes, self.mid);
        let end = boundary_after(bytes, self.end);
        let doubt = Self { start, mid, end, ..self };
        doubt.described(bytes, base)
    }

    fn described(self, bytes: &[u8], base: usize) -> Ambiguity {
        let whole = excerpt(bytes, self.start, self.end);
        let head = excerpt(bytes, self.start, self.mid);
        let tail = excerpt(bytes, self.mid, self.end);
        let (readings, hint) = match self.kind {
            DoubtKind::Quote => (
                [format!("one string: {whole}"), format!("a string that ends before: {head}")],
                "escape quotes inside a string as \\\", and close each string with one quote",
            ),
            DoubtKind::Escape => (
                [
                    format!("a backslash as text: {whole}"),
                    "an escape, or a backslash that does not belong there".to_owned(),
                ],
                "write a backslash inside a string as \\\\",
            ),
            DoubtKind::Comma => (
                [
                    format!("two items: {head} and {tail}"),
                    format!("one item, and something that does not belong there: {whole}"),
                ],
                "separate the items of a list by commas",
            ),
            DoubtKind::Comment => (
                [
                    format!("a comment that is left out: {whole}"),
                    format!("a part of the result: {tail}"),
                ],
                "write JSON without comments",
            ),
            DoubtKind::Word => (
                [
                    format!("a text without quotes: {whole}"),
                    format!("a mistyped literal or number: {whole}"),
                ],
                "put texts in double quotes, and write true, false and null in full",
            ),
            DoubtKind::Digit => (
                [
                    format!("the number {head}, and a slip in the commas after it"),
                    "a longer number, with a slip in its last digit".to_owned(),
                ],
                "separate what follows a number by one comma",
            ),
            DoubtKind::Style => (
                [
                    format!("several strings: {whole}"),
                    format!("one string with quotes inside: {whole}"),
                ],
                "use double quotes around every string",
            ),
            DoubtKind::Unquoted => (
                [
                    format!("several values without quotes: {whole}"),
                    format!("one text with a comma: {whole}"),
                ],
                "put texts in double quotes",
            ),
            DoubtKind::Closer => (
                [
                    format!("a closing bracket is missing before {tail}: {head}"),
                    format!("the bracket {tail} does not belong there"),
                ],
                "close every bracket with one of its kind",
            ),
            DoubtKind::End => (
                [
                    "the result ends at this bracket".to_owned(),
                    format!("the bracket does not belong there, and the result goes on: {tail}"),
                ],
                "close every bracket once, and write no comma before it",
            ),
        };
        Ambiguity { start: base + self.start, end: base + self.end, readings, hint, cut_at: None }
    }
}

/// Whether an offset is inside of a character.
fn is_inside_character(bytes: &[u8], at: usize) -> bool {
    bytes.get(at).is_some_and(|byte| byte & 0xc0 == 0x80)
}

fn boundary_before(bytes: &[u8], mut at: usize) -> usize {
    while at > 0 && is_inside_character(bytes, at) {
        at -= 1;
    }
    at
}

fn boundary_after(bytes: &[u8], mut at: usize) -> usize {
    while is_inside_character(bytes, at) {
        at += 1;
    }
    at
}

fn excerpt(bytes: &[u8], start: usize, end: usize) -> String {
    let text = String::from_utf8_lossy(bytes.get(start..end).unwrap_or(&[]));
    let mut short: String = text.trim().chars().take(MAX_EXCERPT).collect();
    if short.len() < text.trim().len() {
        short.push('…');
    }
    format!("`{short}`")
}

/// Whether the quotes inside a string show where it ends; otherwise the first quote in doubt.
pub(crate) fn inner_quote(text: &Text, bytes: &[u8]) -> Option<usize> {
    let (from, to) = (text.start + text.open, text.end - text.close);
    let single = matches!(text.quote, Quote::Single | Quote::SmartSingle);
    // The opening quote of a quoted phrase, with its length.
    let mut open: Option<(usize, usize)> = None;
    let mut at = from;
    while let Some(mark) = next_mark(bytes, at, text.quote).filter(|mark| *mark < to) {
        if bytes[mark] == b'\\' {
            at = mark + 2;
            continue;
        }
        let Some(length) = text.quote.closing(&bytes[mark..]) else {
            at = mark + 1;
            continue;
        };
        at = mark + length;
        let before = mark.checked_sub(1).filter(|index| *index >= from).map(|index| bytes[index]);
        let after = bytes.get(at).copied().filter(|_| at < to);
        let letter = |byte: Option<u8>| {
            byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || byte >= 0x80)
        };
        if single && letter(before) && letter(after) {
            // An apostrophe.
            continue;
        }
        match open.take() {
            None if letter(before) => return Some(mark),
            None => open = Some((mark, length)),
            Some((opened, length)) => {
                if letter(after) || !is_phrase(&bytes[opened + length..mark]) {
                    return Some(opened);
                }
            }
        }
    }
    open.map(|(mark, _)| mark)
}

/// Whether the text between two quotes is a quoted phrase rather than a damaged piece of JSON between
/// two strings. One slip leaves a comma, colon or bracket at one of its ends, or no word in it.
fn is_phrase(inner: &[u8]) -> bool {
    let structural = |byte: &u8| {
        byte.is_ascii_whitespace() || matches!(byte, b',' | b':' | b'[' | b']' | b'{' | b'}')
    };
    if inner.first().is_none_or(structural) || inner.last().is_none_or(structural) {
        return false;
    }
    String::from_utf8_lossy(inner)
        .split(|c: char| !c.is_alphabetic())
        .any(|word| word.chars().count() >= 2 && !is_literal(word.as_bytes()))
}

/// The number of quotes without a backslash before them.
pub(crate) fn plain_quotes(bytes: &[u8]) -> usize {
    let mut count = 0;
    let mut at = 0;
    while let Some(found) = bytes.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        at += found;
        if bytes[at] == b'"' {
            count += 1;
            at += 1;
        } else {
            at += 2;
        }
    }
    count
}

/// The longest comment that is looked into. A longer one may hide anything.
const MAX_COMMENT_BYTES: usize = 512;

/// Whether the content of a comment could be JSON that a stray comment mark hides.
pub(crate) fn hides_json(content: &[u8]) -> bool {
    if content.len() > MAX_COMMENT_BYTES || plain_quotes(content) % 2 == 1 {
        return true;
    }
    let content = content.trim_ascii();
    // A mark without a comment may stand in place of something.
    let Some(first) = content.first() else { return true };
    if closes_string(content) {
        return true;
    }
    let ends = |rest: &[u8]| {
        let rest = rest.trim_ascii_start();
        rest.first().is_none_or(|byte| matches!(byte, b',' | b':' | b']' | b'}'))
    };
    match first {
        b',' | b':' | b'{' | b'}' | b'[' | b']' => true,
        b'"' => {
            let mut at = 1;
            while content.get(at).is_some_and(|byte| *byte != b'"') {
                at += if content[at] == b'\\' { 2 } else { 1 };
            }
            ends(content.get(at + 1..).unwrap_or(&[]))
        }
        _ => {
            let length = content
                .iter()
                .take_while(|byte| is_bare(**byte) || matches!(byte, b'.' | b'+'))
                .count();
            let (word, rest) = content.split_at(length);
            let digits = |byte: &u8| matches!(byte, b'0'..=b'9' | b'.' | b'+' | b'-' | b'e' | b'E');
            (word.iter().all(digits) || near_literal(word)) && ends(rest)
        }
    }
}

/// Whether a quote other than `"` in a comment could close a string that began before it.
fn closes_string(comment: &[u8]) -> bool {
    let mut at = 0;
    while let Some(found) = memchr::memchr2(b'\'', 0xe2, &comment[at..]) {
        at += found;
        let Some((_, length)) = Quote::opening(&comment[at..]) else {
            at += 1;
            continue;
        };
        at += length;
        let rest = comment[at..].trim_ascii_start();
        if rest.first().is_none_or(|byte| matches!(byte, b',' | b'}' | b']')) {
            return true;
        }
    }
    false
}

/// Whether a word without quotes may be a literal or number with one slip in it.
pub(crate) fn mistyped(word: &[u8]) -> bool {
    if [b"true".as_slice(), b"false", b"null"]
        .iter()
        .any(|literal| memchr::memmem::find(word, literal).is_some())
    {
        return true;
    }
    let others = String::from_utf8_lossy(word)
        .chars()
        .filter(|c| !matches!(c, '0'..='9' | '+' | '-' | '.' | 'e' | 'E' | ' '))
        .count();
    others < 2 || near_literal(word)
}

/// Whether a word is a literal or number of JSON.
pub(crate) fn is_literal(word: &[u8]) -> bool {
    matches!(word, b"true" | b"false" | b"null")
        || std::str::from_utf8(word).is_ok_and(|word| word.parse::<serde_json::Number>().is_ok())
}

/// Whether one character at most distinguishes a word from a literal.
fn near_literal(word: &[u8]) -> bool {
    /// No longer word is near.
    const LONGEST: usize = 5 + 4;
    if word.len() > LONGEST {
        return false;
    }
    let word: Vec<char> = String::from_utf8_lossy(word).to_lowercase().chars().collect();
    ["true", "false", "null"].iter().any(|literal| {
        let literal: Vec<char> = literal.chars().collect();
        let head = word.iter().zip(&literal).take_while(|(a, b)| a == b).count();
        let tail = word[head..]
            .iter()
            .rev()
            .zip(literal[head..].iter().rev())
            .take_while(|(a, b)| a == b)
            .count();
        word.len() - head - tail <= 1 && literal.len() - head - tail <= 1
    })
}

/// The first bad escape, if one slip explains all of them: a single backslash, or one character in
/// the middle of an escaped backslash.
pub(crate) fn lone_escape<'e>(edits: &'e [Edit], bytes: &[u8], base: usize) -> Option<&'e Edit> {
    let mut bad = edits.iter().filter(|edit| edit.kind == RepairKind::BadEscape);
    let first = bad.next()?;
    let Some(second) = bad.next() else { return Some(first) };
    let between = bytes.get(first.end - base..second.start - base).unwrap_or(&[]);
    let character = between.len() <= 4 && String::from_utf8_lossy(between).chars().count() == 1;
    (character && bad.next().is_none()).then_some(first)
}

/// A doubt that follows from the quotes of all strings of a value together.
pub(crate) fn quote_style(texts: &[Text], bytes: &[u8]) -> Option<Doubt> {
    let content = |text: &Text| &bytes[text.start + text.open..text.end - text.close];
    let double = |text: &Text| text.quote == Quote::Double;
    // A typographic quote that is the first character of a string whose own quote is missing, or a
    // string that ends with an opening quote.
    let mixed = |text: &&Text| {
        let open = &bytes[text.start..text.start + text.open];
        matches!(text.quote, Quote::SmartDouble | Quote::SmartSingle)
            && (text.close == 1
                || (open != "\u{201d}".as_bytes()
                    && open != "\u{2019}".as_bytes()
                    && bytes[text.start..text.end].ends_with(open)))
    };
    // One word in three quotes: two empty strings with another one in place of their comma.
    let crowded = |text: &&Text| {
        matches!(text.quote, Quote::TripleDouble | Quote::TripleSingle)
            && !content(text).iter().any(u8::is_ascii_whitespace)
    };
    if let Some(text) = texts.iter().find(|text| mixed(text) || crowded(text)) {
        let (start, mid, end) = (text.start, text.end, text.end);
        return Some(Doubt { kind: DoubtKind::Style, start, mid, end });
    }
    if let Some(text) = turned_quote(texts, bytes) {
        let (start, mid, end) = (text.start, text.end, text.end);
        return Some(Doubt { kind: DoubtKind::Style, start, mid, end });
    }
    if !texts.iter().any(double) {
        return None;
    }
    // A quote that was left out or changed makes a string in single quotes begin or end inside of
    // another one, so that it holds half of its quotes.
    let odd = texts.iter().find(|text| {
        matches!(text.quote, Quote::Single | Quote::SmartSingle | Quote::TripleSingle)
            && plain_quotes(content(text)) % 2 == 1
    });
    let doubt = |first: &Text, last: &Text| {
        Some(Doubt { kind: DoubtKind::Style, start: first.start, mid: first.end, end: last.end })
    };
    if let Some(text) = odd {
        return doubt(text, text);
    }
    // Two neighbours in single quotes where other strings have double quotes: one string with `', '`
    // inside looks the same. Python uses double quotes only around an apostrophe.
    if !texts.iter().any(|text| double(text) && !content(text).contains(&b'\'')) {
        return None;
    }
    let pair = texts.windows(2).find(|pair| pair.iter().all(|text| text.quote == Quote::Single))?;
    doubt(&pair[0], &pair[1])
}

/// A string that begins with a closing typographic quote, while another one begins with an opening one.
/// Quotes of one writer are turned alike, so the closing one may be a part of a string that has
/// typographic quotes inside.
fn turned_quote<'t>(texts: &'t [Text], bytes: &[u8]) -> Option<&'t Text> {
    let opens = |text: &Text, quotes: &[&str]| {
        let open = &bytes[text.start..text.start + text.open];
        quotes.iter().any(|quote| open == quote.as_bytes())
    };
    let is_turned = |text: &&Text| opens(text, &["\u{201d}", "\u{2019}"]);
    let is_opening = |text: &Text| opens(text, &["\u{201c}", "\u{201e}", "\u{2018}"]);
    texts.iter().find(is_turned).filter(|_| texts.iter().any(is_opening))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_one_character_from_a_literal_or_number_is_in_doubt() {
        for word in ["tru", "tue", "t rue", "xtrue", "nul", "fals", "x", "x5", "e5", "rue"] {
            assert!(mistyped(word.as_bytes()), "{word}");
        }
        for word in ["success", "all good", "no", "blocked", "nothing"] {
            assert!(!mistyped(word.as_bytes()), "{word}");
        }
    }

    #[test]
    fn a_comment_that_reads_like_json_is_in_doubt() {
        for comment in ["", " 2,", " \"b\": 2,", "]", " y\", \"b\": 1", " true", ", 3", " \"x\""] {
            assert!(hides_json(comment.as_bytes()), "{comment}");
        }
        assert!(hides_json(" who reads all of this?".repeat(50).as_bytes()));
        for comment in [" one", " 3 items", " \"low\" or \"high\"", " see https://x.org/#a"] {
            assert!(!hides_json(comment.as_bytes()), "{comment}");
        }
    }
}
