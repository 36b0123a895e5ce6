//! A scenario that was played, everywhere it was played.

use crate::stage::Stage;
use crate::steady::{replaced, steady};
use crate::told::Told;
use serde_json::Value;
use std::ops::Deref;
use std::path::PathBuf;
use std::rc::Rc;

/// What came of a scenario. All of it is about the first place where it was played; the others were
/// the same.
pub(crate) struct Ran {
    stages: Rc<Vec<Stage>>,
    told: Vec<Told>,
}

impl Deref for Ran {
    type Target = Told;

    fn deref(&self) -> &Told {
        &self.told[0]
    }
}

impl std::fmt::Debug for Ran {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "exit {}\n{:#}\n{}", self.code, self.report, self.words)
    }
}

impl Ran {
    /// Holds that it was the same everywhere.
    pub(crate) fn new(stages: Rc<Vec<Stage>>, told: Vec<Told>) -> Self {
        let first = Essence::of(&stages[0], &told[0]);
        for (stage, told) in stages.iter().zip(&told).skip(1) {
            let other = Essence::of(stage, told);
            assert_eq!(
                first, other,
                "the pack does something else when it is ejected and renamed: {told:#?}"
            );
        }
        Self { stages, told }
    }

    /// A run of one place that was killed, as it stands now.
    pub(crate) fn of(stage: Stage) -> Self {
        let told = stage.told(&["show", "last", "--format", "json"]);
        Self { stages: Rc::new(vec![stage]), told: vec![told] }
    }

    /// Where it was played.
    pub(crate) fn stages(&self) -> Rc<Vec<Stage>> {
        self.stages.clone()
    }

    /// Does something everywhere, between a run and what follows.
    pub(crate) fn each(&self, act: impl Fn(&Stage)) -> &Self {
        self.stages.iter().for_each(act);
        self
    }

    /// Goes on everywhere.
    pub(crate) fn resume(&self, more: &[&str]) -> Self {
        self.again(|run| [&["resume", run, "--format", "json"], more].concat())
    }

    /// Answers a question everywhere, and goes on.
    pub(crate) fn answer_and_resume(&self, question: &str, answer: &str) -> Self {
        self.again(|run| vec!["answer", run, question, answer, "--resume", "--format", "json"])
    }

    fn again<'a>(&'a self, arguments: impl Fn(&'a str) -> Vec<&'a str>) -> Self {
        let all = self.stages.iter().zip(&self.told);
        let told = all.map(|(stage, told)| stage.told(&arguments(told.id()))).collect();
        Self::new(self.stages(), told)
    }

    fn stage(&self) -> &Stage {
        &self.stages[0]
    }

    /// An attempt of the report, by `path#n`.
    pub(crate) fn attempt(&self, name: &str) -> &Value {
        let names = self.attempts();
        let at = names
            .iter()
            .position(|told| told.split_once(' ').is_some_and(|(told, _)| told == name));
        let at = at.unwrap_or_else(|| panic!("there is no attempt '{name}', only {names:#?}"));
        &self.report["attempts"][at]
    }

    /// What an agent was sent, by `path#n` and the number of the reply from 1: later ones are
    /// repair prompts.
    pub(crate) fn prompt(&self, attempt: &str, reply: usize) -> String {
        let replies = self.attempt(attempt)["replies"].as_array().unwrap();
        let transcript = replies.get(reply - 1).and_then(|reply| reply["transcript"].as_str());
        let transcript = transcript.unwrap_or_else(|| {
            panic!("'{attempt}' has {} replies, not {reply}: {self:?}", replies.len())
        });
        self.read(&format!(".counterfoil/{transcript}.prompt"))
    }

    /// The journal, event by event.
    pub(crate) fn events(&self) -> Vec<Value> {
        self.stage().events(self.id())
    }

    /// What the run remembers.
    pub(crate) fn variables(&self) -> &Value {
        &self.report["variables"]
    }

    /// The names of the questions that are open.
    pub(crate) fn questions(&self) -> Vec<&str> {
        let all = self.report["questions"].as_array().unwrap();
        all.iter().map(|question| question["id"].as_str().unwrap()).collect()
    }

