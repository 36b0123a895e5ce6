//! What is configured and cannot be had: nothing is started uncontained.

use super::project::{TargetProject, is_available};
use std::os::unix::fs::symlink;

const AGENT: &str = "echo ran > ran\necho '{\"ok\": true}'\n";

#[test]
fn an_invalid_value_is_an_error_with_its_place() {
    let cases = [
        ("contain = \"bwarp\"\n", "line 1: \"bwarp\" is not a kind of containment"),
        ("\n[contain]\nkind = \"landlock\"\nnetwrk = false\n", "unknown field `netwrk`"),
        ("[contain]\nnetwork = false\n", "missing field `kind`"),
    ];
    for (config, expected) in cases {
        let project = TargetProject::new(config, AGENT);
        let output = project.run_agent();
        assert_eq!(output.code, Some(2), "{output:?}");
        assert!(output.stderr.contains("counterfoil.toml"), "{output:?}");
        assert!(output.stderr.contains(expected), "{output:?}");
        assert_eq!(project.read_or_empty("before"), "", "nothing was started");
    }
}

#[test]
fn without_bwrap_on_path_nothing_is_started() {
    let project = TargetProject::new("contain = \"bwrap\"\n", AGENT);
    let bin = project.root_path("bin");
    std::fs::create_dir(&bin).unwrap();
    for tool in ["sh", "git", "cat", "echo"] {
        let path = std::env::var_os("PATH").unwrap();
        let found = std::env::split_paths(&path).map(|folder| folder.join(tool));
        symlink(found.into_iter().find(|path| path.exists()).unwrap(), bin.join(tool)).unwrap();
    }
    let output = project.run_with(&[("PATH", bin.to_str().unwrap())]);
    assert_ne!(output.code, Some(0), "{output:?}");
    let report = project.show_last();
    let reason = report["reason"].as_str().unwrap();
    assert!(reason.contains("contain = \"bwrap\""), "{reason}");
    assert!(reason.contains("install the package bubblewrap"), "{reason}");
    assert_eq!(project.read_or_empty("before") + &project.read_or_empty("ran"), "");
}

#[test]
fn a_path_of_the_settings_that_does_not_exist_starts_nothing() {
    for kind in ["bwrap", "landlock"].into_iter().filter(|kind| is_available(kind)) {
        let config = format!("[contain]\nkind = \"{kind}\"\nwritable = [\"~/nowhere\"]\n");
        let project = TargetProject::new(&config, AGENT);
        let output = project.run_agent();
        assert_ne!(output.code, Some(0), "{output:?}");
        let report = project.show_last();
        let reason = report["reason"].as_str().unwrap();
        assert!(reason.contains("~/nowhere in `writable` of [contain] does not exist"), "{reason}");
        assert_eq!(project.read_or_empty("before"), "");
    }
}

#[test]
fn a_run_names_its_containment_when_it_starts() {
    for kind in ["bwrap", "landlock"].into_iter().filter(|kind| is_available(kind)) {
        let config = format!("[contain]\nkind = \"{kind}\"\nnetwork = false\n");
        let project = TargetProject::new(&config, AGENT);
        let output = project.run_agent();
        assert_eq!(output.code, Some(0), "{output:?}");
        let line = format!("are contained by {kind}, without a network");
        assert!(output.stderr.contains(&line), "{output:?}");
    }
}
