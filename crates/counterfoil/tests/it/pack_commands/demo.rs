//! Demos: real runs in repositories that are kept for inspection.

use crate::pack_commands::{empty_project, stderr_of};
use counterfoil_testkit::{CommandOutput, TestProject, git_command};
use serde_json::Value;
use std::path::Path;

const PACK: &str = "execution-loop";

/// What git says in a repository that a demo left.
fn asked(repo: &Path, arguments: &[&str]) -> String {
    let output: CommandOutput = git_command(repo, arguments).output().unwrap().into();
    assert!(output.is_success(), "git {arguments:?}: {}", output.stderr);
    output.stdout
}

/// The packs that have a demo.
fn with_demo() -> Vec<&'static str> {
    let all = counterfoil_packs::packs().iter();
    all.filter(|pack| pack.file("demo/demo.yaml").is_some())
        .map(counterfoil_packs::Pack::name)
        .collect()
}

/// The commands that a demo says to look at: two lines each, until an empty one.
fn looks(words: &str) -> Vec<&str> {
    let (_, after) = words
        .split_once("Inspect it with:\n")
        .unwrap_or_else(|| panic!("nothing to look at: {words}"));
    let lines = after.lines().take_while(|line| !line.is_empty());
    lines.filter(|line| !line.starts_with("      ")).map(str::trim).collect()
}

/// A pack in the current folder, small enough to be seen through, that ends as `blocked` unless
/// somebody helps.
fn small(project: &TestProject, plan: &str) {
    project.write(
        "small/workflow.yaml",
        "workflow: small\nsummary: Says something\ninputs: { task: string, times: integer }\n\
         agents: { worker: { contract: execution-loop/qa, prompt: \"{{ task }} {{ times }} times\" } }\n\
         start: work\nstates:\n  work:\n    agent: worker\n    next: [{ when: result.dod_achieved, go: done }, { go: stuck, reason: \"'it is not done'\" }]\n  \
         done: { end: done }\n  stuck: { end: blocked }\n",
    );
    project.write(
        "small/demo/script.yaml",
        "replies: [{ agent: worker, text: '{\"dod_achieved\": false, \"checks\": [], \"fix_info\": \"no\"}' }]\n",
    );
    project.write("small/demo/demo.yaml", plan);
    project.write("small/demo/repo/a.txt", "as committed\n");
    project.write("small/demo/repo/run.sh", "#!/bin/sh\n");
    project.write("small/demo/changes/a.txt", "changed\n");
    project.write("small/demo/changes/new/b.txt", "added\n");
}

const PLAN: &str = "task: Say it\ninputs: { times: 3 }\nabout: It says it, and stops.\n";

#[test]
fn a_demo_shows_the_run_and_says_where_to_look() {
    let project = empty_project();
    small(
        &project,
        &format!(
            "{PLAN}ends: blocked\nlook: ['git -C {{repo}} log --oneline: one commit', 'counterfoil show {{run}} --state {{state}}: the story']\n"
        ),
    );
    insta::assert_snapshot!("demo", project.snapshot(&["demo", "small", "--keep", "kept"]));
}

