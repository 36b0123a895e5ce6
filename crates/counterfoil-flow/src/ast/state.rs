//! Parses a state: its step and its transitions.

use super::reader::{Entries, Reader, as_meant, has_unknown};
use super::{
    AgentStep, AskForm, Body, CommandStep, Each, Listing, Question, Rule, SpannedStr, State,
    StateKind, Transition,
};
use crate::finding::Code;
use crate::yaml_tree::{Kind, Node};
use std::collections::BTreeSet;

const AGENT_KEYS: &[&str] = &[
    "agent", "prompt", "with", "needs", "timeout", "startup", "idle", "repairs", "retries",
    "budget", "claims", "rules",
];
const COMMAND_KEYS: &[&str] = &["command", "input", "output", "cwd", "timeout"];
const END_KEYS: &[&str] = &["end", "reason", "result", "exit"];
/// Keys of steps that can have their own workspace.
const WORKSPACE_KEYS: &[&str] = &["workspace"];
/// Keys of steps that can be followed by checks of the project.
const CHECK_KEYS: &[&str] = &["checks"];
const TRANSITION_KEYS: &[&str] =
    &["when", "set", "go", "goto", "reason", "counts", "resets", "wait"];
/// Keys of a list whose items have a key and an order.
const LIST_KEYS: &[&str] = &["in", "as", "key", "after", "rank"];
/// Keys of every state except ends: where it goes next and the limit it counts.
pub(super) const ROUTING_KEYS: &[&str] = &["next", "go", "on", "counts"];

