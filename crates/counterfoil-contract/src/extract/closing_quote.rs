//! Finds the end of a string whose quotes may not be escaped, and the end of a comment.
//!
//! A quote closes a string if the text after it can follow a string there. That is decided from the
//! bytes right after the quote, with a bounded look-ahead, and never from the start of the string.
//! So the answer for one quote serves every string that reaches it, and a text full of quotes is
//! scanned once. The same goes for the ends of comments: a comment may contain what looks like the
//! beginning of many values, each of which reaches its end.

use super::blank_run::BlankRuns;
use super::doubt::plain_quotes;

/// Bytes after a quote that are read to decide whether it closes a string.
const LOOK_AHEAD: usize = 512;
/// The longest key that is recognized after a comma.
const MAX_KEY_BYTES: usize = 256;

/// The window ended before the question could be answered.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NeedMoreText;

/// The role of a string: the value of an object's member, or an item of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Member,
    Item,
}

/// How the string is quoted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quote {
    Double,
    Single,
    SmartDouble,
    SmartSingle,
    TripleDouble,
    TripleSingle,
}

pub(crate) const SMART_DOUBLE: [&[u8]; 3] =
    ["\u{201c}".as_bytes(), "\u{201d}".as_bytes(), "\u{201e}".as_bytes()];
pub(crate) const SMART_SINGLE: [&[u8]; 2] = ["\u{2018}".as_bytes(), "\u{2019}".as_bytes()];

impl Quote {
    /// The quote that opens at the head of `rest`, and its length.
    pub(crate) fn opening(rest: &[u8]) -> Option<(Self, usize)> {
        match rest.first()? {
            b'"' if rest.starts_with(b"\"\"\"") => Some((Self::TripleDouble, 3)),
            b'\'' if rest.starts_with(b"'''") => Some((Self::TripleSingle, 3)),
            b'"' => Some((Self::Double, 1)),
            b'\'' => Some((Self::Single, 1)),
            0xe2 if SMART_DOUBLE.iter().any(|quote| rest.starts_with(quote)) => {
                Some((Self::SmartDouble, 3))
            }
            0xe2 if SMART_SINGLE.iter().any(|quote| rest.starts_with(quote)) => {
                Some((Self::SmartSingle, 3))
            }
            _ => None,
        }
    }

    /// The length of a quote at the head of `rest` that might close a string opened by this one.
    pub(crate) fn closing(self, rest: &[u8]) -> Option<usize> {
        let any =
            |quotes: &[&[u8]]| quotes.iter().any(|quote| rest.starts_with(quote)).then_some(3);
        match self {
            Self::Double => (rest.first() == Some(&b'"')).then_some(1),
            Self::Single => (rest.first() == Some(&b'\'')).then_some(1),
            Self::TripleDouble => rest.starts_with(b"\"\"\"").then_some(3),
            Self::TripleSingle => rest.starts_with(b"'''").then_some(3),
            Self::SmartDouble => any(&SMART_DOUBLE).or((rest.first() == Some(&b'"')).then_some(1)),
            Self::SmartSingle => any(&SMART_SINGLE).or((rest.first() == Some(&b'\'')).then_some(1)),
        }
    }

    fn index(self) -> usize {
        self as usize
    }
}

/// The next offset from `at` on with a byte of a closing quote or a backslash.
pub(crate) fn next_mark(bytes: &[u8], at: usize, quote: Quote) -> Option<usize> {
    let rest = bytes.get(at..)?;
    let found = match quote {
        Quote::Double | Quote::TripleDouble => memchr::memchr2(b'"', b'\\', rest),
        Quote::Single | Quote::TripleSingle => memchr::memchr2(b'\'', b'\\', rest),
        Quote::SmartDouble => memchr::memchr3(b'"', b'\\', 0xe2, rest),
        Quote::SmartSingle => memchr::memchr3(b'\'', b'\\', 0xe2, rest),
    };
    found.map(|found| at + found)
}

/// The offset and the length of a closing quote.
pub(crate) type Closer = Option<(usize, usize)>;

/// Caches the last answer for each role and quote, and for each kind of comment, with the offset
/// from which it is valid.
#[derive(Debug, Default)]
pub(crate) struct Closers {
    known: [Option<(usize, Closer)>; 12],
    line: Option<(usize, Option<usize>)>,
    block: Option<(usize, Option<usize>)>,
    pub(crate) blanks: BlankRuns,
    pub(crate) examined: u64,
}

