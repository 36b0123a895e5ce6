//! Claims about changed files.

use crate::claims::{TestWorkspace, files, notes, short};
use counterfoil_contract::claim::{Claim, ClaimKind, ClaimMatch, ClaimPolicy, Verdict};
use counterfoil_verify::claims::Since;
use serde_json::json;

pub(super) const VERIFIED: Option<Verdict> = Some(Verdict::Verified);
pub(super) const REFUTED: Option<Verdict> = Some(Verdict::Refuted);
pub(super) const UNVERIFIABLE: Option<Verdict> = Some(Verdict::Unverifiable);

/// `m1`, `m2` modified, `a1` added, `d1` deleted, `old` renamed to `new`, `u1` left alone.
pub(super) fn changed() -> TestWorkspace {
    let workspace = TestWorkspace::with(&[
        ("m1", "1"),
        ("m2", "2"),
        ("d1", "3"),
        ("old", "same bytes"),
        ("u1", "5"),
        ("dir/x", "6"),
    ]);
    workspace
        .write("m1", "1+")
        .write("m2", "2+")
        .write("a1", "new")
        .delete("d1")
        .rename("old", "new");
    workspace.write("__pycache__/m.pyc", "noise").write("report.ours.md", "ours");
    workspace
}

#[test]
fn files_are_held_against_what_changed() {
    use ClaimKind::{FilesAdded, FilesChanged, FilesDeleted, FilesModified, FilesRenamed};
    use ClaimMatch::{BestEffort, Exact, Subset};
    let workspace = changed();
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
            "claimed 2 files deleted, 1 of them was not there before the step: never",
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
            "claimed 1 file changed, 1 is a folder, not a file: dir",
        ),
        (FilesChanged, BestEffort, vec!["__pycache__/m.pyc"], VERIFIED, ""),
    ] {
        let report =
            workspace.verify_claim("files", Claim::new(kind).matching(matching), &files(&names));
        assert_eq!(short(report), (verdict, reason.to_owned()), "{kind:?} {matching:?} {names:?}");
    }
}

#[test]
fn a_list_of_objects_says_of_each_file_what_became_of_it() {
    let workspace = changed();
    let good = json!({"files": [
        {"file_path": "m1", "change_type": "modified"}, {"file_path": "m2", "change_type": "modified"},
        {"file_path": "a1", "change_type": "added"}, {"file_path": "d1", "change_type": "deleted"},
        {"file_path": "new", "change_type": "renamed", "old_path": "old"}
    ]});
    let claim = || Claim::new(ClaimKind::FilesChanged);
    assert_eq!(short(workspace.verify_claim("files", claim(), &good)), (VERIFIED, String::new()));
    let mut bad = good.clone();
    bad["files"][2]["change_type"] = json!("modified");
    bad["files"][4]["old_path"] = json!("d1");
    let report = workspace.verify_claim("files", claim(), &bad).unwrap();
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
    // A field of objects with the old path in the same object.
    let moved = json!({"moved": [{"from": "old", "to": "new"}]});
    assert_eq!(
        short(workspace.verify_claim("moved/*/to", Claim::new(ClaimKind::FilesRenamed), &moved)),
        (VERIFIED, String::new())
    );
    let unreadable = json!({"files": [{"name": 7}]});
    assert_eq!(
        workspace.verify_claim("files", claim(), &unreadable).unwrap().verdict,
        Verdict::Unverifiable
    );
}

#[test]
fn a_file_that_was_moved_and_edited_is_a_renamed_one() {
    let workspace = TestWorkspace::with(&[("old", "some text")]);
    workspace.rename("old", "new").write("new", "some other text");
    let claim = || Claim::new(ClaimKind::FilesRenamed);
    let report = workspace
        .verify_claim("m/*/to", claim(), &json!({"m": [{"from": "old", "to": "new"}]}))
        .unwrap();
    assert_eq!((report.verdict, report.reason.as_str()), (Verdict::Verified, ""));
    assert!(notes(&report)[0].contains("counts as added"));
    let report = workspace.verify_claim(
        "m/*/to",
        claim(),
        &json!({"m": [{"from": "elsewhere", "to": "new"}]}),
    );
    assert_eq!(short(report).1, "claimed 1 file renamed, 1 was added, not renamed: new");
}

