//! The pack feature-pipeline: features are planned, put in order, built, reviewed and committed.
//!
//! A scenario is a small list of features. Each is planned and built by replies that all go well,
//! unless the test says otherwise.

mod building;
mod committing;
mod false_done;
mod handing_over;
mod master;
mod parallel;
mod passes;
mod planning;
mod reports;
mod reviewing;
mod setting_aside;
mod words;

use crate::packs::run::ScenarioRun;
use crate::packs::scenario::Scenario;
use serde_json::{Value, json};

/// A scenario without a feature.
fn pipeline() -> Scenario {
    Scenario::new("feature-pipeline")
}

/// One feature `a` of one phase, planned. Nothing of it is built.
fn planned() -> Scenario {
    pipeline().plan("a", &[], 1, 1)
}

/// One feature `a`, planned, and its only phase done.
fn coded() -> Scenario {
    planned().tdd("a", "1/1")
}

/// One feature `a`, planned, coded and reviewed.
fn reviewed() -> Scenario {
    coded().review("a", approved())
}

const ONE: [&str; 2] = ["--task", "a: Add a"];

/// What becomes of a feature where all goes well.
trait Pipeline {
    fn plan(self, slug: &str, after: &[&str], priority: u64, phases: u64) -> Self;
    fn tdd(self, slug: &str, phase: &str) -> Self;
    fn review(self, slug: &str, result: Value) -> Self;
    fn gate(self, slug: &str, result: Value) -> Self;
    /// The last reply adds a test.
    fn tests(self, name: &str) -> Self;
    /// The executor fixes what somebody found.
    fn fix(self, slug: &str) -> Self;
    /// The same, after a last phase such as `2/2`.
    fn fix_after(self, slug: &str, phase: &str) -> Self;
    /// The only phase, the review and the merge gate of a feature.
    fn build(self, slug: &str) -> Self;
}

impl Pipeline for Scenario {
    fn plan(self, slug: &str, after: &[&str], priority: u64, phases: u64) -> Self {
        self.says("todo-doc-generator", todo(slug, after, priority, phases))
            .when(&planning(slug))
            .writes(&draft(slug), &format!("# {slug}\n"))
    }

    fn tdd(self, slug: &str, phase: &str) -> Self {
        let (path, number) = (format!("src/{slug}.rs"), phase.split('/').next().unwrap());
        let test = format!("{slug}_{number}");
        let (changed, created) = match number {
            "1" => (json!([]), json!([path, test_path(&test)])),
            _ => (json!([path]), json!([test_path(&test)])),
        };
        let files = json!({"files_changed": changed, "files_created": created});
        self.says("tdd-task-executor", with(done(phase), &files))
            .when(&about(slug))
            .writes(&path, &format!("// {phase}\n"))
            .tests(&test)
    }

    fn tests(self, name: &str) -> Self {
        let function = name.replace('-', "_");
        self.writes(
            &test_path(name),
            &format!("#[test]\nfn {function}() {{\n    assert!(true);\n}}\n"),
        )
    }

    fn review(self, slug: &str, result: Value) -> Self {
        self.says("code-reviewer", result).when(&about(slug))
    }

    fn gate(self, slug: &str, result: Value) -> Self {
        self.says("review-pr", result).when(&about(slug))
    }

    fn fix(self, slug: &str) -> Self {
        self.fix_after(slug, "1/1")
    }

    fn fix_after(self, slug: &str, phase: &str) -> Self {
        let path = format!("src/{slug}.rs");
        let fixed = json!({"files_changed": [path], "tests_added": 0});
        self.says("tdd-task-executor", with(done(phase), &fixed))
            .when("is built, and these things")
            .writes(&path, "// fixed\n")
    }

    fn build(self, slug: &str) -> Self {
        self.tdd(slug, "1/1").review(slug, approved()).gate(slug, ready())
    }
}

/// A text that only the prompt of the planner of a feature contains.
fn planning(slug: &str) -> String {
    format!("this project: `{slug}`")
}

/// A text that the prompts of all agents contain that build or review a feature.
fn about(slug: &str) -> String {
    format!("feature `{slug}`")
}

