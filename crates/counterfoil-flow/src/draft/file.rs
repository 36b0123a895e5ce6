//! The parts of a file: the workflow, its machines, agents, limits and artifacts.

use super::read::{Entries, Reader};
use super::{AgentDraft, ArtifactDraft, Draft, LimitDraft, MachineDraft, Name, Settings};
use crate::finding::Code;
use crate::tree::{Kind, Node};

impl<'n> Reader<'n> {
    /// The whole file.
    pub(crate) fn draft(&mut self, root: &'n Node) -> Draft<'n> {
        const MACHINE: &[&str] =
            &["inputs", "variables", "limits", "iterations", "start", "states", "artifacts"];
        const WHOLE: &[&str] =
            &["workflow", "version", "summary", "agents", "workflows", "contracts", "budget"];
        const HELD: &[&str] = &["writes", "protect", "protection", "tests"];
        let entries = self.known(root, "a workflow", &[WHOLE, MACHINE, HELD]);
        let name = self.pick_name(&entries, "workflow");
        if name.is_none() && Self::pick(&entries, "workflow").is_none() {
            self.report(
                Code::MissingKey,
                root,
                "the workflow has no name",
                "begin with `workflow: name`",
            );
        }
        let version = match Self::pick(&entries, "version") {
            None => 1,
            Some(node) => self.version(node),
        };
        let summary = self
            .pick_name(&entries, "summary")
            .map(|name| name.text.to_owned())
            .unwrap_or_default();
        let main = self.machine(root, &entries, false);
        let mut machines = Vec::new();
        if let Some(node) = Self::pick(&entries, "workflows") {
            for (name, node) in self.entries(node, "`workflows`") {
                let entries = self.known(node, "a sub-workflow", &[MACHINE, &["result"]]);
                machines.push((name, self.machine(node, &entries, true)));
            }
        }
        let mut agents = Vec::new();
        if let Some(node) = Self::pick(&entries, "agents") {
            for (name, node) in self.entries(node, "`agents`") {
                agents.push((name, self.agent(name, node)));
            }
        }
        let contracts = Self::pick(&entries, "contracts")
            .map(|node| self.names(node, "`contracts`"))
            .unwrap_or_default();
        Draft {
            name,
            version,
            summary,
            main,
            machines,
            agents,
            contracts,
            budget: Self::pick(&entries, "budget"),
            writes: Self::pick(&entries, "writes"),
            protect: Self::pick(&entries, "protect"),
            protection: self.pick_name(&entries, "protection"),
            tests: self.pick_name(&entries, "tests"),
        }
    }

    fn version(&mut self, node: &Node) -> u32 {
        let Some(number) = self.whole(node, "`version`") else { return 1 };
        u32::try_from(number).unwrap_or_else(|_| {
            self.report(
                Code::WrongForm,
                node,
                format!("{number} is not a version"),
                "write a number from 1",
            );
            1
        })
    }

    fn artifacts(&mut self, entries: &Entries<'n>) -> Vec<ArtifactDraft<'n>> {
        let Some(node) = Self::pick(entries, "artifacts") else { return Vec::new() };
        match &node.kind {
            Kind::List(items) => {
                return items.iter().filter_map(|item| self.artifact(item)).collect();
            }
            Kind::Null => {}
            _ => self.report(
                Code::WrongForm,
                node,
                format!("`artifacts` is {}, not a list", node.name()),
                "write - { path: STATUS.md, template: templates/status.md }",
            ),
        }
        Vec::new()
    }

    fn artifact(&mut self, node: &'n Node) -> Option<ArtifactDraft<'n>> {
        let entries =
            self.known(node, "an artifact", &[&["path", "template", "contract", "append", "when"]]);
        let (path, template) =
            (self.pick_name(&entries, "path"), self.pick_name(&entries, "template"));
        let (contract, append) =
            (self.pick_name(&entries, "contract"), self.flag(&entries, "append"));
        let (Some(path), Some(template)) = (path, template) else {
            self.report(
                Code::MissingKey,
                node,
                "an artifact needs a path and a template",
                "write { path: STATUS.md, template: templates/status.md }",
            );
            return None;
        };
        let when = Self::pick(&entries, "when");
        Some(ArtifactDraft { path, template, contract, append, when })
    }

    fn agent(&mut self, name: Name<'n>, node: &'n Node) -> AgentDraft<'n> {
        const KEYS: &[&str] = &[
            "contract", "prompt", "access", "timeout", "startup", "idle", "repairs", "retries",
            "budget",
        ];
        const HELD: &[&str] = &["claims", "writes"];
        let entries = self.known(node, "an agent", &[KEYS, HELD]);
        for key in ["contract", "prompt"] {
            if Self::pick(&entries, key).is_none() {
                self.report(
                    Code::MissingKey,
                    name.node,
                    format!("agent '{}' has no {key}", name.text),
                    format!("add `{key}: …`"),
                );
            }
        }
        AgentDraft {
            contract: self.pick_name(&entries, "contract"),
            prompt: self.pick_name(&entries, "prompt"),
            access: self.pick_name(&entries, "access"),
            writes: Self::pick(&entries, "writes"),
            settings: self.settings(&entries),
        }
    }

    pub(super) fn settings(&mut self, entries: &Entries<'n>) -> Settings<'n> {
        let pick = |key| Self::pick(entries, key);
        if let Some(node) = pick("retries").filter(|node| node.entries().is_none()) {
            let message = format!("`retries` is {}, not a mapping", node.name());
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

    fn machine(&mut self, node: &'n Node, entries: &Entries<'n>, sub: bool) -> MachineDraft<'n> {
        let mut listed = |key: &str| match Self::pick(entries, key) {
            Some(node) => self.entries(node, &format!("`{key}`")),
            None => Vec::new(),
        };
        let (inputs, variables, limits, states) =
            (listed("inputs"), listed("variables"), listed("limits"), listed("states"));
        let limits = limits.into_iter().map(|(name, node)| (name, self.limit(node))).collect();
        let states: Vec<_> =
            states.into_iter().map(|(name, node)| (name, self.state(name, node))).collect();
        let start = self.pick_name(entries, "start");
        if start.is_none() && Self::pick(entries, "start").is_none() {
            let what = if sub { "the sub-workflow" } else { "the workflow" };
            let first = states.first().map_or("name-of-a-state", |(name, _)| name.text);
            let hint = format!("add `start: {first}`");
            self.report(
                Code::MissingKey,
                node,
                format!("{what} does not say where it starts"),
                hint,
            );
        }
        MachineDraft {
            inputs,
            variables,
            limits,
            iterations: self.pick_name(entries, "iterations"),
            start,
            states,
            result: Self::pick(entries, "result"),
            artifacts: self.artifacts(entries),
        }
    }

    fn limit(&mut self, node: &'n Node) -> LimitDraft<'n> {
        let entries = self.known(node, "a limit", &[&["max", "then", "per", "total"]]);
        for key in ["max", "then"] {
            if Self::pick(&entries, key).is_none() {
                let hint = format!("write {{ max: 5, then: name-of-a-state }}; `{key}` is missing");
                self.report(Code::MissingKey, node, format!("the limit has no `{key}`"), hint);
            }
        }
        LimitDraft {
            max: Self::pick(&entries, "max"),
            then: self.pick_name(&entries, "then"),
            per: self.pick_name(&entries, "per"),
            total: Self::pick(&entries, "total"),
        }
    }
}
