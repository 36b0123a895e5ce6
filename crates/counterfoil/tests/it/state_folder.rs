//! Where runs are kept when nobody names a folder: outside of the work tree, where neither `git
//! clean` nor an agent that removes the wrong folder destroys them.

use crate::PROGRAM;
use counterfoil_testkit::{CommandOutput, TestCommand, TestProject};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

const CONTRACT: &str = "
contract: scene/step
version: 1
fields: { ok: boolean }
examples: [{ ok: true }]
";
const FLOW: &str = "
workflow: one
agents: { worker: { contract: scene/step, prompt: Do it. } }
contracts: [contracts]
start: work
states:
  work: { agent: worker, go: done }
  done: { end: done }
";

/// A repository `repo` with a commit; `home` beside it is the person's home.
fn project() -> TestProject {
    let project = TestProject::nested(PROGRAM);
    std::fs::create_dir(project.root_path("home")).unwrap();
    project.write("flow.yaml", FLOW);
    project.write("contracts/step.yaml", CONTRACT);
    project.init_git();
    agent(&project, "");
    project.commit_all("all");
    project
}

/// Makes the agent execute a shell script before it gives its result.
fn agent(project: &TestProject, script: &str) {
    project.write_program("agent", &format!("{script}\necho '{{\"ok\": true}}'"));
}

/// The program in a folder, with a home folder and nothing that names a state folder.
fn at(project: &TestProject, folder: &Path, arguments: &[&str]) -> TestCommand {
    let mut command = TestCommand::new(PROGRAM);
    command
        .args(arguments)
        .env_remove("COUNTERFOIL_STATE")
        .env_remove("XDG_DATA_HOME")
        .env("HOME", project.root_path("home"))
        .current_dir(folder);
    command
}

fn run(project: &TestProject, folder: &Path) -> CommandOutput {
    at(project, folder, &["run", "flow.yaml", "--agent", "command:./agent"]).output()
}

/// The only state folder below the folder for state in the home folder.
#[track_caller]
fn state(project: &TestProject) -> PathBuf {
    let all = project.root_path("home/.local/state/counterfoil");
    let found: Vec<PathBuf> = std::fs::read_dir(&all)
        .unwrap_or_else(|error| panic!("{}: {error}", all.display()))
        .map(|entry| entry.unwrap().path())
        .collect();
    let [one] = found.as_slice() else { panic!("{found:?}") };
    one.clone()
}

#[test]
fn the_commands_at_the_end_find_a_run_whose_repository_an_agent_removed() {
    let project = project();
    agent(&project, "rm -rf .git");
    let ran = run(&project, project.repo());
    let line = ran.stderr.lines().find_map(|line| line.strip_prefix("details: counterfoil "));
    let line = line.unwrap_or_else(|| panic!("{}", ran.stderr)).to_owned();
    let arguments: Vec<&str> = line.split(' ').collect();
    assert!(arguments.contains(&"--state"), "{line}");
    at(&project, project.repo(), &arguments).output().expect(0, &["work"]);
}

#[test]
fn runs_are_kept_outside_of_the_work_tree_and_outlive_what_an_agent_removes() {
    let project = project();
    assert_eq!(run(&project, project.repo()).code, Some(0));
    let state = state(&project);
    assert!(state.file_name().unwrap().to_str().unwrap().starts_with("repo-"), "{state:?}");
    assert!(!project.path(".counterfoil").exists(), "nothing is left in the work tree");
    assert_eq!(project.git(&["status", "--porcelain"]), "");
    for destroys in
        ["git clean -fdxq", "rm -rf .counterfoil", "rm -rf .counterfoil*; git stash -uq || true"]
    {
        agent(&project, destroys);
        project.commit_all("agent");
        let output = run(&project, project.repo());
        assert_eq!(output.code, Some(0), "{destroys}: {output:?}");
    }
    let runs = at(&project, project.repo(), &["runs", "--format", "json"]).output();
    assert_eq!(runs.json().as_array().unwrap().len(), 4, "{runs:?}");
}

