//! Built-in steps of the engine: read a file, list changes, commit.

use crate::shell_project::{ShellProject, run_arguments};
use counterfoil_testkit::{CommandOutput, TIMEOUT, wait_until};
use serde_json::{Value, json};
use std::process::Command;

fn git(project: &ShellProject, arguments: &[&str]) -> String {
    // Hooks run here, unlike in `TestProject::git`.
    let mut command = Command::new("git");
    command.args(arguments).current_dir(project.repo()).env_clear();
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("LC_ALL", "C");
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
    for who in ["AUTHOR", "COMMITTER"] {
        command
            .env(format!("GIT_{who}_NAME"), "Ann")
            .env(format!("GIT_{who}_EMAIL"), "ann@example.com");
    }
    let output: CommandOutput = command.output().unwrap().into();
    assert!(output.is_success(), "git {arguments:?}: {}", output.stderr);
    output.stdout
}

/// A project whose repository is one of git's, with a workflow in it.
fn project_with(workflow: &str) -> ShellProject {
    let project = ShellProject::new();
    project.write("flow.yaml", workflow);
    project.write("script.yaml", "replies: []\n");
    git(&project, &["init", "-q", "-b", "main"]);
    for (key, value) in [("user.name", "Kim"), ("user.email", "kim@example.com")] {
        git(&project, &["config", key, value]);
    }
    git(&project, &["add", "-A"]);
    git(&project, &["commit", "-q", "-m", "begin"]);
    project
}

/// A workflow of one commit.
fn one_commit(paths: &str) -> String {
    format!(
        "workflow: keep\nstart: keep\nstates:\n  keep:\n    commit: {{ message: \"feat: it\", paths: {paths} }}\n    \
         next: [{{ when: result.ok, go: done }}, {{ go: stuck, reason: result.output }}]\n  \
         done: {{ end: done }}\n  stuck: {{ end: blocked }}\n"
    )
}

fn hook(project: &ShellProject, name: &str, script: &str) {
    project.write_program(format!(".git/hooks/{name}"), script);
}

