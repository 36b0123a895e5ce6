//! A scenario: a repository, and what the agents of a pack reply and do in it.
//!
//! ```ignore
//! let run = Scenario::new("execution-loop")
//!     .file("notes.md", "to do\n")
//!     .commit()
//!     .says("implementer", json!({"status": "success", "summary": "Added it", "files_changed": ["a.rs"]}))
//!     .writes("a.rs", "fn a() {}\n")
//!     .reply("qa").fails("transport")
//!     .says("qa", json!({"dod_achieved": true, "checks": []}))
//!     .answer("confirm", "yes")
//!     .run(&["--task", "Add it"]);
//! assert_eq!(run.ended(), ("done", None, 0));
//! ```

use crate::packs::project::{PackProject, RunningScenario};
use crate::packs::run::ScenarioRun;
use counterfoil::Framing;
use counterfoil_contract::shown::Shown;
use counterfoil_testkit::AgentScript;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::{LazyLock, Mutex};

/// A scenario of a pack's workflow.
pub(crate) struct Scenario {
    /// The name of the workflow: `PACK` or `PACK/NAME`.
    workflow: String,
    /// The framing of each agent's result.
    framings: BTreeMap<String, Framing>,
    /// The repository that is copied for each run.
    origin: PackProject,
    script: AgentScript,
    /// How many results each agent has in the script.
    results: BTreeMap<String, u64>,
    variants: Variants,
}

/// The variants of a pack with which a scenario runs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Variants {
    /// The built-in pack, and the same pack ejected, if [`runs_ejected`] says so.
    Both,
    /// Both, always.
    AlwaysBoth,
    /// Only the built-in pack.
    BuiltIn,
}

/// The agents of a workflow file.
#[derive(Deserialize)]
struct WorkflowAgents {
    agents: BTreeMap<String, AgentContract>,
}

#[derive(Deserialize)]
struct AgentContract {
    contract: String,
}

impl Scenario {
    /// A repository with one commit of `README.md` and `src/lib.rs`, a workflow of a pack, and an
    /// empty script.
    pub(crate) fn new(workflow: &str) -> Self {
        let origin = PackProject::new(workflow);
        origin.init_git();
        // Written at once: a process of git for each setting is a part of the time of a short play.
        let settings = "[user]\n\tname = Kim\n\temail = kim@example.com\n[gc]\n\tauto = 0\n";
        let config = origin.read(".git/config") + settings;
        origin.write(".git/config", config);
        let scenario = Self {
            workflow: workflow.to_owned(),
            framings: framings(workflow),
            origin,
            script: AgentScript::default(),
            results: BTreeMap::new(),
            variants: Variants::Both,
        };
        scenario
            .file("README.md", "# Play\n\nA repository to play in.\n")
            .file("src/lib.rs", "pub fn one() -> u32 {\n    1\n}\n")
            .commit()
    }

    /// Runs only the built-in pack: for slow scenarios.
    pub(crate) fn built_in_only(mut self) -> Self {
        self.variants = Variants::BuiltIn;
        self
    }

    /// Runs the ejected pack as well, even if [`runs_ejected`] says otherwise. One scenario of each
    /// workflow does so.
    pub(crate) fn also_ejected(mut self) -> Self {
        self.variants = Variants::AlwaysBoth;
        self
    }

    /// Writes a file of the repository without committing it.
    pub(crate) fn file(self, path: &str, text: &str) -> Self {
        self.origin.write(path, text);
        self
    }

    /// Commits all files of the repository.
    pub(crate) fn commit(self) -> Self {
        self.origin.commit_all("before");
        self
    }

    /// Runs git in the repository, before anything else runs.
    pub(crate) fn git(self, arguments: &[&str]) -> Self {
        self.origin.git(arguments);
        self
    }

    /// A reply of an agent: its result, framed as its contract requires.
    ///
    /// Work that is done again does not take exactly the same time: where a result says how long it
    /// took, each further one of the agent takes a millisecond longer. An exact copy of an earlier
    /// result in the prompt would be asked about (`C0117`).
    pub(crate) fn says(mut self, agent: &str, mut result: Value) -> Self {
        let framing = self.framings.get(agent).copied();
        let framing = framing.unwrap_or_else(|| panic!("{} has no agent '{agent}'", self.workflow));
        let before = self.results.entry(agent.to_owned()).or_default();
        if let Some(time) = result.get_mut("execution_time_ms")
            && let Some(ms) = time.as_u64()
        {
            *time = (ms + *before).into();
        }
        *before += 1;
        self.raw(agent, &framed(framing, &result))
    }

