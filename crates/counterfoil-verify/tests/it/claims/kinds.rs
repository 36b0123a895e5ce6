//! Each kind of claim, verified, refuted, stale and unverifiable.

use crate::claims::{Stage, files, notes, short};
use counterfoil_contract::claim::{Claim, ClaimKind, ClaimMatch, ClaimPolicy, Figure, Verdict};
use counterfoil_verify::claims::Since;
use serde_json::{Value, json};
use std::time::{Duration, SystemTime};

const VERIFIED: Option<Verdict> = Some(Verdict::Verified);
const REFUTED: Option<Verdict> = Some(Verdict::Refuted);
const STALE: Option<Verdict> = Some(Verdict::Stale);
const UNVERIFIABLE: Option<Verdict> = Some(Verdict::Unverifiable);

/// `m1`, `m2` modified, `a1` added, `d1` deleted, `old` renamed to `new`, `u1` left alone.
fn changed() -> Stage {
    let stage = Stage::with(&[
        ("m1", "1"),
        ("m2", "2"),
        ("d1", "3"),
        ("old", "same bytes"),
        ("u1", "5"),
        ("dir/x", "6"),
    ]);
    stage.write("m1", "1+").write("m2", "2+").write("a1", "new").delete("d1").rename("old", "new");
    stage.write("__pycache__/m.pyc", "noise").write("report.ours.md", "ours");
    stage
}

#[test]
fn files_are_held_against_what_changed() {
    use ClaimKind::{FilesAdded, FilesChanged, FilesDeleted, FilesModified, FilesRenamed};
    use ClaimMatch::{BestEffort, Exact, Subset};
    let stage = changed();
    for (kind, matching, names, verdict, reason) in [
        (FilesModified, Exact, vec!["m1", "m2"], VERIFIED, ""),
        (FilesModified, Exact, vec!["m2", "m1", "m1"], VERIFIED, ""),
        (FilesModified, Exact, vec!["m1", "m2", "new"], VERIFIED, ""),
        (
            FilesModified,
            Exact,
            vec!["m1"],
            REFUTED,
            "claimed 1 file modified, 1 more was modified: m2",
        ),
        (
            FilesModified,
            Exact,
            vec!["m1", "m2", "u1"],
            REFUTED,
            "claimed 3 files modified, 1 of them did not change: u1",
        ),
        (
            FilesModified,
            Exact,
            vec!["m1", "m2", "a1"],
            REFUTED,
            "claimed 3 files modified, 1 of them was added, not modified: a1",
        ),
        (
            FilesModified,
            Exact,
            vec!["m1", "u1", "gone"],
            REFUTED,
            "claimed 3 files modified, 1 of them did not change: u1; 1 does not exist: gone; 1 changed file was not claimed: m2",
        ),
        (
            FilesModified,
            Exact,
            vec![],
            REFUTED,
            "claimed 0 files modified, 2 more were modified: m1, m2",
        ),
        (FilesModified, Subset, vec!["m1"], VERIFIED, ""),
        (
            FilesModified,
            Subset,
            vec!["u1"],
            REFUTED,
            "claimed 1 file modified, 1 did not change: u1",
        ),
        (FilesModified, Subset, vec![], None, ""),
        (FilesModified, BestEffort, vec!["m1", "u1", "gone"], VERIFIED, ""),
        (
            FilesModified,
            BestEffort,
            vec!["u1", "gone"],
            REFUTED,
            "claimed 2 files modified, 1 of them did not change: u1; 1 does not exist: gone",
        ),
        (FilesAdded, Exact, vec!["a1"], VERIFIED, ""),
        (FilesAdded, Exact, vec!["a1", "new"], VERIFIED, ""),
        (
            FilesAdded,
            Exact,
            vec!["m1"],
            REFUTED,
            "claimed 1 file added, 1 was modified, not added: m1; 1 changed file was not claimed: a1",
        ),
        (FilesDeleted, Exact, vec!["d1"], VERIFIED, ""),
        (FilesDeleted, Exact, vec!["d1", "old"], VERIFIED, ""),
        (
            FilesDeleted,
            Exact,
            vec!["d1", "never"],
            REFUTED,
            "claimed 2 files deleted, 1 of them was not there before: never",
        ),
        (
            FilesDeleted,
            Exact,
            vec!["d1", "u1"],
            REFUTED,
            "claimed 2 files deleted, 1 of them did not change: u1",
        ),
        (FilesRenamed, Exact, vec!["new"], VERIFIED, ""),
        (FilesRenamed, Exact, vec!["old"], VERIFIED, ""),
        (
            FilesRenamed,
            Exact,
            vec![],
            REFUTED,
            "claimed 0 files renamed, 1 more was renamed: old -> new",
        ),
        (
            FilesRenamed,
            Exact,
            vec!["new", "a1"],
            REFUTED,
            "claimed 2 files renamed, 1 of them was added, not renamed: a1",
        ),
        (FilesChanged, Exact, vec!["m1", "m2", "a1", "d1", "new"], VERIFIED, ""),
        (FilesChanged, Exact, vec!["m1", "m2", "a1", "d1", "old"], VERIFIED, ""),
        (FilesChanged, Exact, vec!["m1", "m2", "a1", "d1", "old", "new"], VERIFIED, ""),
        (
            FilesChanged,
            Exact,
            vec!["m1", "m2", "a1", "d1"],
            REFUTED,
            "claimed 4 files changed, 1 more was changed: new",
        ),
        (
            FilesChanged,
            Subset,
            vec!["dir"],
            REFUTED,
            "claimed 1 file changed, 1 is no file but a folder: dir",
        ),
        (FilesChanged, BestEffort, vec!["__pycache__/m.pyc"], VERIFIED, ""),
    ] {
        let report = stage.hold("files", Claim::new(kind).matching(matching), &files(&names));
        assert_eq!(short(report), (verdict, reason.to_owned()), "{kind:?} {matching:?} {names:?}");
    }
}