fn subjects(project: &ShellProject) -> Vec<String> {
    git(project, &["log", "--format=%s"]).lines().map(str::to_owned).collect()
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

fn run(project: &ShellProject) -> (i32, Value) {
    let output = project.run_workflow("flow.yaml", "script:repo/script.yaml");
    (output.code.unwrap(), output.json())
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

fn rounds() -> ShellProject {
    let project = project_with(ROUNDS);
    let reply = |n: u32| {
        format!(
            "  - {{ agent: worker, text: '{{\"ok\": true}}', writes: {{ made.txt: \"{n}\", made{n}.txt: x }} }}\n"
        )
    };
    project.write("script.yaml", format!("replies:\n{}{}{}", reply(1), reply(2), reply(3)));
    git(&project, &["commit", "-q", "-am", "script"]);
    project.write("mine.txt", "of the user");
    project
}

#[test]
fn what_agents_changed_is_committed_visit_after_visit() {
    let project = rounds();
    let base = git(&project, &["rev-parse", "HEAD"]);
    let (code, report) = run(&project);
    assert_eq!((code, &report["outcome"]), (0, &json!("done")), "{report}");
    assert_eq!(
        subjects(&project),
        ["feat: round 2", "feat: round 1", "feat: round 0", "script", "begin"]
    );
    let id = report["run"].as_str().unwrap();
    let trailers = git(
        &project,
        &["log", "-3", "--format=%(trailers:key=Counterfoil-Step,valueonly,separator=)"],
    );
    let expected: Vec<String> =
        [3, 2, 1].iter().map(|visit| format!("{id}/keep/{visit}")).collect();
    assert_eq!(trailers.lines().collect::<Vec<_>>(), expected);
    assert_eq!(git(&project, &["show", "--format=", "--name-only"]), "made.txt\nmade3.txt\n");
    assert_eq!(
        git(&project, &["status", "--porcelain"]),
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
    let project = rounds();
    run(&project);
    let told = project.run(&["show", "last", "--timeline"]).stdout;
    let commit = git(&project, &["rev-parse", "HEAD~2"]);
    for words in [
        format!("✓ keep: commit feat: round 0: committed {}, 2 files", &commit[..12]),
        "✓ keep: commit feat: round 1, visit 2: committed".to_owned(),
        "✓ look: changes since ".to_owned(),
        ": 5 files, 5 lines added, 0 removed, 1 chunk".to_owned(),
    ] {
        assert!(told.contains(&words), "{words}\n{told}");
    }
    project.write("flow.yaml", one_commit("[made.txt]"));
    let live = project.run(&["run", "repo/flow.yaml"]).stderr;
    assert!(live.contains("· keep: commit feat: it\n"), "{live}");
    assert!(live.contains("✓ keep: nothing to commit"), "{live}");
    hook(&project, "pre-commit", "echo no such luck; exit 1");
    project.write("mine.txt", "more");
    project.write("flow.yaml", one_commit("[mine.txt]"));
    let live = project.run(&["run", "repo/flow.yaml"]).stderr;
    assert!(live.contains("✗ keep: not committed: no such luck"), "{live}");
}

#[test]
fn a_file_is_read_and_its_absence_is_answered() {
    let project = project_with(
        "workflow: load\ncontracts: [contracts]\nvariables: { note: string? }\nstart: load\nstates:\n  load:\n    \
         read: \"plan/{{ run.workflow }}.yaml\"\n    contract: acme/ok\n    on: { blocked: { go: missing, reason: problem.reason } }\n    \
         next: [{ set: { note: result.note }, go: done }]\n  missing: { end: blocked }\n  done: { end: done }\n",
    );
    let (code, report) = run(&project);
    assert_eq!((code, &report["state"]), (7, &json!("missing")), "{report}");
    assert_eq!(report["reason"], "'plan/load.yaml' cannot be read: it does not exist");
    assert_eq!(commands(&report), ["load#1 blocked"]);
    let ended =
        project.events().into_iter().find(|event| event["kind"] == "attempt-ended").unwrap();
    assert_eq!(ended["outcome"], "blocked");
    project.write("plan/load.yaml", "ok: true\nnote: from the file\n");
    let (code, report) = run(&project);
    assert_eq!((code, &report["variables"]["note"]), (0, &json!("from the file")), "{report}");
    assert_eq!(report["commands"][0]["contract"], "acme/ok@1");
    project.write("plan/load.yaml", "ok: perhaps\n");
    let (code, report) = run(&project);
    assert_eq!((code, &report["cause"]), (1, &json!("contract")), "{report}");
}

#[test]
fn a_commit_is_the_users_or_nobodys() {
    let who =
        |project: &ShellProject| git(project, &["log", "-1", "--format=%an <%ae>, %cn <%ce>"]);
    let commit = |project: &ShellProject, text: &str, variables: &[(&str, &str)]| {
        project.write("a.txt", text);
        let mut command = project.command(&run_arguments("flow.yaml", "script:repo/script.yaml"));
        command.envs(variables.iter().copied());
        project.start_command(&mut command).wait().expect(0, &[]);
    };
    let project = project_with(&one_commit("[a.txt]"));
    commit(&project, "1", &[]);
    assert_eq!(who(&project), "Kim <kim@example.com>, Kim <kim@example.com>\n");
    let pat = [("GIT_AUTHOR_NAME", "Pat"), ("GIT_AUTHOR_EMAIL", "pat@example.com")];
    commit(&project, "2", &pat);
    assert_eq!(who(&project), "Pat <pat@example.com>, Kim <kim@example.com>\n");
    git(&project, &["config", "--unset", "user.email"]);
    git(&project, &["config", "user.useConfigOnly", "true"]);
    commit(&project, "3", &[]);
    assert_eq!(
        who(&project),
        "Kim <counterfoil@localhost>, Kim <counterfoil@localhost>\n",
        "what is known is kept"
    );
    git(&project, &["config", "--unset", "user.name"]);
    commit(&project, "4", &[]);
    assert_eq!(
        who(&project),
        "counterfoil <counterfoil@localhost>, counterfoil <counterfoil@localhost>\n"
    );
}

#[test]
fn another_repository_that_the_environment_names_is_not_meant() {
    let project = project_with(&one_commit("[a.txt]"));
    let other = project_with(&one_commit("[a.txt]"));
    project.write("a.txt", "1");
    let mut command = project.command(&run_arguments("flow.yaml", "script:repo/script.yaml"));
    command
        .env("GIT_DIR", other.repo().join(".git"))
        .env("GIT_INDEX_FILE", other.repo().join(".git/index"));
    project.start_command(&mut command).wait().expect(0, &[]);
    assert_eq!((subjects(&project).len(), subjects(&other).len()), (2, 1));
}

/// A hook that hangs the first time it runs, and leaves a file that says so.
const HANGS_ONCE: &str =
    "if mkdir .git/first 2> /dev/null; then echo > .git/hooked; exec sleep 300; fi";

/// Starts a run, and kills it while a hook is at work.
fn killed_in(name: &str) -> ShellProject {
    let project = project_with(&one_commit("[a.txt, new.txt]"));
    project.write("a.txt", "1");
    git(&project, &["add", "a.txt"]);
    git(&project, &["commit", "-q", "-m", "a"]);
    project.write("a.txt", "2");
    project.write("new.txt", "1");
    // What a hook puts behind the trailer does not hide it.
    hook(&project, "commit-msg", "printf '\\nChecked by a hook.\\n' >> \"$1\"");
    hook(&project, name, HANGS_ONCE);
    let live = project.start(&run_arguments("flow.yaml", "script:repo/script.yaml"));
    wait_until(TIMEOUT, "the hook runs", || {
        project.repo().join(".git/hooked").exists().then_some(())
    });
    assert!(live.kill());
    project
}

#[test]
fn a_commit_that_was_killed_before_it_was_made_is_made_once() {
    let project = killed_in("pre-commit");
    let output = project.run(&["resume", "last", "--format", "json"]);
    output.expect(0, &[]);
    let report = output.json();
    assert_eq!(commands(&report), ["keep#1 cancelled", "keep#2 accepted"]);
    assert_eq!(report["commands"][1]["value"]["files"], json!(["a.txt", "new.txt"]), "{report}");
    assert_eq!(subjects(&project), ["feat: it", "a", "begin"]);
    assert_eq!(git(&project, &["status", "--porcelain"]), "");
    assert!(!project.repo().join(".git/index.lock").exists());
}

#[test]
fn a_commit_that_was_made_before_a_kill_is_found_and_not_made_again() {
    let project = killed_in("post-commit");
    let made = git(&project, &["rev-parse", "HEAD"]);
    // Somebody goes on with the file before the run does.
    project.write("a.txt", "3");
    let output = project.run(&["resume", "last", "--format", "json"]);
    output.expect(0, &[]);
    let report = output.json();
    assert_eq!(commands(&report), ["keep#1 cancelled", "keep#2 accepted"]);
    let value = &report["commands"][1]["value"];
    assert_eq!(
        (value["commit"].as_str().unwrap(), &value["files"]),
        (made.trim(), &json!(["a.txt", "new.txt"]))
    );
    assert_eq!(subjects(&project), ["feat: it", "a", "begin"]);
    assert_eq!(git(&project, &["status", "--porcelain"]), " M a.txt\n");
}

#[test]
fn a_commit_that_is_stopped_is_made_when_the_run_goes_on() {
    let project = project_with(&one_commit("[new.txt]"));
    project.write("new.txt", "1");
    hook(&project, "pre-commit", HANGS_ONCE);
    let live = project.start(&run_arguments("flow.yaml", "script:repo/script.yaml"));
    wait_until(TIMEOUT, "the hook runs", || {
        project.repo().join(".git/hooked").exists().then_some(())
    });
    live.signal("INT");
    live.wait().expect(130, &[]);
    assert_eq!(
        (git(&project, &["status", "--porcelain"]).as_str(), subjects(&project).len()),
        ("?? new.txt\n", 1)
    );
    project.run(&["resume", "last", "--format", "json"]).expect(0, &[]);
    assert_eq!(subjects(&project), ["feat: it", "begin"]);
}

#[test]
fn items_that_commit_beside_each_other_take_turns() {
    let project = project_with(
        "workflow: many\nvariables: { names: { type: [string], initial: [a, b, c, d] } }\nstart: all\nstates:\n  \
         all: { each: { in: names, as: name, key: name, parallel: 4, run: one, with: { name: name } }, go: done }\n  \
         done: { end: done }\nworkflows:\n  one:\n    inputs: { name: string }\n    start: keep\n    states:\n      \
         keep: { commit: { message: \"feat({{ name }}): it\", paths: \"[name + '.txt']\" }, \
         next: [{ when: \"result.ok && result.commit != ''\", go: done }, { go: stuck, reason: result.output }] }\n      \
         done: { end: done }\n      stuck: { end: blocked }\n",
    );
    for name in ["a", "b", "c", "d"] {
        project.write(format!("{name}.txt"), name);
    }
    let (code, report) = run(&project);
    assert_eq!(code, 0, "{report}");
    let mut made = subjects(&project);
    made.sort();
    assert_eq!(made, ["begin", "feat(a): it", "feat(b): it", "feat(c): it", "feat(d): it"]);
}

#[test]
fn in_a_worktree_what_is_done_there_is_seen_and_read() {
    let project = project_with(
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
    variables: { output: string?, seen: { type: [string], initial: [] } }
    start: work
    states:
      work: { agent: worker, go: load }
      load: { read: made.txt, next: [{ set: { output: result.text }, go: look }] }
      look: { changes: {}, next: [{ set: { seen: \"result.files.map(f, f.change + ' ' + f.path)\" }, go: done }] }
      done: { end: done, result: \"seen + (output == null ? [] : [output])\" }
",
    );
    project.write(
        "script.yaml",
        "replies:\n  - { agent: worker, text: '{\"ok\": true}', writes: { made.txt: of the agent } }\n",
    );
    project.write("mine.txt", "of the user");
    let (code, report) = run(&project);
    assert_eq!(code, 0, "{report}");
    assert_eq!(
        report["variables"]["seen"],
        json!(["added made.txt", "added mine.txt", "modified script.yaml", "of the agent"])
    );
    assert_eq!(project.read_or_empty("made.txt"), "of the agent", "it is folded back");
}
