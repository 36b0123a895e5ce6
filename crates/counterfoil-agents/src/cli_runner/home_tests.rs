//! The runner creates the home overlay of an adapter.

use super::*;
use crate::adapters::adapter;
use crate::adapters::home_overlay::HomeOverlay;
use crate::adapters::record::{RecordParser, RecordPlace};
use crate::adapters::{Call, StreamParser};
use crate::config::Settings;
use crate::environment::AgentEnvironment;
use crate::environment::installed::{Installed, VersionFit};
use crate::trace_context::TRACE_PARENT;
use counterfoil_contract::render::vendor::Target;
use counterfoil_contract::{Contract, Definition, Framing};
use counterfoil_flow::Access;
use std::path::PathBuf;

/// A program with a folder in the user's home.
struct Homely;

impl Adapter for Homely {
    fn name(&self) -> &'static str {
        "homely"
    }

    fn install(&self) -> &'static str {
        ""
    }

    fn versions(&self) -> (&'static str, &'static str) {
        ("0", "1")
    }

    fn dialect(&self) -> Target {
        Target::Draft2020
    }

    fn structured_output(&self) -> Option<Delivery> {
        None
    }

    fn permissions(&self, _: Access) -> &'static str {
        ""
    }

    fn variables(&self) -> &'static [&'static str] {
        &[]
    }

    fn call(&self, _: &PromptRequest<'_>) -> Call {
        Call::default()
    }

    fn home_overlay(&self, request: &PromptRequest<'_>) -> Option<HomeOverlay> {
        Some(HomeOverlay {
            source: (request.env)("ITS_HOME").map(PathBuf::from),
            path: request.scratch.join("home"),
            exclude: &[],
            settings_file: "settings.json",
            edits: Vec::new(),
            variables: vec![("ITS_HOME".into(), request.scratch.join("home").into())],
        })
    }

    fn parser(&self) -> Box<dyn StreamParser> {
        unreachable!("it is not started")
    }

    fn record_files(&self, _: &RecordPlace<'_>) -> Vec<PathBuf> {
        Vec::new()
    }

    fn record_parser(&self) -> Box<dyn RecordParser> {
        adapter("codex").unwrap().record_parser()
    }
}

fn session(home: &std::path::Path, scratch: &std::path::Path) -> CliSession {
    let env = [("ITS_HOME".to_owned(), home.display().to_string())].into();
    let agent = CliAgent {
        adapter: &Homely,
        installed: Installed { program: "homely".into(), version: None, fit: VersionFit::Good },
        settings: Settings { env, ..Settings::default() },
        environment: AgentEnvironment::default(),
    };
    let definition = Definition::new("acme/any", 1, Framing::AnyJson, serde_json::json!({}));
    let task = Task {
        agent: "worker".to_owned(),
        marker: "m".to_owned(),
        cwd: home.to_owned(),
        scratch: scratch.to_owned(),
        access: Access::ReadOnly,
        contract: Arc::new(Contract::compile(definition).unwrap()),
        context: counterfoil_contract::Context::default(),
        startup: None,
        checks: None,
        idle: None,
        earlier: None,
    };
    CliSession::new(agent, task)
}

#[test]
fn the_overlay_replaces_the_folder_that_the_settings_name() {
    let (home, scratch) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::fs::write(home.path().join("login"), "me").unwrap();
    let scratch = scratch.path().join("a");
    let session = session(home.path(), &scratch);
    let (spawn, notes) = session.spawn("p", "id", Duration::from_secs(1), None).unwrap();
    assert_eq!(notes, [""; 0]);
    let last = spawn.extra.iter().rfind(|(name, _)| name == "ITS_HOME").unwrap();
    assert_eq!(last.1, scratch.join("home").into_os_string());
    assert_eq!(std::fs::read_to_string(scratch.join("home/login")).unwrap(), "me");
}

#[test]
fn without_the_overlay_the_program_keeps_its_own_folder() {
    let (home, scratch) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::fs::write(home.path().join("settings.json"), "{,}").unwrap();
    let (spawn, notes) = session(home.path(), scratch.path())
        .spawn("p", "id", Duration::from_secs(1), None)
        .unwrap();
    assert!(notes[0].starts_with("homely runs without our settings: "), "{notes:?}");
    assert!(notes[0].contains("settings.json is not JSON"), "{notes:?}");
    let own = spawn.extra.into_iter().filter(|(name, _)| *name != TRACE_PARENT);
    assert_eq!(own.collect::<Vec<_>>(), [("ITS_HOME".into(), home.path().into())]);
}
