//! The demo of the pack.

use crate::packs::project::PackProject;
use counterfoil_testkit::normalize;
use serde_json::json;

#[test]
fn the_demo_shows_every_turn_of_the_loop() {
    let project = PackProject::new("execution-loop");
    // It is the one that is shown if none is named.
    let output = project.run(&["demo", "--verbose", "--keep", "../kept"]);
    let words = output.stderr;
    assert_eq!(output.code, Some(0), "{words}");
    let shown = words.replace(crate::PROGRAM, "counterfoil");
    insta::assert_snapshot!("demo", normalize::volatile(&project.without_names(&shown)));

    let report =
        project.run_json(&["show", "last", "--repo", "../kept", "--format", "json"]).report;
    assert_eq!((&report["outcome"], &report["iterations"]), (&json!("done"), &json!(3)));
    let attempt = |path: &str, n: u64| {
        let attempts = report["attempts"].as_array().unwrap();
        attempts.iter().find(|one| one["path"] == json!([path]) && one["n"] == n).unwrap()
    };
    // A claim that is refuted and then holds, a contradiction and a text for a truth that are
    // repaired.
    let tests = |n: u64| {
        let claims = attempt("qa", n)["claims"].as_array().unwrap();
        claims.iter().find(|claim| claim["claim"] == "test_results").unwrap()["observed"]["exit_code"].clone()
    };
    assert_eq!([tests(1), tests(2), tests(3)], [json!(1), json!(0), json!(0)]);
    assert_eq!(
        [&attempt("code-quality", 1)["repairs_asked"], &attempt("dod", 1)["repairs_asked"]],
        [1, 1]
    );
    // The edits are real, and so are the books.
    assert!(project.read("../kept/stories/US-1.md").contains("- [x] a title with no words"));
    assert!(project.read("../kept/slug.sh").contains("echo \"${words:-untitled}\""));
}
