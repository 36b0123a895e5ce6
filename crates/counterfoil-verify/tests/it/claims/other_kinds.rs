//! Claims about counts, artifacts, locations and fixes.

use crate::claims::kinds::{REFUTED, UNVERIFIABLE, VERIFIED, changed};
use crate::claims::{TestWorkspace, short};
use counterfoil_contract::claim::{Claim, ClaimKind, Figure, Verdict};
use serde_json::{Value, json};
use std::time::{Duration, SystemTime};

const STALE: Option<Verdict> = Some(Verdict::Stale);

#[test]
fn counts_are_counted_again() {
    let workspace = TestWorkspace { tests: Some((3, 1)), ..changed() };
    let value = |n: u64| json!({"n": n, "list": [1, 2, 3], "groups": [{"items": [1]}, {"items": [1, 2]}], "none": null});
    let of = Claim::count_of;
    let figure = Claim::figure;
    for (claim, n, verdict, reason) in [
        (of("/list"), 3, VERIFIED, ""),
        (of("/list"), 4, REFUTED, "claimed 4, `list` has 3"),
        (of("/groups/*/items"), 3, VERIFIED, ""),
        (of("/none"), 0, VERIFIED, ""),
        (of("/none"), 1, REFUTED, "claimed 1, `none` has 0"),
        (figure(Figure::TestsAdded), 3, VERIFIED, ""),
        (figure(Figure::TestsAdded), 5, REFUTED, "claimed 5, tests added observed: 3"),
        (figure(Figure::TestsRemoved), 1, VERIFIED, ""),
        (figure(Figure::FilesModified), 2, VERIFIED, ""),
        (figure(Figure::FilesModified), 7, REFUTED, "claimed 7, files modified observed: 2"),
        // A renamed file may or may not count as added.
        (figure(Figure::FilesAdded), 1, VERIFIED, ""),
        (figure(Figure::FilesAdded), 2, VERIFIED, ""),
        (figure(Figure::FilesAdded), 3, REFUTED, "claimed 3, files added observed: 2"),
        (figure(Figure::FilesChanged), 5, VERIFIED, ""),
        (figure(Figure::FilesDeleted), 1, VERIFIED, ""),
        (
            figure(Figure::Passed),
            1,
            UNVERIFIABLE,
            "the claim names no report to read the figure from: add `report`, `check` or `run`",
        ),
        (
            Claim::new(ClaimKind::Count),
            1,
            UNVERIFIABLE,
            "the claim does not say what is counted: add `of` or `figure`",
        ),
    ] {
        let report = workspace.verify_claim("n", claim.clone(), &value(n));
        assert_eq!(short(report), (verdict, reason.to_owned()), "{n} {claim:?}");
    }
    let unobservable = TestWorkspace { tests: None, ..changed() };
    assert_eq!(
        short(unobservable.verify_claim("n", figure(Figure::TestsAdded), &value(1))).0,
        UNVERIFIABLE
    );
}

#[test]
fn a_report_that_no_check_wrote_refutes_and_does_not_verify() {
    let workspace = TestWorkspace::with(&[("a", "1")]);
    let long_ago = SystemTime::now() - Duration::from_hours(1);
    workspace.write(
        "junit.xml",
        "<testsuite><testcase/><testcase/><testcase><skipped/></testcase></testsuite>",
    );
    workspace
        .write("out.txt", "test result: ok. 4 passed; 0 failed; 0 ignored")
        .write("bad.xml", "<testsuite>")
        .write("empty", "");
    let date = |name: &str, at: SystemTime| {
        let file = std::fs::File::options().write(true).open(workspace.folder.join(name)).unwrap();
        file.set_modified(at).unwrap();
    };
    let soon = SystemTime::now() + Duration::from_hours(1);
    for name in ["junit.xml", "out.txt", "bad.xml", "empty"] {
        date(name, soon);
    }
    let claim = |figure, report: &str| Claim::figure(figure).reported_in(report);
    for (figure, report, n, verdict, reason) in [
        // Anybody may have written it: a report of no check refutes, but does not verify.
        (
            Figure::Total,
            "junit.xml",
            2,
            UNVERIFIABLE,
            "the report junit.xml agrees, but no check of the engine wrote it; name it as `report` of a check in counterfoil.toml",
        ),
        (Figure::Passed, "junit.xml", 9, REFUTED, "claimed 9, the report says tests passed: 2"),
        (
            Figure::Passed,
            "out.txt",
            4,
            UNVERIFIABLE,
            "the report out.txt agrees, but no check of the engine wrote it; name it as `report` of a check in counterfoil.toml",
        ),
        (
            Figure::Passed,
            "missing",
            4,
            UNVERIFIABLE,
            "the report missing does not exist; configure the test runner to write it",
        ),
        (
            Figure::Passed,
            "/etc/passwd",
            4,
            UNVERIFIABLE,
            "the report /etc/passwd was not read: it is outside of the workspace",
        ),
        (
            Figure::Passed,
            "bad.xml",
            4,
            UNVERIFIABLE,
            "the report bad.xml cannot be used: it is not well-formed XML: line 1: it ends unexpectedly",
        ),
    ] {
        let report = workspace.verify_claim("n", claim(figure, report), &json!({"n": n}));
        assert_eq!(short(report), (verdict, reason.to_owned()));
    }
    date("junit.xml", long_ago);
    workspace.write("a", "2");
    let report =
        workspace.verify_claim("n", claim(Figure::Passed, "junit.xml"), &json!({"n": 2})).unwrap();
    assert_eq!(Some(report.verdict), STALE);
    assert!(
        report.reason.starts_with("the report junit.xml is older than the last change ("),
        "{}",
        report.reason
    );
    assert!(report.evidence[0].sha256.is_some());
}

