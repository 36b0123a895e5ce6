//! The pack gated-team.

use crate::scene::{Scene, example};

#[test]
fn it_runs() {
    let ran =
        Scene::new("gated-team").says("SpecAgent", example("gated-team/output")).run(&["--task", "Do it"]);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(ran.attempts(), ["INTAKE#1 accepted"]);
}
