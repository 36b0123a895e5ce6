//! The workflow as it was written: the tree sorted into its parts, every part with its place, nothing resolved yet.

use crate::finding::{Code, Finding};
use crate::tree::{Kind, Node, inside};
use countersign_contract::{Source, did_you_mean};
use std::collections::BTreeSet;

/// A word with its place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Name<'n> {
    pub(crate) text: &'n str,
    pub(crate) node: &'n Node,
}

/// The whole file.
#[derive(Debug)]
pub(crate) struct Draft<'n> {
    pub(crate) name: Option<Name<'n>>,
    pub(crate) version: u32,
    pub(crate) summary: String,
    pub(crate) main: MachineDraft<'n>,
    pub(crate) machines: Vec<(Name<'n>, MachineDraft<'n>)>,
    pub(crate) agents: Vec<(Name<'n>, AgentDraft<'n>)>,
    pub(crate) artifacts: Vec<ArtifactDraft<'n>>,
    pub(crate) contracts: Vec<Name<'n>>,
    pub(crate) budget: Option<&'n Node>,
}

/// A state machine: the main one or a sub-workflow.
#[derive(Debug)]
pub(crate) struct MachineDraft<'n> {
    pub(crate) inputs: Vec<(Name<'n>, &'n Node)>,
    pub(crate) variables: Vec<(Name<'n>, &'n Node)>,
    pub(crate) limits: Vec<(Name<'n>, LimitDraft<'n>)>,
    pub(crate) iterations: Option<Name<'n>>,
    pub(crate) start: Option<Name<'n>>,
    pub(crate) states: Vec<(Name<'n>, StateDraft<'n>)>,
    pub(crate) result: Option<&'n Node>,
}

#[derive(Debug)]
pub(crate) struct AgentDraft<'n> {
    pub(crate) contract: Option<Name<'n>>,
    pub(crate) prompt: Option<Name<'n>>,
    pub(crate) settings: Settings<'n>,
    pub(crate) access: Option<Name<'n>>,
}

/// What an agent and a state that uses it may both say.
#[derive(Debug, Default)]
pub(crate) struct Settings<'n> {
    pub(crate) timeout: Option<&'n Node>,
    pub(crate) idle: Option<&'n Node>,
    pub(crate) repairs: Option<&'n Node>,
    pub(crate) retries: Option<&'n Node>,
    pub(crate) budget: Option<&'n Node>,
}

#[derive(Debug)]
pub(crate) struct LimitDraft<'n> {
    pub(crate) max: Option<&'n Node>,
    pub(crate) then: Option<Name<'n>>,
    pub(crate) per: Option<Name<'n>>,
    pub(crate) total: Option<&'n Node>,
}

#[derive(Debug)]
pub(crate) struct ArtifactDraft<'n> {
    pub(crate) path: Name<'n>,
    pub(crate) template: Name<'n>,
    pub(crate) contract: Option<Name<'n>>,
    pub(crate) append: bool,
}

#[derive(Debug)]
pub(crate) struct StateDraft<'n> {
    pub(crate) node: &'n Node,
    pub(crate) kind: KindDraft<'n>,
    pub(crate) next: Vec<TransitionDraft<'n>>,
    pub(crate) on: Vec<(Name<'n>, TransitionDraft<'n>)>,
    pub(crate) counts: Option<Name<'n>>,
}

