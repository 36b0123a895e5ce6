//! The variables that Codex's own files name: the keys of providers and servers. The only place
//! here that reads anything.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// A longer file is not read.
const LONGEST: u64 = 1 << 20;
/// More files are not looked for.
const MOST_FILES: usize = 64;
/// More names are not handed on.
const MOST_NAMES: usize = 64;

/// Where its files are.
pub(super) fn folder(ours: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let set = |name| ours(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("CODEX_HOME").or_else(|| set("HOME").map(|home| home.join(".codex")))
}

/// What its file, and those of its profiles, name. Files that cannot be read name nothing: Codex
/// itself says what is wrong with them. Those of a project are not asked: a repository does not
/// choose which of our variables an agent sees.
pub(super) fn named_variables(folder: &Path) -> Vec<String> {
    let mut names = BTreeSet::new();
    for file in files(folder) {
        if let Some(settings) = read(&file) {
            named(&settings, &mut names);
        }
    }
    names.into_iter().take(MOST_NAMES).collect()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().take(10_000).flatten();
    let mut profiles: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.to_str().is_some_and(|path| path.ends_with(".config.toml")))
        .collect();
    profiles.sort();
    std::iter::once(folder.join("config.toml")).chain(profiles).take(MOST_FILES).collect()
}

fn read(file: &Path) -> Option<Table> {
    // A pipe would be waited for.
    if !std::fs::metadata(file).ok()?.is_file() {
        return None;
    }
    let mut text = String::new();
    File::open(file).ok()?.take(LONGEST + 1).read_to_string(&mut text).ok()?;
    if text.len() as u64 > LONGEST {
        return None;
    }
    text.parse().ok()
}

/// Adds the names that stand in a file's settings.
fn named(settings: &Table, names: &mut BTreeSet<String>) {
    let each = |list: &str| settings.get(list).and_then(Value::as_table).into_iter().flatten();
    for (_, one) in each("model_providers").chain(each("mcp_servers")) {
        for key in ["env_key", "bearer_token_env_var"] {
            names.extend(one.get(key).and_then(name));
        }
        let headers = one.get("env_http_headers").and_then(Value::as_table).into_iter().flatten();
        names.extend(headers.filter_map(|(_, value)| name(value)));
        let handed_on = one.get("env_vars").and_then(Value::as_array).into_iter().flatten();
        names.extend(
            handed_on.filter_map(|entry| name(entry).or_else(|| entry.get("name").and_then(name))),
        );
    }
}

/// A value that can be the name of a variable.
fn name(value: &Value) -> Option<String> {
    let name = value.as_str().filter(|name| !name.is_empty() && name.len() <= 256)?;
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    name.bytes().all(fits).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(files: &[(&str, &[u8])]) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        named_variables(folder.path())
    }

    #[test]
    fn the_variables_of_providers_and_servers_are_named() {
        let config = br#"
            model_provider = "gateway"
            [model_providers.gateway]
            env_key = "GATEWAY_KEY"
            env_http_headers = { X-Team = "GATEWAY_TEAM", X-Odd = 7 }
            [mcp_servers.issues]
            url = "https://issues.example"
            bearer_token_env_var = "ISSUES_TOKEN"
            [mcp_servers.local]
            command = "x"
            env = { SET = "here" }
            env_vars = ["LOCAL_ONE", { name = "LOCAL_TWO", source = "local" }, 3]
        "#;
        let profile = b"[model_providers.other]\nenv_key = \"OTHER_KEY\"";
        assert_eq!(
            names(&[
                ("config.toml", config),
                ("work.config.toml", profile),
                ("notes.toml", b"x = [")
            ]),
            ["GATEWAY_KEY", "GATEWAY_TEAM", "ISSUES_TOKEN", "LOCAL_ONE", "LOCAL_TWO", "OTHER_KEY"]
        );
    }

    #[test]
    fn files_that_cannot_be_read_name_nothing() {
        assert!(named_variables(Path::new("/nonexistent/.codex")).is_empty());
        let spoilt: [&[u8]; 5] = [
            b"model_providers = 7",
            b"[model_providers.x]\nenv_key = [1]",
            b"[model_providers.x]\nenv_key = \"A B=C*\"",
            b"\xff\xfe",
            b"[model_providers.x",
        ];
        for text in spoilt {
            assert!(names(&[("config.toml", text)]).is_empty());
        }
        let long = [b"[model_providers.x]\nenv_key = \"KEY\"\n#".as_slice(), &vec![b'x'; 2 << 20]]
            .concat();
        assert!(names(&[("config.toml", &long)]).is_empty());
    }

    #[test]
    fn the_folder_is_the_one_that_codex_takes() {
        let ours = |name: &str| match name {
            "HOME" => Some(OsString::from("/home/x")),
            _ => Some(OsString::new()),
        };
        assert_eq!(folder(&ours), Some(PathBuf::from("/home/x/.codex")));
        let ours = |name: &str| Some(OsString::from(if name == "HOME" { "/home/x" } else { "/c" }));
        assert_eq!(folder(&ours), Some(PathBuf::from("/c")));
        assert_eq!(folder(&|_| None), None);
    }
}