fn doc(slug: &str) -> String {
    format!(".claude/features/{slug}-TODO.md")
}

/// Where a planner writes.
fn draft(slug: &str) -> String {
    format!("feature-drafts/{slug}-TODO.md")
}

/// The file that [`Pipeline::tests`] writes.
fn test_path(name: &str) -> String {
    format!("tests/{name}.rs")
}

fn todo(slug: &str, after: &[&str], priority: u64, phases: u64) -> Value {
    let after = if after.is_empty() { Value::Null } else { json!(after) };
    json!({
        "path": draft(slug), "dependencies": after, "priority": priority, "phases": phases, "complexity": "low"
    })
}

/// A phase that is done, with a test.
fn done(phase: &str) -> Value {
    json!({
        "phase": phase, "phase_complete": true, "files_changed": [], "files_created": null, "tests_added": 1,
        "tests_passing": true, "test_failures": null, "blockers": null, "next_action": "go on"
    })
}

/// A phase with a test that fails.
fn failing(phase: &str) -> Value {
    let failing = json!({
        "phase_complete": false, "tests_added": 0, "tests_passing": false, "test_failures": ["adds_one"], "next_action": "count again"
    });
    with(done(phase), &failing)
}

fn approved() -> Value {
    json!({
        "approved": true, "issues_total": 0, "critical": null, "major": null, "minor": null, "security": null,
        "test_coverage": "adequate", "recommendation": "approve"
    })
}

fn rejected(issue: &str) -> Value {
    let rejected =
        json!({"approved": false, "issues_total": 1, "major": [issue], "recommendation": "revise"});
    with(approved(), &rejected)
}

fn ready() -> Value {
    json!({
        "ready_to_merge": true, "blocking_issues": null, "warnings": null, "test_status": "all-pass",
        "files_reviewed": 1, "approval_confidence": "high", "final_recommendation": "merge"
    })
}

fn refused(issue: &str) -> Value {
    let refused = json!({"ready_to_merge": false, "blocking_issues": [issue], "final_recommendation": "revise"});
    with(ready(), &refused)
}

/// A result in which some fields are others.
fn with(mut result: Value, fields: &Value) -> Value {
    for (name, value) in fields.as_object().unwrap() {
        result[name] = value.clone();
    }
    result
}

/// A command line that runs in the repository, though the agent is in a worktree.
fn in_repository(line: &str) -> String {
    format!("(cd \"$(git rev-parse --path-format=absolute --git-common-dir)/..\"; {line})")
}

/// The patches that were kept of what was not merged.
fn kept(ran: &ScenarioRun) -> String {
    let folder = ran.path(".counterfoil/kept").join(ran.run_id());
    let patches = std::fs::read_dir(folder).into_iter().flatten();
    patches.map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap()).collect()
}

/// The subjects of the commits, the first one first, without the one that the repository begins
/// with.
fn commits(ran: &ScenarioRun) -> Vec<String> {
    ran.git(&["log", "--reverse", "--format=%s"]).lines().skip(1).map(str::to_owned).collect()
}

/// The attempts of a state of a feature: how each ended.
fn of(ran: &ScenarioRun, path: &str) -> Vec<String> {
    let attempts = ran.attempts().into_iter().chain(ran.commands());
    let one = |told: String| {
        let (name, outcome) = told.split_once(' ').unwrap();
        (name.split_once('#').unwrap().0 == path).then(|| outcome.to_owned())
    };
    attempts.filter_map(one).collect()
}

/// MASTER.md as it is now.
fn master(ran: &ScenarioRun) -> String {
    ran.read(".claude/features/MASTER.md")
}

/// The status of a feature, by MASTER.md.
fn status(master: &str, slug: &str) -> String {
    let row = master.lines().find(|line| line.split(" | ").nth(1) == Some(slug));
    row.unwrap_or_else(|| panic!("no row for {slug}:\n{master}"))
        .split(" | ")
        .nth(2)
        .unwrap()
        .to_owned()
}

/// The progress log, by MASTER.md.
fn log(master: &str) -> &str {
    master.split_once("## Progress log\n").unwrap_or_else(|| panic!("no log:\n{master}")).1.trim()
}
