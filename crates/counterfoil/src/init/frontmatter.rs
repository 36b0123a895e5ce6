//! The head of a file that describes a subagent. No I/O.

use serde::Deserialize;

/// What the head of such a file says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Head {
    /// The subagent's name.
    pub(crate) name: Option<String>,
    /// The tools that it may use; none if it may use all.
    pub(crate) tools: Option<Vec<String>>,
    /// Why it was not read as YAML: then name and tools are what their lines say.
    pub(crate) odd: Option<String>,
}

#[derive(Deserialize)]
struct Written {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    tools: Option<Tools>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Tools {
    Line(String),
    List(Vec<String>),
}

/// Reads the head: between two lines of `---` at the beginning. None if there is no such head.
pub(crate) fn read(text: &str) -> Option<Head> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = text.lines();
    if lines.next()?.trim_end() != "---" {
        return None;
    }
    let head: Vec<&str> = lines.by_ref().take_while(|line| line.trim_end() != "---").collect();
    match serde_saphyr::from_str::<Written>(&(head.join("\n") + "\n")) {
        Ok(written) => Some(Head {
            name: written.name.filter(|name| !name.trim().is_empty()),
            tools: written.tools.and_then(|tools| match tools {
                Tools::Line(line) => listed(&line),
                Tools::List(list) => Some(list),
            }),
            odd: None,
        }),
        // Descriptions with a colon in them are common, and Claude Code takes them.
        Err(error) => {
            let value = |key: &str| {
                let line = head.iter().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
                line.map(|value| value.trim().trim_matches(['"', '\'']).to_owned())
                    .filter(|value| !value.is_empty())
            };
            let why = error.to_string().lines().next().unwrap_or_default().to_owned();
            Some(Head {
                name: value("name"),
                tools: value("tools").and_then(|line| listed(&line)),
                odd: Some(why),
            })
        }
    }
}

/// Tools as they are written on a line: with commas between them. A star, or nothing, is all of
/// them.
fn listed(line: &str) -> Option<Vec<String>> {
    let tools: Vec<String> = line
        .trim_matches(['[', ']'])
        .split(',')
        .map(|tool| tool.trim().trim_matches(['"', '\'']).to_owned())
        .filter(|tool| !tool.is_empty())
        .collect();
    (!tools.is_empty() && tools != ["*"]).then_some(tools)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_as_people_write_them() {
        let tools =
            |head: &Head| head.tools.as_ref().map(|tools| tools.join("+")).unwrap_or_default();
        for (text, name, listed, odd) in [
            ("---\nname: qa\ntools: Read, Grep\n---\nYou check.", Some("qa"), "Read+Grep", false),
            ("---\r\nname: qa\r\ntools: [Read, Grep]\r\n---\r\n", Some("qa"), "Read+Grep", false),
            ("---\nname: qa\ntools:\n  - Read\n---\n", Some("qa"), "Read", false),
            ("---\nname: qa\n---\n", Some("qa"), "", false),
            ("---\nname: qa\ntools: '*'\n---\n", Some("qa"), "", false),
            (
                "---\nname: qa\ndescription: Use this when: always\ntools: Read\n---\n",
                Some("qa"),
                "Read",
                true,
            ),
            ("---\nname: qa", Some("qa"), "", false),
            ("---\n- a\n- b\n---\n", None, "", true),
            ("---\nname: ''\n---\n", None, "", false),
            ("---\n---\n", None, "", false),
        ] {
            let head = read(text).unwrap();
            assert_eq!(head.name.as_deref(), name, "{text}");
            assert_eq!(tools(&head), listed, "{text}");
            assert_eq!(head.odd.is_some(), odd, "{text}: {head:?}");
        }
        assert_eq!(read("You check."), None);
        assert_eq!(read(""), None);
    }
}
