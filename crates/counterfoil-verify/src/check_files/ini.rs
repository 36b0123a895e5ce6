//! Compares the settings of an INI file, without those that steer nothing.

use super::StartVersion;

/// Keys that steer nothing: what is installed for the tests, and names of markers.
const ORDINARY_KEYS: &[&str] =
    &["deps", "dependency_groups", "extras", "description", "markers", "requires", "minversion"];

/// Sections of a `setup.cfg` about the package itself.
const ORDINARY_SECTIONS: &[&str] = &[
    "metadata",
    "options",
    "egg_info",
    "bdist_wheel",
    "sdist",
    "build",
    "build_ext",
    "install",
    "develop",
    "files",
    "entry_points",
];

/// The entries of an INI file in their order: the section, the key, and the lines with the value. A
/// section itself is an entry without a key.
fn entries(text: &str) -> Vec<(String, String, String)> {
    let mut entries: Vec<(String, String, String)> = Vec::new();
    let mut section = String::new();
    for line in text.lines() {
        let trimmed = line.trim();
        if trimmed.is_empty() || trimmed.starts_with(['#', ';']) {
            continue;
        }
        let is_inner = line.starts_with([' ', '\t']);
        match entries.last_mut() {
            Some((_, key, value)) if is_inner && !key.is_empty() => {
                value.push('\n');
                value.push_str(line.trim_end());
            }
            _ if trimmed.starts_with('[') => {
                trimmed.trim_matches(['[', ']']).trim().clone_into(&mut section);
                entries.push((section.clone(), String::new(), trimmed.to_owned()));
            }
            _ => {
                let key = trimmed.split(['=', ':']).next().unwrap_or(trimmed).trim();
                entries.push((section.clone(), key.to_owned(), line.trim_end().to_owned()));
            }
        }
    }
    entries
}

fn is_ordinary(section: &str, key: &str) -> bool {
    let table = section.split('.').next().unwrap_or(section);
    ORDINARY_SECTIONS.contains(&table) || ORDINARY_KEYS.contains(&key)
}

/// Compares an INI file with the one at the start, and merges the settings of the start into it.
pub(super) fn version(start: Option<&[u8]>, now: Option<&[u8]>) -> StartVersion {
    let (Ok(start), Some(Ok(now))) =
        (std::str::from_utf8(start.unwrap_or_default()), now.map(std::str::from_utf8))
    else {
        return StartVersion::Whole;
    };
    let (start, now) = (entries(start), entries(now));
    let steering = |entries: &[(String, String, String)]| -> Vec<(String, String, String)> {
        let steering = entries
            .iter()
            .filter(|(section, key, _)| !key.is_empty() && !is_ordinary(section, key));
        steering.cloned().collect()
    };
    if steering(&start) == steering(&now) {
        return StartVersion::Same;
    }
    // The sections in the order of the start, then new ones.
    let mut sections: Vec<&String> = Vec::new();
    for (section, ..) in start.iter().chain(&now) {
        if !sections.contains(&section) {
            sections.push(section);
        }
    }
    let mut merged = String::new();
    for section in sections {
        let of_start = start.iter().filter(|(name, key, _)| {
            name == section && (key.is_empty() || !is_ordinary(section, key))
        });
        let of_now = now.iter().filter(|(name, key, _)| {
            name == section && !key.is_empty() && is_ordinary(section, key)
        });
        let mut lines: Vec<&str> =
            of_start.chain(of_now).map(|(_, _, lines)| lines.as_str()).collect();
        let head = format!("[{section}]");
        if !section.is_empty() && !lines.first().is_some_and(|line| line.starts_with('[')) {
            if lines.is_empty() {
                continue;
            }
            lines.insert(0, &head);
        }
        merged.push_str(&lines.join("\n"));
        merged.push('\n');
    }
    StartVersion::Merged(merged.into_bytes())
}
