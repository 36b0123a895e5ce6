//! The parts of a state: what happens in it and where it leads.

use super::read::{Entries, Reader};
use super::{
    Asked, BodyDraft, CommandDraft, EachDraft, KindDraft, ListDraft, Name, QuestionDraft,
    RuleDraft, StateDraft, StepDraft, TransitionDraft,
};
use crate::finding::Code;
use crate::tree::{Kind, Node};
use std::collections::BTreeSet;

const STEP_KEYS: &[&str] = &[
    "agent", "prompt", "with", "needs", "timeout", "startup", "idle", "repairs", "retries",
    "budget", "claims", "rules",
];
/// What a step that can have a workspace of its own may say.
const PLACE_KEYS: &[&str] = &["workspace"];
const MOVE_KEYS: &[&str] = &["when", "set", "go", "goto", "reason", "counts", "resets", "wait"];
/// What can be said of a list whose items have an order.
const LIST_KEYS: &[&str] = &["in", "as", "key", "after", "rank"];
pub(super) const FLOW_KEYS: &[&str] = &["next", "go", "on", "counts"];

impl<'n> Reader<'n> {
    pub(super) fn state(&mut self, name: Name<'n>, node: &'n Node) -> StateDraft<'n> {
        const KINDS: &[&str] = &[
            "agent", "command", "ask", "asks", "each", "order", "run", "read", "changes", "commit",
            "end",
        ];
        let plain = self.entries(node, &format!("state '{}'", name.text));
        let kinds: Vec<&str> =
            plain.iter().map(|(key, _)| key.text).filter(|key| KINDS.contains(key)).collect();
        if let [_, second, ..] = kinds.as_slice()
            && let Some((key, _)) = plain.iter().find(|(key, _)| key.text == *second)
        {
            let message = format!("state '{}' is two things: {}", name.text, kinds.join(" and "));
            self.report(
                Code::WrongForm,
                key.node,
                message,
                "a state does one thing: make two states",
            );
        }
        let what = format!("state '{}'", name.text);
        let kind = match kinds.first().copied() {
            _ if kinds.len() > 1 => KindDraft::Unclear,
            Some("agent") => {
                let entries = self.known(node, &what, &[STEP_KEYS, PLACE_KEYS, FLOW_KEYS]);
                let workspace = self.pick_name(&entries, "workspace");
                self.step(&entries).map_or(KindDraft::Unclear, |step| {
                    KindDraft::Agent(StepDraft { workspace, ..step })
                })
            }
            Some("command") => self.command(node, &what),
            Some("read") => self.read(node, &what),
            Some("changes") => self.changes(node, &what),
            Some("commit") => self.commit(node, &what),
            Some("ask") => {
                self.known(node, &what, &[&["ask"], FLOW_KEYS]);
                let inner = Self::pick(&plain, "ask").unwrap_or(node);
                KindDraft::Ask(
                    vec![(Name { text: "answer", node: inner }, self.question(inner))],
                    Asked::One,
                )
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
            Some("order") => {
                self.known(node, &what, &[&["order"], FLOW_KEYS]);
                let inner = Self::pick(&plain, "order").unwrap_or(node);
                let entries = self.known(inner, "`order`", &[LIST_KEYS]);
                KindDraft::Order(self.listing(
                    inner,
                    &entries,
                    "order: { in: list, as: item, key: item.id }",
                ))
            }
            Some("run") => {
                let entries = self.known(node, &what, &[&["run", "with"], PLACE_KEYS, FLOW_KEYS]);
                match self.pick_name(&entries, "run") {
                    Some(machine) => KindDraft::Call {
                        machine,
                        with: self.with(&entries),
                        workspace: self.pick_name(&entries, "workspace"),
                    },
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
            wait: None,
        };
        if let Some(text) = node.text() {
            draft.go = Some(Name { text, node });
            return draft;
        }
        let entries = self.known(node, "a transition", &[MOVE_KEYS]);
        draft.when = Self::pick(&entries, "when");
        if let Some(set) = Self::pick(&entries, "set") {
            draft.set = self.entries(set, "`set`");
        }
        draft.go = self.pick_name(&entries, "go");
        draft.goto = self.pick_name(&entries, "goto");
        draft.reason = Self::pick(&entries, "reason");
        draft.counts = self.pick_name(&entries, "counts");
        draft.wait = Self::pick(&entries, "wait");
        draft.resets = Self::pick(&entries, "resets")
            .map(|node| self.names(node, "`resets`"))
            .unwrap_or_default();
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
            needs: Self::pick(entries, "needs")
                .map(|node| self.names(node, "`needs`"))
                .unwrap_or_default(),
            rules: self.rules(entries),
            workspace: None,
            settings: self.settings(entries),
        })
    }

