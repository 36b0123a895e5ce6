//! Templates: what they write, and what is refused before they run.

use countersign_flow::template::Template;
use serde_json::{Value, json};
use std::collections::BTreeMap;

fn values(object: Value) -> BTreeMap<String, Value> {
    serde_json::from_value(object).unwrap()
}

#[test]
fn a_template_writes_what_its_variables_hold() {
    let template = Template::compile("Fix {{ task.title }} in {{ files | join(', ') }}.\n").unwrap();
    let text = template
        .render(&values(json!({ "task": { "title": "the build" }, "files": ["a.rs", "b.rs"] })))
        .unwrap();
    assert_eq!(text, "Fix the build in a.rs, b.rs.\n");
    assert_eq!(template.reads(), ["files", "task"]);
}
