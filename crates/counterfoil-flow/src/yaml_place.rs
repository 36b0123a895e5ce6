//! Finds a place such as `rules[1].check` in a text of YAML.

use crate::yaml_tree::{self, Kind, Node};
use counterfoil_contract::Span;
use counterfoil_contract::source::Source;

/// A text of YAML or JSON in which places are found.
#[derive(Debug)]
pub struct YamlPlaces<'t> {
    text: Source<'t>,
    root: Node,
}

impl<'t> YamlPlaces<'t> {
    /// Reads a text. None if it cannot be read.
    pub fn new(text: &'t str) -> Option<Self> {
        let root = yaml_tree::parse(text, "").ok()?;
        Some(Self { text: Source::whole(text), root })
    }

    /// The span of a place, as problems of contracts name it: keys behind dots, indices in brackets,
    /// and the parts of a JSON pointer. If the text has only the beginning of the place, it is the span
    /// of that; none if it has nothing of it.
    pub fn find(&self, place: &str) -> Option<Span> {
        let (mut node, mut rest) = (&self.root, place);
        let mut found = None;
        while let Some((bytes, next, left)) = step(node, rest) {
            found = Some(bytes);
            (node, rest) = (next, left);
        }
        let (start, end) = found?;
        Some(self.text.span(start, end))
    }
}

/// The bytes of the first part of a place below a node, its node, and what is left of the place.
fn step<'n, 'p>(node: &'n Node, place: &'p str) -> Option<((usize, usize), &'n Node, &'p str)> {
    match &node.kind {
        Kind::List(items) => {
            let (index, left) = index(place)?;
            let item = items.get(index)?;
            Some(((item.start, item.end), item, left))
        }
        Kind::Map(entries) => {
            let pointer = place.strip_prefix('/');
            let place = pointer.or_else(|| place.strip_prefix('.')).unwrap_or(place);
            // A key may contain what separates keys: the longest one is meant.
            let named = entries.iter().filter_map(|(key, value)| {
                let name = key.text()?;
                let name = match pointer {
                    Some(_) => name.replace('~', "~0").replace('/', "~1"),
                    // An optional field in the short form.
                    None => name.strip_suffix('?').unwrap_or(name).to_owned(),
                };
                let left = place.strip_prefix(name.as_str()).filter(|_| !name.is_empty())?;
                (left.is_empty() || left.starts_with(['.', '/', '['])).then_some((key, value, left))
            });
            let (key, value, left) = named.min_by_key(|(_, _, left)| left.len())?;
            // The value of an alias is elsewhere.
            let end = if value.start >= key.start { value.end.max(key.end) } else { key.end };
            Some(((key.start, end), value, left))
        }
        _ => None,
    }
}

/// The index at the beginning of a place, as `[1]` or `/1`. `[]` stands for the only item.
fn index(place: &str) -> Option<(usize, &str)> {
    if let Some(rest) = place.strip_prefix('[') {
        let (number, left) = rest.split_once(']')?;
        let index = if number.is_empty() { 0 } else { number.parse().ok()? };
        return Some((index, left));
    }
    let rest = place.strip_prefix('/')?;
    let end = rest.find('/').unwrap_or(rest.len());
    Some((rest[..end].parse().ok()?, &rest[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
contract: acme/é
fields:
  note?: nonsense
  files: [pth]
rules:
  - { id: a, check: result.ok }
  - id: b
    check: result.okay
examples:
  - ok: true
    a/b: [1, { c: 2 }]
claims:
  findings/*/file: { kind: location }
";

    #[test]
    fn a_place_has_the_text_that_it_names() {
        let places = YamlPlaces::new(TEXT).unwrap();
        for (place, line, expected) in [
            ("rules[0].check", 6, "check: result.ok"),
            ("rules[1].check", 8, "check: result.okay"),
            ("fields.note", 3, "note?: nonsense"),
            ("fields.files[]", 4, "pth"),
            ("examples[0]/ok", 10, "ok: true"),
            ("examples[0]/a~1b/1/c", 11, "c: 2"),
            ("claims.findings/*/file.kind", 13, "kind: location"),
            // The beginning of what is missing.
            ("rules[1].require", 7, "id: b\n    check: result.okay"),
        ] {
            let span = places.find(place).unwrap_or_else(|| panic!("{place}"));
            assert_eq!((span.line, &TEXT[span.start..span.end]), (line, expected), "{place}");
        }
        for place in ["", "rule", "schema.properties.a"] {
            assert_eq!(places.find(place), None, "{place}");
        }
        assert!(YamlPlaces::new("a: [").is_none());
    }
}
