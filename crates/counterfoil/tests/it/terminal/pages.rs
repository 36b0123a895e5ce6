//! The pages of the dashboard, for a project in which everything is poisoned.

use super::corpus::{EVIL, project};
use super::find_poison;
use crate::dashboard::client::TestServer;

/// [`EVIL`] as a part of an address.
fn encoded() -> String {
    EVIL.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

#[test]
fn no_page_of_the_dashboard_has_a_character_that_hides_or_reorders_text() {
    let project = project();
    for arguments in [
        &["run", "flow.yaml", "--agent", "script:script.json"][..],
        &["answer", "last", "ask", "yes"],
        &["resume", "last", "--agent", "script:script.json"],
        // This one waits.
        &["run", "flow.yaml", "--agent", "script:script.json"],
    ] {
        project.run(arguments);
    }
    let server = TestServer::start(&project, &["serve", "--port", "0"]);
    let listed = server.get(&project, "/api/v1/runs").json();
    let runs = listed["runs"].as_array();
    let runs = runs.unwrap_or_else(|| panic!("no list: {listed}"));
    let ids = runs.iter().map(|run| run["run"].as_str().unwrap());
    let mut paths = vec!["/".to_owned(), "/inbox".to_owned()];
    for id in ids {
        paths.push(format!("/runs/{id}"));
        paths.push(format!("/runs/{id}/claims"));
        paths.push(format!("/runs/{id}/attempts/before%231"));
        paths.push(format!("/runs/{id}/attempts/work%231"));
    }
    paths.extend([format!("/runs/{}", encoded()), format!("/{}", encoded())]);
    // What a form sends back is the true value. Its label is not.
    let values = regex::Regex::new("value=\"[^\"]*\"").unwrap();
    let mut shown = 0;
    for path in paths {
        let page = server.get(&project, &path);
        assert!(page.head.contains("text/html"), "{path}: {page:?}");
        let text = values.replace_all(&page.body, "");
        if let Some(poison) = find_poison(&text, false) {
            panic!("{path} has {poison}");
        }
        shown += usize::from(text.contains("EVIL"));
    }
    assert!(shown > 5, "only {shown} pages show the poison");
}
