//! Demos: real runs in repositories that are left for looking.

use crate::git::git;
use crate::place::Place;
use serde_json::Value;
use std::path::Path;

const PACK: &str = "execution-loop";

/// What git says in a repository that a demo left.
fn asked(repo: &Path, arguments: &[&str]) -> String {
    let output = git(repo, arguments).output().unwrap();
    assert!(
        output.status.success(),
        "git {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
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
fn small(place: &Place, plan: &str) {
    place.file(
        "small/workflow.yaml",
        "workflow: small\nsummary: Says something\ninputs: { task: string, times: integer }\n\
         agents: { worker: { contract: execution-loop/qa, prompt: \"{{ task }} {{ times }} times\" } }\n\
         start: work\nstates:\n  work:\n    agent: worker\n    next: [{ when: result.dod_achieved, go: done }, { go: stuck, reason: \"'it is not done'\" }]\n  \
         done: { end: done }\n  stuck: { end: blocked }\n",
    );
    place.file(
        "small/demo/script.yaml",
        "replies: [{ agent: worker, text: '{\"dod_achieved\": false, \"checks\": [], \"fix_info\": \"no\"}' }]\n",
    );
    place.file("small/demo/demo.yaml", plan);
    place.file("small/demo/repo/a.txt", "as committed\n");
    place.file("small/demo/repo/run.sh", "#!/bin/sh\n");
    place.file("small/demo/changes/a.txt", "changed\n");
    place.file("small/demo/changes/new/b.txt", "added\n");
}

const PLAN: &str = "task: Say it\ninputs: { times: 3 }\nabout: It says it, and stops.\n";

#[test]
fn a_demo_shows_the_run_and_says_where_to_look() {
    let place = Place::new();
    small(
        &place,
        &format!(
            "{PLAN}ends: blocked\nlook: ['git -C {{repo}} log --oneline: one commit', 'counterfoil show {{run}} --repo {{repo}}: the story']\n"
        ),
    );
    insta::assert_snapshot!("demo", place.shown(&["demo", "small", "--keep", "kept"]));
}

#[test]
fn every_demo_ends_as_it_says_and_every_command_it_shows_works() {
    assert!(with_demo().contains(&PACK));
    for pack in with_demo() {
        let place = Place::new();
        let words = place.words(0, &["demo", pack]);
        let name = format!("counterfoil-demo-{pack}-");
        let made: Vec<String> = std::fs::read_dir(place.path("tmp"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|made| made.starts_with(&name))
            .collect();
        assert_eq!(made.len(), 1, "{made:?}");
        assert!(words.contains(&made[0]), "{pack}: {words}");
        let looks = looks(&words);
        assert!(!looks.is_empty(), "{pack}: {words}");
        for command in looks {
            let output = place.any(Path::new("sh"), &["-ec", command]).output().unwrap();
            assert!(
                output.status.success(),
                "{pack}: {command}: {}",
                String::from_utf8_lossy(&output.stderr)
            );
            assert!(!output.stdout.is_empty(), "{pack}: {command} shows nothing");
        }
    }
}

/// The lines of a run in a demo, without their order, since what runs side by side is told as it
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
    let place = Place::new();
    small(&place, PLAN);
    let commit = |keep: &str| {
        place.words(7, &["demo", "small", "--keep", keep]);
        asked(&place.path("here").join(keep), &["rev-parse", "HEAD"])
    };
    assert_eq!(commit("one"), commit("other"));
}

#[test]
fn an_ejected_demo_is_the_same() {
    for pack in with_demo() {
        let place = Place::new();
        place.words(0, &["pack", "eject", pack, pack]);
        let one = place.shown(&["demo", pack, "--keep", "one"]);
        let other = place.shown(&["demo", &format!("./{pack}"), "--keep", "other"]);
        assert!(told(&one).len() > 3, "{one}");
        assert_eq!(told(&one), told(&other), "{pack}");
    }
}

#[test]
fn the_repository_has_one_commit_changes_over_it_and_the_run() {
    let place = Place::new();
    small(&place, &format!("{PLAN}ends: blocked\n"));
    place.words(0, &["demo", "small", "--keep", "kept"]);
    let repo = place.path("here/kept");
    assert_eq!(asked(&repo, &["log", "--format=%an: %s"]), "Counterfoil demo: Begin\n");
    assert_eq!(
        asked(&repo, &["ls-tree", "-r", "--format=%(objectmode) %(path)", "HEAD"]),
        "100644 a.txt\n100755 run.sh\n"
    );
    assert_eq!(asked(&repo, &["status", "--porcelain", "-uall"]), " M a.txt\n?? new/b.txt\n");
    let report = place.json(&["show", "last", "--repo", "kept", "--format", "json"]);
    assert_eq!((&report["outcome"], &report["workflow"]), (&"blocked".into(), &"small".into()));
    assert!(place.read("kept/.counterfoil/script.yaml").contains("fix_info"));
    let prompt = report["attempts"][0]["replies"][0]["transcript"].as_str().unwrap();
    assert!(
        place.read(&format!("kept/.counterfoil/{prompt}.prompt")).starts_with("Say it 3 times")
    );
}

#[test]
fn a_demo_that_ends_otherwise_than_planned_ends_as_the_run_did() {
    let place = Place::new();
    small(&place, PLAN);
    let words = place.words(7, &["demo", "small"]);
    assert!(words.contains("this demo should have ended as 'done'"), "{words}");
    assert!(words.contains("it is not done"), "{words}");
}

#[test]
fn taking_a_reply_out_of_the_script_changes_what_happens() {
    for pack in with_demo() {
        let place = Place::new();
        let whole = place.shown(&["demo", pack, "--keep", "kept"]);
        let script = place.read("kept/.counterfoil/script.yaml");
        let mut script: Value = serde_saphyr::from_str(&script).unwrap();
        script["replies"].as_array_mut().unwrap().remove(0);
        place.file("shorter.yaml", &script.to_string());
        let shorter = place.shown(&["demo", pack, "--script", "shorter.yaml"]);
        assert_ne!(told(&whole), told(&shorter), "{pack}: {shorter}");
    }
}

#[test]
fn what_git_is_set_to_elsewhere_does_not_matter() {
    let place = Place::new();
    small(&place, &format!("{PLAN}ends: blocked\n"));
    place.file("templates/hooks/pre-commit", "#!/bin/sh\nexit 1\n");
    place.file("ignored", "*.txt\n");
    let here = place.path("here");
    let set = format!(
        "[init]\ntemplateDir = {0}/templates\ndefaultBranch = odd\n[core]\nhooksPath = {0}/templates/hooks\nexcludesFile = {0}/ignored\n[commit]\ngpgSign = true\n[gpg]\nprogram = false\n[user]\nuseConfigOnly = true\n",
        here.display()
    );
    place.file(".gitconfig", &set);
    let mut command = place.command(&["demo", "small", "--keep", "kept"]);
    let output = command
        .env("HOME", &here)
        .env("GIT_DIR", here.join("nowhere"))
        .env("GIT_AUTHOR_NAME", "Somebody else")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let repo = here.join("kept");
    assert_eq!(asked(&repo, &["log", "--format=%D %an %G?"]), "HEAD -> main Counterfoil demo N\n");
    assert!(!repo.join(".git/hooks").exists());
    assert!(asked(&repo, &["ls-files"]).contains("a.txt"));
}

#[test]
fn a_machine_without_git_is_told_so() {
    let place = Place::new();
    let mut command = place.command(&["demo"]);
    let output = command.env("PATH", place.path("tmp")).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let words = String::from_utf8(output.stderr).unwrap();
    assert!(words.contains("git is not installed") && words.contains("demo contracts"), "{words}");
    assert_eq!(std::fs::read_dir(place.path("tmp")).unwrap().count(), 0, "nothing is left");
}

#[test]
fn what_is_wrong_with_a_demo_is_found_before_anything_is_made() {
    let place = Place::new();
    for (plan, word) in [
        ("about: x\nends: well\n", "not an outcome of a run"),
        ("about: x\ntask: x\ninputs: { times: many }\n", "input 'times'"),
        ("about: [\n", "demo/demo.yaml of the folder small is not valid"),
    ] {
        small(&place, plan);
        let words = place.words(2, &["demo", "small"]);
        assert!(words.contains(word), "{word}: {words}");
    }
    small(&place, PLAN);
    place.file("full/mine.txt", "mine");
    let words = place.words(2, &["demo", "small", "--keep", "full"]);
    assert!(words.contains("full is not empty"), "{words}");
    std::fs::remove_file(place.path("here/small/demo/script.yaml")).unwrap();
    let words = place.words(2, &["demo", "small"]);
    assert!(words.contains("demo/script.yaml is missing"), "{words}");
    assert_eq!(std::fs::read_dir(place.path("tmp")).unwrap().count(), 0, "nothing is left");
    assert_eq!(std::fs::read_dir(place.path("here/full")).unwrap().count(), 1);
}
