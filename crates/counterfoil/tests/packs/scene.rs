//! What a scenario is made of: a repository, and what the agents of a pack say and do in it.
//!
//! ```ignore
//! let ran = Scene::new("execution-loop")
//!     .file("notes.md", "to do\n")
//!     .commit()
//!     .says("implementer", json!({"status": "success", "summary": "Added it", "files_changed": ["a.rs"]}))
//!     .writes("a.rs", "fn a() {}\n")
//!     .reply("qa").fails("transport")
//!     .says("qa", json!({"dod_achieved": true, "checks": []}))
//!     .answer("confirm", "yes")
//!     .run(&["--task", "Add it"]);
//! assert_eq!(ran.ended(), ("done", None, 0));
//! ```

use crate::ran::Ran;
use crate::stage::{Live, Stage};
use counterfoil::Framing;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// A scenario of a pack's workflow.
pub(crate) struct Scene {
    /// The workflow as it is named: `PACK` or `PACK/NAME`.
    workflow: String,
    /// How each agent hands back its result.
    framings: BTreeMap<String, Framing>,
    /// The repository that is copied for each run.
    origin: Stage,
    replies: Vec<Value>,
    answers: Vec<Value>,
    twice: bool,
}

/// What is read of a workflow file.
#[derive(Deserialize)]
struct Head {
    agents: BTreeMap<String, Role>,
}

#[derive(Deserialize)]
struct Role {
    contract: String,
}

impl Scene {
    /// A repository with one commit of `README.md` and `src/lib.rs`, and a workflow of a pack that
    /// nobody plays yet.
    pub(crate) fn new(workflow: &str) -> Self {
        let origin = Stage::new(workflow);
        origin.git(&["init", "-q", "-b", "main"]);
        for (key, value) in
            [("user.name", "Kim"), ("user.email", "kim@example.com"), ("gc.auto", "0")]
        {
            origin.git(&["config", key, value]);
        }
        let scene = Self {
            workflow: workflow.to_owned(),
            framings: framings(workflow),
            origin,
            replies: Vec::new(),
            answers: Vec::new(),
            twice: true,
        };
        scene
            .file("README.md", "# Play\n\nA repository to play in.\n")
            .file("src/lib.rs", "pub fn one() -> u32 {\n    1\n}\n")
            .commit()
    }

    /// Plays it once, by the pack that comes along: for what is slow.
    pub(crate) fn once(mut self) -> Self {
        self.twice = false;
        self
    }

    /// Writes a file of the repository; it is not committed by that.
    pub(crate) fn file(self, path: &str, text: &str) -> Self {
        self.origin.file(path, text);
        self
    }

    /// Commits everything that is in the repository.
    pub(crate) fn commit(self) -> Self {
        self.origin.git(&["add", "-A"]);
        self.origin.git(&["commit", "-q", "--allow-empty", "-m", "before"]);
        self
    }

    /// Asks git in the repository, before anything runs.
    pub(crate) fn git(self, arguments: &[&str]) -> Self {
        self.origin.git(arguments);
        self
    }

    /// A reply of an agent: its result, framed as its contract wants it.
    #[allow(clippy::needless_pass_by_value, reason = "it is always made in place")]
    pub(crate) fn says(self, agent: &str, result: Value) -> Self {
        let framing = self.framings.get(agent).copied();
        let framing = framing.unwrap_or_else(|| panic!("{} has no agent '{agent}'", self.workflow));
        self.raw(agent, &framed(framing, &result))
    }

    /// A reply of an agent that says exactly this.
    pub(crate) fn raw(self, agent: &str, text: &str) -> Self {
        self.reply(agent).with("text", text.into())
    }

    /// A reply of an agent that says nothing yet: `.reply("qa").fails("transport")`.
    pub(crate) fn reply(mut self, agent: &str) -> Self {
        self.replies.push(json!({ "agent": agent }));
        self
    }

    /// The last reply is only for a session whose first prompt contains this.
    pub(crate) fn when(self, part: &str) -> Self {
        self.with("when", part.into())
    }

    /// The last reply writes a file.
    pub(crate) fn writes(mut self, path: &str, text: &str) -> Self {
        let reply = self.last();
        reply["writes"][path] = text.into();
        self
    }

    /// The last reply deletes a file.
    pub(crate) fn deletes(mut self, path: &str) -> Self {
        let reply = self.last();
        match reply.get_mut("deletes").and_then(Value::as_array_mut) {
            Some(paths) => paths.push(path.into()),
            None => reply["deletes"] = json!([path]),
        }
        self
    }

    /// The last reply runs a command line in the workspace.
    pub(crate) fn exec(self, line: &str) -> Self {
        self.with("exec", line.into())
    }

