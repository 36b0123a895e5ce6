//! The settings of test runners that decide which tests run: of pytest, jest, vitest, mocha, cargo
//! and nextest. Only what narrows the selection is read, so that other changes of these files are
//! not reported.

mod files;
mod pytest;

use super::parse::Deadline;
use super::source::{Switch, quote};
use std::path::{Path, PathBuf};

/// Larger files are not read.
const MAX_BYTES: usize = 1 << 20;

/// The form of a file with settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    PytestIni,
    Pyproject,
    PackageJson,
    Json,
    Yaml,
    JavaScript,
    Cargo,
    CargoConfig,
    Nextest,
}

fn form(path: &Path) -> Option<Form> {
    let name = path.file_name()?.to_str()?;
    let (stem, extension) = name.rsplit_once('.').unwrap_or((name, ""));
    let script = matches!(extension, "js" | "ts" | "mjs" | "cjs" | "mts" | "cts");
    let in_folder = |folder: &str| {
        path.parent().and_then(Path::file_name).is_some_and(|parent| parent == folder)
    };
    match name {
        "pytest.ini" | ".pytest.ini" | "tox.ini" | "setup.cfg" => Some(Form::PytestIni),
        "pyproject.toml" | "pytest.toml" | ".pytest.toml" => Some(Form::Pyproject),
        "package.json" => Some(Form::PackageJson),
        "jest.config.json" | ".mocharc.json" | ".mocharc.jsonc" => Some(Form::Json),
        ".mocharc.yml" | ".mocharc.yaml" => Some(Form::Yaml),
        "Cargo.toml" => Some(Form::Cargo),
        "nextest.toml" if in_folder(".config") => Some(Form::Nextest),
        "config.toml" if in_folder(".cargo") => Some(Form::CargoConfig),
        _ if script
            && (stem.starts_with("jest.config")
                || stem.starts_with("vitest.")
                || stem.starts_with("vite.config")
                || stem == ".mocharc"
                || stem.starts_with("playwright.config")) =>
        {
            Some(Form::JavaScript)
        }
        _ => None,
    }
}

/// Whether a file has settings of a test runner, by its name.
pub(super) fn is_settings_file(path: &Path) -> bool {
    form(path).is_some()
}

/// What the settings of a file leave out; an error if they cannot be read.
pub(super) fn read(path: &Path, text: &[u8], deadline: Deadline) -> Result<Vec<Switch>, String> {
    let Some(form) = form(path) else { return Ok(Vec::new()) };
    if text.len() > MAX_BYTES {
        return Err("it is longer than 1 MiB".to_owned());
    }
    let source = std::str::from_utf8(text).map_err(|_| "it is not UTF-8".to_owned())?;
    let source = source.trim_start_matches('\u{feff}');
    if source.trim().is_empty() {
        return Ok(Vec::new());
    }
    let mut settings = match form {
        Form::PytestIni => pytest::ini(path, source),
        Form::Pyproject => pytest::toml(path, &parse_toml(source)?),
        Form::Cargo => files::cargo(&parse_toml(source)?),
        Form::CargoConfig => files::cargo_config(&parse_toml(source)?),
        Form::Nextest => files::nextest(&parse_toml(source)?),
        Form::PackageJson => files::package(&parse_json(source)?),
        Form::Json => files::runner(&parse_json(source)?),
        Form::Yaml => files::runner(
            &serde_saphyr::from_str(source).map_err(|error| quote(&error.to_string()))?,
        ),
        Form::JavaScript => files::script(path, text, deadline)?,
    };
    // Without the manifest there was no package, and none of its tests ran.
    let manifest = match form {
        Form::PackageJson | Form::Json | Form::Yaml | Form::JavaScript => Some("package.json"),
        Form::Cargo => Some("Cargo.toml"),
        _ => None,
    };
    for switch in &mut settings {
        switch.manifest = manifest.map(PathBuf::from);
        if switch.line == 0 {
            switch.line = line_of(source, &switch.what);
        }
    }
    Ok(settings)
}

fn parse_toml(text: &str) -> Result<toml::Table, String> {
    text.parse().map_err(|error: toml::de::Error| quote(error.message()))
}

fn parse_json(text: &str) -> Result<serde_json::Value, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

/// Keeps the settings about something that was there before the step. A new script leaves out
/// nothing that ran before.
pub(super) fn keep_known(path: &Path, before: &[u8], settings: &mut Vec<Switch>) {
    if form(path) != Some(Form::PackageJson) {
        return;
    }
    let scripts = std::str::from_utf8(before)
        .ok()
        .and_then(|text| parse_json(text.trim_start_matches('\u{feff}')).ok())
        .map(|root| files::test_scripts(&root))
        .unwrap_or_default();
    settings.retain(|setting| match setting.what.strip_prefix("`scripts.") {
        Some(rest) => rest.split_once('`').is_some_and(|(name, _)| scripts.contains(name)),
        None => true,
    });
}

/// The line of the first occurrence of a setting's name.
fn line_of(text: &str, what: &str) -> u32 {
    let name = what.split(['`', ' ']).find(|part| !part.is_empty()).unwrap_or_default();
    let last = name.rsplit('.').next().unwrap_or(name);
    let at = text.find(last).unwrap_or_default();
    let lines = text[..at].bytes().filter(|byte| *byte == b'\n').count();
    u32::try_from(lines).unwrap_or(u32::MAX).saturating_add(1)
}

/// A setting that narrows the selection.
fn setting(name: &str, value: &str) -> Switch {
    let what = format!("`{name}` = {}", quote(value));
    let key = format!("{name} = {value}");
    Switch { key, what, line: 0, selects: None, is_usual: false, about: Vec::new(), manifest: None }
}

/// A setting that selects tests by patterns.
fn selecting(name: &str, patterns: impl IntoIterator<Item = String>) -> Switch {
    let patterns: std::collections::BTreeSet<String> = patterns.into_iter().collect();
    let value = patterns.iter().cloned().collect::<Vec<_>>().join(" ");
    Switch { selects: Some((name.to_owned(), patterns)), ..setting(name, &value) }
}
