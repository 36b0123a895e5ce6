//! The dashboard in a real browser. Each test makes a project, starts a server for it, and plays a
//! script of `testing/browser` with both.

use crate::PROGRAM;
use counterfoil_testkit::{
    RunningCommand, TIMEOUT, TestProject, installed_browser, testing_dir, wait_until,
};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a script may take. It ends itself before, and with it what it started.
const SCRIPT_TIMEOUT: Duration = Duration::from_mins(2);

#[test]
fn every_screen_opens_without_a_complaint() {
    play("screens");
}

#[test]
fn figures_lead_to_what_they_count_and_texts_are_checked_while_they_are_typed() {
    play("figures");
}

#[test]
fn a_server_that_is_called_by_a_name_works_without_tls() {
    play("by_name");
}

#[test]
fn pages_follow_a_run_that_another_process_drives() {
    play("live");
}

#[test]
fn everything_can_be_done_with_keys() {
    play("keyboard");
}

#[test]
fn questions_are_answered_in_the_inbox() {
    play("answers");
}

#[test]
fn a_lost_connection_is_shown_and_made_up_for() {
    play("connection");
}

#[test]
fn every_page_can_be_read_without_scripts() {
    play("without_scripts");
}

#[test]
fn a_run_with_many_events_has_one_long_list() {
    play("events");
}

#[test]
fn hostile_text_stays_text() {
    play("hostile");
}

/// Plays a script of `testing/browser`.
#[track_caller]
fn play(script: &str) {
    let Some(python) = installed_browser() else { return };
    let scripts = testing_dir().join("browser");
    let project = TestProject::with_state_beside(PROGRAM);
    copy_files(&scripts.join("project"), Path::new(""), &project);
    project.init_git();
    project.commit_all("base");
    let repo = project.repo().display().to_string();
    // Ended when the test ends, also by a panic.
    let server = project.start(&["serve", "--port", "0", "--repo", &repo]);
    let link = sign_in_link(&server);
    let context = json!({
        "link": link,
        "server": server.pid(),
        "program": PROGRAM,
        "root": project.root(),
        "repo": project.repo(),
        "state": project.state(),
        "screenshots": screenshots(&project),
    });
    // What the browser keeps goes with the project.
    let home = project.scratch_path("home");
    std::fs::create_dir(&home).unwrap();
    let script = scripts.join(format!("{script}.py")).display().to_string();
    let mut command = project.command_of(python, &[script, context.to_string()]);
    command.env("HOME", &home).env("TMPDIR", &home).env("PYTHONDONTWRITEBYTECODE", "1");
    let played = project.start_command(&mut command).wait_for(SCRIPT_TIMEOUT);
    println!("{}", played.stdout);
    assert!(
        played.is_success(),
        "{}{}\nthe server: {}",
        played.stdout,
        played.stderr,
        server.stderr_so_far()
    );
}

/// The link that a server prints when it listens.
fn sign_in_link(server: &RunningCommand) -> String {
    wait_until(TIMEOUT, "the server listens", || {
        let printed = server.stderr_so_far();
        let link = printed.split_whitespace().find(|word| word.starts_with("http://"));
        // It ends with a line, so that it is there as a whole.
        link.filter(|_| printed.contains("works once")).map(str::to_owned)
    })
}

/// The folder for screenshots: one that the caller names, or one that goes with the test.
fn screenshots(project: &TestProject) -> PathBuf {
    let named = std::env::var_os("COUNTERFOIL_SCREENSHOTS").filter(|name| !name.is_empty());
    let folder = named.map_or_else(|| project.scratch_path("screenshots"), PathBuf::from);
    std::path::absolute(folder).unwrap()
}

/// Copies the files of a folder into the repository.
fn copy_files(from: &Path, name: &Path, project: &TestProject) {
    for entry in std::fs::read_dir(from.join(name)).unwrap() {
        let entry = entry.unwrap();
        let name = name.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_files(from, &name, project);
        } else {
            project.write(&name, std::fs::read(entry.path()).unwrap());
        }
    }
}
