//! Paths in unusual forms.

use crate::claims::{TestWorkspace, files, notes, short};
use counterfoil_contract::claim::{Claim, ClaimKind, ClaimMatch, Verdict};
use serde_json::json;
use std::os::unix::ffi::OsStringExt;

fn modified() -> Claim {
    Claim::new(ClaimKind::FilesModified)
}

fn odd() -> TestWorkspace {
    let names =
        ["src/a b.rs", "src/\"q\".rs", "src/new\nline.rs", "src/Ärger.rs", "src/Main.rs", "dir/x"];
    let workspace = TestWorkspace::with(&names.map(|name| (name, "before")));
    for name in &names[..5] {
        workspace.write(name, "after");
    }
    std::os::unix::fs::symlink("/etc/hostname", workspace.folder.join("out")).unwrap();
    std::os::unix::fs::symlink("src", workspace.folder.join("link")).unwrap();
    let mut workspace = workspace;
    // The links existed before the step.
    for link in ["out", "link"] {
        workspace.before.insert(link.into(), b"special".to_vec());
    }
    workspace
}

#[test]
fn a_path_is_found_however_it_is_written() {
    let workspace = odd();
    let absolute = workspace.folder.join("src/Main.rs").to_string_lossy().into_owned();
    for (name, note) in [
        ("src/a b.rs", None),
        ("./src/a b.rs", None),
        ("dir/../src/a b.rs", None),
        ("src//Main.rs", None),
        ("src/\"q\".rs", None),
        ("src/new\nline.rs", None),
        ("src\\Main.rs", Some("is written with backslashes")),
        ("src/main.rs", Some("is src/Main.rs: the case or the Unicode form differs")),
        ("src/A\u{308}rger.rs", Some("is src/Ärger.rs: the case or the Unicode form differs")),
        ("link/Main.rs", Some("is src/Main.rs through a symbolic link")),
        (absolute.as_str(), Some("is written as an absolute path")),
    ] {
        let report = workspace
            .verify_claim("files", modified().matching(ClaimMatch::Subset), &files(&[name]))
            .unwrap();
        assert_eq!((report.verdict, report.reason.as_str()), (Verdict::Verified, ""), "{name:?}");
        match note {
            None => assert_eq!(notes(&report), Vec::<&str>::new(), "{name:?}"),
            Some(note) => {
                assert!(
                    notes(&report).iter().any(|said| said.ends_with(note)),
                    "{:?}",
                    notes(&report)
                );
            }
        }
    }
}

#[test]
fn a_path_that_is_none_of_the_workspace_is_never_read() {
    let workspace = odd();
    for (name, why) in [
        ("", "the path is empty: \"\""),
        ("  ", "the path is empty: \"  \""),
        ("a\0b", "the path contains a NUL: \"a\\u{0}b\""),
        ("/etc/hostname", "it is outside of the workspace: /etc/hostname"),
        ("../../etc/hostname", "it leads out of the repository: ../../etc/hostname"),
        ("out", "it is a symbolic link out of the repository: out"),
    ] {
        let report = workspace.verify_claim(
            "files",
            modified().matching(ClaimMatch::Subset),
            &files(&[name]),
        );
        let reason = format!("claimed 1 file modified, 1 cannot have changed, {why}");
        assert_eq!(short(report), (Some(Verdict::Refuted), reason));
    }
    let report =
        workspace.verify_claim("files", modified().matching(ClaimMatch::Subset), &files(&["src/"]));
    assert_eq!(
        short(report).1,
        "claimed 1 file modified, 1 is a folder, in which 5 files changed: src/"
    );
}

#[test]
fn a_file_of_that_very_name_is_not_taken_for_another() {
    let workspace = TestWorkspace::with(&[("Readme", "1"), ("README", "1")]);
    workspace.write("README", "2");
    let report = workspace.verify_claim("files", modified(), &files(&["Readme"]));
    assert_eq!(
        short(report).1,
        "claimed 1 file modified, 1 did not change: Readme; 1 changed file was not claimed: README"
    );
}

