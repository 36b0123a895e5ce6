//! The functions on texts. Places are counted in characters, as everywhere in CEL.

use super::{
    Given, MOST_TEXT, arguments, bounded_text, clamped, given_list, given_text, int_of, items_of,
    text_of,
};
use cel::common::types::{CelInt, CelString};
use cel::common::value::{CowVal, Val};
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// The longest slug.
const LONGEST_SLUG: usize = 60;

fn boxed<'v>(part: &str) -> Box<dyn Val + 'v> {
    Box::new(CelString::from(part.to_owned()))
}

/// The parts between the separators; without a separator, the characters.
pub(super) fn split<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Given<'b, 'v> {
    let [text, separator] = arguments(args)?;
    let (text, separator) =
        (text_of("split", text.as_ref())?, text_of("split", separator.as_ref())?);
    bounded_text("split", text.len())?;
    if separator.is_empty() {
        return given_list(
            "split",
            text.chars().map(|character| boxed(character.encode_utf8(&mut [0; 4]))),
        );
    }
    given_list("split", text.split(separator).map(boxed))
}

/// The lines without their ends.
pub(super) fn lines<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Given<'b, 'v> {
    let [text] = arguments(args)?;
    let text = text_of("lines", text.as_ref())?;
    bounded_text("lines", text.len())?;
    given_list("lines", text.lines().map(boxed))
}

pub(super) fn trim<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Given<'b, 'v> {
    let [text] = arguments(args)?;
    given_text("trim", text_of("trim", text.as_ref())?.trim())
}

pub(super) fn lower_ascii<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Given<'b, 'v> {
    let [text] = arguments(args)?;
    given_text("lowerAscii", text_of("lowerAscii", text.as_ref())?.to_ascii_lowercase())
}

pub(super) fn upper_ascii<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Given<'b, 'v> {
    let [text] = arguments(args)?;
    given_text("upperAscii", text_of("upperAscii", text.as_ref())?.to_ascii_uppercase())
}

/// Every occurrence replaced; the empty text occurs around each character, as in CEL's own
/// extension.
pub(super) fn replace<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Given<'b, 'v> {
    let [text, part, by] = arguments(args)?;
    let (text, part) = (text_of("replace", text.as_ref())?, text_of("replace", part.as_ref())?);
    let by = text_of("replace", by.as_ref())?;
    // Looked at before it is built: two small texts can make a very large one.
    let times = text.matches(part).count();
    bounded_text(
        "replace",
        (text.len() - times * part.len()).saturating_add(times.saturating_mul(by.len())),
    )?;
    given_text("replace", text.replace(part, by))
}

/// A name for files and branches: lower case words of ASCII letters and digits, joined by `-`;
/// never empty. Accents are dropped, everything else separates words. Words that do not fit are
/// left out; a first word that does not is cut.
pub(super) fn slug<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Given<'b, 'v> {
    let [text] = arguments(args)?;
    let text = text_of("slug", text.as_ref())?;
    let mut slug = String::new();
    let mut word = String::new();
    let plain = text.nfkd().filter(|character| !is_combining_mark(*character));
    for character in plain.chain([' ']) {
        if character.is_ascii_alphanumeric() {
            // More than fits needs not be known.
            if word.len() <= LONGEST_SLUG {
                word.push(character.to_ascii_lowercase());
            }
        } else if !word.is_empty() {
            if slug.is_empty() {
                word.truncate(LONGEST_SLUG);
                slug = std::mem::take(&mut word);
            } else if slug.len() + 1 + word.len() <= LONGEST_SLUG {
                slug.push('-');
                slug.push_str(&word);
                word.clear();
            } else {
                break;
            }
        }
    }
    given_text("slug", if slug.is_empty() { "item".to_owned() } else { slug })
}

/// Where a part begins; -1 if it is not there.
pub(super) fn index_of<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Given<'b, 'v> {
    let [text, part] = arguments(args)?;
    let (text, part) = (text_of("indexOf", text.as_ref())?, text_of("indexOf", part.as_ref())?);
    let place = text.find(part).map(|bytes| text[..bytes].chars().count());
    let place = place.map_or(-1, |place| i64::try_from(place).unwrap_or(i64::MAX));
    Ok(CowVal::owned(CelInt::from(place)))
}

/// The characters from one place up to another.
pub(super) fn substring<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Given<'b, 'v> {
    let [text, from, to] = arguments(args)?;
    let text = text_of("substring", text.as_ref())?;
    let from = clamped(int_of("substring", from.as_ref())?, text.len());
    let to = clamped(int_of("substring", to.as_ref())?, text.len());
    let long = to.saturating_sub(from);
    let rest = text.char_indices().nth(from).map_or("", |(bytes, _)| &text[bytes..]);
    let part = rest.char_indices().nth(long).map_or(rest, |(bytes, _)| &rest[..bytes]);
    given_text("substring", part)
}

/// Texts, one behind the other.
pub(super) fn join<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Given<'b, 'v> {
    let [list, separator] = arguments(args)?;
    let (items, separator) =
        (items_of("join", list.as_ref())?, text_of("join", separator.as_ref())?);
    let mut joined = String::new();
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            joined.push_str(separator);
        }
        joined.push_str(text_of("join", item.as_ref())?);
        if joined.len() > MOST_TEXT {
            break;
        }
    }
    given_text("join", joined)
}