impl Closers {
    /// The closing quote of a string whose content begins at `from`.
    pub(crate) fn find(
        &mut self,
        window: &Window<'_>,
        from: usize,
        role: Role,
        quote: Quote,
    ) -> Result<Closer, NeedMoreText> {
        let slot = quote.index() * 2 + usize::from(role == Role::Item);
        let absolute = window.base + from;
        if let Some((since, closer)) = self.known[slot]
            && absolute >= since
            && closer.is_none_or(|(at, _)| absolute <= at)
        {
            return Ok(closer.map(|(at, length)| (at - window.base, length)));
        }
        let mut at = from;
        let closer = loop {
            let Some(mark) = next_mark(window.bytes, at, quote) else {
                self.examined += (window.bytes.len().max(at) - at) as u64;
                if !window.eof {
                    return Err(NeedMoreText);
                }
                break None;
            };
            self.examined += (mark + 1 - at) as u64;
            if window.bytes[mark] == b'\\' {
                at = mark + 2;
                continue;
            }
            if !window.eof && window.bytes.len() - mark < 4 {
                return Err(NeedMoreText);
            }
            match quote.closing(&window.bytes[mark..]) {
                Some(length) if window.closes(mark + length, role)? => break Some((mark, length)),
                Some(length) => at = mark + length,
                None => at = mark + 1,
            }
        };
        self.known[slot] = Some((absolute, closer.map(|(at, length)| (at + window.base, length))));
        Ok(closer)
    }

    /// The end of the line of a comment whose content begins at `from`.
    pub(crate) fn line_end(
        &mut self,
        window: &Window<'_>,
        from: usize,
    ) -> Result<usize, NeedMoreText> {
        let find = |rest: &[u8]| memchr::memchr(b'\n', rest);
        let end = next_end(&mut self.line, &mut self.examined, window, from, find)?;
        Ok(end.unwrap_or(window.bytes.len()))
    }

    /// The mark that ends a block comment whose content begins at `from`; none if there is none.
    pub(crate) fn block_comment_end(
        &mut self,
        window: &Window<'_>,
        from: usize,
    ) -> Result<Option<usize>, NeedMoreText> {
        let find = |rest: &[u8]| memchr::memmem::find(rest, b"*/");
        next_end(&mut self.block, &mut self.examined, window, from, find)
    }
}

/// The next end from an offset on, from the cache if the answer is known.
fn next_end(
    known: &mut Option<(usize, Option<usize>)>,
    examined: &mut u64,
    window: &Window<'_>,
    from: usize,
    find: impl Fn(&[u8]) -> Option<usize>,
) -> Result<Option<usize>, NeedMoreText> {
    let absolute = window.base + from;
    if let Some((since, end)) = *known
        && absolute >= since
        && end.is_none_or(|end| absolute <= end)
    {
        return Ok(end.map(|end| end - window.base));
    }
    let rest = window.bytes.get(from..).unwrap_or(&[]);
    let found = find(rest);
    *examined += found.unwrap_or(rest.len()) as u64;
    if found.is_none() && !window.eof {
        return Err(NeedMoreText);
    }
    *known = Some((absolute, found.map(|found| absolute + found)));
    Ok(found.map(|found| from + found))
}

/// The bytes in memory, and their offset in the whole text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window<'b> {
    pub(crate) bytes: &'b [u8],
    pub(crate) base: usize,
    pub(crate) eof: bool,
}

