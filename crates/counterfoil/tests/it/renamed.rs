//! Files with the former name of the product are pointed out once, and never read.

use crate::PROGRAM;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// A repository with the given files and folders (which end with a slash).
fn project(paths: &[&str]) -> TempDir {
    let folder = TempDir::new().unwrap();
    for path in [".git/"].iter().chain(paths) {
        let full = folder.path().join(path);
        if path.ends_with('/') {
            std::fs::create_dir_all(full).unwrap();
        } else {
            // Broken on purpose: reading it would be an error.
            std::fs::write(full, "[[[").unwrap();
        }
    }
    folder
}

/// The standard output and standard error of a command.
fn output(folder: &Path, arguments: &[&str]) -> (String, String) {
    let output = Command::new(PROGRAM)
        .args(arguments)
        .env("COUNTERFOIL_STATE", ".counterfoil")
        .env("XDG_DATA_HOME", "/dev/null/data")
        .current_dir(folder)
        .output()
        .unwrap();
    (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
}

fn warnings(stderr: &str) -> Vec<&str> {
    stderr.lines().filter(|line| line.contains("Countersign")).collect()
}

#[test]
fn old_names_are_pointed_out_in_one_line() {
    let project = project(&["countersign.toml", ".countersign/", "sub/"]);
    let root = project.path().canonicalize().unwrap();
    for arguments in [&["runs"][..], &["runs", "--format", "json"], &["claims", "stats"]] {
        for folder in [root.clone(), root.join("sub")] {
            let (stdout, stderr) = output(&folder, arguments);
            let warnings = warnings(&stderr);
            assert_eq!(warnings.len(), 1, "{arguments:?}: {stderr}");
            assert!(warnings[0].starts_with("warning: Counterfoil was called Countersign before"));
            for (old, new) in
                [("countersign.toml", "counterfoil.toml"), (".countersign", ".counterfoil")]
            {
                let advice = format!("rename {} to {new}", root.join(old).display());
                assert!(warnings[0].contains(&advice), "{advice}: {stderr}");
            }
            assert!(!stdout.to_lowercase().contains("countersign"), "{stdout}");
        }
    }
    let (_, stderr) = output(Path::new("/"), &["runs", "--repo", project.path().to_str().unwrap()]);
    assert_eq!(warnings(&stderr).len(), 1, "{stderr}");
}

#[test]
fn an_old_name_beside_the_new_one_can_be_removed() {
    let project = project(&[".countersign/", ".counterfoil/"]);
    let (_, stderr) = output(project.path(), &["runs"]);
    assert_eq!(warnings(&stderr).len(), 1, "{stderr}");
    assert!(stderr.contains("/.countersign (.counterfoil is used)"), "{stderr}");
}

#[test]
fn other_commands_and_projects_get_no_warning() {
    let old = project(&["countersign.toml", ".countersign/"]);
    for arguments in [&["contract", "list"][..], &["pack", "list"], &["explain", "C0201"]] {
        let (_, stderr) = output(old.path(), arguments);
        assert!(warnings(&stderr).is_empty(), "{arguments:?}: {stderr}");
    }
    let (_, stderr) = output(project(&[]).path(), &["runs"]);
    assert!(warnings(&stderr).is_empty(), "{stderr}");
}
