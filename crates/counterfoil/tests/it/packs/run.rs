//! A run of a scenario, with each variant of the pack.

use crate::packs::project::PackProject;
use counterfoil_testkit::{CommandOutput, RunOutput, normalize};
use serde_json::Value;
use std::ops::Deref;
use std::path::PathBuf;
use std::rc::Rc;

/// The runs of a scenario. Everything here is about the first variant; [`ScenarioRun::new`] asserts
/// that the others are the same.
pub(crate) struct ScenarioRun {
    projects: Rc<Vec<PackProject>>,
    outputs: Vec<RunOutput>,
}

impl Deref for ScenarioRun {
    type Target = RunOutput;

    fn deref(&self) -> &RunOutput {
        &self.outputs[0]
    }
}

impl std::fmt::Debug for ScenarioRun {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.outputs[0].fmt(out)
    }
}

impl ScenarioRun {
    /// Asserts that all variants ran the same way.
    #[track_caller]
    pub(crate) fn new(projects: Rc<Vec<PackProject>>, outputs: Vec<RunOutput>) -> Self {
        let first = Comparable::new(&projects[0], &outputs[0]);
        for (project, output) in projects.iter().zip(&outputs).skip(1) {
            let other = Comparable::new(project, output);
            assert_eq!(
                first, other,
                "the pack does something else when it is ejected and renamed: {output:#?}"
            );
        }
        Self { projects, outputs }
    }

    /// The current report of a run that was killed.
    pub(crate) fn show(project: PackProject) -> Self {
        let output = project.run_json(&["show", "last", "--format", "json"]);
        Self { projects: Rc::new(vec![project]), outputs: vec![output] }
    }

    /// The project of each variant.
    pub(crate) fn projects(&self) -> Rc<Vec<PackProject>> {
        self.projects.clone()
    }

    /// Does something in each project, before the next command.
    pub(crate) fn each(&self, act: impl Fn(&PackProject)) -> &Self {
        self.projects.iter().for_each(act);
        self
    }

    /// Resumes each run.
    #[track_caller]
    pub(crate) fn resume(&self, more: &[&str]) -> Self {
        self.continue_with(|run| [&["resume", run, "--format", "json"], more].concat())
    }

    /// Answers a question of each run and resumes it.
    #[track_caller]
    pub(crate) fn answer_and_resume(&self, question: &str, answer: &str) -> Self {
        self.continue_with(|run| {
            vec!["answer", run, question, answer, "--resume", "--format", "json"]
        })
    }

    #[track_caller]
    fn continue_with<'a>(&'a self, arguments: impl Fn(&'a str) -> Vec<&'a str>) -> Self {
        let all = self.projects.iter().zip(&self.outputs);
        let outputs = all.map(|(project, output)| project.run_json(&arguments(output.run_id())));
        Self::new(self.projects(), outputs.collect())
    }

    fn project(&self) -> &PackProject {
        &self.projects[0]
    }

    /// An attempt of the report, by `path#n`.
    pub(crate) fn attempt(&self, name: &str) -> &Value {
        let names = self.attempts();
        let at = names
            .iter()
            .position(|attempt| attempt.split_once(' ').is_some_and(|(path, _)| path == name));
        let at = at.unwrap_or_else(|| panic!("there is no attempt '{name}', only {names:#?}"));
        &self.report["attempts"][at]
    }

    /// A prompt of an attempt, by `path#n` and the number of the reply from 1: later ones are repair
    /// prompts.
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
        self.project().events_of(self.run_id())
    }

    /// The variables of the run.
    pub(crate) fn variables(&self) -> &Value {
        &self.report["variables"]
    }

    /// The ids of the open questions.
    pub(crate) fn questions(&self) -> Vec<&str> {
        let all = self.report["questions"].as_array().unwrap();
        all.iter().map(|question| question["id"].as_str().unwrap()).collect()
    }

    /// The path of a file of the repository.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.project().path(path)
    }

    /// Reads a file of the repository.
    pub(crate) fn read(&self, path: &str) -> String {
        self.project().read(path)
    }

    /// Reads a JSON file of the repository.
    pub(crate) fn json(&self, path: &str) -> Value {
        serde_json::from_str(&self.read(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// Runs git in the repository.
    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        self.project().git(arguments)
    }

    /// Runs the program in the repository.
    pub(crate) fn run_command(&self, arguments: &[&str]) -> CommandOutput {
        self.project().run(arguments)
    }
}

/// What must be the same for all variants.
#[derive(Debug, PartialEq, Eq)]
struct Comparable {
    ended: (String, Option<String>, i32),
    attempts: Vec<String>,
    transitions: Vec<String>,
    variables: String,
}

impl Comparable {
    fn new(project: &PackProject, output: &RunOutput) -> Self {
        let (outcome, cause, code) = output.ended();
        // Parallel attempts may start in another order; the transitions of one frame have an order.
        let mut attempts = output.attempts();
        attempts.sort();
        let mut transitions = output.transitions();
        transitions.sort_by_key(|step| step.split_once(": ").map(|(frame, _)| frame.to_owned()));
        let variables = serde_json::to_string_pretty(&output.report["variables"]).unwrap();
        let variables = normalize::commits(&project.without_names(&variables));
        Self {
            ended: (outcome.to_owned(), cause.map(str::to_owned), code),
            attempts,
            transitions,
            variables: normalize::timestamps(&variables),
        }
    }
}

mod tests {
    use super::*;
    use crate::packs::scenario::Scenario;

    #[test]
    fn a_scenario_is_played_by_the_pack_and_by_the_same_pack_ejected_and_renamed() {
        let run = Scenario::new("gated-team")
            .also_ejected()
            .reply("SpecAgent")
            .fails("permission")
            .run(&["--task", "x"]);
        let names: Vec<&str> =
            run.outputs.iter().map(|output| output.report["workflow"].as_str().unwrap()).collect();
        assert_eq!(names, ["gated-team", "renamed-gated-team"]);
        assert_ne!(run.outputs[0].run_id(), run.outputs[1].run_id());
    }

    #[test]
    #[should_panic(expected = "does something else when it is ejected and renamed")]
    fn a_difference_between_the_two_is_found() {
        let run = Scenario::new("gated-team").also_ejected().run(&["--task", "x"]);
        let mut other = run.outputs[1].clone();
        other.report["variables"]["surprise"] = true.into();
        ScenarioRun::new(run.projects(), vec![run.outputs[0].clone(), other]);
    }

    #[test]
    fn ids_times_and_commits_are_no_difference() {
        let one = "01a1df49-dd6f-711a-b1bd-357bcc00081f at 2026-11-15T12:58:01Z, 2026-11-15_x";
        let other =
            "01a1df49-1234-7890-b1bd-357bcc00081f at 2026-11-16T00:00:00.123Z, 2026-11-16_x";
        assert_eq!(normalize::timestamps(one), normalize::timestamps(other));
        assert_ne!(normalize::timestamps(one), normalize::timestamps("2026-11-15_y"));
        let commit = "see 0123456789abcdef0123456789abcdef01234567.";
        assert_eq!(normalize::commits(commit), "see COMMIT.");
        assert_eq!(normalize::commits("see 0123, é"), "see 0123, é");
    }
}