    /// A file of the repository as it is now.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.stage().path(path)
    }

    /// The text of a file as it is now.
    pub(crate) fn read(&self, path: &str) -> String {
        self.stage().read(path)
    }

    /// A file as JSON.
    pub(crate) fn json(&self, path: &str) -> Value {
        serde_json::from_str(&self.read(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// Asks git in the repository.
    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        self.stage().git(arguments)
    }

    /// What a command says in the repository.
    pub(crate) fn said(&self, arguments: &[&str]) -> std::process::Output {
        self.stage().said(arguments)
    }
}

/// What must be the same wherever a scenario is played.
#[derive(Debug, PartialEq, Eq)]
struct Essence {
    ended: (String, Option<String>, i32),
    attempts: Vec<String>,
    moves: Vec<String>,
    variables: String,
}

impl Essence {
    fn of(stage: &Stage, told: &Told) -> Self {
        let (outcome, cause, code) = told.ended();
        // What runs side by side may start in another order; one frame goes its way in order.
        let mut attempts = told.attempts();
        attempts.sort();
        let mut moves = told.moves();
        moves.sort_by_key(|step| step.split_once(": ").map(|(frame, _)| frame.to_owned()));
        let variables = serde_json::to_string_pretty(&told.report["variables"]).unwrap();
        Self {
            ended: (outcome.to_owned(), cause.map(str::to_owned), code),
            attempts,
            moves,
            variables: timeless(&unnumbered(&stage.anonymous(&variables))),
        }
    }
}

/// A text without ids and times.
fn timeless(text: &str) -> String {
    let shapes = [
        ("@-@-@-@-@", "RUN"),
        ("#-#-#T#:#:#.#Z", "TIME"),
        ("#-#-#T#:#:#Z", "TIME"),
        ("#-#-#", "DATE"),
    ];
    steady(&shapes.iter().fold(text.to_owned(), |text, (shape, with)| replaced(&text, shape, with)))
}

/// A text in which each commit is just that: they differ by the second in which they were made.
fn unnumbered(text: &str) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric();
    let mut out = String::new();
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len()).max(next.len_utf8());
        let word = &rest[..length];
        let is_commit = word.len() == 40 && word.chars().all(|c| c.is_ascii_hexdigit());
        out.push_str(if is_commit { "COMMIT" } else { word });
        rest = &rest[length..];
    }
    out
}

mod tests {
    use super::*;
    use crate::scene::Scene;

    #[test]
    fn a_scenario_is_played_by_the_pack_and_by_the_same_pack_ejected_and_renamed() {
        let ran =
            Scene::new("gated-team").reply("SpecAgent").fails("permission").run(&["--task", "x"]);
        let names: Vec<&str> =
            ran.told.iter().map(|told| told.report["workflow"].as_str().unwrap()).collect();
        assert_eq!(names, ["gated-team", "renamed-gated-team"]);
        assert_ne!(ran.told[0].id(), ran.told[1].id());
    }

    #[test]
    #[should_panic(expected = "does something else when it is ejected and renamed")]
    fn a_difference_between_the_two_is_found() {
        let ran = Scene::new("gated-team").run(&["--task", "x"]);
        let mut other = ran.told[1].clone();
        other.report["variables"]["surprise"] = true.into();
        Ran::new(ran.stages(), vec![ran.told[0].clone(), other]);
    }

    #[test]
    fn ids_times_and_commits_are_no_difference() {
        let one = "01a1df49-dd6f-711a-b1bd-357bcc00081f at 2026-11-15T12:58:01Z, 2026-11-15_x";
        let other =
            "01a1df49-1234-7890-b1bd-357bcc00081f at 2026-11-16T00:00:00.123Z, 2026-11-16_x";
        assert_eq!(timeless(one), timeless(other));
        assert_ne!(timeless(one), timeless("2026-11-15_y"));
        let commit = "see 0123456789abcdef0123456789abcdef01234567.";
        assert_eq!(unnumbered(commit), "see COMMIT.");
        assert_eq!(unnumbered("see 0123, é"), "see 0123, é");
    }
}
