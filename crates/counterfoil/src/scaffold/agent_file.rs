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
    /// The line of the file on which the block with the example begins; 0 if there is none.
    pub(crate) example_line: usize,
    /// The fields of other JSON objects in its instructions that the example does not have.
    pub(crate) other_fields: Vec<String>,
    /// The keys of its front matter that nothing is made of, such as its model.
    pub(crate) other_settings: Vec<String>,
}

/// The tools with which an agent can change files.
const WRITING_TOOLS: [&str; 5] = ["Write", "Edit", "MultiEdit", "NotebookEdit", "Bash"];

/// The keys of the front matter that are read. The name is that of the scaffold.
const READ_KEYS: [&str; 3] = ["name", "description", "tools"];

/// Reads a subagent's file. A text without front matter is all instructions.
pub(crate) fn parse(text: &str) -> AgentFile {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    // A document may begin with a line, too.
    let found = frontmatter::parse(text).filter(|found| {
        let has_key = found.name.is_some() || found.description.is_some() || found.tools.is_some();
        has_key || found.yaml_error.is_none()
    });
    let mut other_settings = if found.is_some() { other_settings(text) } else { Vec::new() };
    let instructions = if found.is_some() { after_front_matter(text) } else { text };
    let found = found.unwrap_or_default();
    let has_tools = found.tools.is_some();
    let is_read_only = found.tools.is_some_and(|tools| {
        // `Bash(git log:*)` is a form of `Bash`.
        let name = |tool: &String| tool.split('(').next().unwrap_or_default().trim().to_owned();
        !tools.iter().map(name).any(|tool| WRITING_TOOLS.contains(&tool.as_str()))
    });
    // That they can change files is the default.
    if has_tools && !is_read_only {
        other_settings.insert(0, "tools".to_owned());
    }
    let header = text.strip_suffix(instructions).unwrap_or_default();
    let mut objects = json_objects(instructions, header.lines().count());
    let (example, unread_example, example_line) = match objects.pop() {
        Some((line, Ok(example))) => (Some(example), None, line),
        Some((line, Err(why))) => (None, Some(why), line),
        None => (None, None, 0),
    };
    let other_fields = match &example {
        Some(example) => {
            let others = objects.iter().filter_map(|(_, object)| object.as_ref().ok()?.as_object());
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
        example_line,
        other_fields,
        other_settings,
    }
}

/// The keys of the front matter that are not read.
fn other_settings(text: &str) -> Vec<String> {
    let header = text.lines().skip(1).take_while(|line| line.trim_end() != "---");
    let keys = header.filter_map(|line| Some(line.split_once(':')?.0.trim_end()));
    let is_key = |key: &&str| {
        key.starts_with(|c: char| c.is_ascii_alphabetic())
            && !key.contains(char::is_whitespace)
            && !READ_KEYS.contains(key)
    };
    keys.filter(is_key).map(str::to_owned).collect()
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

/// The objects in fenced blocks labelled `json`, with the lines of the file on which the blocks begin.
/// If there are blocks and none holds one, it is why the last block does not. `before` are the lines
/// of the file before the text.
fn json_objects(text: &str, before: usize) -> Vec<(usize, Result<Value, String>)> {
    let mut objects = Vec::new();
    let mut problem = None;
    let mut block: Option<(usize, String)> = None;
    for (number, line) in text.lines().enumerate() {
        let mark = line.trim();
        match &mut block {
            Some((start, lines)) if mark.starts_with("```") => {
                match serde_json::from_str::<Value>(lines) {
                    Ok(value) if value.is_object() => objects.push((*start, Ok(value))),
                    Ok(_) => problem = Some((*start, "it is no object".to_owned())),
                    Err(error) => problem = Some((*start, json_problem(&error, *start))),
                }
                block = None;
            }
            Some((_, lines)) => {
                lines.push_str(line);
                lines.push('\n');
            }
            None if mark.eq_ignore_ascii_case("```json") => {
                block = Some((before + number + 1, String::new()));
            }
            None => {}
        }
    }
    if objects.is_empty() {
        objects.extend(problem.map(|(start, why)| (start, Err(why))));
    }
    objects
}

/// What is wrong with the JSON of a block that begins on a line of the file, with the place there.
fn json_problem(error: &serde_json::Error, start: usize) -> String {
    let text = error.to_string();
    let what = text.rsplit_once(" at line ").map_or(text.as_str(), |(what, _)| what);
    format!("{what} at line {} column {}", start + error.line(), error.column())
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
        let text =
            "---\nname: a\nmodel: opus\ndescription: |\n  One: two\n  three\ncolor: red\n---\nx";
        assert_eq!(parse(text).other_settings, ["model", "color"]);
        // Lines of a document are no front matter: they are instructions.
        for text in ["---\nYou work.\n---\nx", "---\n- a\n---\nx", "---\n\nYou work."] {
            assert_eq!(parse(text).instructions, text);
        }
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
        let text = "---\nname: a\n---\nAnswer:\n```json\n{\n  \"a\": BLANK\n}\n```\n";
        let found = parse(text);
        assert_eq!(found.example_line, 5);
        assert_eq!(found.unread_example.unwrap(), "expected value at line 7 column 8");
        assert_eq!(parse(&text.replace("BLANK", "1")).example_line, 5);
    }
}
