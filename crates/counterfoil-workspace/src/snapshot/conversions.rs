//! How git converts the files of a repository, by their attributes.

use super::blob::Conversion;
use super::parse;
use super::repo_path::RepoPath;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The attributes that decide about it.
const ATTRIBUTES: [&str; 5] = ["text", "eol", "filter", "ident", "working-tree-encoding"];

/// How the settings of a repository convert the ends of lines.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct LineEnds {
    /// Text files are checked out with CRLF.
    pub(super) crlf: bool,
    /// Files without attributes are converted.
    pub(super) auto: bool,
}

/// The arguments of git that return the attributes of the paths on its stdin.
pub(super) fn check_attributes<'a>(options: &[&'a str]) -> Vec<&'a str> {
    let mut arguments = vec!["check-attr", "-z", "--stdin"];
    arguments.extend(options);
    arguments.extend(ATTRIBUTES);
    arguments
}

/// The files that git converts, by the attributes that it returned.
pub(super) fn conversions(output: &[u8], lines: LineEnds) -> BTreeMap<RepoPath, Conversion> {
    let values: Vec<[&[u8]; 3]> = parse::attributes(output).collect();
    let files = values.chunk_by(|a, b| a[0] == b[0]).map(|of_file| {
        let value = |wanted: &str| {
            let found = of_file.iter().find(|[_, name, _]| *name == wanted.as_bytes());
            found.map_or(&b"unspecified"[..], |[_, _, value]| *value)
        };
        (RepoPath::from(of_file[0][0]), conversion(value, lines))
    });
    files.filter(|(_, conversion)| *conversion != Conversion::None).collect()
}

fn conversion<'v>(value: impl Fn(&str) -> &'v [u8], lines: LineEnds) -> Conversion {
    let is_off = |value: &[u8]| matches!(value, b"unspecified" | b"unset");
    if value("filter") == b"lfs" {
        return Conversion::Lfs;
    }
    if ["filter", "ident", "working-tree-encoding"].iter().any(|name| !is_off(value(name))) {
        return Conversion::Filter;
    }
    let (text, eol) = (value("text"), value("eol"));
    let is_text = match text {
        b"unset" => false,
        b"unspecified" => lines.auto || !is_off(eol),
        _ => true,
    };
    let crlf = if is_off(eol) { lines.crlf } else { eol == b"crlf" };
    if is_text { Conversion::Text { crlf } } else { Conversion::None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_and_settings_decide_together() {
        let none = LineEnds::default();
        let crlf = LineEnds { crlf: true, auto: true };
        for (attributes, lines, expected) in [
            ("text=auto", none, Conversion::Text { crlf: false }),
            ("text=auto", crlf, Conversion::Text { crlf: true }),
            ("eol=crlf", none, Conversion::Text { crlf: true }),
            ("eol=lf", crlf, Conversion::Text { crlf: false }),
            ("text=unset eol=crlf", crlf, Conversion::None),
            ("", none, Conversion::None),
            ("", crlf, Conversion::Text { crlf: true }),
            ("filter=lfs text=unset", none, Conversion::Lfs),
            ("filter=crypt", none, Conversion::Filter),
            ("ident=set", none, Conversion::Filter),
            ("working-tree-encoding=UTF-16", none, Conversion::Filter),
        ] {
            let value = |wanted: &str| {
                let mut pairs = attributes.split(' ').filter_map(|pair| pair.split_once('='));
                pairs.find(|(name, _)| *name == wanted).map_or("unspecified", |(_, value)| value)
            };
            let found = conversion(|name| value(name).as_bytes(), lines);
            assert_eq!(found, expected, "{attributes} {lines:?}");
        }
    }
}