impl Window<'_> {
    /// The byte at `at`; `None` at the end of the text.
    pub(crate) fn get(&self, at: usize) -> Result<Option<u8>, NeedMoreText> {
        match self.bytes.get(at) {
            Some(byte) => Ok(Some(*byte)),
            None if self.eof => Ok(None),
            None => Err(NeedMoreText),
        }
    }

    fn skip_blanks(&self, mut at: usize) -> Result<usize, NeedMoreText> {
        let limit = at + LOOK_AHEAD;
        let mut line_head = false;
        while at < limit {
            match self.get(at)? {
                Some(b'\n') => line_head = true,
                Some(b' ' | b'\t' | b'\r') => {}
                // A Markdown quote marker at the head of a line.
                Some(b'>') if line_head => {}
                _ => break,
            }
            at += 1;
        }
        Ok(at)
    }

    /// Whether a string may end at the quote right before `at`.
    fn closes(&self, at: usize, role: Role) -> Result<bool, NeedMoreText> {
        let next = self.skip_blanks(at)?;
        let Some(byte) = self.get(next)? else { return Ok(true) };
        match byte {
            b'}' | b']' => self.brackets_end(next),
            b',' => {
                let after = self.skip_blanks(next + 1)?;
                let Some(byte) = self.get(after)? else { return Ok(true) };
                match (role, byte) {
                    (_, b'}' | b']' | b'/' | b'#') => Ok(true),
                    (Role::Member, _) => self.key_ahead(after),
                    (Role::Item, b'"' | b'\'' | b'{' | b'[' | b'-' | b'0'..=b'9' | 0xe2) => {
                        Ok(true)
                    }
                    (Role::Item, _) => self.literal_ahead(after),
                }
            }
            b'`' | b'~' => Ok(next > at),
            b'/' => Ok(matches!(self.get(next + 1)?, Some(b'/' | b'*'))),
            b'#' => Ok(next > at),
            0x1b => Ok(self.get(next + 1)? == Some(b'[')),
            _ if role == Role::Member => Ok(next > at && self.key_ahead(next)?),
            b'"' | b'\'' | b'{' | b'[' => Ok(next > at),
            _ => Ok(false),
        }
    }

    /// Whether the text after the closing brackets at `at` shows that the string has ended.
    fn brackets_end(&self, at: usize) -> Result<bool, NeedMoreText> {
        let mut at = at;
        let limit = at + LOOK_AHEAD;
        while at < limit && matches!(self.get(at)?, Some(b'}' | b']' | b' ' | b'\t')) {
            at += 1;
        }
        loop {
            match self.get(at)? {
                None | Some(b'\n' | b'\r' | b',') => return Ok(true),
                Some(b'"') => {
                    // A quote later on the line that itself could close a string.
                    let mut next = at + 1;
                    while matches!(self.get(next)?, Some(b' ' | b'\t')) && next < limit {
                        next += 1;
                    }
                    if matches!(self.get(next)?, Some(b',' | b'}' | b']')) {
                        return Ok(false);
                    }
                    at += 1;
                }
                Some(b'{' | b'[') => return Ok(true),
                Some(_) => at += 1,
            }
            if at >= limit {
                return Ok(true);
            }
        }
    }

    /// Whether a key and its colon are at `at`.
    pub(crate) fn key_ahead(&self, at: usize) -> Result<bool, NeedMoreText> {
        if !self.eof && self.bytes.len() < at + 3 {
            return Err(NeedMoreText);
        }
        let rest = self.bytes.get(at..).unwrap_or(&[]);
        let behind = match Quote::opening(rest) {
            Some((quote, length)) => {
                let mut next = at + length;
                let limit = next + MAX_KEY_BYTES;
                loop {
                    match self.get(next)? {
                        None => return Ok(true),
                        Some(b'\n') => return Ok(false),
                        Some(_) if next >= limit => return Ok(false),
                        Some(b'\\') => {
                            next += 2;
                            continue;
                        }
                        Some(_) => {}
                    }
                    if let Some(length) = quote.closing(&self.bytes[next..]) {
                        break next + length;
                    }
                    next += 1;
                }
            }
            None => {
                let mut next = at;
                while let Some(byte) = self.get(next)? {
                    if !is_bare(byte) || next - at > MAX_KEY_BYTES {
                        break;
                    }
                    next += 1;
                }
                if next == at {
                    return Ok(false);
                }
                next
            }
        };
        let colon = self.skip_blanks(behind)?;
        Ok(self.get(colon)? == Some(b':'))
    }

    /// Whether the line goes on after a value that ends at `at` as if its closing bracket were inside
    /// of a string. If styles are mixed, a single or typographic quote shows that too.
    pub(crate) fn half_string(&self, at: usize, mixed: bool) -> Result<bool, NeedMoreText> {
        let limit = at + LOOK_AHEAD;
        let mut end = at;
        while end < limit && self.get(end)?.is_some_and(|byte| byte != b'\n') {
            end += 1;
        }
        let rest = &self.bytes[at..end];
        let adjacent = rest.first().is_some_and(|byte| {
            byte.is_ascii_alphanumeric() || matches!(byte, b'"' | b'\'' | b'\\')
        });
        Ok(adjacent
            || Quote::opening(rest).is_some()
            || plain_quotes(rest) % 2 == 1
            || memchr::memmem::find_iter(rest, "\u{201c}").count()
                < memchr::memmem::find_iter(rest, "\u{201d}").count()
            || (mixed
                && memchr::memchr2_iter(b'\'', 0xe2, rest)
                    .any(|found| Quote::opening(&rest[found..]).is_some())))
    }

    /// Whether JSON goes on after a value that ends at `at`, as if its closing bracket did not belong
    /// there.
    pub(crate) fn goes_on(&self, at: usize, object: bool) -> Result<bool, NeedMoreText> {
        let mut next = self.skip_blanks(at)?;
        let comma = self.get(next)? == Some(b',');
        if comma {
            next = self.skip_blanks(next + 1)?;
        }
        let Some(byte) = self.get(next)? else { return Ok(false) };
        Ok(match byte {
            b'}' | b']' | b':' => true,
            b'"' if object && !comma => self.key_ahead(next)?,
            _ if object && !comma => false,
            b'"' | b'{' | b'[' | b'0'..=b'9' => true,
            b'-' => self.get(next + 1)?.is_some_and(|byte| byte.is_ascii_digit()),
            _ => self.literal_ahead(next)?,
        })
    }

    /// Whether a list or object with something in it begins at `at`.
    pub(crate) fn filled(&self, at: usize) -> Result<bool, NeedMoreText> {
        if !matches!(self.get(at)?, Some(b'{' | b'[')) {
            return Ok(false);
        }
        let next = self.skip_blanks(at + 1)?;
        Ok(self.get(next)?.is_some_and(|byte| !matches!(byte, b'}' | b']')))
    }

    fn literal_ahead(&self, at: usize) -> Result<bool, NeedMoreText> {
        if !self.eof && self.bytes.len() < at + 6 {
            return Err(NeedMoreText);
        }
        let rest = self.bytes.get(at..).unwrap_or(&[]);
        Ok([b"true".as_slice(), b"false", b"null", b"True", b"False", b"None"].iter().any(|word| {
            rest.starts_with(word) && rest.get(word.len()).is_none_or(|byte| !is_bare(*byte))
        }))
    }
}

/// Bytes of a key or word without quotes.
pub(crate) fn is_bare(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'-') || byte >= 0x80
}
