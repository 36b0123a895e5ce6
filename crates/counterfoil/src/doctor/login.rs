//! Detects the credentials of an agent program by environment variables and files. Of a file with
//! credentials, only whether it has some is looked at, and no program or server is contacted.

use crate::user_file;
use serde_json::Value;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The detected login of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Login {
    /// The variable or file that provides the credentials, if one was found.
    pub(crate) source: Option<String>,
    /// Why something that looks like a login is none.
    pub(crate) insufficient: Option<String>,
    /// How to log in.
    pub(crate) instructions: &'static str,
}

/// Where a program's credentials may be.
struct Places<'e> {
    env: &'e dyn Fn(&str) -> Option<OsString>,
    home: Option<PathBuf>,
}

/// Detects the login of a program. `named` are further variables that the configuration of the
/// program names.
pub(crate) fn detect(
    program: &str,
    env: &dyn Fn(&str) -> Option<OsString>,
    named: &[String],
) -> Login {
    let places = Places { env, home: env("HOME").map(PathBuf::from) };
    if let Some(name) = named.iter().find(|name| places.is_set(name)) {
        return Login { source: Some(name.clone()), ..Login::default() };
    }
    match program {
        "claude" => places.claude(),
        "codex" => places.codex(),
        "gemini" => places.gemini(),
        _ => Login { instructions: "log in to the program", ..Login::default() },
    }
}

