//! Checks that hang, fork, flood, change files, need a terminal or do not exist.

use crate::claims::{TestWorkspace, notes, open_contract, short};
use counterfoil_contract::Contract;
use counterfoil_contract::claim::{Claim, ClaimKind, EffectiveClaim, Figure, Verdict};
use counterfoil_process::StopRequest;
use serde_json::{Value, json};
use tokio::sync::watch;

fn run(line: &str) -> Claim {
    Claim { run: Some(line.to_owned()), ..Claim::new(ClaimKind::Command) }
}

fn ok() -> Value {
    json!({"ok": true})
}

#[test]
fn a_command_is_run_in_the_workspace() {
    let workspace = TestWorkspace::with(&[("good", "")]);
    for (line, says, verdict, reason) in [
        ("test -f good", true, Verdict::Verified, ""),
        (
            "test -f bad",
            true,
            Verdict::Refuted,
            "claimed to succeed, but `test -f bad` exited with 1",
        ),
        ("test -f bad", false, Verdict::Verified, ""),
        ("true", false, Verdict::Refuted, "claimed to fail, but `true` succeeds"),
        (
            "kill -9 $$",
            true,
            Verdict::Refuted,
            "claimed to succeed, but `kill -9 $$` exited with 137",
        ),
        (
            "exit 3 # with \"quotes' | and",
            true,
            Verdict::Refuted,
            "claimed to succeed, but `exit 3 # with \"quotes' | and` exited with 3",
        ),
    ] {
        let report = workspace.verify_claim("ok", run(line), &json!({ "ok": says }));
        assert_eq!(short(report), (Some(verdict), reason.to_owned()));
    }
}

#[test]
fn the_end_of_the_output_is_the_evidence() {
    let workspace = TestWorkspace::with(&[]);
    let line = "i=0; while [ $i -lt 3000 ]; do echo \"line $i äöü\"; i=$((i+1)); done; printf '\\033[31mred\\033[0m\\007'; exit 1";
    let report = workspace.verify_claim("ok", run(line), &ok()).unwrap();
    let evidence = &report.evidence[0];
    assert_eq!((evidence.kind.as_str(), evidence.exit_code), ("command", Some(1)));
    assert!(evidence.output.contains("line 2999 äöü") && evidence.output.contains("red"));
    assert!(evidence.output.len() <= 4096 && evidence.output.len() > 3000);
    assert!(!evidence.output.contains(['\u{1b}', '\u{7}', '\u{fffd}']));
}

#[test]
fn a_flood_is_heard_to_its_end() {
    let workspace = TestWorkspace::with(&[]);
    let line = "yes 'all work and no play' | head -c 60000000; echo; echo 'test result: ok. 2 passed; 0 failed; 0 ignored'";
    let report = workspace.verify_claim(
        "tests",
        run(line),
        &json!({"tests": {"total": 3, "passed": 3, "failed": 0}}),
    );
    assert_eq!(
        short(report),
        (
            Some(Verdict::Refuted),
            "claimed 3 tests in total, observed 2; claimed 3 passed, observed 2".to_owned()
        )
    );
}

#[test]
fn what_hangs_is_ended_and_what_it_started_too() {
    let workspace = TestWorkspace::with(&[]).check("[checks]\ntest = { run = \"setsid sh -c 'while :; do sleep 0.05; done' & echo $! > ../pid; sleep 60\", timeout = \"300ms\" }");
    let report = workspace.verify_claim("ok", Claim::check("test"), &ok()).unwrap();
    assert_eq!(report.verdict, Verdict::Unverifiable);
    assert!(
        report.reason.contains("took longer than 300 ms")
            && report.reason.contains("counterfoil.toml"),
        "{}",
        report.reason
    );
    let pid = std::fs::read_to_string(workspace.temp.path().join("pid")).unwrap();
    assert!(
        !std::path::Path::new("/proc").join(pid.trim()).join("cwd").exists(),
        "{pid} is still there"
    );
}

#[test]
fn a_daemon_does_not_outlive_its_check() {
    let workspace = TestWorkspace::with(&[]);
    let line =
        "setsid sh -c 'while :; do sleep 0.05; done' >/dev/null 2>&1 & echo $! > ../pid; exit 0";
    let report = workspace.verify_claim("ok", run(line), &ok()).unwrap();
    assert_eq!(report.verdict, Verdict::Verified, "{}", report.reason);
    let pid = std::fs::read_to_string(workspace.temp.path().join("pid")).unwrap();
    assert!(!std::path::Path::new("/proc").join(pid.trim()).join("cwd").exists());
}

