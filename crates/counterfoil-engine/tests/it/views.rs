//! Runs that are created and driven in two calls, and followed from another connection.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::builtin::project::Project;
use counterfoil_engine::{
    AgentAssignments, Engine, NoopObserver, ResumeOptions, RunView, StartOptions,
};
use counterfoil_flow::{Budget, Workflow, check};
use counterfoil_process::StopRequest;
use serde_json::Map;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;

const FLOW: &str = "
workflow: flow
start: one
states:
  one: { read: a.txt, go: two }
  two: { read: a.txt, go: done }
  done: { end: done }
";

fn workflow() -> Workflow {
    let files: BTreeMap<String, String> = [("flow.yaml".to_owned(), FLOW.to_owned())].into();
    check("flow.yaml", &files, &counterfoil_contract::Registry::new()).unwrap()
}

fn options(repo: &Path) -> StartOptions {
    std::fs::write(repo.join("a.txt"), "a").unwrap();
    StartOptions {
        workflow: workflow(),
        inputs: Map::new(),
        budget: Budget::default(),
        agents: AgentAssignments::new(),
        repo: repo.to_owned(),
        workflow_folders: Vec::new(),
        launcher: counterfoil_process::contain::Launcher::default(),
    }
}

fn kinds(view: &mut RunView) -> Vec<&'static str> {
    let mut kinds = Vec::new();
    view.catch_up(|event, _, _| kinds.push(event.kind())).unwrap();
    kinds
}

#[tokio::test]
async fn a_run_is_known_before_it_is_driven() {
    let project = Project::bare();
    let state = project.path(".counterfoil");
    let (engine, other) =
        (Engine::open(&state, None).unwrap(), Engine::open(&state, None).unwrap());
    let created = engine.create(options(&project.repo)).unwrap();
    let run = created.run().to_owned();
    let mut view = other.view_from_start(&run).unwrap();
    assert_eq!(kinds(&mut view), ["run-started"]);
    assert!(view.is_driven().unwrap());
    assert_eq!(view.report().unwrap().outcome, "running");
    assert_eq!(view.catch_up(|_, _, _| panic!("nothing happened")).unwrap(), 0);

    let (_sender, stop) = watch::channel(StopRequest::None);
    let report = engine.drive(created, Arc::new(NoopObserver), stop).await.unwrap();
    assert_eq!((report.run.as_str(), report.outcome.as_str()), (run.as_str(), "done"));
    let more = kinds(&mut view);
    assert_eq!(
        (more.first().copied(), more.last().copied()),
        (Some("frame-opened"), Some("run-ended"))
    );
    assert_eq!(view.seq(), 1 + more.len() as u64);
    assert_eq!(view.report().unwrap(), report, "what was read in parts is what was read at once");
    assert_eq!(other.report(&run).unwrap(), report);
    assert!(!view.is_driven().unwrap());
}

#[tokio::test]
async fn a_run_that_nobody_drives_can_be_resumed() {
    let project = Project::bare();
    let engine = Engine::open(&project.path(".counterfoil"), None).unwrap();
    let created = engine.create(options(&project.repo)).unwrap();
    let run = created.run().to_owned();
    drop(created);
    // The right to drive it is given back in the background.
    let until = Instant::now() + Duration::from_secs(20);
    while engine.report(&run).unwrap().outcome == "running" {
        assert!(Instant::now() < until, "the run is still driven");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(engine.report(&run).unwrap().outcome, "interrupted");
    let (_sender, stop) = watch::channel(StopRequest::None);
    let options = ResumeOptions::default();
    let resumed = engine.resume(&run, &options, Arc::new(NoopObserver), stop);
    assert_eq!(resumed.await.unwrap().outcome, "done");
}

#[test]
fn readers_in_several_threads_see_the_same_events() {
    let project = Project::bare();
    let engine = Engine::open(&project.path(".counterfoil"), None).unwrap();
    let created = engine.create(options(&project.repo)).unwrap();
    let run = created.run();
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                for _ in 0..50 {
                    assert_eq!(engine.view(run).unwrap().seq(), 1);
                    assert_eq!(engine.journal().runs(None).unwrap().len(), 1);
                }
            });
        }
    });
}

#[test]
fn what_does_not_exist_cannot_be_viewed() {
    let project = Project::bare();
    let engine = Engine::open(&project.path(".counterfoil"), None).unwrap();
    assert!(engine.view("0").is_err());
    assert!(engine.journal().last_seq("0").is_err());
}