#[test]
fn a_list_of_objects_says_of_each_file_what_became_of_it() {
    let stage = changed();
    let good = json!({"files": [
        {"file_path": "m1", "change_type": "modified"}, {"file_path": "m2", "change_type": "modified"},
        {"file_path": "a1", "change_type": "added"}, {"file_path": "d1", "change_type": "deleted"},
        {"file_path": "new", "change_type": "renamed", "old_path": "old"}
    ]});
    let claim = || Claim::new(ClaimKind::FilesChanged);
    assert_eq!(short(stage.hold("files", claim(), &good)), (VERIFIED, String::new()));
    let mut bad = good.clone();
    bad["files"][2]["change_type"] = json!("modified");
    bad["files"][4]["old_path"] = json!("d1");
    let report = stage.hold("files", claim(), &bad).unwrap();
    assert_eq!(
        report.reason,
        "claimed 5 files changed, 1 of them was added, not modified: a1; 1 came from old: new"
    );
    assert_eq!(report.claimed[4], "d1 -> new");
    assert_eq!(
        report.observed,
        json!(["a1 (added)", "d1 (deleted)", "m1 (modified)", "m2 (modified)", "old -> new"])
    );
    assert_eq!(
        report.evidence[0].text,
        "6 files changed since the step began: 2 modified, 2 added, 2 deleted"
    );
    // A field of objects that stands beside where the file was.
    let moved = json!({"moved": [{"from": "old", "to": "new"}]});
    assert_eq!(
        short(stage.hold("moved/*/to", Claim::new(ClaimKind::FilesRenamed), &moved)),
        (VERIFIED, String::new())
    );
    let unreadable = json!({"files": [{"name": 7}]});
    assert_eq!(stage.hold("files", claim(), &unreadable).unwrap().verdict, Verdict::Unverifiable);
}

#[test]
fn a_file_that_was_moved_and_edited_is_a_renamed_one() {
    let stage = Stage::with(&[("old", "some text")]);
    stage.rename("old", "new").write("new", "some other text");
    let claim = || Claim::new(ClaimKind::FilesRenamed);
    let report =
        stage.hold("m/*/to", claim(), &json!({"m": [{"from": "old", "to": "new"}]})).unwrap();
    assert_eq!((report.verdict, report.reason.as_str()), (Verdict::Verified, ""));
    assert!(notes(&report)[0].contains("seen as added"));
    let report = stage.hold("m/*/to", claim(), &json!({"m": [{"from": "elsewhere", "to": "new"}]}));
    assert_eq!(short(report).1, "claimed 1 file renamed, 1 was added, not renamed: new");
}

#[test]
fn what_is_not_said_is_no_claim() {
    let stage = changed();
    for (field, value) in [
        ("files", json!({})),
        ("files", json!({"files": null})),
        ("result/files", json!({"result": null})),
        ("findings/*/file", json!({"findings": []})),
        ("findings/*/file", json!({"findings": [{"line": 3}]})),
    ] {
        let claim = if field.contains('*') { ClaimKind::Location } else { ClaimKind::FilesChanged };
        assert_eq!(stage.hold(field, Claim::new(claim), &value), None, "{field} {value}");
    }
    let ignored = Claim { policy: ClaimPolicy::Ignore, ..Claim::new(ClaimKind::FilesModified) };
    assert_eq!(stage.hold("files", ignored, &files(&["nothing"])), None);
}