#[derive(Debug)]
pub(crate) enum KindDraft<'n> {
    Agent(StepDraft<'n>),
    Command(CommandDraft<'n>),
    Ask(Vec<(Name<'n>, QuestionDraft<'n>)>, Asked),
    Each(EachDraft<'n>),
    Call {
        machine: Name<'n>,
        with: Vec<(Name<'n>, &'n Node)>,
    },
    Route,
    End {
        outcome: Name<'n>,
        reason: Option<&'n Node>,
        result: Option<&'n Node>,
    },
    /// What it is cannot be told; this was reported.
    Unclear,
}

/// Whether one question was written or several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    One,
    Several,
}

/// An agent at work, as a state or as the body of a fan-out.
#[derive(Debug)]
pub(crate) struct StepDraft<'n> {
    pub(crate) agent: Name<'n>,
    pub(crate) prompt: Option<Name<'n>>,
    pub(crate) with: Vec<(Name<'n>, &'n Node)>,
    pub(crate) needs: Vec<Name<'n>>,
    pub(crate) settings: Settings<'n>,
}

#[derive(Debug)]
pub(crate) struct CommandDraft<'n> {
    pub(crate) argv: Vec<Name<'n>>,
    pub(crate) input: Option<Name<'n>>,
    pub(crate) output: Option<Name<'n>>,
    pub(crate) cwd: Option<Name<'n>>,
    pub(crate) timeout: Option<&'n Node>,
}

#[derive(Debug)]
pub(crate) struct QuestionDraft<'n> {
    pub(crate) question: Option<Name<'n>>,
    pub(crate) choices: Option<Vec<Name<'n>>>,
    pub(crate) pattern: Option<Name<'n>>,
    pub(crate) optional: bool,
}

#[derive(Debug)]
pub(crate) struct EachDraft<'n> {
    pub(crate) node: &'n Node,
    pub(crate) list: Option<&'n Node>,
    pub(crate) bind: Option<Name<'n>>,
    pub(crate) key: Option<Name<'n>>,
    pub(crate) after: Option<Name<'n>>,
    pub(crate) rank: Option<Name<'n>>,
    pub(crate) parallel: Option<&'n Node>,
    pub(crate) failures: Option<Name<'n>>,
    pub(crate) body: Option<BodyDraft<'n>>,
}

#[derive(Debug)]
pub(crate) enum BodyDraft<'n> {
    Agent(StepDraft<'n>),
    Machine { machine: Name<'n>, with: Vec<(Name<'n>, &'n Node)> },
}

#[derive(Debug)]
pub(crate) struct TransitionDraft<'n> {
    pub(crate) node: &'n Node,
    pub(crate) when: Option<&'n Node>,
    pub(crate) set: Vec<(Name<'n>, &'n Node)>,
    pub(crate) go: Option<Name<'n>>,
    pub(crate) goto: Option<Name<'n>>,
    pub(crate) reason: Option<&'n Node>,
    pub(crate) counts: Option<Name<'n>>,
    pub(crate) resets: Vec<Name<'n>>,
}

/// Sorts the tree and collects what has the wrong form.
pub(crate) struct Reader<'n> {
    pub(crate) file: &'n str,
    pub(crate) text: &'n str,
    pub(crate) source: &'n Source<'n>,
    pub(crate) findings: Vec<Finding>,
}

/// A file with more wrong in it than this is not read on.
const MOST_FINDINGS: usize = 100;

type Entries<'n> = Vec<(Name<'n>, &'n Node)>;

const STEP_KEYS: &[&str] =
    &["agent", "prompt", "with", "needs", "timeout", "idle", "repairs", "retries", "budget"];
const FLOW_KEYS: &[&str] = &["next", "go", "on", "counts"];

impl<'n> Reader<'n> {
    /// Reports something about a node.
    pub(crate) fn report(
        &mut self,
        code: Code,
        node: &Node,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        if self.is_full() {
            return;
        }
        // Of a block only the first line is marked.
        let block = self.text.get(node.start..self.closed(node)).unwrap_or_default();
        let line = block.split('\n').next().unwrap_or_default().trim_end();
        let span = self.source.span(node.start, node.start + line.len().max(1));
        self.findings.push(Finding::new(code, self.file, message, hint).at(span));
    }