    /// The last reply fails, in place of what it said: `transport`, `limit`, `permission`,
    /// `timeout`, `agent`.
    pub(crate) fn fails(mut self, how: &str) -> Self {
        self.last().as_object_mut().unwrap().remove("text");
        self.with("fail", how.into())
    }

    /// The last reply comes so much later.
    pub(crate) fn delay(self, ms: u64) -> Self {
        self.with("delay_ms", ms.into())
    }

    /// The last reply costs so much.
    pub(crate) fn spends(self, usage: Value) -> Self {
        self.with("usage", usage)
    }

    fn with(mut self, key: &str, value: Value) -> Self {
        self.last()[key] = value;
        self
    }

    fn last(&mut self) -> &mut Value {
        self.replies.last_mut().expect("a reply comes first: .says(…), .raw(…) or .reply(…)")
    }

    /// The answer to a question, when it is asked.
    pub(crate) fn answer(mut self, question: &str, answer: &str) -> Self {
        self.answers.push(json!({"question": question, "answer": answer}));
        self
    }

    /// Plays it in fresh copies of the repository.
    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        self.play(Rc::new(self.stages()), arguments)
    }

    /// Plays it where another run was: in the same repositories, as that run left them.
    pub(crate) fn run_after(&self, ran: &Ran, arguments: &[&str]) -> Ran {
        self.play(ran.stages(), arguments)
    }

    /// Goes on with a run, with what this scene says in place of what the run had: replies that
    /// were played before count.
    pub(crate) fn resume(&self, ran: &Ran, arguments: &[&str]) -> Ran {
        ran.each(|stage| stage.script(&self.script()));
        ran.resume(arguments)
    }

    /// Starts a run of the pack that comes along and does not wait for it: for kills.
    pub(crate) fn start(&self, arguments: &[&str]) -> Live {
        let stage = self.origin.copy(&self.workflow);
        stage.script(&self.script());
        stage.start(arguments)
    }

    /// Plays it once, by the pack ejected and then changed by hand: what is done to its folder
    /// comes first.
    pub(crate) fn run_changed(&self, change: impl Fn(&Path), arguments: &[&str]) -> Ran {
        let stage = self.origin.copy_with_pack(&self.workflow);
        change(&stage.pack());
        self.play(Rc::new(vec![stage]), arguments)
    }

    /// The same, without waiting for it: for kills.
    pub(crate) fn start_changed(&self, change: impl Fn(&Path), arguments: &[&str]) -> Live {
        let stage = self.origin.copy_with_pack(&self.workflow);
        change(&stage.pack());
        stage.script(&self.script());
        stage.start(arguments)
    }

    fn play(&self, stages: Rc<Vec<Stage>>, arguments: &[&str]) -> Ran {
        let play = |stage: &Stage| {
            stage.script(&self.script());
            stage.run(arguments)
        };
        let told = stages.iter().map(play).collect();
        Ran::new(stages, told)
    }

    fn stages(&self) -> Vec<Stage> {
        let mut stages = vec![self.origin.copy(&self.workflow)];
        if self.twice {
            stages.push(self.origin.copy_with_pack(&self.workflow));
        }
        stages
    }

    fn script(&self) -> String {
        serde_json::to_string_pretty(&json!({"replies": self.replies, "answers": self.answers}))
            .unwrap()
    }

    /// A file in the repository that is copied for each run.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.origin.path(path)
    }
}

/// The first example of a contract: a result that it accepts.
pub(crate) fn example(contract: &str) -> Value {
    let contract = counterfoil_packs::registry_for(contract).get(contract).unwrap();
    contract.definition().examples[0].clone()
}

/// How the agents of a workflow hand back their results.
fn framings(workflow: &str) -> BTreeMap<String, Framing> {
    let pack = counterfoil_packs::pack(workflow.split('/').next().unwrap());
    let pack = pack.unwrap_or_else(|| panic!("there is no pack for {workflow}"));
    let found = pack.workflows().into_iter().find(|found| found.name == workflow);
    let file = found.unwrap_or_else(|| panic!("there is no workflow {workflow}")).file;
    let head: Head = serde_saphyr::from_str(pack.text(file).unwrap()).unwrap();
    let framing = |id: &str| counterfoil_packs::registry_for(id).get(id).unwrap().framing();
    head.agents.into_iter().map(|(name, role)| (name, framing(&role.contract))).collect()
}

/// A result as an agent would hand it back.
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
#[should_panic(expected = "has no agent 'nobody'")]
fn somebody_who_is_not_in_the_workflow_says_nothing() {
    Scene::new("gated-team").says("nobody", json!({}));
}