impl Places<'_> {
    fn is_set(&self, name: &str) -> bool {
        (self.env)(name).is_some_and(|value| !value.is_empty())
    }

    /// The first of these variables that is set.
    fn variable(&self, names: &[&str]) -> Option<String> {
        names.iter().find(|name| self.is_set(name)).map(|name| (*name).to_owned())
    }

    /// A file that exists, as it is shown.
    fn file(&self, path: &Path) -> Option<String> {
        path.is_file().then(|| display_path(path, self.home.as_deref()))
    }

    fn claude(&self) -> Login {
        let variables = [
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_AUTH_TOKEN",
            "CLAUDE_CODE_OAUTH_TOKEN",
            "CLAUDE_CODE_USE_BEDROCK",
            "CLAUDE_CODE_USE_VERTEX",
            "CLAUDE_CODE_USE_FOUNDRY",
        ];
        let in_folder = || {
            let folder = user_file::folder(self.env, "CLAUDE_CONFIG_DIR", ".claude")?;
            let helper = || {
                setting(&folder.join("settings.json"), "/apiKeyHelper")?;
                Some("apiKeyHelper in its settings".to_owned())
            };
            self.file(&folder.join(".credentials.json")).or_else(helper)
        };
        Login {
            source: self.variable(&variables).or_else(in_folder),
            insufficient: None,
            instructions: "run `claude auth login`, or set ANTHROPIC_API_KEY",
        }
    }

    /// Codex reads `OPENAI_API_KEY` only when somebody logs in with it: it sends no key unless
    /// `CODEX_API_KEY` is set or its file has credentials.
    fn codex(&self) -> Login {
        let stored =
            user_file::folder(self.env, "CODEX_HOME", ".codex").map(|it| it.join("auth.json"));
        let has_credentials = |path: &PathBuf| {
            let known = |(name, value): (&String, &Value)| {
                !["auth_mode", "last_refresh"].contains(&name.as_str()) && !value.is_null()
            };
            user_file::read_json(path).is_some_and(|read| {
                read.is_ok_and(|file| file.as_object().is_some_and(|file| file.iter().any(known)))
            })
        };
        let source = self.variable(&["CODEX_API_KEY"]).or_else(|| {
            stored.as_ref().filter(|path| has_credentials(path)).and_then(|path| self.file(path))
        });
        let empty = || {
            let file = self.file(stored.as_ref()?)?;
            Some(format!("{file} has no credentials"))
        };
        let key = || {
            self.is_set("OPENAI_API_KEY").then(|| {
                "OPENAI_API_KEY is set, but that alone does not log it in: it reads the key only at \
                 `codex login`"
                    .to_owned()
            })
        };
        let insufficient = if source.is_none() { key().or_else(empty) } else { None };
        let instructions = if insufficient.is_some() && self.is_set("OPENAI_API_KEY") {
            "run `printenv OPENAI_API_KEY | codex login --with-api-key`, or set CODEX_API_KEY"
        } else {
            "run `codex login`, or set CODEX_API_KEY"
        };
        Login { source, insufficient, instructions }
    }

    /// Gemini CLI needs a method and what that method takes. We select the method of an API key if
    /// nothing else selects one.
    fn gemini(&self) -> Login {
        let folder = user_file::gemini_folder(self.env);
        let selected = folder
            .as_ref()
            .and_then(|folder| {
                setting(&folder.join("settings.json"), "/security/auth/selectedType")
            })
            .and_then(|method| method.as_str().map(str::to_owned));
        let is_true = |name: &str| (self.env)(name).is_some_and(|value| value == "true");
        let others = ["GOOGLE_GENAI_USE_GCA", "GOOGLE_GENAI_USE_VERTEXAI"];
        let by_variables = || match others.map(is_true) {
            [true, _] => Some("oauth-personal"),
            [_, true] => Some("vertex-ai"),
            _ if others.iter().any(|name| self.is_set(name)) => None,
            _ => self.is_set("GEMINI_API_KEY").then_some("gemini-api-key"),
        };
        let method = selected.clone().or_else(|| by_variables().map(str::to_owned));
        let stored = || self.file(&folder.as_ref()?.join("oauth_creds.json"));
        let project = || {
            let both = ["GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION"];
            both.iter().all(|name| self.is_set(name)).then(|| both.join(" and "))
        };
        let (source, needs) = match method.as_deref() {
            Some("gemini-api-key") => (self.variable(&["GEMINI_API_KEY"]), "GEMINI_API_KEY"),
            Some("vertex-ai") => (
                self.variable(&["GOOGLE_API_KEY"]).or_else(project),
                "GOOGLE_API_KEY, or GOOGLE_CLOUD_PROJECT and GOOGLE_CLOUD_LOCATION",
            ),
            Some("oauth-personal") => (stored(), "a login in a browser"),
            Some(other) => (Some(format!("method {other}")), ""),
            None => (None, ""),
        };
        let insufficient = match (&source, &method) {
            (Some(_), _) => None,
            (None, Some(method)) => {
                Some(format!("its login method is {method}, which needs {needs}"))
            }
            (None, None) => {
                let half = ["GOOGLE_API_KEY", "GEMINI_API_KEY"].into_iter().chain(others);
                let half = half.into_iter().find(|name| self.is_set(name));
                let stored = stored().filter(|_| half.is_none());
                half.map(str::to_owned)
                    .or(stored)
                    .map(|half| format!("{half} is there, but no login method is selected by it"))
            }
        };
        Login {
            source,
            insufficient,
            instructions: "run `gemini` and choose a login method, or set GEMINI_API_KEY",
        }
    }
}

/// The value at a JSON pointer of a settings file.
fn setting(path: &Path, pointer: &str) -> Option<Value> {
    let value = user_file::read_json(path)?.ok()?;
    value.pointer(pointer).filter(|value| !value.is_null()).cloned()
}

