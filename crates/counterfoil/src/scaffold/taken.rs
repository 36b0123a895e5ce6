//! What a scaffold has of a subagent's file, in words.

use super::agent_file::AgentFile;
use super::files::summary_of;

/// What was made of the JSON block of a subagent's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockUse {
    /// Nothing.
    None,
    /// The fields of the contract.
    Fields,
    /// The fields of the contract, and its example.
    Example,
}

/// What was made of a subagent's file. `prompt` is the file with its instructions.
pub(crate) fn taken_from(agent: &AgentFile, prompt: &str, block: BlockUse) -> String {
    let mut taken = vec![format!("its instructions, word for word ({prompt})")];
    if let Some(summary) = summary_of(agent) {
        let description = agent.description.as_deref().unwrap_or_default().trim();
        let what = if summary == description { "its" } else { "the beginning of its" };
        taken.push(format!("{what} description as the summary"));
    }
    match block {
        BlockUse::None => {}
        BlockUse::Fields => taken.push("the fields of its last JSON block".to_owned()),
        BlockUse::Example => {
            taken.push("its last JSON block as the example of a result".to_owned());
        }
    }
    if agent.is_read_only {
        taken.push("`access: read-only`, because its tools change no files".to_owned());
    }
    let left = match agent.other_settings.as_slice() {
        [] => String::new(),
        settings => format!("; not taken: {}", settings.join(", ")),
    };
    format!("{}{left}", taken.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scaffold::parse_agent_file;

    #[test]
    fn what_is_inferred_and_what_is_left_is_said() {
        let agent = parse_agent_file(
            "---\nname: a\ndescription: |\n  Reviews.\n  Use it often.\ntools: Read\nmodel: opus\n---\nYou review.\n",
        );
        assert_eq!(
            taken_from(&agent, "prompts/a.md", BlockUse::None),
            "its instructions, word for word (prompts/a.md); the beginning of its description as the summary; \
             `access: read-only`, because its tools change no files; not taken: model"
        );
        let agent = parse_agent_file("---\ntools: Read, Bash\nmodel: opus\n---\nYou review.\n");
        assert_eq!(
            taken_from(&agent, "prompts/a.md", BlockUse::None),
            "its instructions, word for word (prompts/a.md); not taken: tools, model"
        );
        let agent = parse_agent_file("---\ndescription: Reviews.\n---\nYou review.\n");
        assert_eq!(
            taken_from(&agent, "prompts/a.md", BlockUse::Example),
            "its instructions, word for word (prompts/a.md); its description as the summary; \
             its last JSON block as the example of a result"
        );
    }
}
