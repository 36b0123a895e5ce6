//! The YAML front matter of a file that defines a Claude Code subagent. No I/O.

use counterfoil_contract::load::yaml_error;
use serde::Deserialize;

/// The fields of the front matter that matter here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Frontmatter {
    /// The name of the subagent.
    pub(crate) name: Option<String>,
    /// When to use it, as a text of any length.
    pub(crate) description: Option<String>,
    /// The tools that the subagent may use, or none if it may use all.
    pub(crate) tools: Option<Vec<String>>,
    /// The error if the front matter is not valid YAML. Name and tools are then read line by line.
    pub(crate) yaml_error: Option<String>,
}

#[derive(Deserialize)]
struct RawFrontmatter {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    tools: Option<Tools>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Tools {
    Line(String),
    List(Vec<String>),
}

/// Parses the front matter: the lines between two lines of `---` at the beginning of the text.
/// Returns none if the text has no front matter.
pub(crate) fn parse(text: &str) -> Option<Frontmatter> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = text.lines();
    if lines.next()?.trim_end() != "---" {
        return None;
    }
    let header: Vec<&str> = lines.by_ref().take_while(|line| line.trim_end() != "---").collect();
    match serde_saphyr::from_str::<RawFrontmatter>(&(header.join("\n") + "\n")) {
        Ok(raw) => Some(Frontmatter {
            name: raw.name.filter(|name| !name.trim().is_empty()),
            description: raw.description.filter(|text| !text.trim().is_empty()),
            tools: raw.tools.and_then(|tools| match tools {
                Tools::Line(line) => parse_tools(&line),
                Tools::List(list) => Some(list),
            }),
            yaml_error: None,
        }),
        // Descriptions with an unquoted colon are common, and Claude Code accepts them.
        Err(error) => {
            let value = |key: &str| {
                let line = header.iter().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
                line.map(|value| value.trim().trim_matches(['"', '\'']).to_owned())
                    .filter(|value| !value.is_empty())
            };
            let message = yaml_error(&error).lines().next().unwrap_or_default().to_owned();
            Some(Frontmatter {
                name: value("name"),
                description: value("description"),
                tools: value("tools").and_then(|line| parse_tools(&line)),
                yaml_error: Some(message),
            })
        }
    }
}

/// Parses a comma-separated list of tools. An empty list and `*` mean all tools.
fn parse_tools(line: &str) -> Option<Vec<String>> {
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
    fn common_forms_of_front_matter_are_read() {
        let tools = |found: &Frontmatter| {
            found.tools.as_ref().map(|tools| tools.join("+")).unwrap_or_default()
        };
        for (text, name, tool_names, has_yaml_error) in [
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
            let found = parse(text).unwrap();
            assert_eq!(found.name.as_deref(), name, "{text}");
            assert_eq!(tools(&found), tool_names, "{text}");
            assert_eq!(found.yaml_error.is_some(), has_yaml_error, "{text}: {found:?}");
        }
        assert_eq!(parse("You check."), None);
        assert_eq!(parse(""), None);
    }
}