/// A path with the home folder shortened to `~`.
pub(super) fn display_path(path: &Path, home: Option<&Path>) -> String {
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
            let text = "{\"OPENAI_API_KEY\": \"secret\"}";
            std::fs::write(&path, text).unwrap();
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
    /// The source of the login, or why there is none, by variables and files of the home.
    fn login(program: &str, variables: &[(&str, &str)], files: &[(&str, &str)]) -> String {
        let home = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = home.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let env = |name: &str| match name {
            "HOME" => Some(home.path().into()),
            name => {
                let found = variables.iter().find(|(key, _)| *key == name);
                found.map(|(_, value)| OsString::from(value))
            }
        };
        let Login { source, insufficient, instructions } = detect(program, &env, &[]);
        assert!(!instructions.is_empty());
        source.or(insufficient.map(|why| format!("no: {why}"))).unwrap_or_default()
    }

    /// As measured with Codex 0.166.0: which of these make it send a key.
    #[test]
    fn codex_is_logged_in_by_its_own_key_or_its_file() {
        let auth = |text| [(".codex/auth.json", text)];
        let codex =
            |variables: &[(&str, &str)], files: &[(&str, &str)]| login("codex", variables, files);
        assert_eq!(codex(&[("CODEX_API_KEY", "k")], &[]), "CODEX_API_KEY");
        let alone = codex(&[("OPENAI_API_KEY", "k")], &[]);
        assert!(alone.starts_with("no: OPENAI_API_KEY is set, but that alone"), "{alone}");
        for text in [
            "{\"auth_mode\": \"apikey\", \"OPENAI_API_KEY\": \"k\"}",
            "{\"OPENAI_API_KEY\": null, \"tokens\": {\"id_token\": \"x\"}, \"last_refresh\": \"2026\"}",
        ] {
            assert_eq!(codex(&[], &auth(text)), "~/.codex/auth.json", "{text}");
            assert_eq!(codex(&[("OPENAI_API_KEY", "k")], &auth(text)), "~/.codex/auth.json");
        }
        for text in
            ["{}", "{\"OPENAI_API_KEY\": null}", "{\"auth_mode\": \"apikey\"}", "garbage", "[]"]
        {
            assert_eq!(
                codex(&[], &auth(text)),
                "no: ~/.codex/auth.json has no credentials",
                "{text}"
            );
        }
    }

    /// As measured with Gemini CLI 0.61.0.
    #[test]
    fn gemini_needs_a_method_and_what_the_method_takes() {
        let key = ("GEMINI_API_KEY", "k");
        let google = ("GOOGLE_API_KEY", "k");
        let vertex = ("GOOGLE_GENAI_USE_VERTEXAI", "true");
        let project = [vertex, ("GOOGLE_CLOUD_PROJECT", "p"), ("GOOGLE_CLOUD_LOCATION", "l")];
        let creds = (".gemini/oauth_creds.json", "{}");
        let selected = |method| {
            let text = match method {
                "gemini-api-key" => {
                    "{// mine\n\"security\": {\"auth\": {\"selectedType\": \"gemini-api-key\"}}}"
                }
                _ => "{\"security\": {\"auth\": {\"selectedType\": \"oauth-personal\"}}}",
            };
            (".gemini/settings.json", text)
        };
        for (variables, files, expected) in [
            (&[key][..], &[][..], "GEMINI_API_KEY"),
            (&[google], &[], "no: GOOGLE_API_KEY is there, but no login method is selected by it"),
            (&[vertex, google], &[], "GOOGLE_API_KEY"),
            (&project, &[], "GOOGLE_CLOUD_PROJECT and GOOGLE_CLOUD_LOCATION"),
            (&[vertex], &[], "no: its login method is vertex-ai, which needs GOOGLE_API_KEY, or"),
            (
                &[key, ("GOOGLE_GENAI_USE_VERTEXAI", "false")],
                &[],
                "no: GEMINI_API_KEY is there, but",
            ),
            (
                &[],
                &[selected("gemini-api-key")],
                "no: its login method is gemini-api-key, which needs GEMINI_API_KEY",
            ),
            (
                &[key],
                &[selected("oauth-personal")],
                "no: its login method is oauth-personal, which needs a login in a browser",
            ),
            (&[key], &[selected("oauth-personal"), creds], "~/.gemini/oauth_creds.json"),
            (&[], &[creds], "no: ~/.gemini/oauth_creds.json is there, but no login method"),
            (&[("GOOGLE_GENAI_USE_GCA", "true")], &[creds], "~/.gemini/oauth_creds.json"),
            (&[], &[], ""),
        ] {
            let found = login("gemini", variables, files);
            assert!(found.starts_with(expected), "{variables:?} {files:?}: {found}");
            assert_eq!(found.is_empty(), expected.is_empty(), "{found}");
        }
    }
}