#[test]
fn there_is_no_terminal_and_no_input() {
    let workspace = TestWorkspace::with(&[]);
    assert_eq!(
        short(workspace.verify_claim("ok", run("! (exec < /dev/tty) 2>/dev/null"), &ok())).0,
        Some(Verdict::Verified)
    );
    assert_eq!(
        short(workspace.verify_claim("ok", run("test -z \"$(cat)\""), &ok())).0,
        Some(Verdict::Verified)
    );
}

#[test]
fn a_program_that_is_missing_refutes_nothing() {
    let workspace = TestWorkspace::with(&[("t.sh", "#!/bin/sh\nexit 0\n")]).check(
        "[checks]\nargv = [\"no-such-program-here\", \"x\"]\nscript = \"./t.sh\"\nother = \"./never-there.sh\"",
    );
    let report = workspace.verify_claim("ok", run("no-such-program-here --all"), &ok());
    let (verdict, reason) = short(report);
    assert_eq!(verdict, Some(Verdict::Unverifiable));
    assert!(
        reason.contains("no-such-program-here") && reason.contains("install it or put it on PATH"),
        "{reason}"
    );
    let (verdict, reason) = short(workspace.verify_claim("ok", Claim::check("argv"), &ok()));
    assert_eq!(verdict, Some(Verdict::Unverifiable));
    assert!(reason.contains("there is no such program"), "{reason}");
    assert_eq!(
        short(workspace.verify_claim("ok", Claim::check("other"), &ok())).0,
        Some(Verdict::Unverifiable)
    );
    // The step itself removed the program.
    workspace.delete("t.sh");
    assert_eq!(
        short(workspace.verify_claim("ok", Claim::check("script"), &ok())).0,
        Some(Verdict::Refuted)
    );
}

#[test]
fn a_check_that_is_not_configured_says_how() {
    let workspace = TestWorkspace::with(&[]).check("[checks]\ntests = \"true\"");
    let (verdict, reason) = short(workspace.verify_claim("ok", Claim::check("test"), &ok()));
    assert_eq!(verdict, Some(Verdict::Unverifiable));
    assert_eq!(
        reason,
        "there is no check 'test' (did you mean 'tests'?); the claim stays not verified until there is one: \
         add `test = \"…\"` to [checks] in counterfoil.toml"
    );
    let off = TestWorkspace { commands: false, ..TestWorkspace::with(&[]) };
    assert_eq!(
        short(off.verify_claim("ok", run("true"), &ok())).1,
        "`true` could not be run: commands are disabled"
    );
}

#[test]
fn a_check_that_changes_the_tree_speaks_of_one_that_is_no_more() {
    let workspace = TestWorkspace::with(&[("a", "1"), ("b", "1")]);
    workspace.write("b", "2");
    let (verdict, reason) =
        short(workspace.verify_claim("ok", run("echo x > a; echo y > new"), &ok()));
    assert_eq!(verdict, Some(Verdict::Stale));
    assert!(reason.ends_with("but changed the files that it checks (2 files: a, new)"), "{reason}");
    let (verdict, reason) = short(workspace.verify_claim("ok", run("echo again >> b"), &ok()));
    assert_eq!(verdict, Some(Verdict::Stale));
    assert!(reason.ends_with("(1 file: b)"), "{reason}");
    // Noise does not count as a change.
    assert_eq!(
        short(workspace.verify_claim(
            "ok",
            run("mkdir -p __pycache__; echo x > __pycache__/a.pyc"),
            &ok()
        ))
        .0,
        Some(Verdict::Verified)
    );
}

#[test]
fn what_only_looks_comes_before_what_runs() {
    let workspace = TestWorkspace::with(&[("a", "1")]);
    workspace.write("a", "2");
    let value = json!({"ok": true, "files": ["a"]});
    let reports = workspace.verify_claims(
        &[("ok", run("touch made")), ("files", Claim::new(ClaimKind::FilesChanged))],
        &value,
    );
    let verdicts: Vec<(&str, Verdict)> =
        reports.iter().map(|report| (report.claim.as_str(), report.verdict)).collect();
    assert_eq!(verdicts, [("ok", Verdict::Stale), ("files", Verdict::Verified)]);
}

