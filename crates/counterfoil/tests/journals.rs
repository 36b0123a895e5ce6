//! Journals that were written before: `fixtures/journal-1` is a state folder of the first version,
//! with a run that waits for an answer. Every later version must show it and go on with it.

#![allow(clippy::unwrap_used)]

use assert_cmd::Command;
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

fn counterfoil(repo: &Path, arguments: &[&str]) -> (i32, Value) {
    let output = Command::cargo_bin("counterfoil")
        .unwrap()
        .args(arguments)
        .current_dir(repo)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let value = serde_json::from_slice(&output.stdout).unwrap_or(Value::String(text));
    (output.status.code().unwrap_or(-1), value)
}

#[test]
fn a_run_that_the_first_version_left_waiting_is_shown_and_goes_on() {
    let repo = tempfile::tempdir().unwrap();
    let state = repo.path().join(".counterfoil");
    std::fs::create_dir(&state).unwrap();
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/journal-1/journal.db");
    std::fs::copy(kept, state.join("journal.db")).unwrap();
    std::fs::write(repo.path().join("script.yaml"), SCRIPT).unwrap();

    let (code, shown) = counterfoil(repo.path(), &["show", "last", "--format", "json"]);
    assert_eq!((code, &shown["outcome"]), (0, &"waiting".into()), "{shown}");
    assert_eq!(shown["attempts"].as_array().unwrap().len(), 2);
    assert_eq!(shown["attempts"][0]["repairs_asked"], 1);
    assert_eq!(shown["usage"]["cost_usd"], serde_json::from_str::<Value>("0.375").unwrap());
    assert_eq!(shown["questions"][0]["id"], "approve");

    assert_eq!(counterfoil(repo.path(), &["answer", "last", "approve", "again"]).0, 0);
    let resume = ["resume", "last", "--agent", "script:script.yaml", "--format", "json"];
    let (code, resumed) = counterfoil(repo.path(), &resume);
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

    assert_eq!(counterfoil(repo.path(), &["answer", "last", "approve", "ship"]).0, 0);
    let (code, done) = counterfoil(repo.path(), &resume);
    assert_eq!(
        (code, &done["outcome"], &done["reason"]),
        (0, &"done".into(), &"more than all of it".into()),
        "{done}"
    );
}
