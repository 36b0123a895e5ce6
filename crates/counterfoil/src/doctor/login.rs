//! By what a program is logged in, as far as that can be seen without asking it: variables and
//! files that are there. What is in them is not looked at, and nobody is called.

use serde_json::Value;
use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Longer settings are not read.
const LONGEST: u64 = 1 << 20;

/// What was seen of a login.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Login {
    /// By what, in words.
    pub(crate) by: Option<String>,
    /// How to log in.
    pub(crate) way: &'static str,
}

/// Looks at what tells of a login. `named` are further variables that the program's own files name.
pub(crate) fn seen(
    program: &str,
    ours: &dyn Fn(&str) -> Option<OsString>,
    named: &[String],
) -> Login {
    let home = ours("HOME").map(PathBuf::from);
    let folder = |variable: &str, usual: &str| {
        ours(variable).map(PathBuf::from).or_else(|| home.as_ref().map(|home| home.join(usual)))
    };
    let set = |name: &&str| ours(name).is_some_and(|value| !value.is_empty());
    let (variables, folder, file, way): (&[&str], _, _, _) = match program {
        "claude" => (
            &[
                "ANTHROPIC_API_KEY",
                "ANTHROPIC_AUTH_TOKEN",
                "CLAUDE_CODE_OAUTH_TOKEN",
                "CLAUDE_CODE_USE_BEDROCK",
                "CLAUDE_CODE_USE_VERTEX",
                "CLAUDE_CODE_USE_FOUNDRY",
            ],
            folder("CLAUDE_CONFIG_DIR", ".claude"),
            ".credentials.json",
            "`claude auth login`, or set ANTHROPIC_API_KEY",
        ),
        "codex" => (
            &["CODEX_API_KEY", "OPENAI_API_KEY"],
            folder("CODEX_HOME", ".codex"),
            "auth.json",
            "`codex login`, or set CODEX_API_KEY",
        ),
        "gemini" => (
            &[
                "GEMINI_API_KEY",
                "GOOGLE_API_KEY",
                "GOOGLE_GENAI_USE_VERTEXAI",
                "GOOGLE_GENAI_USE_GCA",
            ],
            folder("GEMINI_CLI_HOME", ".gemini").map(|folder| {
                if ours("GEMINI_CLI_HOME").is_some() { folder.join(".gemini") } else { folder }
            }),
            "oauth_creds.json",
            "`gemini` and choose how to log in, or set GEMINI_API_KEY",
        ),
        _ => (&[], None, "", "its own way"),
    };
    let variable =
        named.iter().map(String::as_str).chain(variables.iter().copied()).find(|name| set(name));
    let by = variable.map(str::to_owned).or_else(|| {
        let folder = folder?;
        let path = folder.join(file);
        let settings = folder.join("settings.json");
        // A login that was never chosen is not used.
        let chosen = program != "gemini" || has(&settings, "/security/auth/selectedType");
        if path.is_file() && chosen {
            Some(shortened(&path, home.as_deref()))
        } else if program == "claude" && has(&settings, "/apiKeyHelper") {
            Some("apiKeyHelper in its settings".to_owned())
        } else {
            None
        }
    });
    Login { by, way }
}

/// Whether a file of settings has something at a pointer.
fn has(path: &Path, pointer: &str) -> bool {
    let mut bytes = Vec::new();
    let read = path.is_file()
        && std::fs::File::open(path)
            .and_then(|file| file.take(LONGEST).read_to_end(&mut bytes))
            .is_ok();
    read && serde_json::from_slice::<Value>(&bytes)
        .is_ok_and(|value| value.pointer(pointer).is_some())
}

fn shortened(path: &Path, home: Option<&Path>) -> String {
    match home.and_then(|home| path.strip_prefix(home).ok()) {
        Some(rest) => format!("~/{}", rest.display()),
        None => path.display().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_is_seen_by_variables_and_files() {
        let home = tempfile::tempdir().unwrap();
        let seen_with = |program: &str, variables: &[(&str, &str)], named: &[&str]| {
            let ours = |name: &str| match name {
                "HOME" => Some(home.path().into()),
                name => variables
                    .iter()
                    .find(|(key, _)| *key == name)
                    .map(|(_, value)| OsString::from(value)),
            };
            let named: Vec<String> = named.iter().map(|name| (*name).to_owned()).collect();
            seen(program, &ours, &named).by
        };
        let none: &[(&str, &str)] = &[];
        for program in ["claude", "codex", "gemini", "other"] {
            assert_eq!(seen_with(program, none, &[]), None, "{program}");
        }
        assert_eq!(
            seen_with("claude", &[("ANTHROPIC_API_KEY", "")], &[]),
            None,
            "an empty key is none"
        );
        assert_eq!(
            seen_with("claude", &[("ANTHROPIC_API_KEY", "x")], &[]).as_deref(),
            Some("ANTHROPIC_API_KEY")
        );
        assert_eq!(
            seen_with("codex", &[("AZURE_KEY", "x")], &["AZURE_KEY"]).as_deref(),
            Some("AZURE_KEY")
        );
        for (program, file) in [
            ("claude", ".claude/.credentials.json"),
            ("codex", ".codex/auth.json"),
            ("gemini", ".gemini/oauth_creds.json"),
        ] {
            let path = home.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, "secret").unwrap();
            if program == "gemini" {
                assert_eq!(seen_with(program, none, &[]), None, "it was not chosen");
                let chosen = "{\"security\": {\"auth\": {\"selectedType\": \"oauth-personal\"}}}";
                std::fs::write(path.with_file_name("settings.json"), chosen).unwrap();
            }
            assert_eq!(
                seen_with(program, none, &[]).as_deref(),
                Some(&*format!("~/{file}")),
                "{program}"
            );
        }
        let elsewhere = home.path().join("elsewhere").display().to_string();
        assert_eq!(seen_with("codex", &[("CODEX_HOME", &elsewhere)], &[]), None);
    }
}
