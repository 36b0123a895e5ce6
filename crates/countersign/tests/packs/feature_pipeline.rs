//! The pack feature-pipeline.

use crate::scene::{Scene, example};

#[test]
fn it_runs() {
    let ran = Scene::new("feature-pipeline")
        .says("todo-doc-generator", example("feature-pipeline/todo-doc-generator"))
        .run(&["--task", "Do it"]);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(ran.attempts(), ["plan#1 accepted"]);
}
