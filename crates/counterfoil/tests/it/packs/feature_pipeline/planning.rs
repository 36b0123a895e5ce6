//! Planning: from a list of features to ordered plans.

use super::{
    ONE, Pipeline, commits, doc, draft, log, master, of, pipeline, planned, planning, status, todo,
};
use crate::packs::run::ScenarioRun;
use crate::packs::scenario::Scenario;
use serde_json::{Value, json};

/// The order in which features were built.
fn order(ran: &ScenarioRun) -> Vec<String> {
    let subject = |subject: String| subject.split(['(', ')']).nth(1).unwrap().to_owned();
    commits(ran).into_iter().map(subject).collect()
}

/// The slugs in the order of the plans.
fn plans(ran: &ScenarioRun) -> Vec<&str> {
    let all = ran.variables()["plans"].as_array().unwrap();
    all.iter().map(|plan| plan["slug"].as_str().unwrap()).collect()
}

#[test]
fn four_features_in_a_diamond_are_planned_in_parallel_and_built_in_order() {
    // Each planner waits until all four are at work.
    let meet = "d=$(git rev-parse --git-common-dir); : > $d/at-$$; i=0; \
        while [ $(ls $d | grep -c ^at-) -lt 4 ] && [ $i -lt 200 ]; do sleep 0.1; i=$((i+1)); done; \
        [ $(ls $d | grep -c ^at-) -lt 4 ] || : > $d/all-met";
    let ran = pipeline()
        .plan("top", &["left", "right"], 1, 1)
        .exec(meet)
        .plan("right", &["base"], 2, 1)
        .exec(meet)
        .plan("left", &["base"], 1, 1)
        .exec(meet)
        .plan("base", &[], 5, 1)
        .exec(meet)
        .build("base")
        .build("left")
        .build("right")
        .build("top")
        .run(&[
            "--task",
            "top: Put the top on\nright: Build the right\nleft: Build the left\nbase: Lay the base",
        ]);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert!(ran.path(".git/all-met").exists(), "the planners did not work at the same time");
    assert_eq!(order(&ran), ["base", "left", "right", "top"]);
    assert_eq!(plans(&ran), ["base", "left", "right", "top"]);
}

#[test]
fn ties_go_by_priority_and_then_by_the_place_in_the_list() {
    let ran = pipeline()
        .plan("c", &[], 2, 1)
        .plan("b", &[], 2, 1)
        .plan("a", &[], 1, 1)
        .build("a")
        .build("c")
        .build("b")
        .run(&["--task", "c: See\nb: Be\na: Add"]);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(order(&ran), ["a", "c", "b"]);
}

fn feature(slug: &str, text: &str) -> Value {
    json!({"slug": slug, "text": text, "doc": doc(slug), "draft": draft(slug)})
}

#[test]
fn lines_become_slugs_and_texts() {
    let ran = pipeline()
        .plan("search", &[], 1, 1)
        .plan("log-in-with-a-key", &[], 2, 1)
        .plan("note-well-this-is-a-text", &[], 3, 1)
        .build("search")
        .build("log-in-with-a-key")
        .build("note-well-this-is-a-text")
        .run(&[
            "--task",
            "search: Find notes: all of them\n\n- Log in with a key!\n  Note well: this is a text  \n",
        ]);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    let expected = json!([
        feature("search", "Find notes: all of them"),
        feature("log-in-with-a-key", "Log in with a key!"),
        feature("note-well-this-is-a-text", "Note well: this is a text"),
    ]);
    assert_eq!(ran.variables()["features"], expected);
    let prompt = ran.prompt("plan/search/write#1", 1);
    assert!(
        prompt.contains("Find notes: all of them")
            && prompt.contains("- `log-in-with-a-key`: Log in"),
        "{prompt}"
    );
}

/// What is refused before anybody is asked for anything.
fn is_refused(scenario: &Scenario, task: &str, reason: &str) {
    let ran = scenario.run(&["--task", task]);
    assert_eq!(ran.ended(), ("blocked", None, 7), "{ran:?}");
    assert!(ran.reason().contains(reason), "{}", ran.reason());
    assert_eq!(ran.attempts(), [""; 0]);
    assert!(!ran.path(".claude").exists());
}

#[test]
fn an_empty_list_is_refused() {
    is_refused(&pipeline(), " \n\n", "there is no feature in the task");
}

