//! Journals of older versions. `fixtures/journal-1` is a state directory of the first version, with
//! a run that waits for an answer. Every version must show and resume it.

use crate::PROGRAM;
use counterfoil_testkit::TestProject;
use serde_json::Value;
use std::path::Path;

/// The script that the run was started with; its first three replies are played.
const SCRIPT: &str = r#"
replies:
  - { agent: worker, text: 'no result at all' }
  - { agent: worker, text: '{"ok": false, "note": "half of it"}' }
  - { agent: worker, text: '{"ok": true, "note": "all of it"}' }
  - { agent: worker, text: '{"ok": true, "note": "more than all of it"}' }
"#;

#[test]
fn a_run_that_the_first_version_left_waiting_is_shown_and_goes_on() {
    let project = TestProject::new(PROGRAM);
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/journal-1/journal.db");
    std::fs::copy(kept, project.state().join("journal.db")).unwrap();
    project.write("script.yaml", SCRIPT);

    let (code, shown) = project.code_and_json(&["show", "last", "--format", "json"]);
    assert_eq!((code, &shown["outcome"]), (0, &"waiting".into()), "{shown}");
    assert_eq!(shown["attempts"].as_array().unwrap().len(), 2);
    assert_eq!(shown["attempts"][0]["repairs_asked"], 1);
    assert_eq!(shown["usage"]["cost_usd"], serde_json::from_str::<Value>("0.375").unwrap());
    assert_eq!(shown["questions"][0]["id"], "approve");

    assert_eq!(project.run(&["answer", "last", "approve", "again"]).code, Some(0));
    let resume = ["resume", "last", "--agent", "script:script.yaml", "--format", "json"];
    let (code, resumed) = project.code_and_json(&resume);
    assert_eq!(code, 4, "{resumed}");
    // The counts, the iteration and the replies that were played go on from where they were.
    assert_eq!(
        (&resumed["iterations"], &resumed["variables"]["note"]),
        (&3.into(), &"more than all of it".into())
    );
    assert_eq!(
        (&resumed["attempts"][2]["n"], &resumed["attempts"][2]["outcome"]),
        (&3.into(), &"accepted".into())
    );
    assert_eq!(resumed["questions"][0]["id"], "approve#2");

    assert_eq!(project.run(&["answer", "last", "approve", "ship"]).code, Some(0));
    let (code, done) = project.code_and_json(&resume);
    assert_eq!(
        (code, &done["outcome"], &done["reason"]),
        (0, &"done".into(), &"more than all of it".into()),
        "{done}"
    );
}
