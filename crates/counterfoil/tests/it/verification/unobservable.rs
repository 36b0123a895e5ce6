//! A workspace that cannot be observed: a step in it fails, and says why.

use crate::verification::project::{DirtyProject, replies};
use serde_json::json;

/// A project without git that is too large to be read: 5 GiB, without a byte on the disk.
fn too_large() -> DirtyProject {
    let project = DirtyProject::new();
    std::fs::remove_dir_all(project.path(".git")).unwrap();
    for at in 0..20 {
        let file = std::fs::File::create(project.path(format!("sparse{at}"))).unwrap();
        file.set_len(250 << 20).unwrap();
    }
    project
}

#[test]
fn a_step_whose_changes_cannot_be_observed_fails() {
    for (top, more) in [
        // The protection is there by default.
        ("", ", repairs: 2"),
        ("", ", claims: { files: require }, repairs: 2"),
        ("tests: require", ", repairs: 2"),
    ] {
        let project = too_large();
        project.write_one_step(top, more);
        // A second question would find no reply.
        project.write_script(&[replies(&json!({"files": []}), json!({}))]);
        let ran = project.run_script();
        assert_eq!(ran.ended(), ("failed", Some("claim"), 3), "{top} {more}: {ran:?}");
        assert!(ran.reason().starts_with("cannot be verified: "), "{}", ran.reason());
        assert!(ran.reason().contains("too much to read"), "{}", ran.reason());
        ran.assert_claim(0, "protected", "unverifiable", &["too much to read"]);
    }
}

#[test]
fn a_required_claim_that_cannot_be_verified_fails_the_step() {
    for (policy, ended) in
        [("require", ("failed", Some("claim"), 3)), ("record", ("done", None, 0))]
    {
        let project = DirtyProject::new();
        project.write("counterfoil.toml", "[checks]\ntest = \"no-such-program --all\"\n");
        project.write_one_step("", &format!(", claims: {{ tests_pass: {policy} }}, repairs: 2"));
        // A second question would find no reply.
        project.write_script(&[replies(&json!({"files": [], "tests_pass": true}), json!({}))]);
        let ran = project.run_script();
        assert_eq!(ran.ended(), ended, "{policy}: {ran:?}");
        ran.assert_claim(0, "tests_pass", "unverifiable", &["could not be run"]);
    }
}