#[test]
fn without_a_view_of_the_changes_nothing_can_be_said() {
    let stage = Stage { blind: Some("git is not there".to_owned()), ..changed() };
    for (kind, value) in [
        (ClaimKind::FilesModified, files(&["m1"])),
        (ClaimKind::Fixed, json!({"files": [{"id": "F1", "outcome": "fixed", "file": "m1"}]})),
    ] {
        let report = stage.hold("files", Claim::new(kind), &value);
        assert_eq!(
            short(report),
            (UNVERIFIABLE, "what changed cannot be told: git is not there".to_owned())
        );
    }
}

#[test]
fn counts_are_counted_again() {
    let stage = Stage { tests: Some((3, 1)), ..changed() };
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
        // Whether a renamed file is a new one is a matter of words.
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
            "the claim does not say what is counted: add `of` or `figure` to it",
        ),
    ] {
        let report = stage.hold("n", claim.clone(), &value(n));
        assert_eq!(short(report), (verdict, reason.to_owned()), "{n} {claim:?}");
    }
    assert_eq!(
        short(stage.hold("n", of("/list"), &json!({"n": 2.5, "list": []}))).1,
        "it is no number"
    );
    let blind = Stage { tests: None, ..changed() };
    assert_eq!(short(blind.hold("n", figure(Figure::TestsAdded), &value(1))).0, UNVERIFIABLE);
}