#[test]
fn a_check_runs_once_for_a_tree() {
    let workspace = TestWorkspace::with(&[("a", "1")]);
    let line = "echo ran >> ../runs; echo 'test result: ok. 2 passed; 0 failed; 0 ignored'; exit 1";
    let runs = || {
        std::fs::read_to_string(workspace.temp.path().join("runs"))
            .unwrap_or_default()
            .lines()
            .count()
    };
    let verify = || workspace.verify_claim("ok", run(line), &ok()).unwrap();
    let first = verify();
    let second = verify();
    assert_eq!((first.verdict, runs()), (Verdict::Refuted, 1));
    assert_eq!(first.reason, second.reason);
    assert_eq!(first.observed, second.observed);
    assert!(
        second.evidence[0].text.contains("run before on the same tree"),
        "{}",
        second.evidence[0].text
    );
    assert_eq!(first.evidence[0].output, second.evidence[0].output);
    // A different tree or a different command.
    workspace.write("a", "2");
    verify();
    assert_eq!(runs(), 2);
    workspace.verify_claim("ok", run("echo ran >> ../runs"), &ok());
    assert_eq!(runs(), 3);
    // Without a tree id, nothing is cached.
    let unobservable =
        TestWorkspace { unobservable: Some("no git".to_owned()), ..TestWorkspace::with(&[]) };
    let twice = [("ok", run("echo ran >> ../runs")), ("also", run("echo ran >> ../runs"))];
    let reports = unobservable.verify_claims(&twice, &json!({"ok": true, "also": true}));
    assert_eq!(reports.len(), 2);
    // Claims of one result still share a run.
    assert_eq!(std::fs::read_to_string(unobservable.temp.path().join("runs")).unwrap(), "ran\n");
}

#[test]
fn a_check_leaves_its_figures_in_a_report() {
    let config = "[checks]\ntest = { run = \"echo '<testsuite><testcase/><testcase/></testsuite>' > target/j.xml\", report = \"target/j.xml\" }\nold = { run = \"true\", report = \"target/j.xml\" }";
    let workspace = TestWorkspace::with(&[("target/x", "")]).check(config);
    let claimed = |passed: u64| json!({"tests": {"total": passed, "passed": passed, "failed": 0}});
    assert_eq!(
        short(workspace.verify_claim("tests", Claim::check("test"), &claimed(2))),
        (Some(Verdict::Verified), String::new())
    );
    assert_eq!(
        short(workspace.verify_claim("tests", Claim::check("test"), &claimed(5))).0,
        Some(Verdict::Refuted)
    );
    let count = Claim::figure_of_check(Figure::Passed, "test");
    assert_eq!(
        short(workspace.verify_claim("n", count.clone(), &json!({"n": 2}))).0,
        Some(Verdict::Verified)
    );
    assert_eq!(
        short(workspace.verify_claim("n", count, &json!({"n": 3}))).0,
        Some(Verdict::Refuted)
    );
    let file =
        std::fs::File::options().write(true).open(workspace.folder.join("target/j.xml")).unwrap();
    file.set_modified(std::time::SystemTime::now() - std::time::Duration::from_hours(1)).unwrap();
    let report = workspace.verify_claim("tests", Claim::check("old"), &claimed(2)).unwrap();
    assert!(notes(&report)[0].contains("the check did not write it"), "{:?}", notes(&report));
}

#[test]
fn when_says_what_is_claimed() {
    let contract = Contract::from_yaml(
        "contract: acme/t\nversion: 1\nfields: { status: all-pass | some-fail | not-run }\nclaims:\n  status: { kind: command, run: 'false', when: 'result.status == \"all-pass\"' }",
    )
    .unwrap();
    let workspace = TestWorkspace::with(&[]);
    for (word, verdict) in [
        ("all-pass", Some(Verdict::Refuted)),
        ("some-fail", Some(Verdict::Verified)),
        ("not-run", None),
    ] {
        let reports =
            workspace.run(&contract.effective_claims(), &contract, &json!({ "status": word }));
        assert_eq!(reports.first().map(|report| report.verdict), verdict, "{word}");
    }
}

#[test]
fn a_value_that_is_not_understood_is_a_claim_that_cannot_be_verified() {
    let workspace = TestWorkspace::with(&[]);
    let prints = "echo 'test result: ok. 2 passed; 0 failed; 0 ignored'";
    for (said, verdict) in [
        (json!("All 2 tests pass."), Some(Verdict::Verified)),
        (json!("3/3 passed"), Some(Verdict::Refuted)),
        (json!([{"name": "test_a", "status": "pass"}]), Some(Verdict::Verified)),
        (json!("it works on my machine"), Some(Verdict::Unverifiable)),
        (json!({"ran": 2}), Some(Verdict::Unverifiable)),
        (json!(1), Some(Verdict::Unverifiable)),
        (json!("not run"), None),
        (json!("n/a"), None),
        (json!(""), None),
        (json!(null), None),
    ] {
        let report = workspace.verify_claim("ok", run(prints), &json!({"ok": said}));
        assert_eq!(short(report).0, verdict, "{said}");
    }
    let value = json!({"ok": "it works on my machine"});
    let reason = short(workspace.verify_claim("ok", run("true"), &value)).1;
    assert!(reason.starts_with("the value does not say whether it passed"), "{reason}");
}

