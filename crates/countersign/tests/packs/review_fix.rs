//! The pack review-fix.

use crate::scene::Scene;
use serde_json::json;

#[test]
fn it_runs() {
    let ran =
        Scene::new("review-fix").says("unified-reviewer", json!({"groups": []})).run(&["--task", "Do it"]);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(ran.attempts(), ["review#1 accepted"]);
}
