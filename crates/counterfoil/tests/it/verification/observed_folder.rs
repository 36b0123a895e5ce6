//! Which folder is observed is said, and a look that takes long is too.

use crate::verification::project::DirtyProject;
use counterfoil_testkit::write_executable;
use serde_json::json;

#[test]
fn the_folder_that_is_observed_is_named_at_the_start() {
    let project = DirtyProject::new();
    project.write_one_step("", "");
    project.write_script(&[json!({ "agent": "worker", "text": "{\"files\": []}" })]);
    let run = ["run", "repo/flow.yaml", "--agent", "script:script.yaml"];
    let output = project.run(&run);
    let top = project.repo().canonicalize().unwrap();
    output.expect(0, &[&format!(" of play in {}, ", top.display())]);
    // Below the top of a repository, the whole repository is observed.
    let below = project.path("src").display().to_string();
    let state = project.state().display().to_string();
    let mut command = project.command_of(env!("CARGO_BIN_EXE_counterfoil"), &run);
    let output = command.args(["--repo", &below, "--state", &state]).output();
    output.expect(0, &[&format!(" of play in {}, ", top.display())]);
}

#[test]
fn what_we_keep_in_the_home_folder_is_nobodys_change() {
    let project = DirtyProject::new();
    project.write_one_step("", "");
    let does = "{\"files\": [\"new.txt\"]}";
    project.write_script(&[json!({ "agent": "worker", "writes": {"new.txt": "x"}, "text": does })]);
    let run = ["run", "repo/flow.yaml", "--agent", "script:script.yaml"];
    let mut command = project.command(&run);
    let home = project.path("home");
    // The first run makes the key.
    command.env("XDG_DATA_HOME", home.join("data")).env("HOME", &home);
    command.output().expect(0, &["1 verified"]);
    assert!(home.join("data/counterfoil/keys").is_dir());
}

#[test]
fn a_look_that_takes_long_says_what_it_is_doing() {
    let project = DirtyProject::new();
    project.write_one_step("", "");
    project.write_script(&[json!({ "agent": "worker", "text": "{\"files\": []}" })]);
    let slow = project.scratch_path("slow");
    std::fs::create_dir(&slow).unwrap();
    let path = std::env::var("PATH").unwrap();
    let script = format!(
        "#!/bin/sh\nPATH='{path}'\ncase \"$*\" in *diff-files*) sleep 1.5;; esac\nexec git \"$@\"\n"
    );
    write_executable(&slow.join("git"), script);
    let run = ["run", "repo/flow.yaml", "--agent", "script:script.yaml"];
    let mut command = project.command(&run);
    let output = command.env("PATH", format!("{}:{path}", slow.display())).output();
    let folder = project.repo().canonicalize().unwrap();
    let notice = format!("looking at the files of {} takes longer than a second", folder.display());
    output.expect(0, &[&notice]);
}
