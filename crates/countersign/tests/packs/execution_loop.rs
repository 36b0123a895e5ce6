//! The pack execution-loop.

use crate::scene::Scene;
use serde_json::json;

#[test]
fn what_qa_wants_fixed_reaches_the_implementer_and_is_gone_after() {
    let ran = Scene::new("execution-loop")
        .says("implementer", json!({"status": "success", "summary": "One", "files_changed": ["src/lib.rs"]}))
        .writes("src/lib.rs", "pub fn two() {}\n")
        .says("qa", json!({"dod_achieved": false, "checks": [], "fix_info": "name it one"}))
        .says("implementer", json!({"status": "success", "summary": "Two", "files_changed": ["src/lib.rs"]}))
        .writes("src/lib.rs", "pub fn one() {}\n")
        .says("qa", json!({"dod_achieved": true, "checks": []}))
        .run(&["--task", "Rename it"]);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert!(!ran.prompt("implement#1", 1).contains("name it one"));
    assert!(ran.prompt("implement#2", 1).contains("name it one"));
    assert_eq!(ran.variables()["fix_info"], json!(null));
}
