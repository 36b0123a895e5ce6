//! Parses the top level of a file: the workflow, its machines, agents, limits and artifacts.

use super::reader::{Entries, Reader, has_unknown};
use super::{Agent, Artifact, Limit, Machine, Settings, SpannedStr, Workflow};
use crate::finding::Code;
use crate::yaml_tree::{Kind, Node};

/// The least that `states:` can hold and be of use.
const STATES: &str = "write states: { work: { agent: name, go: done }, done: { end: done } }";

impl<'n> Reader<'n> {
    /// Parses the root node of a workflow file.
    pub(crate) fn workflow(&mut self, root: &'n Node) -> Workflow<'n> {
        const MACHINE_KEYS: &[&str] =
            &["inputs", "variables", "limits", "iterations", "start", "states", "artifacts"];
        const WORKFLOW_KEYS: &[&str] =
            &["workflow", "version", "summary", "agents", "workflows", "contracts", "budget"];
        const GUARD_KEYS: &[&str] = &["writes", "protect", "protection", "tests"];
        const KEYS: &[&[&str]] = &[WORKFLOW_KEYS, MACHINE_KEYS, GUARD_KEYS];
        const SUB_WORKFLOW_KEYS: &[&[&str]] = &[MACHINE_KEYS, &["result"]];
        let entries = self.known_entries(root, "a workflow", KEYS);
        let may_be_there = has_unknown(&entries, KEYS);
        let name = self.get_string(&entries, "workflow");
        if name.is_none() && Self::get(&entries, "workflow").is_none() && !may_be_there {
            self.report(
                Code::MissingKey,
                root,
                "the workflow has no name",
                "add `workflow: name` at the top",
            );
        }
        let version = match Self::get(&entries, "version") {
            None => 1,
            Some(node) => self.version(node),
        };
        let summary = self
            .get_string(&entries, "summary")
            .map(|name| name.text.to_owned())
            .unwrap_or_default();
        let main = self.machine(root, &entries, "the workflow", may_be_there);
        let mut machines = Vec::new();
        if let Some(node) = Self::get(&entries, "workflows") {
            for (name, node) in self.entries(node, "`workflows`") {
                let entries = self.known_entries(node, "a sub-workflow", SUB_WORKFLOW_KEYS);
                let may_be_there = has_unknown(&entries, SUB_WORKFLOW_KEYS);
                let machine = self.machine(node, &entries, "the sub-workflow", may_be_there);
                machines.push((name, machine));
            }
        }
        let mut agents = Vec::new();
        if let Some(node) = Self::get(&entries, "agents") {
            for (name, node) in self.entries(node, "`agents`") {
                agents.push((name, self.agent(name, node)));
            }
        }
        let contracts = Self::get(&entries, "contracts")
            .map(|node| self.strings(node, "`contracts`"))
            .unwrap_or_default();
        Workflow {
            name,
            version,
            summary,
            main,
            machines,
            agents,
            contracts,
            budget: Self::get(&entries, "budget"),
            writes: Self::get(&entries, "writes"),
            protect: Self::get(&entries, "protect"),
            protection: self.get_string(&entries, "protection"),
            tests: self.get_string(&entries, "tests"),
        }
    }

    fn version(&mut self, node: &Node) -> u32 {
        let Some(number) = self.unsigned(node, "`version`") else { return 1 };
        u32::try_from(number).unwrap_or_else(|_| {
            self.report(
                Code::WrongForm,
                node,
                format!("{number} is not a valid version"),
                "write a whole number of at least 1",
            );
            1
        })
    }

    fn artifacts(&mut self, entries: &Entries<'n>) -> Vec<Artifact<'n>> {
        let Some(node) = Self::get(entries, "artifacts") else { return Vec::new() };
        match &node.kind {
            Kind::List(items) => {
                return items.iter().filter_map(|item| self.artifact(item)).collect();
            }
            Kind::Null => {}
            _ => self.report(
                Code::WrongForm,
                node,
                format!("`artifacts` is {}, not a list", node.describe()),
                "write - { path: STATUS.md, template: templates/status.md }",
            ),
        }
        Vec::new()
    }

    fn artifact(&mut self, node: &'n Node) -> Option<Artifact<'n>> {
        const KEYS: &[&[&str]] = &[&["path", "template", "contract", "append", "when"]];
        let entries = self.known_entries(node, "an artifact", KEYS);
        let (path, template) =
            (self.get_string(&entries, "path"), self.get_string(&entries, "template"));
        let (contract, append) =
            (self.get_string(&entries, "contract"), self.get_bool(&entries, "append"));
        let (Some(path), Some(template)) = (path, template) else {
            let is_missing = |key| Self::get(&entries, key).is_none();
            if (is_missing("path") || is_missing("template")) && !has_unknown(&entries, KEYS) {
                self.report(
                    Code::MissingKey,
                    node,
                    "the artifact needs a path and a template",
                    "write { path: STATUS.md, template: templates/status.md }",
                );
            }
            return None;
        };
        let when = Self::get(&entries, "when");
        Some(Artifact { path, template, contract, append, when })
    }

    fn agent(&mut self, name: SpannedStr<'n>, node: &'n Node) -> Agent<'n> {
        const KEYS: &[&str] = &[
            "contract", "prompt", "access", "timeout", "startup", "idle", "repairs", "retries",
            "budget",
        ];
        const GUARD_KEYS: &[&str] = &["claims", "writes", "unknown_fields"];
        let entries = self.known_entries(node, "an agent", &[KEYS, GUARD_KEYS]);
        let may_be_there = has_unknown(&entries, &[KEYS, GUARD_KEYS]);
        for key in ["contract", "prompt"] {
            if Self::get(&entries, key).is_none() && !may_be_there {
                self.report(
                    Code::MissingKey,
                    name.node,
                    format!("agent '{}' has no {key}", name.text),
                    format!("add `{key}: …`"),
                );
            }
        }
        Agent {
            contract: self.get_string(&entries, "contract"),
            prompt: self.get_string(&entries, "prompt"),
            access: self.get_string(&entries, "access"),
            writes: Self::get(&entries, "writes"),
            unknown_fields: self.get_string(&entries, "unknown_fields"),
            settings: self.settings(&entries),
        }
    }

    pub(super) fn settings(&mut self, entries: &Entries<'n>) -> Settings<'n> {
        let pick = |key| Self::get(entries, key);
        if let Some(node) = pick("retries").filter(|node| node.entries().is_none()) {
            let message = format!("`retries` is {}, not a mapping", node.describe());
            self.report(Code::WrongForm, node, message, "write { transport: 3, timeout: 1 }");
        }
        Settings {
            timeout: pick("timeout"),
            startup: pick("startup"),
            idle: pick("idle"),
            repairs: pick("repairs"),
            retries: pick("retries"),
            budget: pick("budget"),
            claims: pick("claims"),
        }
    }

    /// Parses a machine. `may_be_there` says whether a key that is not known may be one that is
    /// missing.
    fn machine(
        &mut self,
        node: &'n Node,
        entries: &Entries<'n>,
        what: &str,
        may_be_there: bool,
    ) -> Machine<'n> {
        let mut entries_of = |key: &str| match Self::get(entries, key) {
            Some(node) => self.entries(node, &format!("`{key}`")),
            None => Vec::new(),
        };
        let (inputs, variables, limits) =
            (entries_of("inputs"), entries_of("variables"), entries_of("limits"));
        let states = self.state_entries(node, entries, what, may_be_there);
        let limits = limits.into_iter().map(|(name, node)| (name, self.limit(node))).collect();
        let states: Vec<_> =
            states.into_iter().map(|(name, node)| (name, self.state(name, node))).collect();
        let start = self.get_string(entries, "start");
        if let Some((first, _)) = states.first()
            && Self::get(entries, "start").is_none()
            && !may_be_there
        {
            let hint = format!("add `start: {}`", first.text);
            self.report(Code::MissingKey, node, format!("{what} has no `start`"), hint);
        }
        Machine {
            inputs,
            variables,
            limits,
            iterations: self.get_string(entries, "iterations"),
            start,
            states,
            result: Self::get(entries, "result"),
            artifacts: self.artifacts(entries),
        }
    }

    /// The entries of `states:`. That there are none is one finding, which says what to write.
    fn state_entries(
        &mut self,
        machine: &'n Node,
        entries: &Entries<'n>,
        what: &str,
        may_be_there: bool,
    ) -> Entries<'n> {
        let Some((key, node)) = entries.iter().find(|(key, _)| key.text == "states").copied()
        else {
            if !may_be_there {
                let message = format!("{what} has no states");
                self.report(Code::MissingKey, machine, message, STATES);
            }
            return Vec::new();
        };
        if node.entries().is_some_and(|states| !states.is_empty()) {
            return self.entries(node, "`states`");
        }
        if key.node.text() != Some("states") {
            // The key is misspelt, and has its finding.
            return Vec::new();
        }
        let is_empty = match &node.kind {
            Kind::Null => true,
            Kind::List(items) => items.is_empty(),
            _ => node.entries().is_some(),
        };
        if is_empty {
            self.report(Code::MissingKey, key.node, format!("{what} has no states"), STATES);
        } else {
            let message = format!("`states` is {}, not a mapping", node.describe());
            self.report(Code::WrongForm, node, message, STATES);
        }
        Vec::new()
    }

    fn limit(&mut self, node: &'n Node) -> Limit<'n> {
        const KEYS: &[&[&str]] = &[&["max", "then", "per", "total"]];
        let entries = self.known_entries(node, "a limit", KEYS);
        let may_be_there = has_unknown(&entries, KEYS);
        for key in ["max", "then"] {
            if Self::get(&entries, key).is_none() && !may_be_there {
                let hint = format!("write {{ max: 5, then: name-of-a-state }}; `{key}` is missing");
                self.report(Code::MissingKey, node, format!("the limit has no `{key}`"), hint);
            }
        }
        Limit {
            max: Self::get(&entries, "max"),
            then: self.get_string(&entries, "then"),
            per: self.get_string(&entries, "per"),
            total: Self::get(&entries, "total"),
        }
    }
}
