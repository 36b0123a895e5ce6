//! Names in journals that differ from the names in code. Old journals must stay readable.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use counterfoil_flow::{Event, Phase, Workspace};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Reads a text that an earlier version wrote, and writes it again byte for byte.
fn unchanged<T: Serialize + DeserializeOwned>(written: &str) -> T {
    let read: T =
        serde_json::from_str(written).unwrap_or_else(|error| panic!("{error}: {written}"));
    assert_eq!(serde_json::to_string(&read).unwrap(), written);
    read
}

#[test]
fn events_keep_their_names() {
    for written in [
        r#"{"attempt-started":{"attempt":"a#1","frame":"","path":["a"],"n":1,"deed":{"read":"a.yaml"}}}"#,
        r#"{"attempt-started":{"attempt":"a/checks#1","frame":"","path":["a","checks"],"n":1,"deed":{"checks":["test"]}}}"#,
        r#"{"attempt-started":{"attempt":"base/checks#1","frame":"","path":["base","checks"],"n":1,"deed":{"base-checks":["test"]}}}"#,
        r#"{"context-checked":{"frame":"","missing":[]}}"#,
        r#"{"context-checked":{"frame":"","missing":[],"checks":{"checks":{"test":{"run":{"line":"make"},"timeout_ms":5}}}}}"#,
        r#"{"retry-planned":{"frame":"","trouble":"limit","retry":1,"after_ms":5,"not_before":9}}"#,
        r#"{"workspace-planned":{"frame":"a","workspace":"a#1","tenure":"frame"}}"#,
        r#"{"fold-queued":{"frame":"a"}}"#,
        r#"{"workspace-folded":{"frame":"a","workspace":"a#1","changed":2}}"#,
        r#"{"moved":{"frame":"","from":"a","to":"b","trouble":"timeout"}}"#,
        r#"{"run-resumed":{"by":"process 1"}}"#,
        r#"{"run-reopened":{"by":"kim","outcome":"failed","reason":"why","state":"a","changes":{"budget":{"cost_usd":2.5},"limits":{"sub.rounds":3},"inputs":{"task":"b"},"because":"so"},"frames":{}}}"#,
        r#"{"run-undone":{"by":"kim","steps":["a#1"],"files":["a.txt"],"total":1}}"#,
    ] {
        let event: Event = unchanged(written);
        assert!(written.starts_with(&format!("{{\"{}\":", event.kind())), "{written}");
    }
}

#[test]
fn run_states_keep_their_names() {
    let _: Workspace = unchanged(r#"{"id":"a#1","tenure":"state","stage":"folded"}"#);
    let _: Phase = unchanged(
        r#"{"troubled":{"trouble":"claim","cause":null,"reason":"why","partial":null,"reset_at":null}}"#,
    );
    let fanned = r#"{"fanned":{"items":[{"key":"a","value":1,"after":[],"rank":null,"fate":"waiting"}],"index":{"a":0},"running":0,"parallel":1,"strict":true}}"#;
    let _: Phase = unchanged(fanned);
}