#[test]
fn the_folder_is_for_its_owner_only() {
    let project = project();
    assert_eq!(run(&project, project.repo()).code, Some(0));
    let mode = state(&project).metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    let mode = state(&project).join("journal.db").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn all_worktrees_of_a_repository_have_the_same_runs_and_other_repositories_have_not() {
    let project = project();
    assert_eq!(run(&project, project.repo()).code, Some(0));
    let linked = project.root_path("linked");
    project.git(&["worktree", "add", "-q", linked.to_str().unwrap()]);
    assert_eq!(run(&project, &linked).code, Some(0));
    let folder = state(&project);
    for place in [project.repo(), &linked, &project.path("contracts")] {
        let runs = at(&project, place, &["runs", "--format", "json"]).output();
        assert_eq!(runs.json().as_array().unwrap().len(), 2, "{}: {runs:?}", place.display());
    }
    // Another clone, although it has the same name.
    let other = project.root_path("other/repo");
    std::fs::create_dir_all(other.parent().unwrap()).unwrap();
    project.git(&["clone", "-q", ".", other.to_str().unwrap()]);
    let output = at(&project, &other, &["runs"]).output();
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(output.stderr.contains("no runs yet"), "{output:?}");
    assert!(!output.stderr.contains(folder.to_str().unwrap()), "{output:?}");
}

#[test]
fn a_folder_is_named_by_flag_variable_or_configuration() {
    let project = project();
    let runs = |command: &mut TestCommand| command.output().json().as_array().map(Vec::len);
    let named = project.root_path("named");
    let run = ["run", "flow.yaml", "--agent", "command:./agent"];
    assert!(at(&project, project.repo(), &run).args(["--state"]).arg(&named).output().is_success());
    assert!(named.join("journal.db").exists());
    let list = ["runs", "--format", "json"];
    let listed = runs(at(&project, project.repo(), &list).env("COUNTERFOIL_STATE", &named));
    assert_eq!(listed, Some(1));
    project.write("counterfoil.toml", "state = \"../named\"\n");
    assert_eq!(runs(&mut at(&project, project.repo(), &list)), Some(1));
    // From below, it is still relative to the file.
    assert_eq!(runs(&mut at(&project, &project.path("contracts"), &list)), Some(1));
    for wrong in ["state = 7\n", "state = \"\"\n", "state = [\n"] {
        project.write("counterfoil.toml", wrong);
        let output = at(&project, project.repo(), &list).output();
        assert_eq!(output.code, Some(2), "{wrong}: {output:?}");
        assert!(output.stderr.contains("counterfoil.toml"), "{wrong}: {output:?}");
    }
}

#[test]
fn runs_in_the_work_tree_are_pointed_out_and_read_when_named() {
    let project = project();
    let run = ["run", "flow.yaml", "--agent", "command:./agent", "--state", ".counterfoil"];
    assert!(at(&project, project.repo(), &run).output().is_success());
    let output = at(&project, project.repo(), &["show", "last"]).output();
    assert_eq!(output.code, Some(2), "{output:?}");
    let in_tree = project.path(".counterfoil");
    let flag = format!("`--state {}`\n", in_tree.display());
    let lines: Vec<&str> = output.stderr.lines().collect();
    let [note, error] = lines.as_slice() else { panic!("{output:?}") };
    assert!(note.starts_with("note: the runs in "), "{note}");
    assert!(error.contains("read those in the work tree with `--state "), "{error}");
    assert_eq!(output.stderr.matches(&flag).count(), 2, "{output:?}");
    let named = ["show", "last", "--state", ".counterfoil"];
    assert!(at(&project, project.repo(), &named).output().is_success());
}

#[test]
fn xdg_state_home_counts_if_it_is_absolute() {
    let project = project();
    let run = ["run", "flow.yaml", "--agent", "command:./agent"];
    let xdg = project.root_path("xdg");
    let output = at(&project, project.repo(), &run).env("XDG_STATE_HOME", &xdg).output();
    assert!(output.is_success(), "{output:?}");
    assert_eq!(std::fs::read_dir(xdg.join("counterfoil")).unwrap().count(), 1);
    let output = at(&project, project.repo(), &run).env("XDG_STATE_HOME", "relative").output();
    assert!(output.is_success(), "{output:?}");
    assert!(state(&project).join("journal.db").exists());
    assert!(!project.path("relative").exists());
}

#[test]
fn a_state_folder_that_vanishes_during_a_run_ends_it_with_9() {
    let project = project();
    let all = project.root_path("home/.local/state/counterfoil");
    agent(&project, &format!("rm -rf '{}'", all.display()));
    let output = run(&project, project.repo());
    assert_eq!(output.code, Some(9), "{output:?}");
    assert!(output.stderr.contains("was deleted or replaced"), "{output:?}");
}

/// An agent that goes on for minutes is ended when there is nothing left that its result could be
/// recorded in.
#[test]
fn agents_are_ended_when_the_state_folder_vanishes() {
    let project = project();
    let all = project.root_path("home/.local/state/counterfoil");
    let told = project.scratch_path("pid");
    agent(
        &project,
        &format!("echo $$ >'{}'; rm -rf '{}'; sleep 300", told.display(), all.display()),
    );
    let started = std::time::Instant::now();
    let output = run(&project, project.repo());
    assert_eq!(output.code, Some(9), "{output:?}");
    assert!(started.elapsed() < std::time::Duration::from_mins(1), "{:?}", started.elapsed());
    let pid = std::fs::read_to_string(told).unwrap();
    assert!(!Path::new("/proc").join(pid.trim()).exists(), "the agent goes on");
}

/// What only root or the owner may see: agents' words, prompts, copies of files.
#[test]
fn nothing_in_the_folder_is_for_others() {
    let project = project();
    project
        .write("flow.yaml", FLOW.replace("agent: worker,", "agent: worker, workspace: worktree,"));
    agent(&project, "echo changed >a.txt; echo '[x]' >counterfoil.toml");
    project.commit_all("worktree");
    run(&project, project.repo());
    // Others cannot enter its folders, so what is in there is closed to them, too.
    let entries = std::fs::read_dir(state(&project)).unwrap().map(|entry| entry.unwrap().path());
    let others = |path: &PathBuf| path.metadata().unwrap().permissions().mode() & 0o077 != 0;
    let open: Vec<PathBuf> = entries.filter(others).collect();
    assert_eq!(open, [] as [PathBuf; 0]);
}

#[test]
fn an_altered_journal_is_refused_with_9() {
    let project = project();
    assert_eq!(run(&project, project.repo()).code, Some(0));
    let state = state(&project);
    let sql = rusqlite::Connection::open(state.join("journal.db")).unwrap();
    sql.execute_batch("UPDATE runs SET outcome = 'blocked'").unwrap();
    drop(sql);
    let output = at(&project, project.repo(), &["runs"]).output();
    assert!(output.stdout.contains("altered") && !output.stdout.contains("blocked"), "{output:?}");
    assert_eq!(output.code, Some(9), "{output:?}");
    let reading = [
        &["show", "last"][..],
        &["show", "last", "--claims"],
        &["show", "last", "--events"],
        &["export", "last", "recording"],
        &["receipt", "last"],
        &["claims", "stats"],
        &["resume", "last"],
    ];
    for command in reading {
        let output = at(&project, project.repo(), command).output();
        assert_eq!(output.code, Some(9), "{command:?} {output:?}");
        assert!(output.stderr.contains("was altered by another program"), "{output:?}");
    }
}

#[test]
fn a_log_that_is_cut_off_ends_with_9() {
    let project = project();
    assert_eq!(run(&project, project.repo()).code, Some(0));
    let (journal, older) = (state(&project).join("journal.db"), project.root_path("older.db"));
    std::fs::copy(&journal, &older).unwrap();
    assert_eq!(run(&project, project.repo()).code, Some(0));
    std::fs::copy(&older, &journal).unwrap();
    let output = at(&project, project.repo(), &["show", "last"]).output();
    assert_eq!(output.code, Some(9), "{output:?}");
    assert!(output.stderr.contains("although run number 2 was recorded"), "{output:?}");
}

#[test]
fn a_state_folder_that_was_removed_is_said_and_begun_anew() {
    let project = project();
    assert_eq!(run(&project, project.repo()).code, Some(0));
    std::fs::remove_dir_all(state(&project)).unwrap();
    let output = at(&project, project.repo(), &["runs"]).output();
    assert_eq!(output.code, Some(9), "{output:?}");
    let output = run(&project, project.repo());
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(output.stderr.contains("which had 1 run, is gone"), "{output:?}");
    assert!(at(&project, project.repo(), &["runs"]).output().is_success());
}

#[test]
fn a_journal_that_is_missing_is_not_begun_anew() {
    let project = project();
    assert_eq!(run(&project, project.repo()).code, Some(0));
    let state = state(&project);
    for file in std::fs::read_dir(&state).unwrap().map(|entry| entry.unwrap().path()) {
        if file.file_name().unwrap().to_str().unwrap().starts_with("journal.db") {
            std::fs::remove_file(file).unwrap();
        }
    }
    for command in [&["show", "last"][..], &["runs"], &["resume", "last"]] {
        let output = at(&project, project.repo(), command).output();
        assert_eq!(output.code, Some(9), "{output:?}");
        assert!(output.stderr.contains("is missing, although"), "{output:?}");
    }
    assert_eq!(run(&project, project.repo()).code, Some(9));
    assert!(!state.join("journal.db").exists());
}

#[test]
fn a_link_in_the_folder_is_refused_with_9() {
    let project = project();
    assert_eq!(run(&project, project.repo()).code, Some(0));
    let state = state(&project);
    let elsewhere = project.root_path("elsewhere");
    std::os::unix::fs::symlink(&elsewhere, state.join("contents-2")).unwrap();
    for command in [&["show", "last"][..], &["runs"], &["cancel", "last"]] {
        let output = at(&project, project.repo(), command).output();
        assert_eq!(output.code, Some(9), "{output:?}");
        assert!(output.stderr.contains("contents-2 is a link"), "{output:?}");
    }
    std::fs::remove_file(state.join("contents-2")).unwrap();
    let deeper = state.join("transcripts/run-2");
    std::os::unix::fs::symlink(&elsewhere, &deeper).unwrap();
    let output = at(&project, project.repo(), &["show", "last"]).output();
    assert!(output.code == Some(9) && output.stderr.contains("run-2 is a link"), "{output:?}");
    std::fs::remove_file(deeper).unwrap();
    assert!(at(&project, project.repo(), &["show", "last"]).output().is_success());
}

/// Worktrees are in the repository although the state is not: tools look for `node_modules` and
/// virtual environments in the folders above the files they work on.
#[test]
fn a_worktree_finds_what_is_in_the_folders_above_it() {
    let project = project();
    project
        .write("flow.yaml", FLOW.replace("agent: worker,", "agent: worker, workspace: worktree,"));
    project.write(".gitignore", "node_modules\n");
    project.write("node_modules/dep", "found\n");
    let told = project.scratch_path("told");
    agent(
        &project,
        &format!(
            "d=$PWD; while [ ! -e \"$d/node_modules/dep\" ]; do [ \"$d\" = / ] && exit 3; d=$(dirname \"$d\"); done\n\
             echo \"$PWD\" >>'{}'",
            told.display()
        ),
    );
    project.commit_all("worktree");
    let output = run(&project, project.repo());
    assert_eq!(output.code, Some(0), "{output:?}");
    let told = std::fs::read_to_string(told).unwrap();
    let worktrees = project.path(".counterfoil/worktrees_");
    assert!(told.starts_with(worktrees.to_str().unwrap()), "{told}");
    assert_eq!(project.git(&["status", "--porcelain"]), "", "git ignores the folder");
    assert!(!project.path(".counterfoil").exists(), "the folder goes with the last worktree");
}
