//! Small workflows, and a run of one that is told what happens.

use counterfoil_contract::claim::{ClaimKind, ClaimPolicy, ClaimReport, Verdict};
use counterfoil_contract::{Definition, Registry};
use counterfoil_flow::{
    AgentWork, AttemptOutcome, AttemptWork, Budget, DECIDE, Ended, Event, Outcome, RunState,
    Started, Turn, Workflow, WorkspaceOpKind, check, turn,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;

pub(crate) const CONTRACTS: [&str; 2] = [
    r"
contract: t/make
version: 1
fields: { files: [path], tests_pass?: boolean, outcomes?: [{ id: string }] }
claims:
  files: { kind: files-changed }
  tests_pass: { kind: command, check: test }
  outcomes: { kind: fixed }
examples: [{ files: [] }]
",
    r"
contract: t/look
version: 1
fields: { fine: boolean }
examples: [{ fine: true }]
",
];

/// Two items that write beside each other, as sub-workflows; `more` is added to the fan-out.
pub(crate) fn items(more: &str) -> String {
    format!(
        r#"
workflow: play
inputs: {{ tasks: {{ type: [string], default: [a, b, c] }} }}
agents: {{ make: {{ contract: t/make, prompt: "Make it." }}, look: {{ contract: t/look, prompt: "FileCheck.", access: read-only }} }}
start: all
states:
  all:
    each: {{ in: tasks, as: task, key: task, run: one, {more} }}
    next: [{{ when: size(result.failed) == 0, go: done }}, {{ go: failed, reason: "result.failed.map(one, one.key + ': ' + one.reason)" }}]
  done: {{ end: done }}
  failed: {{ end: failed }}
workflows:
  one:
    start: make
    states:
      make: {{ agent: make, go: build }}
      build: {{ command: [make], next: [{{ when: result.ok, go: look }}, {{ go: broken }}] }}
      look: {{ agent: look, needs: [README.md], go: done }}
      done: {{ end: done }}
      broken: {{ end: failed, reason: "'it does not build'" }}
"#
    )
}

/// One agent in a worktree; `more` is added to its state.
pub(crate) fn one(more: &str) -> String {
    format!(
        r#"
workflow: play
agents: {{ make: {{ contract: t/make, prompt: "Make it.", retries: {{ agent: 1 }} }} }}
start: work
states:
  work:
    agent: make
    workspace: worktree
    next: [{{ when: size(result.files) > 5, go: other }}, {{ go: done }}]
    {more}
  done: {{ end: done }}
  other: {{ end: blocked }}
"#
    )
}

pub(crate) struct Play {
    pub(crate) workflow: Workflow,
    pub(crate) run: RunState,
    pub(crate) turn: Turn,
}

impl Play {
    pub(crate) fn begin(text: &str) -> Self {
        Self::under(text, DECIDE)
    }

    pub(crate) fn under(text: &str, decide: u32) -> Self {
        let mut registry = Registry::new();
        for text in CONTRACTS {
            registry.add(Definition::from_yaml(text, "contract.yaml").unwrap()).unwrap();
        }
        let files = BTreeMap::from([("play.yaml".to_owned(), text.to_owned())]);
        let workflow = check("play.yaml", &files, &registry).unwrap_or_else(|why| panic!("{why}"));
        let inputs = workflow.main.inputs.iter();
        let inputs =
            inputs.map(|(name, input)| (name.clone(), input.default.clone().unwrap_or(json!([]))));
        let started = Event::RunStarted(Box::new(Started {
            run: "run".to_owned(),
            workflow: "play".to_owned(),
            version: 1,
            bundle: String::new(),
            decide,
            inputs: inputs.collect(),
            agents: BTreeMap::new(),
            budget: Budget::default(),
            repo: ".".to_owned(),
            observed: String::new(),
            own: Vec::new(),
            base: None,
            config: None,
        }));
        let mut play = Self { workflow, run: RunState::default(), turn: Turn::default() };
        play.tell([started]);
        play
    }

    pub(crate) fn tell<const N: usize>(&mut self, facts: [Event; N]) -> &mut Self {
        self.turn = turn(&self.workflow, &mut self.run, facts.into(), 1000);
        self
    }

    pub(crate) fn ends(
        &mut self,
        attempt: &str,
        outcome: AttemptOutcome,
        claims: Vec<ClaimReport>,
    ) -> &mut Self {
        let value = match attempt {
            _ if outcome != AttemptOutcome::Accepted => None,
            name if name.contains("build") => {
                Some(json!({"ok": true, "exit_code": 0, "output": ""}))
            }
            name if name.contains("look") => Some(json!({"fine": true})),
            _ => Some(json!({"files": []})),
        };
        self.tell([Event::AttemptEnded(Box::new(Ended {
            value,
            reason: format!("the {} of {attempt}", outcome.name()),
            claims,
            tree: Some("tree".to_owned()),
            ..Ended::new(attempt, outcome)
        }))])
    }

    pub(crate) fn accept(&mut self, attempt: &str) -> &mut Self {
        self.ends(attempt, AttemptOutcome::Accepted, Vec::new())
    }

    /// Does what is asked for; folding ends with these conflicts.
    pub(crate) fn see_to(&mut self, workspace: &str, conflicts: &[&str]) -> &mut Self {
        let asked = self.turn.workspace_ops.iter().find(|op| op.workspace == workspace);
        let op = asked.unwrap_or_else(|| panic!("{:?}", self.turn.workspace_ops)).clone();
        let (frame, workspace) = (op.frame, op.workspace);
        let kept = || Some(format!("{workspace}.patch"));
        let fact = match op.kind {
            WorkspaceOpKind::Open => {
                Event::WorkspaceOpened { frame, workspace: workspace.clone(), notes: Vec::new() }
            }
            WorkspaceOpKind::Drop => {
                Event::WorkspaceDropped { frame, kept: kept(), workspace: workspace.clone() }
            }
            WorkspaceOpKind::Merge => Event::WorkspaceMerged {
                frame,
                workspace: workspace.clone(),
                changed: 1,
                conflicts: conflicts.iter().map(|&path| path.to_owned()).collect(),
                kept: if conflicts.is_empty() { None } else { kept() },
                notes: Vec::new(),
            },
        };
        self.tell([fact])
    }

    pub(crate) fn opened(&mut self, workspaces: &[&str]) -> &mut Self {
        for workspace in workspaces {
            self.see_to(workspace, &[]);
        }
        self
    }

    pub(crate) fn workspace_ops(&self) -> Vec<(WorkspaceOpKind, &str)> {
        self.turn.workspace_ops.iter().map(|op| (op.kind, op.workspace.as_str())).collect()
    }

    /// What was started, and where it works.
    pub(crate) fn started(&self) -> Vec<(&str, Option<&str>)> {
        self.turn
            .attempts
            .iter()
            .map(|start| (start.attempt.as_str(), start.work.workspace()))
            .collect()
    }

    pub(crate) fn agent(&self) -> &AgentWork {
        match &self.turn.attempts[0].work {
            AttemptWork::Agent(work) => work,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn ending(&self) -> (Outcome, &str) {
        let ended = self.run.ended.as_ref().expect("the run ended");
        (ended.outcome, &ended.reason)
    }

    pub(crate) fn looked(&mut self, frame: &str) -> &mut Self {
        let (frame, missing) = (frame.to_owned(), Vec::new());
        self.tell([Event::ContextChecked { frame, missing, checks: None }])
    }
}

pub(crate) fn report(claim: &str, verdict: Verdict, policy: ClaimPolicy) -> ClaimReport {
    ClaimReport {
        claim: claim.to_owned(),
        field: claim.to_owned(),
        kind: ClaimKind::FilesChanged,
        policy,
        verdict,
        claimed: Value::Null,
        observed: Value::Null,
        reason: format!("{claim} differs"),
        evidence: Vec::new(),
        tree: None,
    }
}
