//! A subagent's Markdown file: front matter, and the instructions.

use crate::init::frontmatter;
use serde_json::Value;
use std::collections::BTreeSet;

/// What a subagent's file says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AgentFile {
    /// What it is for, in one line.
    pub(crate) description: Option<String>,
    /// Whether its tools let it change nothing.
    pub(crate) is_read_only: bool,
    /// Its instructions.
    pub(crate) instructions: String,
    /// The last JSON object in a fenced block of its instructions: probably what it returns.
    pub(crate) example: Option<Value>,
    /// Why the last block labelled JSON is no example, if none of them is.
    pub(crate) unread_example: Option<String>,
    /// The fields of other JSON objects in its instructions that the example does not have.
    pub(crate) other_fields: Vec<String>,
}

/// The tools with which an agent can change files.
const WRITING_TOOLS: [&str; 5] = ["Write", "Edit", "MultiEdit", "NotebookEdit", "Bash"];

/// Reads a subagent's file. A text without front matter is all instructions.
pub(crate) fn parse(text: &str) -> AgentFile {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let found = frontmatter::parse(text);
    let instructions = if found.is_some() { after_front_matter(text) } else { text };
    let found = found.unwrap_or_default();
    let is_read_only = found.tools.is_some_and(|tools| {
        // `Bash(git log:*)` is a form of `Bash`.
        let name = |tool: &String| tool.split('(').next().unwrap_or_default().trim().to_owned();
        !tools.iter().map(name).any(|tool| WRITING_TOOLS.contains(&tool.as_str()))
    });
    let mut objects = json_objects(instructions);
    let (example, unread_example) = match objects.pop() {
        Some(Ok(example)) => (Some(example), None),
        Some(Err(why)) => (None, Some(why)),
        None => (None, None),
    };
    let other_fields = match &example {
        Some(example) => {
            let others = objects.iter().flatten().filter_map(Value::as_object);
            let fields = others.flat_map(|object| object.keys());
            let fields: BTreeSet<&String> =
                fields.filter(|field| example.get(field.as_str()).is_none()).collect();
            fields.into_iter().cloned().collect()
        }
        None => Vec::new(),
    };
    AgentFile {
        description: found.description,
        is_read_only,
        instructions: instructions.trim().to_owned(),
        example,
        unread_example,
        other_fields,
    }
}

fn after_front_matter(text: &str) -> &str {
    let mut at = 0;
    let mut marks = 0;
    for line in text.split_inclusive('\n') {
        at += line.len();
        marks += usize::from(line.trim_end() == "---");
        if marks == 2 {
            return &text[at..];
        }
    }
    ""
}

/// The objects in fenced blocks labelled `json`. If there are blocks and none holds one, it is why the
/// last block does not.
fn json_objects(text: &str) -> Vec<Result<Value, String>> {
    let mut objects = Vec::new();
    let mut problem = None;
    let mut block: Option<String> = None;
    for line in text.lines() {
        let mark = line.trim();
        match &mut block {
            Some(lines) if mark.starts_with("```") => {
                match serde_json::from_str::<Value>(lines) {
                    Ok(value) if value.is_object() => objects.push(Ok(value)),
                    Ok(_) => problem = Some("it is no object".to_owned()),
                    Err(error) => problem = Some(error.to_string()),
                }
                block = None;
            }
            Some(lines) => {
                lines.push_str(line);
                lines.push('\n');
            }
            None if mark.eq_ignore_ascii_case("```json") => block = Some(String::new()),
            None => {}
        }
    }
    if objects.is_empty() {
        objects.extend(problem.map(Err));
    }
    objects
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn description_access_instructions_and_example_are_read() {
        let text = "---\nname: reviewer\ndescription: Reviews code\ntools: Read, Grep\n---\nYou review.\n\n```json\n{\"ok\": true}\n```\n\nNot this:\n```json\n[1]\n```\n```json\nbroken\n```\n";
        let found = parse(text);
        assert_eq!(found.description.as_deref(), Some("Reviews code"));
        assert!(found.is_read_only);
        assert!(found.instructions.starts_with("You review."), "{found:?}");
        assert_eq!(found.example, Some(json!({"ok": true})));
        for (text, is_read_only) in [
            ("---\nname: a\n---\nx", false),
            ("---\nname: a\ntools: Read, Bash(git log:*)\n---\nx", false),
            ("just words", false),
        ] {
            let found = parse(text);
            assert_eq!((found.is_read_only, found.example), (is_read_only, None), "{text}");
        }
        assert_eq!(parse("---\nname: a").instructions, "");
        let two = "On success:\n```json\n{\"ok\": true, \"files\": []}\n```\nElse:\n```json\n{\"ok\": false, \"error\": \"\"}\n```\n";
        let found = parse(two);
        assert_eq!(found.example, Some(json!({"ok": false, "error": ""})));
        assert_eq!(found.other_fields, ["files"]);
        for (text, why) in
            [("```json\n{\"a\": ...}\n```", "expected value"), ("```json\n[]\n```", "no object")]
        {
            let found = parse(text);
            assert_eq!(found.example, None);
            assert!(found.unread_example.unwrap().contains(why), "{text}");
        }
    }
}
