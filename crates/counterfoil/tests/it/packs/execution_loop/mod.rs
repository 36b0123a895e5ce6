//! The pack execution-loop: implementer, QA, code quality, manager, definition of done.

mod demo;
mod ends;
mod evidence;
mod false_done;
mod fixes;
mod gates;
mod prompts;
mod results;
mod trouble;
mod words;

use crate::packs::run::ScenarioRun;
use crate::packs::scenario::Scenario;
use serde_json::{Value, json};

const TASK: [&str; 2] = ["--task", "Count to two"];

/// The pack in a repository whose `src/lib.rs` has three lines.
fn scenario() -> Scenario {
    Scenario::new("execution-loop")
}

/// What the implementer hands back.
fn work(summary: &str) -> Value {
    json!({"status": "success", "summary": summary, "files_changed": ["src/lib.rs"], "files_added": []})
}

/// An implementer that changed nothing, and says so.
fn looked() -> Value {
    json!({"status": "success", "summary": "Looked at it", "files_changed": [], "files_added": []})
}

/// QA passes.
fn passed() -> Value {
    json!({"dod_achieved": true, "checks": [{"criterion": "it counts", "passed": true, "details": "seen"}]})
}

/// QA passes, with a test that it counted.
fn counted() -> Value {
    let mut qa = passed();
    qa["test_results"] = json!({"total": 1, "passed": 1, "failed": 0});
    qa
}

/// QA does not.
fn failed(fix_info: &str) -> Value {
    json!({"dod_achieved": false, "checks": [{"criterion": "it counts", "passed": false}], "fix_info": fix_info})
}

/// Code quality passes.
fn clean() -> Value {
    json!({"quality_passed": true, "issues": [], "files_analyzed": ["src/lib.rs"],
           "blocking_issues_count": 0, "ignored_issues_count": 0})
}

/// Code quality does not, for these errors: a file, and a line if it is not 0.
fn dirty(errors: &[(&str, u64)], fix_info: &str) -> Value {
    let one = |(file, line): &(&str, u64)| {
        let mut issue =
            json!({"file": file, "code": "E1", "message": "too long", "severity": "error"});
        if *line > 0 {
            issue["line"] = (*line).into();
        }
        issue
    };
    json!({"quality_passed": false, "issues": errors.iter().map(one).collect::<Vec<_>>(), "files_analyzed": ["src/lib.rs"],
           "blocking_issues_count": errors.len(), "ignored_issues_count": 0, "fix_info": fix_info})
}

/// The books are kept.
fn kept() -> Value {
    json!({"updated": false, "artifacts_modified": [], "summary": "Nothing to bring up to date"})
}

/// The task is complete, so surely.
fn complete(confidence: &str) -> Value {
    json!({"task_complete": true, "confidence": confidence, "remaining_items": [], "recommendation": "Hand it over",
           "summary": {"user_stories_total": 2, "user_stories_done": 2, "phases_total": 1, "phases_done": 1}})
}

/// It is not, and this is left.
fn incomplete(remaining: &[&str]) -> Value {
    json!({"task_complete": false, "confidence": "low", "remaining_items": remaining, "recommendation": "Go on",
           "summary": {"user_stories_total": 2, "user_stories_done": 1, "phases_total": 1, "phases_done": 0}})
}

impl Scenario {
    /// The implementer changes the second line of `src/lib.rs`, to something else each time.
    fn implements(self, to: &str) -> Self {
        self.says("implementer", work(&format!("Made it {to}")))
            .writes("src/lib.rs", &format!("pub fn one() -> u32 {{\n    {to}\n}}\n"))
    }

    /// An iteration that passes both gates; the definition of done is left to say.
    fn passes(self, to: &str) -> Self {
        self.implements(to)
            .says("qa", passed())
            .says("code-quality", clean())
            .says("manager", kept())
    }

    /// One that QA stops.
    fn fails_qa(self, to: &str, fix_info: &str) -> Self {
        self.implements(to).says("qa", failed(fix_info)).says("manager", kept())
    }

    /// The last iteration: all is well.
    fn completes(self, to: &str) -> Self {
        self.passes(to).says("dod", complete("high"))
    }

    fn plays(&self) -> ScenarioRun {
        self.run(&TASK)
    }
}

/// Which agents worked, in order.
fn turns(ran: &ScenarioRun) -> Vec<String> {
    let attempts = ran.report["attempts"].as_array().unwrap();
    attempts.iter().map(|attempt| attempt["agent"].as_str().unwrap().to_owned()).collect()
}