#[test]
fn every_demo_ends_as_it_says_and_every_command_it_shows_works() {
    assert!(with_demo().contains(&PACK));
    for pack in with_demo() {
        let project = empty_project();
        let words = stderr_of(&project, 0, &["demo", pack]);
        let name = format!("counterfoil-demo-{pack}-");
        let made: Vec<String> = std::fs::read_dir(project.root_path("tmp"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|made| made.starts_with(&name))
            .collect();
        assert_eq!(made.len(), 1, "{made:?}");
        assert!(words.contains(&made[0]), "{pack}: {words}");
        let looks = looks(&words);
        assert!(!looks.is_empty(), "{pack}: {words}");
        // In another folder, and in a shell that keeps its runs somewhere else.
        let elsewhere = project.scratch_path("elsewhere");
        std::fs::create_dir_all(&elsewhere).unwrap();
        let ends = words.lines().filter_map(|line| {
            line.strip_prefix("details: ").or_else(|| line.strip_prefix("evidence: "))
        });
        for command in looks.into_iter().chain(ends) {
            let mut shell = project.command_of("sh", &["-ec", command]);
            shell.env_remove("COUNTERFOIL_STATE").env("HOME", &elsewhere).current_dir(&elsewhere);
            let output = shell.output();
            assert!(output.is_success(), "{pack}: {command}: {}", output.stderr);
            assert!(!output.stdout.is_empty(), "{pack}: {command} shows nothing");
        }
    }
}

/// The lines of a run in a demo, sorted, because parallel work is reported as it
/// happens; and without commits, which have other names every second.
fn told(shown: &str) -> Vec<String> {
    let is_commit = |word: &str| word.len() >= 7 && word.chars().all(|c| c.is_ascii_hexdigit());
    let plain = |line: &str| {
        let words = line.split_inclusive(|c: char| !c.is_alphanumeric());
        words
            .filter(|word| !is_commit(word.trim_end_matches(|c: char| !c.is_alphanumeric())))
            .collect()
    };
    let run = shown.lines().filter(|line| line.starts_with("TIME ") || line.starts_with("exit "));
    let mut lines: Vec<String> = run.map(plain).collect();
    lines.sort_unstable();
    lines
}

#[test]
fn the_first_commit_of_a_demo_is_the_same_every_time() {
    let project = empty_project();
    small(&project, PLAN);
    let commit = |keep: &str| {
        stderr_of(&project, 7, &["demo", "small", "--keep", keep]);
        asked(&project.path(keep), &["rev-parse", "HEAD"])
    };
    assert_eq!(commit("one"), commit("other"));
}

#[test]
fn an_ejected_demo_is_the_same_and_one_with_a_reply_less_is_not() {
    // In the short form only two, as each of them is played twice.
    let packs = with_demo();
    let all = std::env::var_os("COUNTERFOIL_ALL_EJECTED").is_some();
    let count = if all { packs.len() } else { 2 };
    for pack in packs.into_iter().take(count) {
        let project = empty_project();
        stderr_of(&project, 0, &["pack", "eject", pack, pack]);
        let whole = project.snapshot(&["demo", pack, "--verbose", "--keep", "whole"]);
        let ejected =
            project.snapshot(&["demo", &format!("./{pack}"), "--verbose", "--keep", "ejected"]);
        assert!(told(&whole).len() > 3, "{whole}");
        assert_eq!(told(&whole), told(&ejected), "{pack}");
        if pack != with_demo()[0] {
            continue;
        }
        let script = project.read("whole/.counterfoil/script.yaml");
        let mut script: Value = serde_saphyr::from_str(&script).unwrap();
        script["replies"].as_array_mut().unwrap().remove(0);
        project.write("shorter.yaml", script.to_string());
        let shorter = project.snapshot(&["demo", pack, "--verbose", "--script", "shorter.yaml"]);
        assert_ne!(told(&whole), told(&shorter), "{pack}: {shorter}");
    }
}

#[test]
fn the_repository_has_one_commit_changes_over_it_and_the_run() {
    let project = empty_project();
    small(&project, &format!("{PLAN}ends: blocked\n"));
    stderr_of(&project, 0, &["demo", "small", "--keep", "kept"]);
    let repo = project.path("kept");
    assert_eq!(asked(&repo, &["log", "--format=%an: %s"]), "Counterfoil demo: Begin\n");
    assert_eq!(
        asked(&repo, &["ls-tree", "-r", "--format=%(objectmode) %(path)", "HEAD"]),
        "100644 a.txt\n100755 run.sh\n"
    );
    assert_eq!(asked(&repo, &["status", "--porcelain", "-uall"]), " M a.txt\n?? new/b.txt\n");
    let report = project.run_json(&["show", "last", "--repo", "kept", "--format", "json"]).report;
    assert_eq!((&report["outcome"], &report["workflow"]), (&"blocked".into(), &"small".into()));
    assert!(project.read("kept/.counterfoil/script.yaml").contains("fix_info"));
    let prompt = report["attempts"][0]["replies"][0]["transcript"].as_str().unwrap();
    assert!(
        project.read(format!("kept/.counterfoil/{prompt}.prompt")).starts_with("Say it 3 times")
    );
}

#[test]
fn a_demo_that_ends_otherwise_than_planned_ends_as_the_run_did() {
    let project = empty_project();
    small(&project, PLAN);
    let words = stderr_of(&project, 7, &["demo", "small"]);
    assert!(words.contains("This demo should have ended as 'done'."), "{words}");
    assert!(words.contains("it is not done"), "{words}");
}

#[test]
fn the_last_command_of_a_demo_runs_it_again_with_the_script() {
    let project = empty_project();
    small(&project, &format!("{PLAN}ends: blocked\n"));
    std::os::unix::fs::symlink(crate::PROGRAM, project.path("my tool")).unwrap();
    let begin = "'./my tool' demo small --keep kept";
    let output = project.command_of("sh", &["-ec", begin]).output();
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    let again = output.stderr.lines().last().unwrap();
    assert!(again.contains("/my tool' demo small --script "), "{again}");
    let output = project.command_of("sh", &["-ec", again]).output();
    assert_eq!(output.code, Some(0), "{again}: {}", output.stderr);
}

#[test]
fn what_git_is_set_to_elsewhere_does_not_matter() {
    let project = empty_project();
    small(&project, &format!("{PLAN}ends: blocked\n"));
    project.write("templates/hooks/pre-commit", "#!/bin/sh\nexit 1\n");
    project.write("ignored", "*.txt\n");
    let here = project.repo().to_owned();
    let set = format!(
        "[init]\ntemplateDir = {0}/templates\ndefaultBranch = odd\n[core]\nhooksPath = {0}/templates/hooks\nexcludesFile = {0}/ignored\n[commit]\ngpgSign = true\n[gpg]\nprogram = false\n[user]\nuseConfigOnly = true\n",
        here.display()
    );
    project.write(".gitconfig", &set);
    let mut command = project.command(&["demo", "small", "--keep", "kept"]);
    let output = command
        .env("HOME", &here)
        .env("GIT_DIR", here.join("nowhere"))
        .env("GIT_AUTHOR_NAME", "Somebody else")
        .output();
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    let repo = here.join("kept");
    assert_eq!(asked(&repo, &["log", "--format=%D %an %G?"]), "HEAD -> main Counterfoil demo N\n");
    assert!(!repo.join(".git/hooks").exists());
    assert!(asked(&repo, &["ls-files"]).contains("a.txt"));
}

#[test]
fn a_machine_without_git_is_told_so() {
    let project = empty_project();
    let mut command = project.command(&["demo"]);
    let output = command.env("PATH", project.root_path("tmp")).output();
    assert_eq!(output.code, Some(2));
    let words = output.stderr;
    assert!(words.contains("git is not installed") && words.contains("demo contracts"), "{words}");
    assert_eq!(std::fs::read_dir(project.root_path("tmp")).unwrap().count(), 0, "nothing is left");
}

#[test]
fn the_prompt_of_demo_contracts_fits_a_terminal_of_80_columns() {
    let project = empty_project();
    let program =
        project.command::<&str>(&[]).as_std().get_program().to_string_lossy().into_owned();
    let line = format!("stty rows 40 cols 80; '{program}' demo contracts");
    let mut terminal = project.command_of("script", &["-qefc", &line, "/dev/null"]);
    let shown = terminal.output().stdout.replace('\r', "");
    let mut quoted = shown.lines().filter(|line| line.starts_with("  > "));
    assert!(quoted.all(|line| line.chars().count() <= 80), "{shown}");
    for lines in [
        "Whether the definition of done is\nreached, check by check\n",
        "`test_results.passed` and\n  >   `test_results.failed` together exceed",
    ] {
        assert!(shown.contains(lines), "{lines}\n{shown}");
    }
}

#[test]
fn what_is_wrong_with_a_demo_is_found_before_anything_is_made() {
    let project = empty_project();
    for (plan, word) in [
        ("about: x\nends: well\n", "not an outcome of a run"),
        ("about: x\ntask: x\ninputs: { times: many }\n", "input 'times'"),
        ("about: [\n", "demo/demo.yaml of the folder small is not valid"),
    ] {
        small(&project, plan);
        let words = stderr_of(&project, 2, &["demo", "small"]);
        assert!(words.contains(word), "{word}: {words}");
    }
    small(&project, PLAN);
    project.write("full/mine.txt", "mine");
    let words = stderr_of(&project, 2, &["demo", "small", "--keep", "full"]);
    assert!(words.contains("full is not empty"), "{words}");
    std::fs::remove_file(project.path("small/demo/script.yaml")).unwrap();
    let words = stderr_of(&project, 2, &["demo", "small"]);
    assert!(words.contains("demo/script.yaml is missing"), "{words}");
    assert_eq!(std::fs::read_dir(project.root_path("tmp")).unwrap().count(), 0, "nothing is left");
    assert_eq!(std::fs::read_dir(project.path("full")).unwrap().count(), 1);
}