#[test]
fn a_path_from_the_top_is_understood_in_a_subfolder() {
    let mut workspace = TestWorkspace::with(&[
        ("web/app/a.rs", "1"),
        ("web/b.rs", "1"),
        ("c.rs", "1"),
        ("d.rs", "1"),
    ]);
    workspace.folder = workspace.top().join("web/app");
    workspace.start_step();
    workspace.write("a.rs", "2").write("../b.rs", "2").write("../../c.rs", "2");
    let report = workspace
        .verify_claim("files", modified(), &files(&["web/app/a.rs", "../b.rs", "c.rs"]))
        .unwrap();
    assert_eq!((report.verdict, report.reason.as_str()), (Verdict::Verified, ""));
    let from_top = "is relative to the top of the repository";
    assert_eq!(notes(&report), [format!("web/app/a.rs {from_top}"), format!("c.rs {from_top}")]);
    let report = workspace
        .verify_claim("files", modified(), &files(&["a.rs", "d.rs", "../../../d.rs"]))
        .unwrap();
    assert_eq!(
        report.reason,
        "claimed 3 files modified, 1 of them did not change: d.rs; 1 cannot have changed, it leads out of the \
         repository: ../../../d.rs; 2 changed files were not claimed: ../../c.rs, ../b.rs"
    );
    let at = json!({"at": ["web/b.rs:1", "a.rs:1"]});
    assert_eq!(
        workspace.verify_claim("at", Claim::new(ClaimKind::Location), &at).unwrap().verdict,
        Verdict::Verified
    );
}

#[test]
fn names_that_are_no_text_are_shown_and_counted() {
    let workspace = TestWorkspace::with(&[]);
    let name = std::ffi::OsString::from_vec(b"bad\xff.rs".to_vec());
    std::fs::write(workspace.folder.join(&name), "x").unwrap();
    let report =
        workspace.verify_claim("files", Claim::new(ClaimKind::FilesAdded), &files(&[])).unwrap();
    assert_eq!(report.reason, "claimed 0 files added, 1 more was added: bad\u{fffd}.rs");
}

#[test]
fn fifty_thousand_paths_cost_what_they_should() {
    let workspace = TestWorkspace::with(&[]);
    for n in 0..50 {
        workspace.write(&format!("real/{n}"), "x");
    }
    let names: Vec<String> =
        (0..50_000).map(|n| format!("{}/{n}", if n < 50 { "real" } else { "made/up" })).collect();
    let value = json!({ "files": names });
    let report =
        workspace.verify_claim("files", Claim::new(ClaimKind::FilesAdded), &value).unwrap();
    assert!(
        report.reason.starts_with(
            "claimed 50000 files added, 49950 of them do not exist: made/up/50, made/up/51, "
        ),
        "{}",
        report.reason
    );
    assert!(report.reason.len() < 400);
    assert_eq!(report.claimed.as_array().unwrap().len(), 51);
    assert_eq!(report.claimed[50], "… and 49950 more");
    let places = json!({"at": vec!["real/1:1"; 50_000]});
    assert_eq!(
        workspace.verify_claim("at", Claim::new(ClaimKind::Location), &places).unwrap().verdict,
        Verdict::Verified
    );
}

#[test]
fn a_pipe_is_not_opened() {
    let workspace = TestWorkspace::with(&[]);
    let made =
        std::process::Command::new("mkfifo").arg(workspace.folder.join("pipe")).status().unwrap();
    assert!(made.success());
    let path = json!({"path": "pipe"});
    let report = workspace.verify_claim("path", Claim::new(ClaimKind::Artifact), &path);
    assert_eq!(short(report).1, "pipe is not a regular file");
    let report = workspace.verify_claim("path", Claim::new(ClaimKind::Location), &path);
    assert_eq!(short(report).1, "1 of 1 location does not exist: pipe (it is not a regular file)");
}
