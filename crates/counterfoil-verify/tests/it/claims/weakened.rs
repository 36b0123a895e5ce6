//! Checks whose scripts or settings changed since the run began, in a real repository.

use crate::claims::{notes, open_contract};
use counterfoil_contract::claim::{Claim, ClaimKind, ClaimReport, EffectiveClaim, Figure, Verdict};
use counterfoil_process::StopRequest;
use counterfoil_verify::claims::{CommitsBefore, StartWords, VerifyConfig, VerifyContext, verify};
use counterfoil_verify::workspace_diff::WorkspaceDiff;
use counterfoil_workspace::snapshot::{Settings, Snapshotter};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use tokio::sync::watch;

fn shell(folder: &Path, line: &str) {
    let identity = "git() { command git -c user.name=a -c user.email=a@example.org \"$@\"; }; ";
    let done = Command::new("bash")
        .args(["-c", &format!("{identity}{line}")])
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(done.status.success(), "{line}: {done:?}");
}

/// What a claim about a check comes to, after a step in a repository with some files.
fn report(
    files: &[(&str, &str)],
    step: &str,
    claim: Claim,
    value: &Value,
    breaks_start: bool,
) -> ClaimReport {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path().join("repo");
    for (path, text) in files {
        let path = folder.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    shell(&folder, "[ ! -e scripts/real.sh ] || ln -s scripts/real.sh linked.sh");
    shell(&folder, "git init -q && git add -A && git commit -q -m start");
    let contents = Some(temp.path().join("contents"));
    let settings = Settings { content_store: contents, ..Settings::default() };
    let mut snapshotter = Snapshotter::open(&folder, settings);
    let before = snapshotter.snapshot();
    let mut view = WorkspaceDiff::new(snapshotter, before.clone(), None)
        .with_run_start(Some(before), temp.path().join("put-back"));
    shell(&folder, step);
    if breaks_start {
        shell(&folder, "rm -rf .git/objects/??");
    }
    view.refresh();
    let (_keep, stop) = watch::channel(StopRequest::None);
    let launcher = counterfoil_process::contain::Launcher::default();
    let config = VerifyConfig::default();
    let none = BTreeSet::new();
    let mut context = VerifyContext {
        folder: &folder,
        top: &folder,
        view: &mut view,
        config: &config,
        contracts: &|_| None,
        cache: None,
        unrestored: &[],
        may_change: &|_| false,
        start: StartWords::RUN,
        commits_before: &CommitsBefore::Unknown(String::new()),
        stop,
        launcher: &launcher,
        marker: format!("weakened-{}", temp.path().display()),
        own_files: &none,
        run_commands: true,
        since: "the step began",
        concurrent_writer: None,
    };
    let claims =
        [EffectiveClaim { name: "ok".to_owned(), field: "ok".to_owned(), claim, findings: None }];
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(verify(&claims, &open_contract(), value, &mut context)).pop().unwrap()
}

fn check(line: &str) -> Claim {
    Claim { run: Some(line.to_owned()), ..Claim::new(ClaimKind::Command) }
}

fn verdict(files: &[(&str, &str)], line: &str, step: &str, says: bool) -> (Verdict, ClaimReport) {
    let report = report(files, step, check(line), &json!({ "ok": says }), false);
    (report.verdict, report)
}

#[test]
fn a_script_behind_options_and_wrappers_is_run_as_it_was() {
    let fails = "! grep -q broken a\n";
    let script = [("a", "fine\n"), ("t.sh", fails), ("scripts/t.sh", fails)];
    let weakens = "echo broken > a; echo 'exit 0' > t.sh; echo 'exit 0' > scripts/t.sh";
    for line in [
        "bash -euo pipefail scripts/t.sh",
        "env -i PATH=\"$PATH\" sh t.sh",
        "nice -n 5 sh t.sh",
        "(sh t.sh)",
        "bash -ec 'sh t.sh'",
        "test \"$(sh t.sh && echo ok)\" = ok",
    ] {
        let (verdict, report) = verdict(&script, line, weakens, true);
        assert_eq!(verdict, Verdict::Refuted, "{line}: {report:#?}");
    }
    let sourced = [
        ("a", "fine\n"),
        ("scripts/t.sh", ". \"$(dirname \"$0\")/lib.sh\"\ncheck\n"),
        ("scripts/lib.sh", "check() { ! grep -q broken a; }\n"),
    ];
    let weakens = "echo broken > a; echo 'check() { true; }' > scripts/lib.sh";
    assert_eq!(verdict(&sourced, "sh scripts/t.sh", weakens, true).0, Verdict::Refuted);
    // What a link leads to.
    let linked = [("a", "fine\n"), ("scripts/real.sh", fails)];
    let step = "echo broken > a; echo true > scripts/real.sh";
    let (found, report) = verdict(&linked, "sh linked.sh", step, true);
    assert_eq!(found, Verdict::Refuted, "{report:#?}");
}

#[test]
fn what_a_python_runner_imports_is_not_replaced() {
    let test = "import unittest\nfrom calc import add\n\nclass A(unittest.TestCase):\n    def test_a(self):\n        self.assertEqual(add(1, 2), 3)\n";
    let files = [("calc.py", "def add(a, b):\n    return a + b\n"), ("test_a.py", test)];
    let breaks = "echo 'def add(a, b): return 0' > calc.py; ";
    let line = "python3 -B -m unittest -q";
    assert_eq!(verdict(&files, line, "true", true).0, Verdict::Verified);
    for name in ["argparse.py", "difflib.py", "unittest.py", "unittest/__init__.py"] {
        let step = format!("{breaks}mkdir -p unittest; echo 'import os; os._exit(0)' > {name}");
        let (verdict, report) = verdict(&files, line, &step, true);
        assert_eq!(verdict, Verdict::Refuted, "{name}: {report:#?}");
    }
    // A test that changes together with the code, however it is run.
    let renames = "sed -i 's/add/sum_of/g' calc.py test_a.py";
    for line in [line, "python3 -B -m unittest test_a.py", "python3 -B -m unittest test_a"] {
        assert_eq!(verdict(&files, line, renames, true).0, Verdict::Verified, "{line}");
    }
    let script = format!("{test}\nif __name__ == '__main__':\n    unittest.main()\n");
    let files = [files[0], ("test_a.py", script.as_str())];
    let (found, report) = verdict(&files, "python3 -B test_a.py", renames, true);
    assert_eq!(found, Verdict::Verified, "{report:#?}");
    let ends = format!("{breaks}sed -i 's/unittest.main()/pass/' test_a.py");
    assert_eq!(verdict(&files, "python3 -B test_a.py", &ends, true).0, Verdict::Refuted);
}

#[test]
fn a_file_without_which_there_was_no_check_may_be_written() {
    let (found, report) = verdict(
        &[("a", "1\n")],
        "make -s test",
        "printf 'test:\\n\\tgrep -q 1 a\\n' > Makefile",
        true,
    );
    assert_eq!(found, Verdict::Verified, "{report:#?}");
    assert!(notes(&report).is_empty(), "{report:#?}");
    let makefile = [("a", "1\n"), ("Makefile", "test:\n\tgrep -q 2 a\n")];
    let hides = "printf 'test:\\n\\ttrue\\n' > GNUmakefile";
    assert_eq!(verdict(&makefile, "make -s test", hides, true).0, Verdict::Refuted);
}

#[test]
fn the_figures_are_those_of_the_check_as_it_was() {
    let files = [("t.sh", "echo '== 2 passed in 0.1s =='\n")];
    let prints = "echo 'echo \"== 500 passed in 0.1s ==\"' >> t.sh";
    let claim = || Claim { figure: Some(Figure::Passed), ..check("sh t.sh") };
    let count = |number: u64| {
        let claim = Claim { kind: ClaimKind::Count, ..claim() };
        report(&files, prints, claim, &json!({ "ok": number }), false)
    };
    assert_eq!(count(500).verdict, Verdict::Refuted, "{:#?}", count(500));
    let honest = count(2);
    assert_eq!(honest.verdict, Verdict::Verified, "{honest:#?}");
    assert!(!honest.evidence[0].output.contains("500"), "{honest:#?}");
}

#[test]
fn a_check_that_was_made_to_fail_proves_no_failure() {
    let files = [("a", "fine\n"), ("t.sh", "! grep -q broken a\n")];
    // The bug is not there: the script says so.
    let (found, fails) = verdict(&files, "sh t.sh", "echo 'exit 1' > t.sh", false);
    assert_eq!(found, Verdict::Refuted, "{fails:#?}");
    assert!(fails.reason.contains("as when the run began"), "{fails:#?}");
    // It does not pass either, as it was left.
    let (found, passes) = verdict(&files, "sh t.sh", "echo 'exit 1' > t.sh", true);
    assert_eq!(found, Verdict::Refuted, "{passes:#?}");
    // The bug is there, whatever was done to the script.
    let both = "echo broken > a; echo 'exit 1' >> t.sh";
    let (found, honest) = verdict(&files, "sh t.sh", both, false);
    assert_eq!(found, Verdict::Verified, "{honest:#?}");
}

#[test]
fn a_script_that_cannot_be_read_as_it_was_proves_nothing() {
    let files = [("a", "fine\n"), ("t.sh", "! grep -q broken a\n")];
    let step = "echo broken > a; echo true > t.sh";
    let found = report(&files, step, check("sh t.sh"), &json!({ "ok": true }), true);
    assert_eq!(found.verdict, Verdict::Unverifiable, "{found:#?}");
    assert!(found.reason.contains("t.sh"), "{found:#?}");
}

const RECIPE: &str = "\t! grep -q broken a\n";

/// The verdict on the claim that a check passes, and the whole report as text.
fn of_make(files: &[(&str, &str)], line: &str, step: &str) -> (Verdict, String) {
    let files: Vec<(&str, &str)> = files.iter().copied().chain([("a", "fine\n")]).collect();
    let (verdict, report) = verdict(&files, line, step, true);
    (verdict, format!("{report:#?}"))
}

#[test]
fn what_is_new_in_the_place_of_a_target_is_taken_out() {
    let plain = format!("test:\n{RECIPE}");
    let needed = format!("test: unit\nunit:\n{RECIPE}");
    let inner = "test:\n\t$(MAKE) -C sub test\n".to_owned();
    let sub = "test:\n\t! grep -q broken ../a\n";
    for (makefile, target, makes) in [
        (&plain, "test", "mkdir test; echo > test/a.py"),
        (&plain, "test", "mkdir -p test/deep; echo > test/deep/a.py"),
        (&plain, "test", "ln -s sub test"),
        (&plain, "test", "ln -s a test"),
        (&plain, "test", "echo > test"),
        (&needed, "unit", "mkdir unit; echo > unit/a.py"),
        (&inner, "test", "mkdir sub/test; echo > sub/test/a.py"),
    ] {
        let files = [("Makefile", makefile.as_str()), ("sub/Makefile", sub)];
        for line in ["make test", "make -s test", "make"] {
            // It is taken out, and the recipe fails.
            let (found, report) = of_make(&files, line, &format!("echo broken > a; {makes}"));
            assert_eq!(found, Verdict::Refuted, "{line}, {makes}: {report}");
            // With it, nothing is tested, whatever it is for.
            let (found, report) = of_make(&files, line, makes);
            assert_eq!(found, Verdict::Unverifiable, "{line}, {makes}: {report}");
            let why = format!("exited with 0, but make did not run the recipe of `{target}`");
            assert!(report.contains(&why), "{line}, {makes}: {report}");
            assert!(report.contains("it also passes as it was then"), "{line}, {makes}: {report}");
        }
    }
}

#[test]
fn a_check_for_which_make_runs_nothing_is_not_verified() {
    let plain = format!("test:\n{RECIPE}");
    let older = [("Makefile", plain.as_str()), ("test/a.py", "")];
    let script = [("Makefile", plain.as_str()), ("t.sh", "LC_ALL=C make test\n")];
    let none = [("Makefile", "all:\n\ttrue\n")];
    for (files, line, step) in [
        // It was there before.
        (&older[..], "make -s test", "true"),
        (&older, "make -s test", "echo broken > a"),
        // git does not list it.
        (&script, "make -s test", "mkdir test"),
        (&script, "make -s test", "mkdir test; echo broken > a"),
        (&script, "make -s test", "mkdir ../other; ln -s ../other test"),
        // A make that a script runs says so.
        (&script, "sh t.sh", "mkdir test; echo broken > a"),
        // There is no such target.
        (&none, "make test", "mkdir test"),
    ] {
        let (found, report) = of_make(files, line, step);
        assert_eq!(found, Verdict::Unverifiable, "{line}, {step}: {report}");
        assert!(report.contains("because the folder test is there"), "{line}, {step}: {report}");
    }
    // Nor is the claim that it fails, or how many tests there are.
    let (found, report) = verdict(&older, "make test", "true", false);
    assert_eq!(found, Verdict::Unverifiable, "{report:#?}");
    let claim =
        Claim { kind: ClaimKind::Count, figure: Some(Figure::Passed), ..check("make test") };
    let counted = report_of(&older, claim, &json!({ "ok": 3 }));
    assert_eq!(counted.verdict, Verdict::Unverifiable, "{counted:#?}");
    assert!(counted.reason.contains("because the folder test is there"), "{counted:#?}");
    // A recipe that fails is one that ran.
    let two = format!("all: test lint\ntest lint:\n{RECIPE}");
    let (found, report) =
        of_make(&[("Makefile", two.as_str())], "make", "mkdir test; echo broken > a");
    assert_eq!(found, Verdict::Refuted, "{report}");
}

fn report_of(files: &[(&str, &str)], claim: Claim, value: &Value) -> ClaimReport {
    report(files, "true", claim, value, false)
}

#[test]
fn what_make_built_and_what_is_no_file_is_verified() {
    let phony = format!(".PHONY: test\ntest:\n{RECIPE}");
    let plain = format!("test:\n{RECIPE}");
    let forced = format!("test: FORCE\n{RECIPE}FORCE:\n");
    let built = "app: a\n\tcp a app\n";
    let needs = format!(
        "test: deps out | tmp\n{RECIPE}deps:\n\t./fetch\nout:\n\tmkdir out\ntmp:\n\tmkdir $@\n"
    );
    for (makefile, line, step) in [
        (phony.as_str(), "make test", "mkdir test; echo > test/a.py"),
        (forced.as_str(), "make test", "mkdir test"),
        (plain.as_str(), "make -B test", "mkdir test"),
        (built, "make app", "make app"),
        (needs.as_str(), "make test", "mkdir deps out tmp; echo > deps/a"),
    ] {
        let files = [("Makefile", makefile), (".gitignore", "deps/\n")];
        let (found, report) = of_make(&files, line, step);
        assert_eq!(found, Verdict::Verified, "{line}, {step}: {report}");
    }
}
