//! Claims about commits, with real git.

use crate::claims::{TestWorkspace, notes, short};
use counterfoil_contract::claim::{Claim, ClaimKind, Verdict};
use counterfoil_verify::claims::CommitsBefore;
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
    // One that is not in the history of HEAD any more was made, if a branch keeps it.
    git(&workspace.top(), &["reset", "-q", "--hard", &new], LATER);
    let report = workspace.verify_claim("sha", claim(), &json!({ "sha": more })).unwrap();
    assert_eq!(report.verdict, Verdict::Refuted, "{report:?}");
    assert!(report.reason.contains("(no branch contains it)"), "{}", report.reason);
    git(&workspace.top(), &["branch", "aside", &more], LATER);
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
fn a_commit_in_the_history_of_the_base_is_no_work_since_then() {
    let mut workspace = TestWorkspace::with(&[("a", "1")]);
    git(&workspace.top(), &["init", "-q", "-b", "main"], LATER);
    let old = commit(&workspace, "old", LATER);
    workspace.write("a", "2");
    let base = commit(&workspace, "base", LATER);
    let mut assert_verdict = |revision: &str, id: &str, verdict: Verdict, reason: &str| {
        workspace.commits_before = CommitsBefore::Revision(revision.to_owned());
        let claim = Claim::new(ClaimKind::Commit);
        let report = workspace.verify_claim("sha", claim, &json!({ "sha": id })).unwrap();
        assert_eq!(report.verdict, verdict, "{id} since {revision}: {}", report.reason);
        assert!(report.reason.contains(reason), "{id} since {revision}: {}", report.reason);
    };
    // HEAD and a branch move with a commit, so the agent may have made this one.
    for revision in ["HEAD", "main"] {
        let reason =
            format!("is in the history of {revision}: compare with a revision from before");
        assert_verdict(revision, &base, Verdict::Unverifiable, &reason);
        assert_verdict(revision, &old, Verdict::Unverifiable, &reason);
    }
    // An id does not.
    for revision in [base.as_str(), &base[..8], &base.to_uppercase()] {
        let reason = format!("(it is in the history of {revision})");
        assert_verdict(revision, &base, Verdict::Refuted, &reason);
        assert_verdict(revision, &old, Verdict::Refuted, &reason);
    }
    assert_verdict(&old, &base, Verdict::Verified, "");
    // Where there are commits since the base, it did not move with them.
    assert_verdict("HEAD~1", &base, Verdict::Verified, "");
    assert_verdict("HEAD~1", &old, Verdict::Refuted, "(it is in the history of HEAD~1)");
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

#[test]
fn a_commit_that_no_ref_reached_existed_all_the_same() {
    let mut workspace = TestWorkspace::with(&[("a", "1")]);
    let top = workspace.top();
    let ask = |arguments: &[&str]| git(&top, arguments, LATER);
    ask(&["init", "-q", "-b", "main"]);
    commit(&workspace, "start", LATER);
    workspace.write("a", "2");
    let amended = commit(&workspace, "amended", LATER);
    ask(&["commit", "-q", "--amend", "-m", "other"]);
    workspace.write("a", "3");
    ask(&["stash"]);
    let stashed = ask(&["rev-parse", "stash@{0}"]);
    ask(&["stash", "drop", "-q"]);
    let side = workspace.temp.path().join("side");
    ask(&["worktree", "add", "-q", "--detach", side.to_str().unwrap()]);
    git(&side, &["commit", "-q", "--allow-empty", "-m", "detached"], LATER);
    let detached = git(&side, &["rev-parse", "HEAD"], LATER);
    let tree = ask(&["rev-parse", "HEAD^{tree}"]);
    let loose = ask(&["commit-tree", "-m", "loose", &tree]);
    let packed = ask(&["commit-tree", "-m", "packed", &tree]);
    let list = workspace.temp.path().join("list");
    std::fs::write(&list, format!("{packed}\n")).unwrap();
    let pack = "git pack-objects -q .git/objects/pack/pack < ../list && git prune-packed -q";
    assert!(Command::new("sh").args(["-c", pack]).current_dir(&top).status().unwrap().success());
    workspace.start_step();
    let verdict = |id: &str| {
        let claim = Claim::new(ClaimKind::Commit);
        workspace.verify_claim("sha", claim, &json!({ "sha": id })).unwrap().verdict
    };
    let old = [&amended, &stashed, &detached, &loose, &packed];
    for id in old {
        assert_eq!(verdict(id), Verdict::Refuted, "{id}");
    }
    // Nor if it becomes part of the history.
    ask(&["reset", "-q", "--hard", &amended]);
    ask(&["reflog", "expire", "--expire=now", "--all"]);
    for id in old {
        assert_eq!(verdict(id), Verdict::Refuted, "{id}");
    }
    workspace.write("a", "4");
    let new = commit(&workspace, "new", LONG_AGO);
    assert_eq!(verdict(&new), Verdict::Verified);
}

#[test]
fn without_a_repository_before_the_step_no_commit_is_known_to_be_new() {
    let mut workspace = TestWorkspace::with(&[("a", "1")]);
    let top = workspace.top();
    git(&top, &["init", "-q", "-b", "main"], LATER);
    let old = commit(&workspace, "old", LATER);
    let (there, away) = (top.join(".git"), workspace.temp.path().join("away"));
    std::fs::rename(&there, &away).unwrap();
    workspace.start_step();
    std::fs::rename(&away, &there).unwrap();
    let claim = Claim::new(ClaimKind::Commit);
    let report = workspace.verify_claim("sha", claim, &json!({ "sha": old })).unwrap();
    assert_eq!(report.verdict, Verdict::Unverifiable, "{}", report.reason);
    assert!(report.reason.contains("which commits there were is not known"), "{}", report.reason);
}

#[test]
fn a_forged_commit_graph_is_not_believed() {
    let mut workspace = TestWorkspace::with(&[("a", "1")]);
    let top = workspace.top();
    git(&top, &["init", "-q", "-b", "main"], LONG_AGO);
    let old = commit(&workspace, "old", LONG_AGO);
    workspace.write("a", "2");
    let tip = commit(&workspace, "tip", LATER);
    workspace.start_step();
    // A graph in which the tip has no parent: that of a commit with the same files.
    git(&top, &["commit-graph", "write", "--reachable"], LATER);
    let path = top.join(".git/objects/info/commit-graph");
    let mut permissions = std::fs::metadata(&path).unwrap().permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0o644);
    std::fs::set_permissions(&path, permissions).unwrap();
    let mut graph = std::fs::read(&path).unwrap();
    // The table of contents names the chunk with the parents, 36 bytes for each commit.
    let entry = graph.windows(4).position(|name| name == b"CDAT").unwrap();
    let at = u64::from_be_bytes(graph[entry + 4..entry + 12].try_into().unwrap());
    let mut ids = [old.as_str(), tip.as_str()];
    ids.sort_unstable();
    let row = ids.iter().position(|id| *id == tip).unwrap();
    let parent = usize::try_from(at).unwrap() + row * 36 + 20;
    graph[parent..parent + 4].copy_from_slice(&0x7000_0000_u32.to_be_bytes());
    std::fs::write(&path, graph).unwrap();
    let claim = Claim::new(ClaimKind::Commit);
    let report = workspace.verify_claim("sha", claim, &json!({ "sha": old })).unwrap();
    assert_eq!(report.verdict, Verdict::Refuted, "{}", report.reason);
}
