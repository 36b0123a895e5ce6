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
        (&old, Verdict::Verified, ""),
        (&side_new, Verdict::Verified, ""),
        (
            &side_old,
            Verdict::Refuted,
            "(it is not in the history of HEAD, nor was it made during the step)",
        ),
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
    let report = workspace.verify_claim("sha", claim(), &json!({ "sha": old })).unwrap();
    assert!(notes(&report)[0].ends_with("was made before the step began"));
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
    // Together, the commits contain the expected files.
    let both = json!({"sha": [new, old], "files": ["a", "b"]});
    assert_eq!(short(workspace.verify_claim("sha", with(), &both)).0, Some(Verdict::Verified));
    // Each task has its own files.
    let each = claim().with_files("/tasks/*/files");
    let tasks = json!({"tasks": [{"sha": old, "files": ["a", "b"]}, {"sha": new, "files": ["b"]}, {"sha": null, "files": ["c"]}]});
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