impl<'n> Reader<'n> {
    pub(super) fn state(&mut self, name: SpannedStr<'n>, node: &'n Node) -> State<'n> {
        const KINDS: &[&str] = &[
            "agent", "command", "ask", "asks", "each", "order", "run", "read", "changes", "commit",
            "end",
        ];
        const ALL_KEYS: &[&[&str]] =
            &[KINDS, AGENT_KEYS, COMMAND_KEYS, WORKSPACE_KEYS, CHECK_KEYS, ROUTING_KEYS, END_KEYS];
        let before = self.findings.len();
        let plain = self.entries(node, &format!("state '{}'", name.text));
        // A key that is misspelt says what the state does only if no other key does.
        let is_known = plain.iter().any(|(key, _)| KINDS.contains(&key.text));
        let plain = as_meant(plain, ALL_KEYS, |key| !is_known || !KINDS.contains(&key));
        let kinds: Vec<&str> =
            plain.iter().map(|(key, _)| key.text).filter(|key| KINDS.contains(key)).collect();
        if let [_, second, ..] = kinds.as_slice()
            && let Some((key, _)) = plain.iter().find(|(key, _)| key.text == *second)
        {
            let message =
                format!("state '{}' has more than one step: {}", name.text, kinds.join(" and "));
            self.report(Code::WrongForm, key.node, message, "use a separate state for each step");
        }
        let what = format!("state '{}'", name.text);
        let kind = match kinds.first().copied() {
            _ if kinds.len() > 1 => StateKind::Invalid,
            Some("agent") => {
                let entries = self.known_entries(
                    node,
                    &what,
                    &[AGENT_KEYS, WORKSPACE_KEYS, CHECK_KEYS, ROUTING_KEYS],
                );
                let workspace = self.get_string(&entries, "workspace");
                self.agent_step(&entries).map_or(StateKind::Invalid, |step| {
                    StateKind::Agent(AgentStep { workspace, ..step })
                })
            }
            Some("command") => self.command_step(node, &what),
            Some("read") => self.read_step(node, &what),
            Some("changes") => self.changes_step(node, &what),
            Some("commit") => self.commit_step(node, &what),
            Some("ask") => {
                self.known_entries(node, &what, &[&["ask"], ROUTING_KEYS]);
                let inner = Self::get(&plain, "ask").unwrap_or(node);
                StateKind::Ask(
                    vec![(SpannedStr { text: "answer", node: inner }, self.question(inner))],
                    AskForm::Single,
                )
            }
            Some("asks") => {
                self.known_entries(node, &what, &[&["asks"], ROUTING_KEYS]);
                let inner = Self::get(&plain, "asks").unwrap_or(node);
                let questions = self.entries(inner, "`asks`");
                let questions =
                    questions.into_iter().map(|(name, node)| (name, self.question(node))).collect();
                StateKind::Ask(questions, AskForm::Multiple)
            }
            Some("each") => {
                self.known_entries(node, &what, &[&["each"], CHECK_KEYS, ROUTING_KEYS]);
                StateKind::Each(self.each(Self::get(&plain, "each").unwrap_or(node)))
            }
            Some("order") => {
                self.known_entries(node, &what, &[&["order"], ROUTING_KEYS]);
                let inner = Self::get(&plain, "order").unwrap_or(node);
                let entries = self.known_entries(inner, "`order`", &[LIST_KEYS]);
                let may_be_there = has_unknown(&entries, &[LIST_KEYS]);
                StateKind::Order(self.listing(
                    inner,
                    &entries,
                    "order: { in: list, as: item, key: item.id }",
                    may_be_there,
                ))
            }
            Some("run") => {
                let entries = self.known_entries(
                    node,
                    &what,
                    &[&["run", "with"], WORKSPACE_KEYS, CHECK_KEYS, ROUTING_KEYS],
                );
                match self.get_string(&entries, "run") {
                    Some(machine) => StateKind::Call {
                        machine,
                        with: self.with(&entries),
                        workspace: self.get_string(&entries, "workspace"),
                    },
                    None => StateKind::Invalid,
                }
            }
            Some("end") => {
                let entries = self.known_entries(node, &what, &[END_KEYS]);
                match self.get_string(&entries, "end") {
                    Some(outcome) => StateKind::End {
                        outcome,
                        reason: Self::get(&entries, "reason"),
                        result: Self::get(&entries, "result"),
                        exit: Self::get(&entries, "exit"),
                    },
                    None => StateKind::Invalid,
                }
            }
            _ => {
                self.known_entries(node, &what, &[KINDS, CHECK_KEYS, ROUTING_KEYS]);
                StateKind::Route
            }
        };
        // What is unknown here is known in some kinds of states: then it has no finding.
        let may_lead_on = self.findings.len() > before && has_unknown(&plain, ALL_KEYS);
        let (next, on) = self.transitions(&plain);
        if next.is_empty()
            && !matches!(kind, StateKind::End { .. } | StateKind::Invalid)
            && !may_lead_on
        {
            self.report(
                Code::MissingKey,
                name.node,
                format!("state '{}' has no transition", name.text),
                "add `go: name-of-a-state` or a list `next:`, or make it an end state with `end: done`",
            );
        }
        let checks = self.checks(&plain);
        let counts = self.get_string(&plain, "counts");
        let is_unclear = self.findings.len() > before;
        State { node: name.node, kind, next, on, counts, checks, is_unclear }
    }

    /// The names of the checks that follow a step.
    fn checks(&mut self, entries: &Entries<'n>) -> Vec<SpannedStr<'n>> {
        let Some(node) = Self::get(entries, "checks") else { return Vec::new() };
        let names = self.strings(node, "the name of a check");
        if names.is_empty() && node.items().is_some_and(<[Node]>::is_empty) {
            let hint = "name checks of counterfoil.toml, as in [test, lint], or remove the key";
            self.report(Code::WrongForm, node, "the list of checks is empty", hint);
        }
        names
    }

    fn transitions(
        &mut self,
        entries: &Entries<'n>,
    ) -> (Vec<Transition<'n>>, Vec<(SpannedStr<'n>, Transition<'n>)>) {
        let mut next = Vec::new();
        match (Self::get(entries, "next"), Self::get(entries, "go")) {
            (Some(node), also) => {
                if let Some(go) = also {
                    self.report(
                        Code::WrongForm,
                        go,
                        "a state cannot have both `go` and `next`",
                        "write the default transition as the last entry of `next`: - { go: … }",
                    );
                }
                match node.items() {
                    Some(items) => next.extend(items.iter().map(|item| self.transition(item))),
                    None => next.push(self.transition(node)),
                }
                // Treat `go` as that entry, so that the mistake causes a single finding.
                next.extend(also.map(|go| self.transition(go)));
            }
            (None, Some(go)) => next.push(self.transition(go)),
            (None, None) => {}
        }
        let mut on = Vec::new();
        if let Some(node) = Self::get(entries, "on") {
            for (name, node) in self.entries(node, "`on`") {
                on.push((name, self.transition(node)));
            }
        }
        (next, on)
    }

    fn transition(&mut self, node: &'n Node) -> Transition<'n> {
        let mut transition = Transition {
            node,
            when: None,
            set: Vec::new(),
            go: None,
            goto: None,
            reason: None,
            counts: None,
            resets: Vec::new(),
            wait: None,
        };
        if let Some(text) = node.text() {
            transition.go = Some(SpannedStr { text, node });
            return transition;
        }
        let entries = self.known_entries(node, "a transition", &[TRANSITION_KEYS]);
        transition.when = Self::get(&entries, "when");
        if let Some(set) = Self::get(&entries, "set") {
            transition.set = self.entries(set, "`set`");
        }
        transition.go = self.get_string(&entries, "go");
        transition.goto = self.get_string(&entries, "goto");
        transition.reason = Self::get(&entries, "reason");
        transition.counts = self.get_string(&entries, "counts");
        transition.wait = Self::get(&entries, "wait");
        transition.resets = Self::get(&entries, "resets")
            .map(|node| self.strings(node, "`resets`"))
            .unwrap_or_default();
        match (transition.go, transition.goto) {
            (None, None) if has_unknown(&entries, &[TRANSITION_KEYS]) => {}
            (None, None) if matches!(node.kind, Kind::Map(_) | Kind::Null) => self.report(
                Code::MissingKey,
                node,
                "the transition has no target",
                "add `go: name-of-a-state`, or `goto: expression` for a computed target",
            ),
            (Some(_), Some(goto)) => self.report(
                Code::WrongForm,
                goto.node,
                "a transition cannot have both `go` and `goto`",
                "`go` takes the name of a state, `goto` an expression: keep one of them",
            ),
            _ => {}
        }
        transition
    }

    fn with(&mut self, entries: &Entries<'n>) -> Vec<(SpannedStr<'n>, &'n Node)> {
        match Self::get(entries, "with") {
            Some(node) => self.entries(node, "`with`"),
            None => Vec::new(),
        }
    }

    fn agent_step(&mut self, entries: &Entries<'n>) -> Option<AgentStep<'n>> {
        Some(AgentStep {
            agent: self.get_string(entries, "agent")?,
            prompt: self.get_string(entries, "prompt"),
            with: self.with(entries),
            needs: Self::get(entries, "needs")
                .map(|node| self.strings(node, "`needs`"))
                .unwrap_or_default(),
            rules: self.rules(entries),
            workspace: None,
            settings: self.settings(entries),
        })
    }

    fn rules(&mut self, entries: &Entries<'n>) -> Vec<Rule<'n>> {
        const EXAMPLE: &str =
            "write - { id: name, check: expression, message: text of the violation }";
        const KEYS: &[&[&str]] = &[&["id", "check", "message", "at"]];
        let Some(node) = Self::get(entries, "rules") else { return Vec::new() };
        let Some(items) = node.items() else {
            let message = format!("`rules` is {}, not a list", node.describe());
            self.report(Code::WrongForm, node, message, EXAMPLE);
            return Vec::new();
        };
        let mut rules = Vec::with_capacity(items.len());
        for item in items {
            let entries = self.known_entries(item, "a rule", KEYS);
            let may_be_there = has_unknown(&entries, KEYS);
            for key in ["id", "check", "message"] {
                if Self::get(&entries, key).is_none() && !may_be_there {
                    self.report(
                        Code::MissingKey,
                        item,
                        format!("the rule has no `{key}`"),
                        EXAMPLE,
                    );
                }
            }
            rules.push(Rule {
                id: self.get_string(&entries, "id"),
                check: Self::get(&entries, "check"),
                message: self.get_string(&entries, "message"),
                at: self.get_string(&entries, "at"),
            });
        }
        rules
    }

    fn command_step(&mut self, node: &'n Node, what: &str) -> StateKind<'n> {
        let entries = self.known_entries(node, what, &[COMMAND_KEYS, CHECK_KEYS, ROUTING_KEYS]);
        let Some(list) = Self::get(&entries, "command") else { return StateKind::Invalid };
        let Some(items) = list.items().filter(|items| !items.is_empty()) else {
            self.report(
                Code::WrongForm,
                list,
                "a command is a list of the program and its arguments",
                "write [cargo, test], or [sh, -c, \"…\"] for a shell command",
            );
            return StateKind::Invalid;
        };
        StateKind::Command(CommandStep {
            argv: items.iter().filter_map(|item| self.string(item, "an argument")).collect(),
            input: self.get_string(&entries, "input"),
            output: self.get_string(&entries, "output"),
            cwd: self.get_string(&entries, "cwd"),
            timeout: Self::get(&entries, "timeout"),
        })
    }

    fn question(&mut self, node: &'n Node) -> Question<'n> {
        const KEYS: &[&[&str]] = &[&["question", "choices", "pattern", "optional"]];
        let entries = self.known_entries(node, "a question", KEYS);
        let question = self.get_string(&entries, "question");
        if Self::get(&entries, "question").is_none() && !has_unknown(&entries, KEYS) {
            self.report(Code::MissingKey, node, "the question has no text", "add `question: …`");
        }
        let choices = Self::get(&entries, "choices").map(|node| {
            if node.items().is_some_and(<[Node]>::is_empty) {
                let hint = "list the choices: [proceed, stop]";
                self.report(Code::WrongForm, node, "the list of choices is empty", hint);
            }
            self.strings(node, "a choice")
        });
        if let Some(names) = &choices {
            let mut seen = BTreeSet::new();
            for name in names {
                if !seen.insert(name.text) {
                    self.report(
                        Code::BadName,
                        name.node,
                        format!("the choice '{}' occurs twice", name.text),
                        "remove one of them",
                    );
                }
            }
        }
        Question {
            question,
            choices,
            pattern: self.get_string(&entries, "pattern"),
            optional: self.get_bool(&entries, "optional"),
        }
    }

    fn each(&mut self, node: &'n Node) -> Each<'n> {
        const KEYS: &[&[&str]] =
            &[LIST_KEYS, &["parallel", "failures", "run"], AGENT_KEYS, WORKSPACE_KEYS];
        let entries = self.known_entries(node, "`each`", KEYS);
        let may_be_there = has_unknown(&entries, KEYS);
        let body = match (Self::get(&entries, "agent"), Self::get(&entries, "run")) {
            (Some(_), None) => self.agent_step(&entries).map(Body::Agent),
            (None, Some(_)) => {
                if let Some(claims) = Self::get(&entries, "claims") {
                    let message = "`claims` does not apply to an item that runs a sub-workflow";
                    self.report(
                        Code::UnknownKey,
                        claims,
                        message,
                        "set it in the states of the sub-workflow, or on the agent",
                    );
                }
                let with = self.with(&entries);
                self.get_string(&entries, "run").map(|machine| Body::Machine { machine, with })
            }
            (Some(_), Some(run)) => {
                self.report(
                    Code::WrongForm,
                    run,
                    "an item runs an agent or a sub-workflow, not both",
                    "keep `agent` or `run`",
                );
                None
            }
            (None, None) if may_be_there => None,
            (None, None) => {
                self.report(
                    Code::MissingKey,
                    node,
                    "`each` has neither `agent` nor `run`",
                    "add `agent: name` or `run: name-of-a-sub-workflow`",
                );
                None
            }
        };
        Each {
            listing: self.listing(
                node,
                &entries,
                "each: { in: list, as: item, agent: name }",
                may_be_there,
            ),
            parallel: Self::get(&entries, "parallel"),
            failures: self.get_string(&entries, "failures"),
            workspace: self.get_string(&entries, "workspace"),
            body,
        }
    }

    /// The settings of a list whose items have a key and an order.
    fn listing(
        &mut self,
        node: &'n Node,
        entries: &Entries<'n>,
        example: &str,
        may_be_there: bool,
    ) -> Listing<'n> {
        for key in ["in", "as"] {
            if Self::get(entries, key).is_none() && !may_be_there {
                let kind = example.split(':').next().unwrap_or_default();
                let message = format!("`{kind}` has no `{key}`");
                self.report(Code::MissingKey, node, message, format!("write {example}"));
            }
        }
        let key = self.get_string(entries, "key");
        // A key that cannot be read has its finding, and is not missing.
        let is_key_unread = key.is_none() && Self::get(entries, "key").is_some();
        Listing {
            node,
            list: Self::get(entries, "in"),
            bind: self.get_string(entries, "as"),
            key,
            after: self.get_string(entries, "after").filter(|_| !is_key_unread),
            rank: self.get_string(entries, "rank"),
        }
    }
}