#[test]
fn two_features_with_one_slug_are_refused() {
    is_refused(
        &pipeline(),
        "log-in: With a key\nsearch\nLog in!",
        "more than one feature has the slug log-in:",
    );
}

#[test]
fn more_features_than_a_run_builds_are_refused() {
    let task: Vec<String> = (0..51).map(|n| format!("feature {n}")).collect();
    is_refused(&pipeline(), &task.join("\n"), "51 features are more than one run builds");
}

#[test]
fn plans_that_git_would_ignore_are_refused() {
    let scenario = pipeline().file(".gitignore", ".claude\n").commit();
    is_refused(
        &scenario,
        "a: Add a",
        "git ignores the plans in .claude/features, so they could not be kept: take this line out: .gitignore:1:.claude",
    );
}

#[test]
fn without_a_repository_nothing_is_begun() {
    let scenario = pipeline().git(&["-c", "alias.away=!rm -rf .git", "away"]);
    is_refused(
        &scenario,
        "a: Add a",
        "features are committed, and this cannot be: fatal: not a git repository",
    );
}

/// Two features that wait for each other.
fn cycle() -> Scenario {
    pipeline().plan("a", &["b"], 1, 1).plan("b", &["a"], 2, 1)
}

const TWO: [&str; 2] = ["--task", "a: Add a\nb: Add b"];

