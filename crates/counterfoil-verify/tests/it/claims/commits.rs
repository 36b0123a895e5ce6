//! Claims about commits, with real git.

use crate::claims::{TestWorkspace, notes, short};
use counterfoil_contract::claim::{Claim, ClaimKind, Verdict};
use serde_json::json;
use std::path::Path;
use std::process::Command;

fn git(folder: &Path, arguments: &[&str], at: &str) -> String {
    let output = Command::new("git")
        .args(arguments)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .env("GIT_AUTHOR_NAME", "A")
        .env("GIT_AUTHOR_EMAIL", "a@example.org")
        .env("GIT_COMMITTER_NAME", "A")
        .env("GIT_COMMITTER_EMAIL", "a@example.org")
        .env("GIT_AUTHOR_DATE", at)
        .env("GIT_COMMITTER_DATE", at)
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

const LONG_AGO: &str = "2001-01-01T00:00:00Z";
const LATER: &str = "2099-01-01T00:00:00Z";

fn commit(workspace: &TestWorkspace, message: &str, at: &str) -> String {
    git(&workspace.top(), &["add", "-A"], at);
    git(&workspace.top(), &["commit", "-q", "-m", message], at);
    git(&workspace.top(), &["rev-parse", "HEAD"], at)
}

#[test]
fn a_commit_is_there_and_holds_its_files() {
    let mut workspace = TestWorkspace::with(&[("a", "1"), ("b", "1")]);
    git(&workspace.top(), &["init", "-q", "-b", "main"], LONG_AGO);
    let old = commit(&workspace, "old", LONG_AGO);
    git(&workspace.top(), &["checkout", "-q", "-b", "side"], LONG_AGO);
    workspace.write("side", "1");
    let side_old = commit(&workspace, "side, old", LONG_AGO);
    workspace.write("side", "2");
    let side_new = commit(&workspace, "side, new", LATER);
    git(&workspace.top(), &["checkout", "-q", "main"], LONG_AGO);
    workspace.start_step();
    workspace.write("a", "2").write("ü \"x\"", "new");
    let new = commit(&workspace, "new", LATER);
    let tree = git(&workspace.top(), &["rev-parse", "HEAD^{tree}"], LATER);
    let blob = git(&workspace.top(), &["rev-parse", "HEAD:a"], LATER);
    let claim = || Claim::new(ClaimKind::Commit);
    let none = "0123456789abcdef0123456789abcdef01234567";
    for (name, verdict, reason) in [
        (new.as_str(), Verdict::Verified, ""),
        (&new[..7], Verdict::Verified, ""),
        (&old, Verdict::Refuted, "(it existed before the step began)"),
        // Times say nothing: this one claims to be from the future.
        (
            &side_new,
            Verdict::Refuted,
            "(it is not in the history of HEAD, and it existed before the step began)",
        ),
        (&side_old, Verdict::Refuted, "and it existed before the step began)"),
        (none, Verdict::Refuted, "(there is no such commit)"),
        (&tree, Verdict::Refuted, "(there is no such commit)"),
        (&blob, Verdict::Refuted, "(there is no such commit)"),
        ("HEAD", Verdict::Refuted, "(it is not a commit id of 7 to 64 hexadecimal digits)"),
        ("--help", Verdict::Refuted, "(it is not a commit id"),
        ("abc123", Verdict::Refuted, "(it is not a commit id"),
        ("4f2a9c1\nHEAD", Verdict::Refuted, "(it is not a commit id"),
    ] {
        let report = workspace.verify_claim("sha", claim(), &json!({ "sha": name })).unwrap();
        assert_eq!(report.verdict, verdict, "{name}: {}", report.reason);
        assert!(report.reason.contains(reason), "{name}: {}", report.reason);
    }
    assert_eq!(workspace.verify_claim("sha", claim(), &json!({"sha": null})), None);
    assert_eq!(workspace.verify_claim("sha", claim(), &json!({"sha": []})), None);

    let with = || claim().with_files("/files");
    let good = json!({"sha": [new], "files": [{"file_path": "a", "change_type": "modified"}, {"file_path": "ü \"x\""}]});
    assert_eq!(
        short(workspace.verify_claim("sha", with(), &good)),
        (Some(Verdict::Verified), String::new())
    );
    let bad = json!({"sha": [new[..8]], "files": ["a", "b"]});
    let reason = format!("{} does not contain 1 of 2 files: b", &new[..8]);
    assert_eq!(
        short(workspace.verify_claim("sha", with(), &bad)),
        (Some(Verdict::Refuted), reason)
    );
    // Together, the commits contain the expected files. A new one may carry an old date.
    workspace.write("b", "2");
    let more = commit(&workspace, "more", LONG_AGO);
    let both = json!({"sha": [new, more], "files": ["a", "b"]});
    assert_eq!(short(workspace.verify_claim("sha", with(), &both)).0, Some(Verdict::Verified));
    // One that is not in the history of HEAD any more was still made.
    git(&workspace.top(), &["reset", "-q", "--hard", &new], LATER);
    let report = workspace.verify_claim("sha", claim(), &json!({ "sha": more })).unwrap();
    assert_eq!(report.verdict, Verdict::Verified, "{}", report.reason);
    assert!(notes(&report)[0].ends_with("and is not in the history of HEAD"));
    // Each task has its own files.
    let each = claim().with_files("/tasks/*/files");
    let tasks = json!({"tasks": [{"sha": more, "files": ["b"]}, {"sha": new, "files": ["b"]}, {"sha": null, "files": ["c"]}]});
    let (verdict, reason) = short(workspace.verify_claim("tasks/*/sha", each, &tasks));
    assert_eq!(
        (verdict, reason),
        (Some(Verdict::Refuted), format!("{new} does not contain 1 of 1 file: b"))
    );
}

#[test]
fn without_a_repository_nothing_can_be_said() {
    let workspace = TestWorkspace::with(&[]);
    let report = workspace
        .verify_claim("sha", Claim::new(ClaimKind::Commit), &json!({"sha": "4f2a9c1"}))
        .unwrap();
    assert_eq!(report.verdict, Verdict::Unverifiable);
    assert!(report.reason.starts_with("the commits cannot be looked up: "), "{}", report.reason);
    git(&workspace.top(), &["init", "-q"], LATER);
    let report = workspace
        .verify_claim("sha", Claim::new(ClaimKind::Commit), &json!({"sha": "4f2a9c1"}))
        .unwrap();
    assert_eq!(report.verdict, Verdict::Refuted, "{}", report.reason);
}

#[test]
fn history_cannot_be_cut_to_make_an_old_commit_new() {
    let mut workspace = TestWorkspace::with(&[("a", "1")]);
    git(&workspace.top(), &["init", "-q", "-b", "main"], LONG_AGO);
    let old = commit(&workspace, "old", LONG_AGO);
    workspace.write("a", "2");
    let tip = commit(&workspace, "tip", LATER);
    workspace.start_step();
    let verdict = || {
        let claim = Claim::new(ClaimKind::Commit);
        workspace.verify_claim("sha", claim, &json!({ "sha": old })).unwrap().verdict
    };
    assert_eq!(verdict(), Verdict::Refuted);
    for file in ["info/grafts", "shallow"] {
        let path = workspace.top().join(".git").join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, format!("{tip}\n")).unwrap();
        assert_ne!(verdict(), Verdict::Verified, "{file}");
        std::fs::remove_file(path).unwrap();
    }
    git(&workspace.top(), &["replace", "--graft", &tip], LATER);
    assert_ne!(verdict(), Verdict::Verified);
}
