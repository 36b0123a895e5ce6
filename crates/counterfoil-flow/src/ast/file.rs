//! Parses the top level of a file: the workflow, its machines, agents, limits and artifacts.

use super::reader::{Entries, Reader};
use super::{Agent, Artifact, Limit, Machine, Settings, SpannedStr, Workflow};
use crate::finding::Code;
use crate::yaml_tree::{Kind, Node};

impl<'n> Reader<'n> {
    /// Parses the root node of a workflow file.
    pub(crate) fn workflow(&mut self, root: &'n Node) -> Workflow<'n> {
        const MACHINE_KEYS: &[&str] =
            &["inputs", "variables", "limits", "iterations", "start", "states", "artifacts"];
        const WORKFLOW_KEYS: &[&str] =
            &["workflow", "version", "summary", "agents", "workflows", "contracts", "budget"];
        const GUARD_KEYS: &[&str] = &["writes", "protect", "protection", "tests"];
        let entries =
            self.known_entries(root, "a workflow", &[WORKFLOW_KEYS, MACHINE_KEYS, GUARD_KEYS]);
        let name = self.get_string(&entries, "workflow");
        if name.is_none() && Self::get(&entries, "workflow").is_none() {
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
        let main = self.machine(root, &entries, false);
        let mut machines = Vec::new();
        if let Some(node) = Self::get(&entries, "workflows") {
            for (name, node) in self.entries(node, "`workflows`") {
                let entries =
                    self.known_entries(node, "a sub-workflow", &[MACHINE_KEYS, &["result"]]);
                machines.push((name, self.machine(node, &entries, true)));
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
        let entries = self.known_entries(
            node,
            "an artifact",
            &[&["path", "template", "contract", "append", "when"]],
        );
        let (path, template) =
            (self.get_string(&entries, "path"), self.get_string(&entries, "template"));
        let (contract, append) =
            (self.get_string(&entries, "contract"), self.get_bool(&entries, "append"));
        let (Some(path), Some(template)) = (path, template) else {
            self.report(
                Code::MissingKey,
                node,
                "the artifact needs a path and a template",
                "write { path: STATUS.md, template: templates/status.md }",
            );
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
        for key in ["contract", "prompt"] {
            if Self::get(&entries, key).is_none() {
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

    fn machine(&mut self, node: &'n Node, entries: &Entries<'n>, sub: bool) -> Machine<'n> {
        let mut entries_of = |key: &str| match Self::get(entries, key) {
            Some(node) => self.entries(node, &format!("`{key}`")),
            None => Vec::new(),
        };
        let (inputs, variables, limits, states) = (
            entries_of("inputs"),
            entries_of("variables"),
            entries_of("limits"),
            entries_of("states"),
        );
        let limits = limits.into_iter().map(|(name, node)| (name, self.limit(node))).collect();
        let states: Vec<_> =
            states.into_iter().map(|(name, node)| (name, self.state(name, node))).collect();
        let start = self.get_string(entries, "start");
        if start.is_none() && Self::get(entries, "start").is_none() {
            let what = if sub { "the sub-workflow" } else { "the workflow" };
            let first = states.first().map_or("name-of-a-state", |(name, _)| name.text);
            let hint = format!("add `start: {first}`");
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

    fn limit(&mut self, node: &'n Node) -> Limit<'n> {
        let entries = self.known_entries(node, "a limit", &[&["max", "then", "per", "total"]]);
        for key in ["max", "then"] {
            if Self::get(&entries, key).is_none() {
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
