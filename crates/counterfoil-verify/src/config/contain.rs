//! The key `contain` of `counterfoil.toml`: how checks, commands and agents without an adapter are
//! contained. Either the kind alone, or a table.

use super::CheckCommand;
use counterfoil_contract::suggest::did_you_mean;
use counterfoil_process::contain::{Kind, Settings};
use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use std::fmt;
use std::path::PathBuf;

/// The key as written in the file.
pub(super) struct RawContain {
    kind: String,
    network: bool,
    writable: Vec<String>,
    hidden: Vec<String>,
}

impl RawContain {
    /// Validates the settings. An error says what is wrong and how to fix it.
    pub(super) fn validate(self) -> Result<Settings, String> {
        let Some(kind) = Kind::ALL.into_iter().find(|kind| kind.name() == self.kind) else {
            let near = did_you_mean(&self.kind, Kind::ALL.map(Kind::name));
            let near = near.map(|near| format!("; {near}")).unwrap_or_default();
            return Err(format!(
                "{:?} is not a kind of containment; write none, bwrap or landlock{near}",
                self.kind
            ));
        };
        Ok(Settings {
            kind,
            network: self.network,
            writable: paths("writable", self.writable)?,
            hidden: paths("hidden", self.hidden)?,
        })
    }
}

fn paths(key: &str, written: Vec<String>) -> Result<Vec<PathBuf>, String> {
    let path = |text: String| {
        if text.contains('\0') {
            return Err(format!("{text:?} in `{key}` has a NUL character; remove it"));
        }
        let plain = text.strip_prefix("~/").map_or(text.as_str(), |rest| rest);
        let rooted = text.starts_with('/') || plain.len() < text.len();
        if !rooted || plain.trim_matches('/').is_empty() {
            return Err(format!(
                "{text:?} in `{key}` is not a path below / or ~/; write it as in \"~/.cache/tool\""
            ));
        }
        if plain.split('/').any(|part| part == "..") {
            return Err(format!("{text:?} in `{key}` has a `..`; write the path without it"));
        }
        Ok(PathBuf::from(text))
    };
    written.into_iter().map(path).collect()
}

/// Whether the command of a check is the name of a kind of containment, so that the key was meant.
pub(super) fn is_kind(command: &CheckCommand) -> bool {
    let CheckCommand::Shell(line) = command else { return false };
    Kind::ALL.into_iter().any(|kind| kind.name() == line.trim())
}

impl<'de> Deserialize<'de> for RawContain {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContainVisitor)
    }
}

struct ContainVisitor;

impl<'de> Visitor<'de> for ContainVisitor {
    type Value = RawContain;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("none, bwrap, landlock, or a table with `kind`")
    }

    fn visit_str<E: de::Error>(self, kind: &str) -> Result<RawContain, E> {
        let kind = kind.to_owned();
        Ok(RawContain { kind, network: true, writable: Vec::new(), hidden: Vec::new() })
    }

    fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<RawContain, A::Error> {
        let table = RawTable::deserialize(de::value::MapAccessDeserializer::new(table))?;
        Ok(RawContain {
            kind: table.kind,
            network: table.network.unwrap_or(true),
            writable: table.writable,
            hidden: table.hidden,
        })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTable {
    kind: String,
    #[serde(default)]
    network: Option<bool>,
    #[serde(default)]
    writable: Vec<String>,
    #[serde(default)]
    hidden: Vec<String>,
}

#[cfg(test)]
mod tests {
    use crate::config::VerifyConfig;
    use counterfoil_process::contain::{Kind, Settings};

    fn parse(text: &str) -> Result<Settings, String> {
        VerifyConfig::parse(text).map(|config| config.contain).map_err(|error| error.message)
    }

    #[test]
    fn the_kind_alone_or_a_table() {
        let bwrap = Settings { kind: Kind::Bwrap, ..Settings::default() };
        assert_eq!(parse(""), Ok(Settings::default()));
        assert_eq!(parse("contain = \"none\""), Ok(Settings::default()));
        assert_eq!(parse("contain = \"bwrap\"\n[checks]\ntest = \"true\""), Ok(bwrap.clone()));
        assert_eq!(parse("[contain]\nkind = \"bwrap\""), Ok(bwrap));
        let table = "[contain]\nkind = \"landlock\"\nnetwork = false\n\
             writable = [\"~/.cache/x\"]\nhidden = [\"/opt/secret\"]";
        let settings = Settings {
            kind: Kind::Landlock,
            network: false,
            writable: vec!["~/.cache/x".into()],
            hidden: vec!["/opt/secret".into()],
        };
        assert_eq!(parse(table), Ok(settings));
    }

    #[test]
    fn an_invalid_setting_is_an_error_with_its_place() {
        let cases = [
            ("\ncontain = \"bwarp\"", "line 2: ", "did you mean 'bwrap'"),
            ("contain = \"\"", "line 1: ", "none, bwrap or landlock"),
            ("contain = \"Landlock\"", "line 1: ", "none, bwrap or landlock"),
            ("contain = true", "line 1", "none, bwrap, landlock, or a table"),
            ("[contain]\nnetwork = false", "line 1", "missing field `kind`"),
            ("[contain]\nkind = \"bwrap\"\nnetwrk = false", "line 3", "unknown field `netwrk`"),
            ("[contain]\nkind = \"bwrap\"\nnetwork = \"no\"", "line 3", "boolean"),
            ("[contain]\nkind = \"bwrap\"\nwritable = [\"cache\"]", "line 1", "below / or ~/"),
            ("[contain]\nkind = \"bwrap\"\nwritable = [\"/\"]", "line 1", "below / or ~/"),
            ("[contain]\nkind = \"bwrap\"\nhidden = [\"~/../x\"]", "line 1", "`..`"),
            ("contian = \"bwrap\"", "line 1", "unknown field `contian`"),
            ("[checks]\ntest = \"true\"\ncontain = \"bwrap\"", "line 3", "above the first table"),
        ];
        for (text, place, expected) in cases {
            let message = parse(text).unwrap_err();
            assert!(message.contains(place) && message.contains(expected), "{text}: {message}");
        }
        // A check may have the name.
        assert_eq!(parse("[checks]\ncontain = \"make contain\""), Ok(Settings::default()));
    }
}
