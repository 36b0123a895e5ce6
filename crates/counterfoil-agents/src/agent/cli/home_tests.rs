//! A folder that stands in for one in the user's home, as the runner makes it.

use super::*;
use crate::agent::adapter::Call;
use crate::agent::adapter::stand_in::StandIn;
use crate::agent::installed::Fit;
use counterfoil_contract::render::vendor::Target;
use counterfoil_contract::{Contract, Definition, Framing};
use counterfoil_flow::Access;
use std::sync::Arc;

/// A program that keeps a folder in a home.
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

    fn takes_schema(&self) -> bool {
        false
    }

    fn variables(&self) -> &'static [&'static str] {
        &[]
    }

    fn call(&self, _: &Turn<'_>) -> Call {
        Call::default()
    }

    fn stand_in(&self, turn: &Turn<'_>) -> Option<StandIn> {
        Some(StandIn {
            of: (turn.ours)("ITS_HOME").map(PathBuf::from),
            at: turn.scratch.join("home"),
            without: &[],
            settings: "settings.json",
            edits: Vec::new(),
            variables: vec![("ITS_HOME".into(), turn.scratch.join("home").into())],
        })
    }

    fn reader(&self) -> Box<dyn Reader> {
        unreachable!("it is not started")
    }
}

fn session(home: &std::path::Path, scratch: &std::path::Path) -> CliSession {
    let env = [("ITS_HOME".to_owned(), home.display().to_string())].into();
    let player = CliAgent {
        adapter: &Homely,
        installed: Installed { program: "homely".into(), version: None, fit: Fit::Good },
        settings: Settings { env, ..Settings::default() },
        equipment: Equipment::default(),
    };
    let definition = Definition::new("acme/any", 1, Framing::AnyJson, serde_json::json!({}));
    let task = Task {
        agent: "worker".to_owned(),
        marker: "m".to_owned(),
        cwd: home.to_owned(),
        scratch: scratch.to_owned(),
        access: Access::ReadOnly,
        contract: Arc::new(Contract::compile(definition).unwrap()),
        startup: None,
        idle: None,
    };
    CliSession::new(player, task)
}

#[test]
fn a_folder_stands_in_for_the_one_that_the_settings_name() {
    let (home, scratch) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::fs::write(home.path().join("login"), "me").unwrap();
    let scratch = scratch.path().join("a");
    let session = session(home.path(), &scratch);
    let (spawn, notes) = session.spawn("p", "id", Duration::from_secs(1)).unwrap();
    assert_eq!(notes, [""; 0]);
    let last = spawn.extra.iter().rfind(|(name, _)| name == "ITS_HOME").unwrap();
    assert_eq!(last.1, scratch.join("home").into_os_string());
    assert_eq!(std::fs::read_to_string(scratch.join("home/login")).unwrap(), "me");
}

#[test]
fn without_the_folder_the_program_keeps_its_own() {
    let (home, scratch) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::fs::write(home.path().join("settings.json"), "{,}").unwrap();
    let (spawn, notes) =
        session(home.path(), scratch.path()).spawn("p", "id", Duration::from_secs(1)).unwrap();
    assert!(notes[0].starts_with("homely runs without settings of ours: "), "{notes:?}");
    assert!(notes[0].contains("settings.json is no JSON"), "{notes:?}");
    assert_eq!(spawn.extra, [("ITS_HOME".into(), home.path().into())]);
}
