//! A result that the end of the text cuts off before its first key or item is complete, such as
//! `{"dod_ach`. No scan finds anything in it, but a text that stops there has begun another answer.

use crate::attempt::AttemptKeys;
use crate::source::Source;

/// The number of bytes at the end of a text that are looked at.
pub(super) const TAIL_BYTES: usize = 256;

/// The quotes with which a key may begin.
const QUOTES: [&str; 6] = ["\"", "\\\"", "'", "“", "‘", "`"];

/// Where JSON begins that is cut off in its first key, or before it, or in the fence around it.
/// `opener` is the bracket with which results begin, if it is known.
pub(super) fn json_start(
    source: &Source<'_>,
    keys: &AttemptKeys,
    opener: Option<u8>,
) -> Option<usize> {
    let whole = source.slice(source.base(), source.end());
    let from = whole.ceil_char_boundary(whole.len().saturating_sub(TAIL_BYTES));
    let text = whole[from..].trim_end();
    let offset = source.base() + from;
    if let Some(before) = text.strip_suffix("```json").filter(|before| begins_line(before)) {
        return Some(offset + before.len());
    }
    if opener == Some(b'[')
        && let Some(before) = text.strip_suffix('[').filter(|before| begins_line(before))
    {
        return Some(offset + before.len());
    }
    let (before, rest) = text.rsplit_once('{')?;
    let rest = rest.trim_start();
    let key = QUOTES.iter().find_map(|quote| rest.strip_prefix(quote));
    let begins = if keys.has_fields() {
        keys.has_prefix(key.unwrap_or(rest))
    } else {
        opener == Some(b'{') && is_open_key(rest)
    };
    // A brace in prose begins nothing, unless the quote of a key with a known name follows. One
    // between quotes is a quotation.
    let is_quoted = key == Some("") && before.ends_with(rest);
    let is_key = keys.has_fields() && key.is_some() && !is_quoted;
    (begins && (is_key || begins_line(before))).then_some(offset + before.len())
}

/// Whether a key of any name is cut off, or what follows it.
fn is_open_key(rest: &str) -> bool {
    let Some(key) = rest.strip_prefix('"') else { return rest.is_empty() };
    let key = key.strip_suffix('"').unwrap_or(key);
    !key.contains(['"', '\n'])
}

/// Whether an output block is cut off in its first key.
pub(super) fn is_block_cut(content: &str, keys: &AttemptKeys) -> bool {
    let line = content.trim();
    keys.has_fields() && !line.contains('\n') && keys.has_prefix(line)
}

/// Whether what follows a text is the first on its line, apart from blanks and quote markers.
fn begins_line(before: &str) -> bool {
    let line = before.rsplit_once('\n').map_or(before, |(_, line)| line);
    line.chars().all(|c| matches!(c, ' ' | '\t' | '>'))
}
