//! What the engine does itself in a state: a file is read, changes are looked at, something is
//! committed.

use crate::house::{House, LONG, starting, until};
use serde_json::{Value, json};
use std::process::Command;

fn git(house: &House, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    command.args(arguments).current_dir(house.repo()).env_clear();
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("LC_ALL", "C");
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
    for who in ["AUTHOR", "COMMITTER"] {
        command
            .env(format!("GIT_{who}_NAME"), "Ann")
            .env(format!("GIT_{who}_EMAIL"), "ann@example.com");
    }
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "git {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// A house whose repository is one of git's, with a workflow in it.
fn house_of(workflow: &str) -> House {
    let house = House::new();
    house.file("flow.yaml", workflow);
    house.file("script.yaml", "replies: []\n");
    git(&house, &["init", "-q", "-b", "main"]);
    for (key, value) in [("user.name", "Kim"), ("user.email", "kim@example.com")] {
        git(&house, &["config", key, value]);
    }
    git(&house, &["add", "-A"]);
    git(&house, &["commit", "-q", "-m", "begin"]);
    house
}

/// A workflow of one commit.
fn one_commit(paths: &str) -> String {
    format!(
        "workflow: keep\nstart: keep\nstates:\n  keep:\n    commit: {{ message: \"feat: it\", paths: {paths} }}\n    \
         next: [{{ when: result.ok, go: done }}, {{ go: stuck, reason: result.output }}]\n  \
         done: {{ end: done }}\n  stuck: {{ end: blocked }}\n"
    )
}

fn hook(house: &House, name: &str, script: &str) {
    use std::os::unix::fs::PermissionsExt;
    let path = house.file(&format!(".git/hooks/{name}"), format!("#!/bin/sh\n{script}\n"));
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn subjects(house: &House) -> Vec<String> {
    git(house, &["log", "--format=%s"]).lines().map(str::to_owned).collect()
}

/// Each command of a report as `path#n outcome`.
fn commands(report: &Value) -> Vec<String> {
    let one = |command: &Value| {
        format!(
            "{}#{} {}",
            command["path"][0].as_str().unwrap(),
            command["n"],
            command["outcome"].as_str().unwrap()
        )
    };
    report["commands"].as_array().unwrap().iter().map(one).collect()
}

fn run(house: &House) -> (i32, Value) {
    let said = house.work("flow.yaml", "script:repo/script.yaml");
    (said.code.unwrap(), said.report())
}

const ROUNDS: &str = "
workflow: rounds
agents: { worker: { contract: acme/ok, prompt: \"Round {{ counts.rounds }}.\" } }
contracts: [contracts]
variables: { seen: { type: [string], initial: [] }, range: string? }
limits: { rounds: { max: 2, then: look } }
start: work
states:
  work: { agent: worker, go: keep }
  keep:
    commit: { message: \"feat: round {{ counts.rounds }}\" }
    next: [{ when: result.ok, go: work, counts: rounds }, { go: stuck }]
  look:
    changes: {}
    next: [{ set: { seen: \"result.files.map(file, file.path)\", range: result.base }, go: done }]
  done: { end: done }
  stuck: { end: blocked }
";

fn rounds() -> House {
    let house = house_of(ROUNDS);
    let reply = |n: u32| {
        format!(
            "  - {{ agent: worker, text: '{{\"ok\": true}}', writes: {{ made.txt: \"{n}\", made{n}.txt: x }} }}\n"
        )
    };
    house.file("script.yaml", format!("replies:\n{}{}{}", reply(1), reply(2), reply(3)));
    git(&house, &["commit", "-q", "-am", "script"]);
    house.file("mine.txt", "of the user");
    house
}

#[test]
fn what_agents_changed_is_committed_visit_after_visit() {
    let house = rounds();
    let base = git(&house, &["rev-parse", "HEAD"]);
    let (code, report) = run(&house);
    assert_eq!((code, &report["outcome"]), (0, &json!("done")), "{report}");
    assert_eq!(
        subjects(&house),
        ["feat: round 2", "feat: round 1", "feat: round 0", "script", "begin"]
    );
    let id = report["run"].as_str().unwrap();
    let trailers = git(
        &house,
        &["log", "-3", "--format=%(trailers:key=Counterfoil-Step,valueonly,separator=)"],
    );
    let expected: Vec<String> =
        [3, 2, 1].iter().map(|visit| format!("{id}/keep/{visit}")).collect();
    assert_eq!(trailers.lines().collect::<Vec<_>>(), expected);
    assert_eq!(git(&house, &["show", "--format=", "--name-only"]), "made.txt\nmade3.txt\n");
    assert_eq!(
        git(&house, &["status", "--porcelain"]),
        "?? mine.txt\n",
        "what is the user's is left to them"
    );
    assert_eq!(report["variables"]["range"].as_str().unwrap(), base.trim());
    assert_eq!(
        report["variables"]["seen"],
        json!(["made.txt", "made1.txt", "made2.txt", "made3.txt", "mine.txt"])
    );
    assert_eq!(report["commands"][0]["deed"], json!({"commit": "feat: round 0"}));
    assert_eq!(report["commands"][3]["deed"], json!({"changes": base.trim()}));
}

#[test]
fn it_is_told_in_words_of_its_own() {
    let house = rounds();
    run(&house);
    let told = house.run(&["show", "last"]).out;
    let commit = git(&house, &["rev-parse", "HEAD~2"]);
    for words in [
        format!("✓ keep: commit feat: round 0: committed {}, 2 files", &commit[..12]),
        "✓ keep: commit feat: round 1, attempt 2: committed".to_owned(),
        "✓ look: changes since ".to_owned(),
        ": 5 files, 5 lines added, 0 removed, 1 chunk".to_owned(),
    ] {
        assert!(told.contains(&words), "{words}\n{told}");
    }
    house.file("flow.yaml", one_commit("[made.txt]"));
    let live = house.run(&["run", "repo/flow.yaml"]).err;
    assert!(live.contains("· keep: commit feat: it\n"), "{live}");
    assert!(live.contains("✓ keep: nothing to commit"), "{live}");
    hook(&house, "pre-commit", "echo no such luck; exit 1");
    house.file("mine.txt", "more");
    house.file("flow.yaml", one_commit("[mine.txt]"));
    let live = house.run(&["run", "repo/flow.yaml"]).err;
    assert!(live.contains("✗ keep: not committed: no such luck"), "{live}");
}

#[test]
fn a_file_is_read_and_its_absence_is_answered() {
    let house = house_of(
        "workflow: load\ncontracts: [contracts]\nvariables: { note: string? }\nstart: load\nstates:\n  load:\n    \
         read: \"plan/{{ run.workflow }}.yaml\"\n    contract: acme/ok\n    on: { blocked: { go: missing, reason: problem.reason } }\n    \
         next: [{ set: { note: result.note }, go: done }]\n  missing: { end: blocked }\n  done: { end: done }\n",
    );
    let (code, report) = run(&house);
    assert_eq!((code, &report["state"]), (7, &json!("missing")), "{report}");
    assert_eq!(report["reason"], "'plan/load.yaml' cannot be read: it is not there");
    assert_eq!(commands(&report), ["load#1 blocked"]);
    let ended = house.events().into_iter().find(|event| event["kind"] == "attempt-ended").unwrap();
    assert_eq!(ended["outcome"], "blocked");
    house.file("plan/load.yaml", "ok: true\nnote: from the file\n");
    let (code, report) = run(&house);
    assert_eq!((code, &report["variables"]["note"]), (0, &json!("from the file")), "{report}");
    assert_eq!(report["commands"][0]["contract"], "acme/ok@1");
    house.file("plan/load.yaml", "ok: perhaps\n");
    let (code, report) = run(&house);
    assert_eq!((code, &report["cause"]), (1, &json!("contract")), "{report}");
}

#[test]
fn a_commit_is_the_users_or_nobodys() {
    let who = |house: &House| git(house, &["log", "-1", "--format=%an <%ae>, %cn <%ce>"]);
    let commit = |house: &House, text: &str, variables: &[(&str, &str)]| {
        house.file("a.txt", text);
        let mut command = house.command(&starting("flow.yaml", "script:repo/script.yaml"));
        command.envs(variables.iter().copied());
        house.start_as(command).end().expect(0, &[]);
    };
    let house = house_of(&one_commit("[a.txt]"));
    commit(&house, "1", &[]);
    assert_eq!(who(&house), "Kim <kim@example.com>, Kim <kim@example.com>\n");
    let pat = [("GIT_AUTHOR_NAME", "Pat"), ("GIT_AUTHOR_EMAIL", "pat@example.com")];
    commit(&house, "2", &pat);
    assert_eq!(who(&house), "Pat <pat@example.com>, Kim <kim@example.com>\n");
    git(&house, &["config", "--unset", "user.email"]);
    git(&house, &["config", "user.useConfigOnly", "true"]);
    commit(&house, "3", &[]);
    assert_eq!(
        who(&house),
        "Kim <counterfoil@localhost>, Kim <counterfoil@localhost>\n",
        "what is known is kept"
    );
    git(&house, &["config", "--unset", "user.name"]);
    commit(&house, "4", &[]);
    assert_eq!(
        who(&house),
        "counterfoil <counterfoil@localhost>, counterfoil <counterfoil@localhost>\n"
    );
}

#[test]
fn another_repository_that_the_environment_names_is_not_meant() {
    let house = house_of(&one_commit("[a.txt]"));
    let other = house_of(&one_commit("[a.txt]"));
    house.file("a.txt", "1");
    let mut command = house.command(&starting("flow.yaml", "script:repo/script.yaml"));
    command
        .env("GIT_DIR", other.repo().join(".git"))
        .env("GIT_INDEX_FILE", other.repo().join(".git/index"));
    house.start_as(command).end().expect(0, &[]);
    assert_eq!((subjects(&house).len(), subjects(&other).len()), (2, 1));
}

/// A hook that hangs the first time it runs, and leaves a file that says so.
const HANGS_ONCE: &str =
    "if mkdir .git/first 2> /dev/null; then echo > .git/hooked; exec sleep 300; fi";

/// Starts a run, and kills it while a hook is at work.
fn killed_in(name: &str) -> House {
    let house = house_of(&one_commit("[a.txt, new.txt]"));
    house.file("a.txt", "1");
    git(&house, &["add", "a.txt"]);
    git(&house, &["commit", "-q", "-m", "a"]);
    house.file("a.txt", "2");
    house.file("new.txt", "1");
    // What a hook puts behind the trailer does not hide it.
    hook(&house, "commit-msg", "printf '\\nChecked by a hook.\\n' >> \"$1\"");
    hook(&house, name, HANGS_ONCE);
    let live = house.start(&starting("flow.yaml", "script:repo/script.yaml"));
    until(LONG, "the hook runs", || house.repo().join(".git/hooked").exists().then_some(()));
    assert!(live.kill());
    house
}

#[test]
fn a_commit_that_was_killed_before_it_was_made_is_made_once() {
    let house = killed_in("pre-commit");
    let said = house.run(&["resume", "last", "--format", "json"]);
    said.expect(0, &[]);
    let report = said.report();
    assert_eq!(commands(&report), ["keep#1 cancelled", "keep#2 accepted"]);
    assert_eq!(report["commands"][1]["value"]["files"], json!(["a.txt", "new.txt"]), "{report}");
    assert_eq!(subjects(&house), ["feat: it", "a", "begin"]);
    assert_eq!(git(&house, &["status", "--porcelain"]), "");
    assert!(!house.repo().join(".git/index.lock").exists());
}

#[test]
fn a_commit_that_was_made_before_a_kill_is_found_and_not_made_again() {
    let house = killed_in("post-commit");
    let made = git(&house, &["rev-parse", "HEAD"]);
    // Somebody goes on with the file before the run does.
    house.file("a.txt", "3");
    let said = house.run(&["resume", "last", "--format", "json"]);
    said.expect(0, &[]);
    let report = said.report();
    assert_eq!(commands(&report), ["keep#1 cancelled", "keep#2 accepted"]);
    let value = &report["commands"][1]["value"];
    assert_eq!(
        (value["commit"].as_str().unwrap(), &value["files"]),
        (made.trim(), &json!(["a.txt", "new.txt"]))
    );
    assert_eq!(subjects(&house), ["feat: it", "a", "begin"]);
    assert_eq!(git(&house, &["status", "--porcelain"]), " M a.txt\n");
}

#[test]
fn a_commit_that_is_stopped_is_made_when_the_run_goes_on() {
    let house = house_of(&one_commit("[new.txt]"));
    house.file("new.txt", "1");
    hook(&house, "pre-commit", HANGS_ONCE);
    let live = house.start(&starting("flow.yaml", "script:repo/script.yaml"));
    until(LONG, "the hook runs", || house.repo().join(".git/hooked").exists().then_some(()));
    live.signal("INT");
    live.end().expect(130, &[]);
    assert_eq!(
        (git(&house, &["status", "--porcelain"]).as_str(), subjects(&house).len()),
        ("?? new.txt\n", 1)
    );
    house.run(&["resume", "last", "--format", "json"]).expect(0, &[]);
    assert_eq!(subjects(&house), ["feat: it", "begin"]);
}

#[test]
fn items_that_commit_beside_each_other_take_turns() {
    let house = house_of(
        "workflow: many\nvariables: { names: { type: [string], initial: [a, b, c, d] } }\nstart: all\nstates:\n  \
         all: { each: { in: names, as: name, key: name, parallel: 4, run: one, with: { name: name } }, go: done }\n  \
         done: { end: done }\nworkflows:\n  one:\n    inputs: { name: string }\n    start: keep\n    states:\n      \
         keep: { commit: { message: \"feat({{ name }}): it\", paths: \"[name + '.txt']\" }, \
         next: [{ when: \"result.ok && result.commit != ''\", go: done }, { go: stuck, reason: result.output }] }\n      \
         done: { end: done }\n      stuck: { end: blocked }\n",
    );
    for name in ["a", "b", "c", "d"] {
        house.file(&format!("{name}.txt"), name);
    }
    let (code, report) = run(&house);
    assert_eq!(code, 0, "{report}");
    let mut made = subjects(&house);
    made.sort();
    assert_eq!(made, ["begin", "feat(a): it", "feat(b): it", "feat(c): it", "feat(d): it"]);
}

#[test]
fn in_a_worktree_what_is_done_there_is_seen_and_read() {
    let house = house_of(
        "
workflow: apart
agents: { worker: { contract: acme/ok, prompt: Do it. } }
contracts: [contracts]
variables: { seen: { type: [string], initial: [] } }
start: apart
states:
  apart: { run: one, workspace: worktree, next: [{ set: { seen: result }, go: done }] }
  done: { end: done }
workflows:
  one:
    result: [string]
    variables: { said: string?, seen: { type: [string], initial: [] } }
    start: work
    states:
      work: { agent: worker, go: load }
      load: { read: made.txt, next: [{ set: { said: result.text }, go: look }] }
      look: { changes: {}, next: [{ set: { seen: \"result.files.map(f, f.change + ' ' + f.path)\" }, go: done }] }
      done: { end: done, result: \"seen + (said == null ? [] : [said])\" }
",
    );
    house.file(
        "script.yaml",
        "replies:\n  - { agent: worker, text: '{\"ok\": true}', writes: { made.txt: of the agent } }\n",
    );
    house.file("mine.txt", "of the user");
    let (code, report) = run(&house);
    assert_eq!(code, 0, "{report}");
    assert_eq!(
        report["variables"]["seen"],
        json!(["added made.txt", "added mine.txt", "modified script.yaml", "of the agent"])
    );
    assert_eq!(house.read("made.txt"), "of the agent", "it is folded back");
}
