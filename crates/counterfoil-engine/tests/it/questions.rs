//! Open questions, and the digests by which answers name them.

use counterfoil_engine::Question;
use counterfoil_engine::lists::{named, question_id};
use std::collections::BTreeSet;

fn question() -> Question {
    Question {
        id: "q1".to_owned(),
        question: "Merge it?".to_owned(),
        choices: vec!["yes".to_owned(), "no".to_owned()],
        pattern: None,
        optional: false,
    }
}

#[test]
fn a_name_is_the_id_or_an_unambiguous_part_of_it() {
    let ids = ["all/a/check", "all/a/check.size", "all/b/check#2", "done"];
    let found = |name: &str| named(ids.into_iter(), name);
    for (name, expected) in [
        ("done", &["done"] as &[&str]),
        ("size", &["all/a/check.size"]),
        ("a/check", &["all/a/check"]),
        ("b/check", &["all/b/check#2"]),
        ("all/b", &["all/b/check#2"]),
        ("check", &["all/a/check", "all/b/check#2"]),
        ("all", &["all/a/check", "all/a/check.size", "all/b/check#2"]),
        ("all/a/check", &["all/a/check"]),
        ("heck", &[]),
        ("al", &[]),
    ] {
        assert_eq!(found(name), expected, "{name}");
    }
    let said = |name: &str| question_id(ids.into_iter(), name).unwrap_err().to_string();
    assert_eq!(
        said("check"),
        "'check' may be one of several questions: all/a/check, all/b/check#2; write more of its id"
    );
    assert!(said("nope").contains("'nope' is not open; open: all/a/check, "), "{}", said("nope"));
}

#[test]
fn the_digest_of_a_question_depends_on_each_part_of_it() {
    let changes: [fn(&mut Question); 10] = [
        |_| {},
        |question| question.id = "q2".to_owned(),
        |question| question.question = "Merge it??".to_owned(),
        |question| question.question = String::new(),
        |question| question.choices = vec!["no".to_owned(), "yes".to_owned()],
        |question| question.choices = vec!["yes\",\"no".to_owned()],
        |question| question.choices = Vec::new(),
        |question| question.pattern = Some("null".to_owned()),
        |question| question.pattern = Some(String::new()),
        |question| question.optional = true,
    ];
    let changed = changes.map(|change| {
        let mut question = question();
        change(&mut question);
        question
    });
    let digests: BTreeSet<String> = ["run-1", "run-2"]
        .iter()
        .flat_map(|run| changed.each_ref().map(|q| q.digest(run)))
        .collect();
    assert_eq!(digests.len(), 2 * changes.len());
    assert!(digests.iter().all(|digest| digest.len() == 64));
}

#[test]
fn the_digest_of_a_question_is_the_documented_one() {
    // printf '["run-1","q1","Merge it?",["yes","no"],null,false]' | sha256sum
    let expected = "a416073b4ee63d8ef4b899f38b49498c118536b337d6be4ec0148e19e65186cd";
    assert_eq!(question().digest("run-1"), expected);
}