fn asks_before_any_work(ran: &ScenarioRun, shown: &[&str]) {
    assert_eq!(ran.ended(), ("waiting", None, 4), "{ran:?}");
    let question = &ran.report["questions"][0];
    assert_eq!(question["choices"], json!(["replan", "ignore", "stop"]));
    let text = question["question"].as_str().unwrap();
    for part in shown {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(
        ran.attempts().iter().all(|attempt| attempt.starts_with("plan/")),
        "{:?}",
        ran.attempts()
    );
    assert_eq!(commits(ran), [""; 0]);
}

#[test]
fn a_cycle_stops_before_any_work_shows_the_graph_and_asks() {
    let ran = cycle().run(&TWO);
    asks_before_any_work(&ran, &["wait for each other", "- a after b", "- b after a"]);
    assert_eq!(status(&master(&ran), "a"), "Planned");
    let ran = ran.answer_and_resume("untangle", "stop");
    assert_eq!(ran.ended(), ("blocked", None, 7), "{ran:?}");
    assert!(
        ran.reason().contains("nothing was built: the items wait for each other"),
        "{}",
        ran.reason()
    );
}

#[test]
fn a_dependency_outside_of_the_list_stops_before_any_work_shows_the_graph_and_asks() {
    let ran = pipeline().plan("a", &["z"], 1, 1).plan("b", &["a"], 2, 1).run(&TWO);
    asks_before_any_work(
        &ran,
        &["'a' comes after 'z', which is not in the list", "- a after z", "- b after a"],
    );
}

#[test]
fn a_feature_that_waits_for_itself_is_a_cycle() {
    let ran = pipeline().plan("a", &["a"], 1, 1).run(&ONE);
    asks_before_any_work(&ran, &["a after a"]);
}

#[test]
fn a_dependency_outside_of_the_list_can_be_ignored_and_the_others_hold() {
    let ran = pipeline()
        .plan("a", &["b", "z"], 1, 1)
        .plan("b", &[], 2, 1)
        .answer("untangle", "ignore")
        .build("b")
        .build("a")
        .run(&TWO);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(order(&ran), ["b", "a"]);
}

#[test]
fn a_cycle_can_be_ignored() {
    let ran = cycle().answer("untangle", "ignore").build("a").build("b").run(&TWO);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(order(&ran), ["a", "b"]);
}

#[test]
fn a_cycle_can_be_planned_again_and_the_planners_are_told_why() {
    let ran = cycle()
        .answer("untangle", "replan")
        .plan("a", &["b"], 1, 1)
        .plan("b", &[], 2, 1)
        .build("b")
        .build("a")
        .run(&TWO);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(order(&ran), ["b", "a"]);
    let told = "could not be put in order: the items wait for each other";
    assert!(!ran.prompt("plan/a/write#1", 1).contains(told));
    assert!(ran.prompt("plan/a/write#2", 1).contains(told), "{}", ran.prompt("plan/a/write#2", 1));
}

#[test]
fn planning_again_has_an_end() {
    let mut scenario = cycle();
    for _ in 0..4 {
        scenario =
            scenario.plan("a", &["b"], 1, 1).plan("b", &["a"], 2, 1).answer("untangle", "replan");
    }
    let ran = scenario.run(&TWO);
    assert_eq!(ran.ended(), ("blocked", None, 7), "{ran:?}");
    assert_eq!(of(&ran, "plan/a/write").len(), 4);
}

#[test]
fn the_metadata_of_a_plan_is_kept() {
    let ran =
        pipeline().plan("a", &["b"], 4, 1).plan("b", &[], 2, 1).build("b").build("a").run(&TWO);
    let expected = json!({
        "slug": "a", "dependencies": ["b"], "priority": 4, "phases": 1, "complexity": "low", "unplanned": "",
        "todo": "# a"
    });
    assert_eq!(ran.variables()["plans"][1], expected);
}

#[test]
fn a_plan_at_another_path_is_sent_back() {
    let elsewhere =
        super::with(todo("a", &[], 1, 1), &json!({"path": ".claude/features/b-TODO.md"}));
    let ran =
        pipeline().says("todo-doc-generator", elsewhere).plan("a", &[], 1, 1).build("a").run(&ONE);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert_eq!(ran.attempt("plan/a/write#1")["repairs_asked"], 1);
    // The instructions, the form at their end and the message name one path to report.
    let first = ran.prompt("plan/a/write#1", 1);
    assert!(first.contains("Report `path: .claude/features/a-TODO.md`"), "{first}");
    assert!(!first.contains("path: feature-drafts"), "{first}");
    let again = ran.prompt("plan/a/write#1", 2);
    assert!(again.contains("which is .claude/features/a-TODO.md"), "{again}");
}

#[test]
fn a_plan_with_too_many_phases_is_sent_back() {
    let ran = pipeline()
        .says("todo-doc-generator", todo("a", &[], 1, 21))
        .plan("a", &[], 1, 1)
        .build("a")
        .run(&ONE);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert!(ran.prompt("plan/a/write#1", 2).contains("`phases` is above 20"));
}

#[test]
fn a_feature_without_a_plan_is_blocked_and_the_others_are_built() {
    let mut scenario = pipeline();
    for _ in 0..3 {
        scenario = scenario.raw("todo-doc-generator", "It is all planned.").when(&planning("a"));
    }
    let ran = scenario
        .plan("b", &["a"], 1, 1)
        .plan("c", &[], 2, 1)
        .build("c")
        .run(&["--task", "a: Add a\nb: Add b\nc: Add c"]);
    assert_eq!(ran.ended(), ("blocked", None, 7), "{ran:?}");
    assert_eq!(order(&ran), ["c"]);
    let master = master(&ran);
    let statuses = ["a", "b", "c"].map(|slug| status(&master, slug));
    assert_eq!(statuses, ["Blocked", "Skipped", "Done"]);
    assert!(
        ran.reason().contains("a: it has no plan: ") && log(&master).contains("a: not planned: "),
        "{ran:?}"
    );
}

#[test]
fn a_plan_that_was_not_written_stops_its_feature() {
    let ran = pipeline()
        .says("todo-doc-generator", todo("a", &[], 1, 1))
        .when(&planning("a"))
        .plan("b", &[], 2, 1)
        .build("a")
        .build("b")
        .run(&TWO);
    assert_eq!(ran.ended(), ("blocked", None, 7), "{ran:?}");
    assert_eq!(order(&ran), ["b"]);
    assert!(ran.reason().contains("a: it has no plan: no plan was written"), "{}", ran.reason());
    assert_eq!(of(&ran, "build/a/work/tdd"), [""; 0]);
}

#[test]
fn a_planner_writes_nothing_but_todo_documents() {
    let ran = planned().writes("src/lib.rs", "pub fn two() {}\n").build("a").run(&ONE);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert!(ran.read("src/lib.rs").contains("fn one"), "{}", ran.read("src/lib.rs"));
    assert_eq!(ran.read(&doc("a")).lines().next(), Some("# a"));
}

#[test]
fn nobody_but_the_planner_writes_todo_documents() {
    let ran = planned()
        .tdd("a", "1/1")
        .writes(&doc("b"), "mine\n")
        .review("a", super::approved())
        .gate("a", super::ready())
        .run(&ONE);
    assert_eq!(ran.ended(), ("done", None, 0), "{ran:?}");
    assert!(!ran.path(&doc("b")).exists());
}
