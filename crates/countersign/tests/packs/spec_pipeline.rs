//! The pack spec-pipeline.

use crate::scene::{Scene, example};

#[test]
fn it_runs() {
    let ran = Scene::new("spec-pipeline")
        .says("specify", example("spec-pipeline/specify"))
        .run(&["--task", "Do it"]);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(ran.attempts(), ["specify#1 accepted"]);
}