#[test]
fn a_report_has_the_figures_unless_it_is_older_than_the_work() {
    let stage = Stage::with(&[("a", "1")]);
    let long_ago = SystemTime::now() - Duration::from_hours(1);
    stage.write(
        "junit.xml",
        "<testsuite><testcase/><testcase/><testcase><skipped/></testcase></testsuite>",
    );
    stage
        .write("out.txt", "test result: ok. 4 passed; 0 failed; 0 ignored")
        .write("bad.xml", "<testsuite>")
        .write("empty", "");
    let date = |name: &str, at: SystemTime| {
        let file = std::fs::File::options().write(true).open(stage.folder.join(name)).unwrap();
        file.set_modified(at).unwrap();
    };
    let soon = SystemTime::now() + Duration::from_hours(1);
    for name in ["junit.xml", "out.txt", "bad.xml", "empty"] {
        date(name, soon);
    }
    let claim = |figure, report: &str| Claim::figure(figure).reported_in(report);
    for (figure, report, n, verdict, reason) in [
        (Figure::Passed, "junit.xml", 2, VERIFIED, ""),
        (Figure::Total, "junit.xml", 3, VERIFIED, ""),
        (Figure::Total, "junit.xml", 2, VERIFIED, ""),
        (Figure::Passed, "junit.xml", 9, REFUTED, "claimed 9, the report says tests passed: 2"),
        (Figure::Passed, "out.txt", 4, VERIFIED, ""),
        (
            Figure::Passed,
            "missing",
            4,
            UNVERIFIABLE,
            "the report missing is not there; let the test runner write it",
        ),
        (
            Figure::Passed,
            "/etc/passwd",
            4,
            UNVERIFIABLE,
            "the report /etc/passwd is not read: it is outside of the workspace",
        ),
        (
            Figure::Passed,
            "bad.xml",
            4,
            UNVERIFIABLE,
            "the report bad.xml cannot be used: it is no well-formed XML: line 1: it ends in the middle",
        ),
    ] {
        let report = stage.hold("n", claim(figure, report), &json!({"n": n}));
        assert_eq!(short(report), (verdict, reason.to_owned()));
    }
    date("junit.xml", long_ago);
    stage.write("a", "2");
    let report = stage.hold("n", claim(Figure::Passed, "junit.xml"), &json!({"n": 2})).unwrap();
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
    let stage = Stage::with(&[
        ("a.md", "text"),
        ("blank.md", " \n"),
        ("t.json", r#"{"tasks": ["a"]}"#),
        ("t.yaml", "tasks:\n  - a\n"),
        ("bad.yaml", "tasks: [a"),
        ("wrong.yml", "tasks: 7\n"),
        ("dir/x", ""),
    ]);
    std::os::unix::fs::symlink("/etc/hostname", stage.folder.join("away")).unwrap();
    std::os::unix::fs::symlink("a.md", stage.folder.join("near")).unwrap();
    let plain = Claim::new(ClaimKind::Artifact);
    let typed = plain.clone().satisfying("acme/tasks");
    let unknown = plain.clone().satisfying("acme/nothing");
    for (claim, path, verdict, reason) in [
        (&plain, "a.md", VERIFIED, ""),
        (&plain, "near", VERIFIED, ""),
        (&plain, "blank.md", REFUTED, "blank.md is empty"),
        (&plain, "no.md", REFUTED, "no.md does not exist"),
        (&plain, "dir", REFUTED, "dir is no file but a folder"),
        (&plain, "away", REFUTED, "away is not read, it is a symbolic link out of the repository"),
        (
            &plain,
            "/etc/hostname",
            REFUTED,
            "/etc/hostname is not read, it is outside of the workspace",
        ),
        (&plain, "../x", REFUTED, "../x is not read, it leads out of the repository"),
        (&typed, "t.json", VERIFIED, ""),
        (&typed, "t.yaml", VERIFIED, ""),
        (&typed, "a.md", REFUTED, "a.md does not satisfy acme/tasks@1: "),
        (&typed, "wrong.yml", REFUTED, "wrong.yml does not satisfy acme/tasks@1: /tasks: "),
        (&typed, "bad.yaml", REFUTED, "bad.yaml is no YAML: "),
        (&unknown, "a.md", UNVERIFIABLE, "there is no contract 'acme/nothing' to hold it to"),
    ] {
        let report = stage.hold("path", claim.clone(), &json!({ "path": path })).unwrap();
        assert_eq!(Some(report.verdict), verdict, "{path}: {}", report.reason);
        assert!(
            report.reason.starts_with(reason) && report.reason.is_empty() == reason.is_empty(),
            "{}",
            report.reason
        );
    }
    let report = stage.hold("path", plain, &json!({"path": "a.md"})).unwrap();
    let hash = "982d9e3eb996f559e633f4d194def3761d909f5a3b647d1a851fead67c32c9d1";
    assert_eq!(report.evidence[0].sha256.as_deref(), Some(hash));
}

#[test]
fn a_place_is_in_its_file() {
    let stage = Stage::with(&[
        ("a.rs", "1\n2\n3"),
        ("b.rs", "1\n2\n"),
        ("notes:12", "x"),
        ("none.rs", ""),
        ("d.rs", "1"),
    ]);
    stage.delete("d.rs");
    std::fs::create_dir(stage.folder.join("dir")).unwrap();
    let claim = || Claim::new(ClaimKind::Location);
    for (place, why) in [
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
        (json!("a.rs:3-1"), "a.rs:3-1 (3-1 is no range)"),
        (json!({"file": "a.rs", "line": "the end"}), "a.rs (the end is no line)"),
        (json!("c.rs:1"), "c.rs:1 (there is no such file)"),
        (json!("d.rs:1"), "d.rs:1 (the step deleted the file)"),
        (json!("dir"), "dir (it is no file but a folder)"),
        (json!("../a.rs:1"), "../a.rs:1 (it leads out of the repository)"),
        (json!("/etc/passwd:1"), "/etc/passwd:1 (it is outside of the workspace)"),
        (json!(format!("a.rs:{}", "9".repeat(40))), "there is no such file"),
    ] {
        let report = stage.hold("at", claim(), &json!({"at": [place]})).unwrap();
        if why.is_empty() {
            assert_eq!(report.verdict, Verdict::Verified, "{place}: {}", report.reason);
        } else {
            assert_eq!(report.verdict, Verdict::Refuted, "{place}");
            assert!(report.reason.starts_with("1 of 1 place is not there: "), "{}", report.reason);
            assert!(report.reason.contains(why), "{}", report.reason);
        }
    }
    let found = json!({"findings": [{"file": "a.rs", "line": 9}, {"file": "b.rs", "line": null}, {"file": "b.rs"}]});
    let report = stage.hold("findings/*/file", claim(), &found).unwrap();
    assert_eq!(report.reason, "1 of 3 places is not there: a.rs:9 (the file has 3 lines)");
    assert_eq!(report.observed, json!("2 of 3 places there"));
}

#[test]
fn what_is_fixed_was_touched() {
    let outcomes = |pairs: &[(&str, &str)]| {
        let items: Vec<Value> =
            pairs.iter().map(|(id, outcome)| json!({"id": id, "outcome": outcome})).collect();
        json!({ "outcomes": items })
    };
    let findings = json!([{"id": "F1", "file": "m1"}, {"id": "F2", "file": "u1"}, {"id": "F3", "file": "d1"}, {"id": 4, "file": "m2"}]);
    let stage = Stage { findings: Some(findings), ..changed() };
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
            "claimed 1 finding fixed, 1 was not among those to fix: F9",
        ),
    ] {
        assert_eq!(
            short(stage.hold("outcomes", claim(), &said)),
            (verdict, reason.to_owned()),
            "{said}"
        );
    }
    assert_eq!(
        short(stage.hold("outcome", claim(), &json!({"id": "F1", "outcome": "fixed"}))),
        (VERIFIED, String::new())
    );
    assert_eq!(stage.hold("outcome", claim(), &json!({"id": "F2", "outcome": "blocked"})), None);
    let open = Stage {
        findings: Some(json!([{"id": "F1", "file": null}, {"id": "F2", "file": "u1"}])),
        ..changed()
    };
    assert_eq!(
        short(open.hold("outcomes", claim(), &outcomes(&[("F1", "fixed")]))).0,
        UNVERIFIABLE
    );
    assert_eq!(
        short(open.hold("outcomes", claim(), &outcomes(&[("F1", "fixed"), ("F2", "fixed")]))).0,
        REFUTED
    );
    let untold = Stage { findings: None, ..changed() };
    let report = untold.hold("outcomes", claim(), &outcomes(&[("F1", "fixed")]));
    assert_eq!(short(report).0, UNVERIFIABLE);
    let own = json!({"outcomes": [{"id": "F1", "outcome": "fixed", "file": "u1"}]});
    assert_eq!(short(untold.hold("outcomes", claim(), &own)).0, REFUTED);
}