    /// A reply of an agent with exactly this text.
    pub(crate) fn raw(mut self, agent: &str, text: &str) -> Self {
        self.script.reply(agent).text(text);
        self
    }

    /// A reply of an agent without a text: `.reply("qa").fails("transport")`.
    pub(crate) fn reply(mut self, agent: &str) -> Self {
        self.script.reply(agent);
        self
    }

    /// The last reply is only for a session whose first prompt contains this.
    pub(crate) fn when(mut self, part: &str) -> Self {
        self.script.set("when", part.into());
        self
    }

    /// The last reply writes a file.
    pub(crate) fn writes(mut self, path: &str, text: &str) -> Self {
        self.script.writes(path, text);
        self
    }

    /// The last reply deletes a file.
    pub(crate) fn deletes(mut self, path: &str) -> Self {
        self.script.deletes(path);
        self
    }

    /// The last reply runs a command line in the workspace.
    pub(crate) fn exec(mut self, line: &str) -> Self {
        self.script.set("exec", line.into());
        self
    }

    /// The last reply fails instead of having a text: `transport`, `limit`, `permission`, `timeout`,
    /// `agent`.
    pub(crate) fn fails(mut self, kind: &str) -> Self {
        self.script.fails(kind);
        self
    }

    /// The last reply is delayed.
    pub(crate) fn delay(mut self, ms: u64) -> Self {
        self.script.set("delay_ms", ms.into());
        self
    }

    /// The answer to a question, when it is asked.
    pub(crate) fn answer(mut self, question: &str, answer: &str) -> Self {
        self.script.answer(question, answer);
        self
    }

    /// Runs the scenario in fresh copies of the repository.
    #[track_caller]
    pub(crate) fn run(&self, arguments: &[&str]) -> ScenarioRun {
        self.run_in(Rc::new(self.projects()), arguments)
    }

    /// Runs the scenario in the repositories of an earlier run, as that run left them.
    #[track_caller]
    pub(crate) fn run_after(&self, run: &ScenarioRun, arguments: &[&str]) -> ScenarioRun {
        self.run_in(run.projects(), arguments)
    }

    /// Resumes a run with the script of this scenario; replies that the run has used up count.
    #[track_caller]
    pub(crate) fn resume(&self, run: &ScenarioRun, arguments: &[&str]) -> ScenarioRun {
        run.each(|project| project.write_script(&self.script.to_text()));
        run.resume(arguments)
    }

    /// Starts a run of the built-in pack and does not wait for it: for kills.
    pub(crate) fn start(&self, arguments: &[&str]) -> RunningScenario {
        let project = self.origin.copy(&self.workflow);
        project.write_script(&self.script.to_text());
        project.start_workflow(arguments)
    }

    /// Runs only the ejected pack, after a change to its directory.
    #[track_caller]
    pub(crate) fn run_changed(&self, change: impl Fn(&Path), arguments: &[&str]) -> ScenarioRun {
        let project = self.origin.copy_with_ejected_pack(&self.workflow);
        change(&project.pack_dir());
        self.run_in(Rc::new(vec![project]), arguments)
    }

    /// The same, without waiting for it: for kills.
    pub(crate) fn start_changed(
        &self,
        change: impl Fn(&Path),
        arguments: &[&str],
    ) -> RunningScenario {
        let project = self.origin.copy_with_ejected_pack(&self.workflow);
        change(&project.pack_dir());
        project.write_script(&self.script.to_text());
        project.start_workflow(arguments)
    }

    #[track_caller]
    fn run_in(&self, projects: Rc<Vec<PackProject>>, arguments: &[&str]) -> ScenarioRun {
        let mut outputs = Vec::new();
        for project in projects.iter() {
            project.write_script(&self.script.to_text());
            outputs.push(project.run_workflow(arguments));
        }
        ScenarioRun::new(projects, outputs)
    }

    fn projects(&self) -> Vec<PackProject> {
        let mut projects = vec![self.origin.copy(&self.workflow)];
        if self.variants == Variants::AlwaysBoth
            || (self.variants == Variants::Both && runs_ejected())
        {
            projects.push(self.origin.copy_with_ejected_pack(&self.workflow));
        }
        projects
    }

    /// The path of a file in the repository that is copied for each run.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.origin.path(path)
    }
}

/// Whether all scenarios also run with the ejected pack, rather than one for each workflow.
fn runs_ejected() -> bool {
    std::env::var_os("COUNTERFOIL_ALL_EJECTED").is_some()
}