    /// Reports something about a part of a scalar, in characters of its value.
    pub(crate) fn report_inside(
        &mut self,
        code: Code,
        node: &Node,
        part: (usize, usize),
        message: &str,
        hint: &str,
    ) {
        if self.is_full() {
            return;
        }
        let span = inside(self.source, self.text, node, part.0, part.1);
        self.findings.push(Finding::new(code, self.file, message, hint).at(span));
    }

    /// Whether more findings would help nobody; finding the place and the nearest name of each takes its time.
    pub(crate) fn is_full(&self) -> bool {
        self.findings.len() >= MOST_FINDINGS
    }

    /// The end of a node; of one in braces or brackets, behind the closing one.
    fn closed(&self, node: &Node) -> usize {
        let end = node.end.max(node.start);
        let closing = match (&node.kind, self.text.as_bytes().get(node.start)) {
            (Kind::Map(_), Some(b'{')) => '}',
            (Kind::List(_), Some(b'[')) => ']',
            _ => return end,
        };
        let rest = self.text.get(end..).unwrap_or_default();
        let inner = rest.trim_start_matches([' ', ',']);
        if inner.starts_with(closing) { end + (rest.len() - inner.len()) + 1 } else { end }
    }

    fn entries(&mut self, node: &'n Node, what: &str) -> Entries<'n> {
        let Some(entries) = node.entries() else {
            if !matches!(node.kind, Kind::Null) {
                let found = node.name();
                self.report(
                    Code::WrongForm,
                    node,
                    format!("{what} is {found}, not a mapping"),
                    "write `name: …` lines",
                );
            }
            return Vec::new();
        };
        let mut names = Vec::new();
        for (key, value) in entries {
            match key.text() {
                Some(text) => names.push((Name { text, node: key }, value)),
                None => {
                    self.report(Code::WrongForm, key, format!("{} is not a name", key.name()), "quote it")
                }
            }
        }
        names
    }

    /// The entries of a mapping whose keys are known; others are reported.
    fn known(&mut self, node: &'n Node, what: &str, keys: &[&[&str]]) -> Entries<'n> {
        let entries = self.entries(node, what);
        for (name, _) in &entries {
            let mut known = keys.iter().copied().flatten().copied();
            if !known.any(|key| key == name.text) {
                let all = || keys.iter().copied().flatten().copied();
                let hint = did_you_mean(name.text, all())
                    .unwrap_or_else(|| format!("known: {}", all().collect::<Vec<_>>().join(", ")));
                self.report(Code::UnknownKey, name.node, format!("{what} has no '{}'", name.text), hint);
            }
        }
        entries
    }

    /// A text; numbers and booleans are not silently made into one.
    fn name(&mut self, node: &'n Node, what: &str) -> Option<Name<'n>> {
        match node.text() {
            Some(text) => Some(Name { text, node }),
            None => {
                let found = node.name();
                let hint = match node.kind {
                    Kind::Bool(_) | Kind::Number(_) => "put it in quotes",
                    _ => "write a text",
                };
                self.report(Code::WrongForm, node, format!("{what} is {found}, not a text"), hint);
                None
            }
        }
    }

    fn names(&mut self, node: &'n Node, what: &str) -> Vec<Name<'n>> {
        match node.items() {
            Some(items) => items.iter().filter_map(|item| self.name(item, what)).collect(),
            None => self.name(node, what).into_iter().collect(),
        }
    }

    fn pick(entries: &Entries<'n>, key: &str) -> Option<&'n Node> {
        entries.iter().find(|(name, _)| name.text == key).map(|(_, node)| *node)
    }

    fn pick_name(&mut self, entries: &Entries<'n>, key: &str) -> Option<Name<'n>> {
        Self::pick(entries, key).and_then(|node| self.name(node, &format!("`{key}`")))
    }

    fn flag(&mut self, entries: &Entries<'n>, key: &str) -> bool {
        match Self::pick(entries, key) {
            None => false,
            Some(node) => match node.kind {
                Kind::Bool(flag) => flag,
                _ => {
                    self.report(
                        Code::WrongForm,
                        node,
                        format!("`{key}` is {}, not a boolean", node.name()),
                        "write true or false",
                    );
                    false
                }
            },
        }
    }

    /// The whole file.
    pub(crate) fn draft(&mut self, root: &'n Node) -> Draft<'n> {
        const MACHINE: &[&str] = &["inputs", "variables", "limits", "iterations", "start", "states"];
        const WHOLE: &[&str] =
            &["workflow", "version", "summary", "agents", "workflows", "artifacts", "contracts", "budget"];
        let entries = self.known(root, "a workflow", &[WHOLE, MACHINE]);
        let name = self.pick_name(&entries, "workflow");
        if name.is_none() && Self::pick(&entries, "workflow").is_none() {
            self.report(Code::MissingKey, root, "the workflow has no name", "begin with `workflow: name`");
        }
        let version = match Self::pick(&entries, "version") {
            None => 1,
            Some(node) => self.version(node),
        };
        let summary =
            self.pick_name(&entries, "summary").map(|name| name.text.to_owned()).unwrap_or_default();
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
        let mut artifacts = Vec::new();
        if let Some(node) = Self::pick(&entries, "artifacts") {
            match &node.kind {
                Kind::List(items) => artifacts.extend(items.iter().filter_map(|item| self.artifact(item))),
                Kind::Null => {}
                _ => self.report(
                    Code::WrongForm,
                    node,
                    format!("`artifacts` is {}, not a list", node.name()),
                    "write - { path: STATUS.md, template: templates/status.md }",
                ),
            }
        }
        let contracts =
            Self::pick(&entries, "contracts").map(|node| self.names(node, "`contracts`")).unwrap_or_default();
        Draft {
            name,
            version,
            summary,
            main,
            machines,
            agents,
            artifacts,
            contracts,
            budget: Self::pick(&entries, "budget"),
        }
    }

    fn version(&mut self, node: &Node) -> u32 {
        let Some(number) = self.whole(node, "`version`") else { return 1 };
        u32::try_from(number).unwrap_or_else(|_| {
            self.report(Code::WrongForm, node, format!("{number} is not a version"), "write a number from 1");
            1
        })
    }

    fn artifact(&mut self, node: &'n Node) -> Option<ArtifactDraft<'n>> {
        let entries = self.known(node, "an artifact", &[&["path", "template", "contract", "append"]]);
        let (path, template) = (self.pick_name(&entries, "path"), self.pick_name(&entries, "template"));
        let (contract, append) = (self.pick_name(&entries, "contract"), self.flag(&entries, "append"));
        let (Some(path), Some(template)) = (path, template) else {
            self.report(
                Code::MissingKey,
                node,
                "an artifact needs a path and a template",
                "write { path: STATUS.md, template: templates/status.md }",
            );
            return None;
        };
        Some(ArtifactDraft { path, template, contract, append })
    }

    fn agent(&mut self, name: Name<'n>, node: &'n Node) -> AgentDraft<'n> {
        const KEYS: &[&str] =
            &["contract", "prompt", "access", "timeout", "idle", "repairs", "retries", "budget"];
        let entries = self.known(node, "an agent", &[KEYS]);
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
            settings: self.settings(&entries),
        }
    }

    fn settings(&mut self, entries: &Entries<'n>) -> Settings<'n> {
        let pick = |key| Self::pick(entries, key);
        if let Some(node) = pick("retries").filter(|node| node.entries().is_none()) {
            let message = format!("`retries` is {}, not a mapping", node.name());
            self.report(Code::WrongForm, node, message, "write { transport: 3, timeout: 1 }");
        }
        Settings {
            timeout: pick("timeout"),
            idle: pick("idle"),
            repairs: pick("repairs"),
            retries: pick("retries"),
            budget: pick("budget"),
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
        let states: Vec<_> = states.into_iter().map(|(name, node)| (name, self.state(name, node))).collect();
        let start = self.pick_name(entries, "start");
        if start.is_none() && Self::pick(entries, "start").is_none() {
            let what = if sub { "the sub-workflow" } else { "the workflow" };
            let first = states.first().map_or("name-of-a-state", |(name, _)| name.text);
            let hint = format!("add `start: {first}`");
            self.report(Code::MissingKey, node, format!("{what} does not say where it starts"), hint);
        }
        MachineDraft {
            inputs,
            variables,
            limits,
            iterations: self.pick_name(entries, "iterations"),
            start,
            states,
            result: Self::pick(entries, "result"),
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

    fn state(&mut self, name: Name<'n>, node: &'n Node) -> StateDraft<'n> {
        const KINDS: &[&str] = &["agent", "command", "ask", "asks", "each", "run", "end"];
        let plain = self.entries(node, &format!("state '{}'", name.text));
        let kinds: Vec<&str> =
            plain.iter().map(|(key, _)| key.text).filter(|key| KINDS.contains(key)).collect();
        if let [_, second, ..] = kinds.as_slice()
            && let Some((key, _)) = plain.iter().find(|(key, _)| key.text == *second)
        {
            let message = format!("state '{}' is two things: {}", name.text, kinds.join(" and "));
            self.report(Code::WrongForm, key.node, message, "a state does one thing: make two states");
        }
        let what = format!("state '{}'", name.text);
        let kind = match kinds.first().copied() {
            _ if kinds.len() > 1 => KindDraft::Unclear,
            Some("agent") => {
                let entries = self.known(node, &what, &[STEP_KEYS, FLOW_KEYS]);
                self.step(&entries).map_or(KindDraft::Unclear, KindDraft::Agent)
            }
            Some("command") => self.command(node, &what),
            Some("ask") => {
                self.known(node, &what, &[&["ask"], FLOW_KEYS]);
                let inner = Self::pick(&plain, "ask").unwrap_or(node);
                KindDraft::Ask(vec![(Name { text: "answer", node: inner }, self.question(inner))], Asked::One)
            }
            Some("asks") => {
                self.known(node, &what, &[&["asks"], FLOW_KEYS]);
                let inner = Self::pick(&plain, "asks").unwrap_or(node);
                let questions = self.entries(inner, "`asks`");
                let questions =
                    questions.into_iter().map(|(name, node)| (name, self.question(node))).collect();
                KindDraft::Ask(questions, Asked::Several)
            }
            Some("each") => {
                self.known(node, &what, &[&["each"], FLOW_KEYS]);
                KindDraft::Each(self.each(Self::pick(&plain, "each").unwrap_or(node)))
            }
            Some("run") => {
                let entries = self.known(node, &what, &[&["run", "with"], FLOW_KEYS]);
                match self.pick_name(&entries, "run") {
                    Some(machine) => KindDraft::Call { machine, with: self.with(&entries) },
                    None => KindDraft::Unclear,
                }
            }
            Some("end") => {
                let entries = self.known(node, &what, &[&["end", "reason", "result"]]);
                match self.pick_name(&entries, "end") {
                    Some(outcome) => KindDraft::End {
                        outcome,
                        reason: Self::pick(&entries, "reason"),
                        result: Self::pick(&entries, "result"),
                    },
                    None => KindDraft::Unclear,
                }
            }
            _ => {
                self.known(node, &what, &[KINDS, FLOW_KEYS]);
                KindDraft::Route
            }
        };
        let (next, on) = self.moves(&plain);
        if next.is_empty() && !matches!(kind, KindDraft::End { .. } | KindDraft::Unclear) {
            self.report(
                Code::MissingKey,
                name.node,
                format!("state '{}' leads nowhere", name.text),
                "add `go: name-of-a-state`, a list `next:`, or make it an end with `end: done`",
            );
        }
        StateDraft { node: name.node, kind, next, on, counts: self.pick_name(&plain, "counts") }
    }

    fn moves(
        &mut self,
        entries: &Entries<'n>,
    ) -> (Vec<TransitionDraft<'n>>, Vec<(Name<'n>, TransitionDraft<'n>)>) {
        let mut next = Vec::new();
        match (Self::pick(entries, "next"), Self::pick(entries, "go")) {
            (Some(node), also) => {
                if let Some(go) = also {
                    self.report(
                        Code::WrongForm,
                        go,
                        "`go` stands beside `next`",
                        "write the default as the last entry of `next`: - { go: … }",
                    );
                }
                match node.items() {
                    Some(items) => next.extend(items.iter().map(|item| self.transition(item))),
                    None => next.push(self.transition(node)),
                }
                // It is what was meant, so that this mistake is not said in three ways.
                next.extend(also.map(|go| self.transition(go)));
            }
            (None, Some(go)) => next.push(self.transition(go)),
            (None, None) => {}
        }
        let mut on = Vec::new();
        if let Some(node) = Self::pick(entries, "on") {
            for (name, node) in self.entries(node, "`on`") {
                on.push((name, self.transition(node)));
            }
        }
        (next, on)
    }

    fn transition(&mut self, node: &'n Node) -> TransitionDraft<'n> {
        let mut draft = TransitionDraft {
            node,
            when: None,
            set: Vec::new(),
            go: None,
            goto: None,
            reason: None,
            counts: None,
            resets: Vec::new(),
        };
        if let Some(text) = node.text() {
            draft.go = Some(Name { text, node });
            return draft;
        }
        const KEYS: &[&str] = &["when", "set", "go", "goto", "reason", "counts", "resets"];
        let entries = self.known(node, "a transition", &[KEYS]);
        draft.when = Self::pick(&entries, "when");
        if let Some(set) = Self::pick(&entries, "set") {
            draft.set = self.entries(set, "`set`");
        }
        draft.go = self.pick_name(&entries, "go");
        draft.goto = self.pick_name(&entries, "goto");
        draft.reason = Self::pick(&entries, "reason");
        draft.counts = self.pick_name(&entries, "counts");
        draft.resets =
            Self::pick(&entries, "resets").map(|node| self.names(node, "`resets`")).unwrap_or_default();
        match (draft.go, draft.goto) {
            (None, None) if matches!(node.kind, Kind::Map(_) | Kind::Null) => self.report(
                Code::MissingKey,
                node,
                "the transition leads nowhere",
                "add `go: name-of-a-state`, or `goto: expression` for a target that a value names",
            ),
            (Some(_), Some(goto)) => self.report(
                Code::WrongForm,
                goto.node,
                "`go` and `goto` stand together",
                "`go` names a state, `goto` an expression: keep one",
            ),
            _ => {}
        }
        draft
    }

    fn with(&mut self, entries: &Entries<'n>) -> Vec<(Name<'n>, &'n Node)> {
        match Self::pick(entries, "with") {
            Some(node) => self.entries(node, "`with`"),
            None => Vec::new(),
        }
    }

    fn step(&mut self, entries: &Entries<'n>) -> Option<StepDraft<'n>> {
        Some(StepDraft {
            agent: self.pick_name(entries, "agent")?,
            prompt: self.pick_name(entries, "prompt"),
            with: self.with(entries),
            needs: Self::pick(entries, "needs").map(|node| self.names(node, "`needs`")).unwrap_or_default(),
            settings: self.settings(entries),
        })
    }

    fn command(&mut self, node: &'n Node, what: &str) -> KindDraft<'n> {
        let entries = self.known(node, what, &[&["command", "input", "output", "cwd", "timeout"], FLOW_KEYS]);
        let Some(list) = Self::pick(&entries, "command") else { return KindDraft::Unclear };
        let Some(items) = list.items().filter(|items| !items.is_empty()) else {
            self.report(
                Code::WrongForm,
                list,
                "a command is a list: the program and its arguments",
                "write [cargo, test], or [sh, -c, \"…\"] for a line of shell",
            );
            return KindDraft::Unclear;
        };
        KindDraft::Command(CommandDraft {
            argv: items.iter().filter_map(|item| self.name(item, "an argument")).collect(),
            input: self.pick_name(&entries, "input"),
            output: self.pick_name(&entries, "output"),
            cwd: self.pick_name(&entries, "cwd"),
            timeout: Self::pick(&entries, "timeout"),
        })
    }

    fn question(&mut self, node: &'n Node) -> QuestionDraft<'n> {
        let entries = self.known(node, "a question", &[&["question", "choices", "pattern", "optional"]]);
        let question = self.pick_name(&entries, "question");
        if question.is_none() {
            self.report(Code::MissingKey, node, "the question has no text", "add `question: …`");
        }
        let choices = Self::pick(&entries, "choices").map(|node| {
            if node.items().is_some_and(<[Node]>::is_empty) {
                let hint = "list the choices: [proceed, stop]";
                self.report(Code::WrongForm, node, "there is nothing to choose from", hint);
            }
            self.names(node, "a choice")
        });
        if let Some(names) = &choices {
            let mut seen = BTreeSet::new();
            for name in names {
                if !seen.insert(name.text) {
                    self.report(
                        Code::BadName,
                        name.node,
                        format!("'{}' stands twice", name.text),
                        "each choice once",
                    );
                }
            }
        }
        QuestionDraft {
            question,
            choices,
            pattern: self.pick_name(&entries, "pattern"),
            optional: self.flag(&entries, "optional"),
        }
    }

    fn each(&mut self, node: &'n Node) -> EachDraft<'n> {
        const KEYS: &[&str] = &["in", "as", "key", "after", "rank", "parallel", "failures", "run"];
        let entries = self.known(node, "`each`", &[KEYS, STEP_KEYS]);
        let body = match (Self::pick(&entries, "agent"), Self::pick(&entries, "run")) {
            (Some(_), None) => self.step(&entries).map(BodyDraft::Agent),
            (None, Some(_)) => {
                let with = self.with(&entries);
                self.pick_name(&entries, "run").map(|machine| BodyDraft::Machine { machine, with })
            }
            (Some(_), Some(run)) => {
                self.report(
                    Code::WrongForm,
                    run,
                    "each item runs an agent or a sub-workflow, not both",
                    "keep one",
                );
                None
            }
            (None, None) => {
                self.report(
                    Code::MissingKey,
                    node,
                    "`each` does not say what to run for an item",
                    "add `agent: name` or `run: name-of-a-sub-workflow`",
                );
                None
            }
        };
        for key in ["in", "as"] {
            if Self::pick(&entries, key).is_none() {
                self.report(
                    Code::MissingKey,
                    node,
                    format!("`each` has no `{key}`"),
                    "write each: { in: list, as: item, agent: name }",
                );
            }
        }
        EachDraft {
            node,
            list: Self::pick(&entries, "in"),
            bind: self.pick_name(&entries, "as"),
            key: self.pick_name(&entries, "key"),
            after: self.pick_name(&entries, "after"),
            rank: self.pick_name(&entries, "rank"),
            parallel: Self::pick(&entries, "parallel"),
            failures: self.pick_name(&entries, "failures"),
            body,
        }
    }

    /// A whole number that is not negative.
    pub(crate) fn whole(&mut self, node: &Node, what: &str) -> Option<u64> {
        if let Kind::Number(number) = &node.kind
            && let Some(number) = number.as_u64()
        {
            return Some(number);
        }
        self.report(
            Code::WrongForm,
            node,
            format!("{what} is not a whole number"),
            "write a number such as 3",
        );
        None
    }
}