#[test]
fn what_is_not_said_is_no_claim() {
    let workspace = changed();
    for (field, value) in [
        ("files", json!({})),
        ("files", json!({"files": null})),
        ("result/files", json!({"result": null})),
        ("findings/*/file", json!({"findings": []})),
        ("findings/*/file", json!({"findings": [{"line": 3}]})),
    ] {
        let claim = if field.contains('*') { ClaimKind::Location } else { ClaimKind::FilesChanged };
        assert_eq!(
            workspace.verify_claim(field, Claim::new(claim), &value),
            None,
            "{field} {value}"
        );
    }
    let ignored = Claim { policy: ClaimPolicy::Ignore, ..Claim::new(ClaimKind::FilesModified) };
    assert_eq!(workspace.verify_claim("files", ignored, &files(&["nothing"])), None);
}

#[test]
fn without_a_view_of_the_changes_nothing_can_be_said() {
    let workspace =
        TestWorkspace { unobservable: Some("git is not there".to_owned()), ..changed() };
    for (kind, value) in [
        (ClaimKind::FilesModified, files(&["m1"])),
        (ClaimKind::Fixed, json!({"files": [{"id": "F1", "outcome": "fixed", "file": "m1"}]})),
    ] {
        let report = workspace.verify_claim("files", Claim::new(kind), &value);
        assert_eq!(
            short(report),
            (UNVERIFIABLE, "the changes cannot be determined: git is not there".to_owned())
        );
    }
}

#[test]
fn a_file_that_git_ignores_is_judged_by_its_times() {
    let mut workspace = TestWorkspace::with(&[("a", "1")]);
    workspace.write("dist/out.js", "x").write("dist/old.js", "y");
    workspace.ignored.insert("dist/out.js".into(), Since::Added);
    workspace.ignored.insert("dist/old.js".into(), Since::Untouched);
    let claim = || Claim::new(ClaimKind::FilesAdded);
    let report = workspace.verify_claim("files", claim(), &files(&["dist/out.js"])).unwrap();
    assert_eq!(report.verdict, Verdict::Verified, "{}", report.reason);
    assert_eq!(notes(&report), ["dist/out.js is ignored by git; file times show how it changed"]);
    let report = workspace.verify_claim("files", claim(), &files(&["dist/old.js"]));
    assert_eq!(short(report).1, "claimed 1 file added, 1 did not change: dist/old.js");
}

#[test]
fn whether_an_ignored_file_was_deleted_cannot_be_told() {
    use ClaimKind::{FilesAdded, FilesChanged, FilesDeleted};
    use ClaimMatch::{BestEffort, Exact, Subset};
    let mut workspace = TestWorkspace::with(&[("a", "1"), ("b", "2"), ("cache.log", "x")]);
    workspace.delete("a").delete("cache.log");
    workspace.ignored.insert("cache.log".into(), Since::Absent);
    let ignored =
        "1 is ignored by git, and it is unknown whether the file existed before: cache.log";
    let of_them =
        "1 of them is ignored by git, and it is unknown whether the file existed before: cache.log";
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
        // Known mismatches are reported before unknown ones.
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
        // A file that does not exist was not added, even if git ignores it.
        (
            FilesAdded,
            Subset,
            &["cache.log"],
            REFUTED,
            "claimed 1 file added, 1 does not exist: cache.log".to_owned(),
        ),
    ] {
        let report =
            workspace.verify_claim("files", Claim::new(kind).matching(matching), &files(claimed));
        assert_eq!(short(report), (verdict, reason), "{kind:?} {matching:?} {claimed:?}");
    }
}