/// A result that a contract accepts: its first example with one text changed, since an agent that
/// repeats the example of its prompt does not answer.
pub(crate) fn example(contract: &str) -> Value {
    static MADE: LazyLock<Mutex<BTreeMap<String, Value>>> = LazyLock::new(Mutex::default);
    let mut made = MADE.lock().unwrap();
    made.entry(contract.to_owned()).or_insert_with(|| make_example(contract)).clone()
}

fn make_example(contract: &str) -> Value {
    let contract = counterfoil_packs::registry_for(contract).get(contract).unwrap();
    let example = &contract.definition().examples[0];
    let shown = Shown::of(&contract);
    let mut texts = text_pointers(example, String::new()).into_iter().filter_map(|pointer| {
        let mut changed = example.clone();
        let text = changed.pointer_mut(&pointer)?;
        *text = format!("{} again", text.as_str()?).into();
        contract
            .check_value_shown(&changed, contract.policy(), &shown)
            .is_accepted()
            .then_some(changed)
    });
    texts.next_back().unwrap_or_else(|| example.clone())
}

/// The places of the texts in a value.
fn text_pointers(value: &Value, at: String) -> Vec<String> {
    match value {
        Value::String(_) => vec![at],
        Value::Array(items) => items
            .iter()
            .enumerate()
            .flat_map(|(n, item)| text_pointers(item, format!("{at}/{n}")))
            .collect(),
        Value::Object(fields) => fields
            .iter()
            .flat_map(|(key, value)| text_pointers(value, format!("{at}/{key}")))
            .collect(),
        _ => Vec::new(),
    }
}

/// The framings of the agents of a workflow.
fn framings(workflow: &str) -> BTreeMap<String, Framing> {
    let pack = counterfoil_packs::pack(workflow.split('/').next().unwrap());
    let pack = pack.unwrap_or_else(|| panic!("there is no pack for {workflow}"));
    let found = pack.workflows().into_iter().find(|found| found.name == workflow);
    let file = found.unwrap_or_else(|| panic!("there is no workflow {workflow}")).file;
    let head: WorkflowAgents = serde_saphyr::from_str(pack.text(file).unwrap()).unwrap();
    let framing =
        |id: &str| counterfoil_packs::registry_for(id).find(id).unwrap().definition().framing;
    head.agents.into_iter().map(|(name, agent)| (name, framing(&agent.contract))).collect()
}

/// The reply of an agent with a result in a framing.
pub(crate) fn framed(framing: Framing, result: &Value) -> String {
    match framing {
        Framing::JsonOnly => result.to_string(),
        Framing::AnyJson => format!("Here is what I did.\n\n{result}\n"),
        Framing::FencedJson => format!("Here is what I did.\n\n```json\n{result:#}\n```\n"),
        Framing::OutputBlock => {
            let mut text = "---OUTPUT---\n".to_owned();
            for (key, value) in result.as_object().expect("a block has fields") {
                let value = match value {
                    Value::Null => "none".to_owned(),
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                };
                writeln!(text, "{key}: {value}").unwrap();
            }
            text + "---END---\n"
        }
    }
}

#[test]
fn a_result_is_framed_as_its_contract_wants_it() {
    for id in [
        "execution-loop/qa",
        "review-fix/fix-outcomes",
        "feature-pipeline/tdd-task-executor",
        "feature-pipeline/code-reviewer",
        "gated-team/output",
    ] {
        let contract = counterfoil_packs::registry_for(id).get(id).unwrap();
        let report = contract.check(&framed(contract.framing(), &example(id)));
        assert!(report.is_accepted(), "{id}: {:#?}", report.violations);
    }
}

#[test]
fn work_that_is_done_again_takes_another_time() {
    let result = || json!({"agent": "plan", "execution_time_ms": 10});
    let scenario = Scenario::new("spec-pipeline").says("plan", result()).says("tasks", result());
    let script: Value =
        serde_json::from_str(&scenario.says("plan", result()).script.to_text()).unwrap();
    let times: Vec<bool> = script["replies"]
        .as_array()
        .unwrap()
        .iter()
        .map(|reply| reply["text"].as_str().unwrap().contains("11"))
        .collect();
    assert_eq!(times, [false, false, true]);
}

#[test]
#[should_panic(expected = "has no agent 'nobody'")]
fn somebody_who_is_not_in_the_workflow_says_nothing() {
    Scenario::new("gated-team").says("nobody", json!({}));
}
