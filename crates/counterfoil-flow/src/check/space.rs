//! Where work is done: in the repository or in worktrees, and what follows from where a machine is
//! run.

use super::Checker;
use crate::draft::{BodyDraft, Draft, EachDraft, KindDraft, MachineDraft, Name, StateDraft};
use crate::finding::Code;
use crate::workflow::{Role, WorkspaceMode};
use std::collections::{BTreeMap, BTreeSet};

const PLACES: [(&str, WorkspaceMode); 2] =
    [("repository", WorkspaceMode::Repository), ("worktree", WorkspaceMode::Worktree)];

impl<'n> Checker<'n> {
    /// Where a step works that says so.
    pub(super) fn workplace(&mut self, name: Option<Name<'n>>) -> Option<WorkspaceMode> {
        self.word(name?, "a workspace", &PLACES)
    }

    /// Where the items of a fan-out work: those that write and run beside each other have
    /// worktrees, unless it says otherwise.
    pub(super) fn place_of_items(
        &mut self,
        each: &EachDraft<'n>,
        parallel: u64,
        agents: &BTreeMap<String, Role>,
    ) -> WorkspaceMode {
        let writes = match &each.body {
            Some(BodyDraft::Agent(step)) => {
                agents.get(step.agent.text).is_some_and(Role::can_write)
            }
            Some(BodyDraft::Machine { machine, .. }) => self.writers.contains(machine.text),
            None => false,
        };
        let default = if writes && parallel > 1 {
            WorkspaceMode::Worktree
        } else {
            WorkspaceMode::Repository
        };
        self.workplace(each.workspace).unwrap_or(default)
    }

    /// What asks for a worktree inside of another one, or would commit in one: only files are
    /// folded back, not commits.
    pub(super) fn nested(&mut self, draft: &Draft<'n>, agents: &BTreeMap<String, Role>) {
        let machines: BTreeMap<&str, &MachineDraft<'n>> =
            draft.machines.iter().map(|(name, machine)| (name.text, machine)).collect();
        let mut open: Vec<&str> = Vec::new();
        for machine in machines.values().copied().chain([&draft.main]) {
            for (_, state) in &machine.states {
                open.extend(self.runs_in_a_worktree(state, agents));
            }
        }
        let mut inside: BTreeSet<&str> = BTreeSet::new();
        while let Some(name) = open.pop() {
            if inside.insert(name) {
                open.extend(
                    machines.get(name).into_iter().flat_map(|machine| super::called(machine)),
                );
            }
        }
        for name in inside {
            let Some(machine) = machines.get(name) else { continue };
            for (_, state) in &machine.states {
                if let Some(asked) =
                    asked(state).filter(|asked| asked.text == WorkspaceMode::Worktree.name())
                {
                    let message =
                        format!("'{name}' is run in a worktree, and this asks for another in it");
                    let hint = "take it out, or write `workspace: repository` where the sub-workflow is run";
                    self.report(Code::NestedWorktree, asked.node, message, hint);
                }
                if matches!(state.kind, KindDraft::Commit(_)) {
                    let message = format!(
                        "'{name}' is run in a worktree, and what is committed there does not reach the repository"
                    );
                    let hint = "commit behind the state that runs it, or write `workspace: repository` there";
                    self.report(Code::LostCommit, state.node, message, hint);
                }
            }
        }
    }

    /// The sub-workflow that a state runs in a worktree.
    fn runs_in_a_worktree(
        &mut self,
        state: &StateDraft<'n>,
        agents: &BTreeMap<String, Role>,
    ) -> Option<&'n str> {
        let worktree = WorkspaceMode::Worktree.name();
        match &state.kind {
            KindDraft::Call { machine, workspace: Some(place), .. } if place.text == worktree => {
                Some(machine.text)
            }
            KindDraft::Each(each) => {
                let Some(BodyDraft::Machine { machine, .. }) = &each.body else { return None };
                let parallel = each.parallel.and_then(|node| match &node.kind {
                    crate::tree::Kind::Number(number) => number.as_u64(),
                    _ => None,
                });
                // What is wrong with it was said when it was checked.
                let before = self.reader.findings.len();
                let place = self.place_of_items(each, parallel.unwrap_or(1), agents);
                self.reader.findings.truncate(before);
                (place == WorkspaceMode::Worktree).then_some(machine.text)
            }
            _ => None,
        }
    }
}

/// Where a state asks to work.
fn asked<'n>(state: &StateDraft<'n>) -> Option<Name<'n>> {
    match &state.kind {
        KindDraft::Agent(step) => step.workspace,
        KindDraft::Call { workspace, .. } => *workspace,
        KindDraft::Each(each) => each.workspace,
        _ => None,
    }
}

/// The sub-workflows in which an agent can write, at any depth.
pub(super) fn writers<'n>(draft: &Draft<'n>, agents: &BTreeMap<String, Role>) -> BTreeSet<&'n str> {
    let mut callers: BTreeMap<&str, Vec<&'n str>> = BTreeMap::new();
    let mut open: Vec<&'n str> = Vec::new();
    for (name, machine) in &draft.machines {
        for called in super::called(machine) {
            callers.entry(called).or_default().push(name.text);
        }
        let agent = |state: &StateDraft<'n>| match &state.kind {
            KindDraft::Agent(step) => Some(step.agent.text),
            KindDraft::Each(EachDraft { body: Some(BodyDraft::Agent(step)), .. }) => {
                Some(step.agent.text)
            }
            _ => None,
        };
        let mut used = machine.states.iter().filter_map(|(_, state)| agent(state));
        if used.any(|agent| agents.get(agent).is_some_and(Role::can_write)) {
            open.push(name.text);
        }
    }
    let mut writers = BTreeSet::new();
    while let Some(name) = open.pop() {
        if writers.insert(name) {
            open.extend(callers.get(name).into_iter().flatten());
        }
    }
    writers
}