    fn rules(&mut self, entries: &Entries<'n>) -> Vec<RuleDraft<'n>> {
        const EXAMPLE: &str = "write - { id: name, check: expression, message: what is wrong }";
        let Some(node) = Self::pick(entries, "rules") else { return Vec::new() };
        let Some(items) = node.items() else {
            let message = format!("`rules` is {}, not a list", node.name());
            self.report(Code::WrongForm, node, message, EXAMPLE);
            return Vec::new();
        };
        let mut rules = Vec::with_capacity(items.len());
        for item in items {
            let entries = self.known(item, "a rule", &[&["id", "check", "message", "at"]]);
            for key in ["id", "check", "message"] {
                if Self::pick(&entries, key).is_none() {
                    self.report(
                        Code::MissingKey,
                        item,
                        format!("the rule has no `{key}`"),
                        EXAMPLE,
                    );
                }
            }
            rules.push(RuleDraft {
                id: self.pick_name(&entries, "id"),
                check: Self::pick(&entries, "check"),
                message: self.pick_name(&entries, "message"),
                at: self.pick_name(&entries, "at"),
            });
        }
        rules
    }

    fn command(&mut self, node: &'n Node, what: &str) -> KindDraft<'n> {
        let entries =
            self.known(node, what, &[&["command", "input", "output", "cwd", "timeout"], FLOW_KEYS]);
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
        let entries =
            self.known(node, "a question", &[&["question", "choices", "pattern", "optional"]]);
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
        const KEYS: &[&str] = &["parallel", "failures", "run"];
        let entries = self.known(node, "`each`", &[LIST_KEYS, KEYS, STEP_KEYS, PLACE_KEYS]);
        let body = match (Self::pick(&entries, "agent"), Self::pick(&entries, "run")) {
            (Some(_), None) => self.step(&entries).map(BodyDraft::Agent),
            (None, Some(_)) => {
                if let Some(claims) = Self::pick(&entries, "claims") {
                    let message = "the claims are those of the agents in the sub-workflow";
                    self.report(
                        Code::UnknownKey,
                        claims,
                        message,
                        "say it in its states, or of the agent",
                    );
                }
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
        EachDraft {
            listing: self.listing(node, &entries, "each: { in: list, as: item, agent: name }"),
            parallel: Self::pick(&entries, "parallel"),
            failures: self.pick_name(&entries, "failures"),
            workspace: self.pick_name(&entries, "workspace"),
            body,
        }
    }

    /// What is said of a list whose items have an order.
    fn listing(&mut self, node: &'n Node, entries: &Entries<'n>, example: &str) -> ListDraft<'n> {
        for key in ["in", "as"] {
            if Self::pick(entries, key).is_none() {
                let kind = example.split(':').next().unwrap_or_default();
                let message = format!("`{kind}` has no `{key}`");
                self.report(Code::MissingKey, node, message, format!("write {example}"));
            }
        }
        ListDraft {
            node,
            list: Self::pick(entries, "in"),
            bind: self.pick_name(entries, "as"),
            key: self.pick_name(entries, "key"),
            after: self.pick_name(entries, "after"),
            rank: self.pick_name(entries, "rank"),
        }
    }
}
