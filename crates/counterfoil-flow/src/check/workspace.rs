//! Checks where steps work: in the repository or in worktrees, and how these nest.

use super::Checker;
use crate::ast::{self, SpannedStr};
use crate::finding::Code;
use crate::workflow::{Role, WorkspaceMode};
use std::collections::{BTreeMap, BTreeSet};

const MODES: [(&str, WorkspaceMode); 2] =
    [("repository", WorkspaceMode::Repository), ("worktree", WorkspaceMode::Worktree)];

impl<'n> Checker<'n> {
    /// The value of `workspace`, if it is set.
    pub(super) fn workspace_mode(&mut self, name: Option<SpannedStr<'n>>) -> Option<WorkspaceMode> {
        self.keyword(name?, "a workspace", &MODES)
    }

    /// Where the items of a fan-out work. By default, items that write and run in parallel have
    /// their own worktrees.
    pub(super) fn item_workspace_mode(
        &mut self,
        each: &ast::Each<'n>,
        agents: &BTreeMap<String, Role>,
    ) -> WorkspaceMode {
        // An expression may give more than 1.
        let is_parallel = each.parallel.is_some_and(|node| match &node.kind {
            crate::yaml_tree::Kind::Number(number) => number.as_u64().is_some_and(|n| n > 1),
            _ => true,
        });
        let writes = match &each.body {
            Some(ast::Body::Agent(step)) => {
                agents.get(step.agent.text).is_some_and(Role::can_write)
            }
            Some(ast::Body::Machine { machine, .. }) => self.writers.contains(machine.text),
            None => false,
        };
        let default =
            if writes && is_parallel { WorkspaceMode::Worktree } else { WorkspaceMode::Repository };
        self.workspace_mode(each.workspace).unwrap_or(default)
    }

    /// Reports steps that request a worktree inside another one, and commits inside a worktree:
    /// only files are merged into the repository, not commits.
    pub(super) fn check_nested_workspaces(
        &mut self,
        decl: &ast::Workflow<'n>,
        agents: &BTreeMap<String, Role>,
    ) {
        let machines: BTreeMap<&str, &ast::Machine<'n>> =
            decl.machines.iter().map(|(name, machine)| (name.text, machine)).collect();
        let mut open: Vec<&str> = Vec::new();
        for machine in machines.values().copied().chain([&decl.main]) {
            for (_, state) in &machine.states {
                open.extend(self.machine_in_worktree(state, agents));
            }
        }
        let mut inside: BTreeSet<&str> = BTreeSet::new();
        while let Some(name) = open.pop() {
            if inside.insert(name) {
                open.extend(
                    machines
                        .get(name)
                        .into_iter()
                        .flat_map(|machine| super::called_machines(machine)),
                );
            }
        }
        for name in inside {
            let Some(machine) = machines.get(name) else { continue };
            for (_, state) in &machine.states {
                if let Some(requested) = requested_workspace(state)
                    .filter(|mode| mode.text == WorkspaceMode::Worktree.name())
                {
                    let message = format!(
                        "'{name}' already runs in a worktree, and this step requests another one"
                    );
                    let hint =
                        "remove it, or set `workspace: repository` where the sub-workflow is run";
                    self.report(Code::NestedWorktree, requested.node, message, hint);
                }
                if matches!(state.kind, ast::StateKind::Commit(_)) {
                    let message = format!(
                        "'{name}' runs in a worktree, and its commits are not merged into the repository"
                    );
                    let hint =
                        "commit after the state that runs it, or set `workspace: repository` there";
                    self.report(Code::CommitInWorktree, state.node, message, hint);
                }
            }
        }
    }

    /// The sub-workflow that a state runs in a worktree.
    fn machine_in_worktree(
        &mut self,
        state: &ast::State<'n>,
        agents: &BTreeMap<String, Role>,
    ) -> Option<&'n str> {
        let worktree = WorkspaceMode::Worktree.name();
        match &state.kind {
            ast::StateKind::Call { machine, workspace: Some(mode), .. }
                if mode.text == worktree =>
            {
                Some(machine.text)
            }
            ast::StateKind::Each(each) => {
                let Some(ast::Body::Machine { machine, .. }) = &each.body else { return None };
                // Drop the findings: the fan-out itself has been checked.
                let before = self.reader.findings.len();
                let mode = self.item_workspace_mode(each, agents);
                self.reader.findings.truncate(before);
                (mode == WorkspaceMode::Worktree).then_some(machine.text)
            }
            _ => None,
        }
    }
}

/// The `workspace` setting of a state.
fn requested_workspace<'n>(state: &ast::State<'n>) -> Option<SpannedStr<'n>> {
    match &state.kind {
        ast::StateKind::Agent(step) => step.workspace,
        ast::StateKind::Call { workspace, .. } => *workspace,
        ast::StateKind::Each(each) => each.workspace,
        _ => None,
    }
}

/// The sub-workflows that contain an agent with write access, at any depth.
pub(super) fn writers<'n>(
    decl: &ast::Workflow<'n>,
    agents: &BTreeMap<String, Role>,
) -> BTreeSet<&'n str> {
    let mut callers: BTreeMap<&str, Vec<&'n str>> = BTreeMap::new();
    let mut open: Vec<&'n str> = Vec::new();
    for (name, machine) in &decl.machines {
        for called in super::called_machines(machine) {
            callers.entry(called).or_default().push(name.text);
        }
        let agent = |state: &ast::State<'n>| match &state.kind {
            ast::StateKind::Agent(step) => Some(step.agent.text),
            ast::StateKind::Each(ast::Each { body: Some(ast::Body::Agent(step)), .. }) => {
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