#[test]
fn a_file_that_git_ignores_is_judged_by_its_times() {
    let mut stage = Stage::with(&[("a", "1")]);
    stage.write("dist/out.js", "x").write("dist/old.js", "y");
    stage.ignored.insert("dist/out.js".into(), Since::Added);
    stage.ignored.insert("dist/old.js".into(), Since::Untouched);
    let claim = || Claim::new(ClaimKind::FilesAdded);
    let report = stage.hold("files", claim(), &files(&["dist/out.js"])).unwrap();
    assert_eq!(report.verdict, Verdict::Verified, "{}", report.reason);
    assert_eq!(notes(&report), ["dist/out.js is ignored by git, and judged by its times"]);
    let report = stage.hold("files", claim(), &files(&["dist/old.js"]));
    assert_eq!(short(report).1, "claimed 1 file added, 1 did not change: dist/old.js");
}

#[test]
fn whether_an_ignored_file_was_deleted_cannot_be_told() {
    use ClaimKind::{FilesAdded, FilesChanged, FilesDeleted};
    use ClaimMatch::{BestEffort, Exact, Subset};
    let mut stage = Stage::with(&[("a", "1"), ("b", "2"), ("cache.log", "x")]);
    stage.delete("a").delete("cache.log");
    stage.ignored.insert("cache.log".into(), Since::Absent);
    let ignored = "1 is ignored by git, and nothing tells whether there was such a file: cache.log";
    let of_them =
        "1 of them is ignored by git, and nothing tells whether there was such a file: cache.log";
    for (kind, matching, claimed, verdict, reason) in [
        (
            FilesDeleted,
            Subset,
            &["cache.log"][..],
            UNVERIFIABLE,
            format!("claimed 1 file deleted, {ignored}"),
        ),
        (
            FilesDeleted,
            Exact,
            &["a", "cache.log"],
            UNVERIFIABLE,
            format!("claimed 2 files deleted, {of_them}"),
        ),
        (
            FilesChanged,
            Exact,
            &["a", "cache.log"],
            UNVERIFIABLE,
            format!("claimed 2 files changed, {of_them}"),
        ),
        // What can be told goes before what cannot.
        (
            FilesDeleted,
            Subset,
            &["b", "cache.log"],
            REFUTED,
            format!("claimed 2 files deleted, 1 of them did not change: b; {ignored}"),
        ),
        (
            FilesChanged,
            BestEffort,
            &["cache.log"],
            UNVERIFIABLE,
            format!("claimed 1 file changed, {ignored}"),
        ),
        (FilesChanged, BestEffort, &["a", "cache.log"], VERIFIED, String::new()),
        // A file that is not there was not added, whoever ignores it.
        (
            FilesAdded,
            Subset,
            &["cache.log"],
            REFUTED,
            "claimed 1 file added, 1 does not exist: cache.log".to_owned(),
        ),
    ] {
        let report = stage.hold("files", Claim::new(kind).matching(matching), &files(claimed));
        assert_eq!(short(report), (verdict, reason), "{kind:?} {matching:?} {claimed:?}");
    }
}
