//! Detects the credentials of an agent program by environment variables and files. Credentials are
//! not read, and no program or server is contacted.

use serde_json::Value;
use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The most bytes that are read of a settings file.
const MAX_SETTINGS_BYTES: u64 = 1 << 20;

/// The detected login of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Login {
    /// The variable or file that provides the credentials, if one was found.
    pub(crate) source: Option<String>,
    /// How to log in.
    pub(crate) instructions: &'static str,
}

/// Detects the login of a program. `named` are further variables that the configuration of the
/// program names.
pub(crate) fn detect(
    program: &str,
    env: &dyn Fn(&str) -> Option<OsString>,
    named: &[String],
) -> Login {
    let home = env("HOME").map(PathBuf::from);
    let folder = |variable: &str, default: &str| {
        env(variable).map(PathBuf::from).or_else(|| home.as_ref().map(|home| home.join(default)))
    };
    let is_set = |name: &&str| env(name).is_some_and(|value| !value.is_empty());
    let (variables, folder, file, instructions): (&[&str], _, _, _) = match program {
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
            "run `claude auth login`, or set ANTHROPIC_API_KEY",
        ),
        "codex" => (
            &["CODEX_API_KEY", "OPENAI_API_KEY"],
            folder("CODEX_HOME", ".codex"),
            "auth.json",
            "run `codex login`, or set CODEX_API_KEY",
        ),
        "gemini" => (
            &[
                "GEMINI_API_KEY",
                "GOOGLE_API_KEY",
                "GOOGLE_GENAI_USE_VERTEXAI",
                "GOOGLE_GENAI_USE_GCA",
            ],
            folder("GEMINI_CLI_HOME", ".gemini").map(|folder| {
                if env("GEMINI_CLI_HOME").is_some() { folder.join(".gemini") } else { folder }
            }),
            "oauth_creds.json",
            "run `gemini` and choose a login method, or set GEMINI_API_KEY",
        ),
        _ => (&[], None, "", "log in to the program"),
    };
    let variable =
        named.iter().map(String::as_str).chain(variables.iter().copied()).find(|name| is_set(name));
    let source = variable.map(str::to_owned).or_else(|| {
        let folder = folder?;
        let path = folder.join(file);
        let settings = folder.join("settings.json");
        // Gemini ignores stored credentials until a login method is selected.
        let is_selected =
            program != "gemini" || has_setting(&settings, "/security/auth/selectedType");
        if path.is_file() && is_selected {
            Some(display_path(&path, home.as_deref()))
        } else if program == "claude" && has_setting(&settings, "/apiKeyHelper") {
            Some("apiKeyHelper in its settings".to_owned())
        } else {
            None
        }
    });
    Login { source, instructions }
}

/// Whether a JSON settings file has a value at a JSON pointer.
fn has_setting(path: &Path, pointer: &str) -> bool {
    let mut bytes = Vec::new();
    let read = path.is_file()
        && std::fs::File::open(path)
            .and_then(|file| file.take(MAX_SETTINGS_BYTES).read_to_end(&mut bytes))
            .is_ok();
    read && serde_json::from_slice::<Value>(&bytes)
        .is_ok_and(|value| value.pointer(pointer).is_some())
}

/// A path with the home folder shortened to `~`.
fn display_path(path: &Path, home: Option<&Path>) -> String {
    match home.and_then(|home| path.strip_prefix(home).ok()) {
        Some(rest) => format!("~/{}", rest.display()),
        None => path.display().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_is_detected_by_variables_and_files() {
        let home = tempfile::tempdir().unwrap();
        let detected = |program: &str, variables: &[(&str, &str)], named: &[&str]| {
            let env = |name: &str| match name {
                "HOME" => Some(home.path().into()),
                name => variables
                    .iter()
                    .find(|(key, _)| *key == name)
                    .map(|(_, value)| OsString::from(value)),
            };
            let named: Vec<String> = named.iter().map(|name| (*name).to_owned()).collect();
            detect(program, &env, &named).source
        };
        let none: &[(&str, &str)] = &[];
        for program in ["claude", "codex", "gemini", "other"] {
            assert_eq!(detected(program, none, &[]), None, "{program}");
        }
        assert_eq!(
            detected("claude", &[("ANTHROPIC_API_KEY", "")], &[]),
            None,
            "an empty key does not count"
        );
        assert_eq!(
            detected("claude", &[("ANTHROPIC_API_KEY", "x")], &[]).as_deref(),
            Some("ANTHROPIC_API_KEY")
        );
        assert_eq!(
            detected("codex", &[("AZURE_KEY", "x")], &["AZURE_KEY"]).as_deref(),
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
                assert_eq!(detected(program, none, &[]), None, "no login method is selected");
                let selected = "{\"security\": {\"auth\": {\"selectedType\": \"oauth-personal\"}}}";
                std::fs::write(path.with_file_name("settings.json"), selected).unwrap();
            }
            assert_eq!(
                detected(program, none, &[]).as_deref(),
                Some(&*format!("~/{file}")),
                "{program}"
            );
        }
        let elsewhere = home.path().join("elsewhere").display().to_string();
        assert_eq!(detected("codex", &[("CODEX_HOME", &elsewhere)], &[]), None);
    }
}
