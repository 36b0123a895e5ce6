//! Reads what Codex and Gemini CLI trust of a project, from the user's own files. It decides
//! nothing.

use crate::user_file;
use serde_json::Value;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// What the programs trust of a project.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Trust {
    /// The project, as the programs name it.
    pub(crate) root: PathBuf,
    /// Whether Codex reads the project's settings.
    pub(crate) codex: FolderTrust,
    /// Whether Gemini CLI reads the project's settings.
    pub(crate) gemini: FolderTrust,
}

/// Whether a program trusts a folder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum FolderTrust {
    /// It trusts the folder.
    Trusted,
    /// It was told not to.
    Untrusted,
    /// It was not told, and asks.
    #[default]
    Unknown,
}

/// Reads what the programs trust.
pub(super) fn read(root: &Path, env: &dyn Fn(&str) -> Option<OsString>) -> Trust {
    let root = std::fs::canonicalize(root).unwrap_or_else(|_| root.to_owned());
    let codex = user_file::folder(env, "CODEX_HOME", ".codex")
        .and_then(|folder| user_file::read_toml(&folder.join("config.toml"))?.ok())
        .map(|settings| codex(&settings, &root));
    let gemini = user_file::gemini_folder(env).map(|folder| {
        let file = |name: &str| user_file::read_json(&folder.join(name))?.ok();
        gemini(
            &file("settings.json").unwrap_or_default(),
            file("trustedFolders.json").as_ref(),
            &root,
        )
    });
    Trust { codex: codex.unwrap_or_default(), gemini: gemini.unwrap_or_default(), root }
}

fn codex(settings: &Value, root: &Path) -> FolderTrust {
    let project = root.to_str().map(|root| &settings["projects"][root]["trust_level"]);
    match project.and_then(Value::as_str) {
        Some("trusted") => FolderTrust::Trusted,
        Some("untrusted") => FolderTrust::Untrusted,
        _ => FolderTrust::Unknown,
    }
}

/// The rule of the nearest folder counts. A rule for a parent is about the folder above its own.
fn gemini(settings: &Value, rules: Option<&Value>, root: &Path) -> FolderTrust {
    if settings["security"]["folderTrust"]["enabled"] == false {
        return FolderTrust::Trusted;
    }
    let rules = rules.and_then(Value::as_object).into_iter().flatten();
    let applicable = rules.filter_map(|(folder, rule)| {
        let folder = Path::new(folder);
        let (place, trust) = match rule.as_str()? {
            "TRUST_FOLDER" => (folder, FolderTrust::Trusted),
            "TRUST_PARENT" => (folder.parent()?, FolderTrust::Trusted),
            "DO_NOT_TRUST" => (folder, FolderTrust::Untrusted),
            _ => return None,
        };
        root.starts_with(place).then(|| (place.components().count(), trust))
    });
    applicable.max_by_key(|(depth, _)| *depth).map(|(_, trust)| trust).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use FolderTrust::{Trusted, Unknown, Untrusted};
    use serde_json::json;

    #[test]
    fn codex_trusts_projects_by_their_paths() {
        for (settings, expected) in [
            (json!({}), Unknown),
            (json!({"projects": {"/a/b": {"trust_level": "trusted"}}}), Trusted),
            (json!({"projects": {"/a/b": {"trust_level": "untrusted"}}}), Untrusted),
            (json!({"projects": {"/a": {"trust_level": "trusted"}}}), Unknown),
            (json!({"projects": 7}), Unknown),
        ] {
            assert_eq!(codex(&settings, Path::new("/a/b")), expected, "{settings}");
        }
    }

    #[test]
    fn gemini_trusts_folders_by_the_nearest_rule() {
        let off = json!({"security": {"folderTrust": {"enabled": false}}});
        assert_eq!(gemini(&off, None, Path::new("/a/b")), Trusted);
        for (rules, expected) in [
            (json!({}), Unknown),
            (json!([]), Unknown),
            (json!({"/a/b": "TRUST_FOLDER"}), Trusted),
            (json!({"/a": "TRUST_FOLDER"}), Trusted),
            (json!({"/a/c": "TRUST_PARENT"}), Trusted),
            (json!({"/a/c": "TRUST_FOLDER"}), Unknown),
            (json!({"/a": "TRUST_FOLDER", "/a/b": "DO_NOT_TRUST"}), Untrusted),
            (json!({"/a/bc": "TRUST_FOLDER", "/x": 7}), Unknown),
        ] {
            let found = gemini(&json!({}), Some(&rules), Path::new("/a/b"));
            assert_eq!(found, expected, "{rules}");
        }
    }
}