#[test]
fn a_word_that_changes_what_an_allowed_command_does_is_refused() {
    let workspace = TestWorkspace::with(&[("Makefile", ".PHONY: test\ntest:\n\tfalse\n")]);
    let claim = || Claim::new(ClaimKind::Commands).allowing("make test*");
    for line in ["make test -n", "make test SHELL=true", "make test --version"] {
        let said = json!({"c": [format!("cmd: {line}")]});
        let (verdict, reason) = short(workspace.verify_claim("c", claim(), &said));
        assert_eq!(verdict, Some(Verdict::Unverifiable), "{line}");
        assert!(reason.contains("may change what it does"), "{reason}");
    }
    let said = json!({"c": ["cmd: make test -s"]});
    let verdict = short(workspace.verify_claim("c", claim(), &said)).0;
    assert_eq!(verdict, Some(Verdict::Refuted));
}

#[test]
fn commands_of_a_field_are_run_and_people_are_not() {
    let workspace = TestWorkspace::with(&[]);
    let claim = || Claim::new(ClaimKind::Commands).allowing("true").allowing("fals*");
    let said = json!({"criteria": [{"checks": ["cmd: true", "manual: look at it"]}, {"checks": ["cmd: true"]}]});
    let report = workspace.verify_claim("criteria/*/checks", claim(), &said).unwrap();
    assert_eq!(report.verdict, Verdict::Verified);
    assert_eq!(notes(&report), ["not verified: manual: look at it (a task for a person)"]);
    assert_eq!(report.observed, json!(["true exited with 0"]));
    let (verdict, reason) =
        short(workspace.verify_claim("c", claim(), &json!({"c": ["cmd: false", "cmd: true"]})));
    assert_eq!(
        (verdict, reason.as_str()),
        (Some(Verdict::Refuted), "1 of 2 commands fails: `false` (exit code 1)")
    );
    assert_eq!(
        short(workspace.verify_claim("c", claim(), &json!({"c": ["manual: x"]}))).0,
        Some(Verdict::Unverifiable)
    );
    assert_eq!(workspace.verify_claim("c", claim(), &json!({"c": []})), None);
}

#[test]
fn a_command_of_a_result_is_run_only_if_it_is_allowed() {
    let workspace = TestWorkspace::with(&[]);
    let claim = || Claim::new(ClaimKind::Commands).allowing("touch a*");
    let (verdict, reason) = short(workspace.verify_claim(
        "c",
        claim(),
        &json!({"c": ["cmd: touch b", "cmd: touch a; touch b"]}),
    ));
    assert_eq!(verdict, Some(Verdict::Unverifiable));
    assert!(reason.starts_with("2 commands are not allowed"), "{reason}");
    assert!(reason.contains("`touch b`") && reason.contains("`touch a; touch b`"), "{reason}");
    let left = |name: &str| workspace.folder.join(name).exists();
    assert!(!left("a") && !left("b"));
    // What is allowed is run, but the claim is not verified as long as something was not run.
    let said = json!({"c": ["cmd: touch a1", "cmd: touch b"]});
    let (verdict, reason) = short(workspace.verify_claim("c", claim(), &said));
    assert_eq!(verdict, Some(Verdict::Unverifiable));
    assert!(reason.contains("1 command is not allowed"), "{reason}");
    assert!(left("a1") && !left("b"));
}

#[test]
fn a_command_of_a_result_does_not_have_our_environment() {
    let workspace = TestWorkspace::with(&[]);
    let claim = || Claim::new(ClaimKind::Commands).allowing("**");
    // Cargo and nextest set these for the process of the tests.
    let said = json!({"c": ["cmd: test -z \"$CARGO_MANIFEST_DIR\" && test -n \"$PATH\""]});
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    assert_eq!(short(workspace.verify_claim("c", claim(), &said)).0, Some(Verdict::Verified));
    let own = run("test -n \"$CARGO_MANIFEST_DIR\"");
    assert_eq!(short(workspace.verify_claim("ok", own, &ok())).0, Some(Verdict::Verified));
}

#[test]
fn whoever_stops_a_run_stops_its_checks() {
    let workspace = TestWorkspace::with(&[]);
    let claims = EffectiveClaim {
        name: "ok".into(),
        field: "ok".into(),
        claim: run("sleep 60"),
        findings: None,
    };
    let (_stop, stopped) = watch::channel(StopRequest::Immediate);
    let reports = workspace.run_until(&[claims], &open_contract(), &ok(), stopped);
    assert_eq!(reports[0].verdict, Verdict::Unverifiable);
    assert_eq!(reports[0].reason, "`sleep 60` was stopped before it ended");
}