#[test]
fn an_artifact_is_there_and_is_what_it_should_be() {
    let workspace = TestWorkspace::with(&[
        ("a.md", "text"),
        ("blank.md", " \n"),
        ("t.json", r#"{"tasks": ["a"]}"#),
        ("t.yaml", "tasks:\n  - a\n"),
        ("bad.yaml", "tasks: [a"),
        ("wrong.yml", "tasks: 7\n"),
        ("dir/x", ""),
    ]);
    std::os::unix::fs::symlink("/etc/hostname", workspace.folder.join("away")).unwrap();
    std::os::unix::fs::symlink("a.md", workspace.folder.join("near")).unwrap();
    let plain = Claim::new(ClaimKind::Artifact);
    let typed = plain.clone().satisfying("acme/tasks");
    let unknown = plain.clone().satisfying("acme/nothing");
    for (claim, path, verdict, reason) in [
        (&plain, "a.md", VERIFIED, ""),
        (&plain, "near", VERIFIED, ""),
        (&plain, "blank.md", REFUTED, "blank.md is empty"),
        (&plain, "no.md", REFUTED, "no.md does not exist"),
        (&plain, "dir", REFUTED, "dir is a folder, not a file"),
        (&plain, "away", REFUTED, "away was not read: it is a symbolic link out of the repository"),
        (
            &plain,
            "/etc/hostname",
            REFUTED,
            "/etc/hostname was not read: it is outside of the workspace",
        ),
        (&plain, "../x", REFUTED, "../x was not read: it leads out of the repository"),
        (&typed, "t.json", VERIFIED, ""),
        (&typed, "t.yaml", VERIFIED, ""),
        (&typed, "a.md", REFUTED, "a.md does not satisfy acme/tasks@1: "),
        (&typed, "wrong.yml", REFUTED, "wrong.yml does not satisfy acme/tasks@1: /tasks: "),
        (&typed, "bad.yaml", REFUTED, "bad.yaml is not valid YAML: "),
        (&unknown, "a.md", UNVERIFIABLE, "there is no contract 'acme/nothing' to check it against"),
    ] {
        let report =
            workspace.verify_claim("path", claim.clone(), &json!({ "path": path })).unwrap();
        assert_eq!(Some(report.verdict), verdict, "{path}: {}", report.reason);
        assert!(
            report.reason.starts_with(reason) && report.reason.is_empty() == reason.is_empty(),
            "{}",
            report.reason
        );
    }
    let report = workspace.verify_claim("path", plain, &json!({"path": "a.md"})).unwrap();
    let hash = "982d9e3eb996f559e633f4d194def3761d909f5a3b647d1a851fead67c32c9d1";
    assert_eq!(report.evidence[0].sha256.as_deref(), Some(hash));
}

#[test]
fn a_place_is_in_its_file() {
    let workspace = TestWorkspace::with(&[
        ("a.rs", "1\n2\n3"),
        ("b.rs", "1\n2\n"),
        ("notes:12", "x"),
        ("none.rs", ""),
        ("d.rs", "1"),
    ]);
    workspace.delete("d.rs");
    std::fs::create_dir(workspace.folder.join("dir")).unwrap();
    let claim = || Claim::new(ClaimKind::Location);
    for (location, why) in [
        (json!("a.rs"), ""),
        (json!("a.rs:3"), ""),
        (json!("a.rs:1-3"), ""),
        (json!("a.rs#L1-L3"), ""),
        (json!("a.rs:3:14"), ""),
        (json!("a.rs:3 - the rejection is dropped"), ""),
        (json!("./a.rs:2"), ""),
        (json!({"file": "a.rs", "line": 3}), ""),
        (json!({"file": "a.rs", "line": "2-3"}), ""),
        (json!({"path": "a.rs", "start_line": 1, "end_line": 3}), ""),
        (json!({"path": "a.rs", "lines": [1, 2]}), ""),
        (json!("notes:12"), ""),
        (json!("a.rs:4"), "a.rs:4 (the file has 3 lines)"),
        (json!("a.rs:3-4"), "a.rs:3-4 (the file has 3 lines)"),
        (json!("b.rs:3"), "b.rs:3 (the file has 2 lines)"),
        (json!("none.rs:1"), "none.rs:1 (the file has 0 lines)"),
        (json!("a.rs:0"), "a.rs:0 (lines count from 1)"),
        (json!("a.rs:3-1"), "a.rs:3-1 (3-1 is not a range)"),
        (json!({"file": "a.rs", "line": "the end"}), "a.rs (the end is not a line number)"),
        (json!("c.rs:1"), "c.rs:1 (there is no such file)"),
        (json!("d.rs:1"), "d.rs:1 (the step deleted the file)"),
        (json!("dir"), "dir (it is a folder, not a file)"),
        (json!("../a.rs:1"), "../a.rs:1 (it leads out of the repository)"),
        (json!("/etc/passwd:1"), "/etc/passwd:1 (it is outside of the workspace)"),
        (json!(format!("a.rs:{}", "9".repeat(40))), "there is no such file"),
        (json!({"file": "a.rs", "line": 1, "end_line": "L3"}), ""),
        (json!({"file": "a.rs", "line": 1, "end_line": null}), ""),
        (json!({"file": "a.rs", "line": 1, "end_line": 4}), "a.rs:1-4 (the file has 3 lines)"),
        (json!({"file": "a.rs", "line": "1", "end_line": 4}), "a.rs:1-4 (the file has 3 lines)"),
        (json!({"file": "a.rs", "end_line": 4}), "a.rs:4 (the file has 3 lines)"),
        (json!({"file": "a.rs", "line": 1, "end_line": 2.5}), "a.rs (2.5 is not a line number)"),
        (json!({"file": "a.rs", "line": 1, "end_line": -2}), "a.rs (-2 is not a line number)"),
        (
            json!({"file": "a.rs", "line": 1, "end_line": "last"}),
            "a.rs (last is not a line number)",
        ),
    ] {
        let report = workspace.verify_claim("at", claim(), &json!({"at": [location]})).unwrap();
        if why.is_empty() {
            assert_eq!(report.verdict, Verdict::Verified, "{location}: {}", report.reason);
        } else {
            assert_eq!(report.verdict, Verdict::Refuted, "{location}");
            assert!(
                report.reason.starts_with("1 of 1 location does not exist: "),
                "{}",
                report.reason
            );
            assert!(report.reason.contains(why), "{}", report.reason);
        }
    }
    let found = json!({"findings": [{"file": "a.rs", "line": 9}, {"file": "b.rs", "line": null}, {"file": "b.rs"}]});
    let report = workspace.verify_claim("findings/*/file", claim(), &found).unwrap();
    assert_eq!(report.reason, "1 of 3 locations does not exist: a.rs:9 (the file has 3 lines)");
    assert_eq!(report.observed, json!("2 of 3 locations found"));
}

#[test]
fn what_is_fixed_was_touched() {
    let outcomes = |pairs: &[(&str, &str)]| {
        let items: Vec<Value> =
            pairs.iter().map(|(id, outcome)| json!({"id": id, "outcome": outcome})).collect();
        json!({ "outcomes": items })
    };
    let findings = json!([{"id": "F1", "file": "m1"}, {"id": "F2", "file": "u1"}, {"id": "F3", "file": "d1"}, {"id": 4, "file": "m2"}]);
    let workspace = TestWorkspace { findings: Some(findings), ..changed() };
    let claim = || Claim::new(ClaimKind::Fixed);
    for (said, verdict, reason) in [
        (outcomes(&[("F1", "fixed"), ("F3", "fixed"), ("4", "fixed")]), VERIFIED, ""),
        (outcomes(&[("F1", "fixed"), ("F2", "deferred")]), VERIFIED, ""),
        (outcomes(&[("F2", "deferred")]), None, ""),
        (outcomes(&[]), None, ""),
        (
            outcomes(&[("F1", "fixed"), ("F2", "fixed")]),
            REFUTED,
            "claimed 2 findings fixed, for 1 its file did not change: F2 in u1",
        ),
        (
            outcomes(&[("F9", "fixed")]),
            REFUTED,
            "claimed 1 finding fixed, 1 was not among the requested findings: F9",
        ),
    ] {
        assert_eq!(
            short(workspace.verify_claim("outcomes", claim(), &said)),
            (verdict, reason.to_owned()),
            "{said}"
        );
    }
    assert_eq!(
        short(workspace.verify_claim("outcome", claim(), &json!({"id": "F1", "outcome": "fixed"}))),
        (VERIFIED, String::new())
    );
    assert_eq!(
        workspace.verify_claim("outcome", claim(), &json!({"id": "F2", "outcome": "blocked"})),
        None
    );
    let open = TestWorkspace {
        findings: Some(json!([{"id": "F1", "file": null}, {"id": "F2", "file": "u1"}])),
        ..changed()
    };
    // A finding without a file is left out: no file shows whether it is fixed.
    assert_eq!(open.verify_claim("outcomes", claim(), &outcomes(&[("F1", "fixed")])), None);
    assert_eq!(
        short(open.verify_claim(
            "outcomes",
            claim(),
            &outcomes(&[("F1", "fixed"), ("F2", "fixed")])
        ))
        .0,
        REFUTED
    );
    // Another file counts where the finding says so; a file that is neither named nor new does not.
    for (also, verdict) in
        [(json!(["m1"]), VERIFIED), (json!(["u2"]), VERIFIED), (json!([]), REFUTED)]
    {
        let findings = json!([{"id": "F2", "file": "u1", "also": also}]);
        let shared = TestWorkspace { findings: Some(findings), ..changed() };
        let said = outcomes(&[("F2", "fixed")]);
        assert_eq!(short(shared.verify_claim("outcomes", claim(), &said)).0, verdict, "{also}");
    }
    let untold = TestWorkspace { findings: None, ..changed() };
    let report = untold.verify_claim("outcomes", claim(), &outcomes(&[("F1", "fixed")]));
    assert_eq!(short(report).0, UNVERIFIABLE);
    let own = json!({"outcomes": [{"id": "F1", "outcome": "fixed", "file": "u1"}]});
    assert_eq!(short(untold.verify_claim("outcomes", claim(), &own)).0, REFUTED);
}

#[test]
fn complete_work_has_no_unfinished_place() {
    let workspace = |added: &str| {
        let workspace = TestWorkspace::with(&[("src/lib.rs", "fn old() {\n    todo!()\n}\n")]);
        workspace.write("src/lib.rs", &format!("fn old() {{\n    todo!()\n}}\n{added}"));
        workspace
    };
    let finished = workspace("fn sum(a: i32) -> i32 {\n    a + 1\n}\n");
    let unfinished = workspace("fn sum() -> i32 {\n    unimplemented!()\n}\n");
    let complete = || Claim::new(ClaimKind::Complete);
    let when = || complete().when("result.status == 'finished'");
    let found = "1 unfinished place: src/lib.rs:5: placeholder: unimplemented!()";
    for (workspace, field, claim, value, verdict, reason) in [
        (&finished, "done", complete(), json!({"done": true}), VERIFIED, ""),
        (&unfinished, "done", complete(), json!({"done": true}), REFUTED, found),
        (&unfinished, "done", complete(), json!({"done": false}), None, ""),
        (&unfinished, "done", complete(), json!({}), None, ""),
        (&unfinished, "status", when(), json!({"status": "finished"}), REFUTED, found),
        (&unfinished, "status", when(), json!({"status": "blocked"}), None, ""),
        // The workflow makes the claim.
        (&unfinished, "", complete(), json!({"done": false}), REFUTED, found),
        (&finished, "", complete(), json!({}), VERIFIED, ""),
    ] {
        let report = workspace.verify_claim(field, claim.clone(), &value);
        assert_eq!(short(report), (verdict, reason.to_owned()), "{field} {claim:?} {value}");
    }
    // In other languages, nothing is found.
    finished.write("main.c", "int main(void) { /* TODO */ }\n");
    finished.write("notes.md", "TODO\n");
    let (verdict, reason) =
        short(finished.verify_claim("done", complete(), &json!({"done": true})));
    assert_eq!(verdict, UNVERIFIABLE);
    assert!(reason.contains("main.c") && !reason.contains("notes.md"), "{reason}");
    let unobservable = TestWorkspace { unobservable: Some("no git".to_owned()), ..unfinished };
    let report = unobservable.verify_claim("done", complete(), &json!({"done": true}));
    assert_eq!(
        short(report),
        (UNVERIFIABLE, "the changes cannot be determined: no git".to_owned())
    );
}
