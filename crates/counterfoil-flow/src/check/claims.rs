//! What a workflow says about the claims of its agents, and the type of `claims` in guards.

use super::Checker;
use super::machine::listed;
use super::types::{Presence, field, list_of, nullable, object, one_of};
use crate::draft::Name;
use crate::finding::Code;
use crate::tree::{Kind, Node};
use crate::workflow::{ClaimPolicies, PROTECTED, StateClaims, TESTS};
use counterfoil_contract::{
    ClaimKind, ClaimMatch, ClaimPolicy, HeldClaim, ObjectType, Scope, Type, assignable,
    did_you_mean,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What a guard reads of a claim that the result does not make, or that is ignored.
pub(crate) const NO_CLAIM: &str = "none";

const POLICIES: [(&str, ClaimPolicy); 3] = [
    ("record", ClaimPolicy::Record),
    ("require", ClaimPolicy::Require),
    ("ignore", ClaimPolicy::Ignore),
];
const MATCHES: [(&str, ClaimMatch); 3] = [
    ("exact", ClaimMatch::Exact),
    ("subset", ClaimMatch::Subset),
    ("best-effort", ClaimMatch::BestEffort),
];
const KEYS: &[&str] = &["policy", "match", "check", "run", "findings"];

impl<'n> Checker<'n> {
    /// One of some words; another is reported with those it may be.
    pub(super) fn word<T: Copy>(
        &mut self,
        name: Name<'_>,
        what: &str,
        known: &[(&str, T)],
    ) -> Option<T> {
        if let Some((_, found)) = known.iter().find(|(word, _)| *word == name.text) {
            return Some(*found);
        }
        let words = known.iter().map(|(word, _)| *word);
        let hint = did_you_mean(name.text, words.clone())
            .unwrap_or_else(|| format!("write {}", words.collect::<Vec<_>>().join(" or ")));
        self.report(Code::WrongForm, name.node, format!("'{}' is not {what}", name.text), hint);
        None
    }

    /// What follows from something refuted, as a workflow says it of all its agents.
    pub(super) fn policy(&mut self, name: Option<Name<'n>>) -> ClaimPolicy {
        name.and_then(|name| self.word(name, "a policy", &POLICIES)).unwrap_or_default()
    }

    /// What is written may always be put back, so it cannot be ignored.
    pub(super) fn protection(&mut self, name: Option<Name<'n>>) -> ClaimPolicy {
        let policy = self.policy(name);
        if let Some(name) = name.filter(|_| policy == ClaimPolicy::Ignore) {
            self.never_ignored(name.node);
            return ClaimPolicy::Record;
        }
        policy
    }

    fn never_ignored(&mut self, node: &Node) {
        let message = "what may not be written is put back and reported, whatever follows";
        self.report(
            Code::BadHolding,
            node,
            message,
            "write record, or require to have it sent back as well",
        );
    }

    /// The claims of an agent, with what its declaration says otherwise.
    pub(super) fn holding(&mut self, node: Option<&'n Node>, base: ClaimPolicies) -> ClaimPolicies {
        self.held(node, base, None).policies
    }

    /// The claims of a state, with what it says otherwise. Without a scope there is nothing that
    /// `findings` could read.
    pub(super) fn held(
        &mut self,
        node: Option<&'n Node>,
        mut holding: ClaimPolicies,
        scope: Option<&Scope>,
    ) -> StateClaims {
        let mut findings = BTreeMap::new();
        let entries = node.map(|node| self.reader.entries(node, "`claims`")).unwrap_or_default();
        for (name, node) in entries {
            match name.text {
                PROTECTED => {
                    if let Some(policy) = self.engine_claim(name, node) {
                        if policy == ClaimPolicy::Ignore {
                            self.never_ignored(node);
                        } else {
                            holding.protected = policy;
                        }
                    }
                }
                TESTS => holding.tests = self.engine_claim(name, node).unwrap_or(holding.tests),
                _ => {}
            }
            let is_ours = matches!(name.text, PROTECTED | TESTS);
            let is_known = holding.claims.iter().any(|held| held.name == name.text);
            if !is_known && !is_ours {
                self.unknown_claim(name, &holding.claims);
            }
            if !is_known {
                continue;
            }
            let rule = self.rule(node);
            // Several fields can make claims of one name; what is said is said of each.
            let named: Vec<&mut HeldClaim> =
                holding.claims.iter_mut().filter(|held| held.name == name.text).collect();
            let kinds: Vec<ClaimKind> = named.iter().map(|held| held.claim.kind).collect();
            if !self.goes_with(&rule, &kinds) {
                continue;
            }
            for held in named {
                let claim = &mut held.claim;
                claim.policy = rule.policy.unwrap_or(claim.policy);
                claim.matching = rule.matching.map_or(claim.matching, |(matching, _)| matching);
                // One of them takes the place of what was said before.
                if rule.run.is_some() || rule.check.is_some() {
                    claim.run = rule.run.map(|name| name.text.to_owned());
                    claim.check = rule.check.map(|name| name.text.to_owned());
                }
            }
            if let Some(asked) = rule.findings
                && let Some(expression) = self.asked_to_fix(asked, scope)
            {
                findings.insert(name.text.to_owned(), expression);
            }
        }
        StateClaims { policies: holding, findings }
    }

    /// A claim that the engine makes has a policy and nothing else.
    fn engine_claim(&mut self, name: Name<'n>, node: &'n Node) -> Option<ClaimPolicy> {
        let rule = self.rule(node);
        let more = [rule.run, rule.check, rule.findings, rule.matching.map(|(_, name)| name)];
        if let Some(more) = more.into_iter().flatten().next() {
            let message =
                format!("the claim '{}' is made by the engine and has only a policy", name.text);
            self.report(
                Code::BadHolding,
                more.node,
                message,
                format!("write {}: require", name.text),
            );
        }
        rule.policy
    }

    fn unknown_claim(&mut self, name: Name<'n>, claims: &[HeldClaim]) {
        let known: BTreeSet<&str> =
            claims.iter().map(|held| held.name.as_str()).chain([PROTECTED, TESTS]).collect();
        let hint = did_you_mean(name.text, known.iter().copied())
            .unwrap_or_else(|| format!("claims here: {}", listed(known.iter().copied())));
        self.report(
            Code::UnknownClaim,
            name.node,
            format!("no claim is named '{}'", name.text),
            hint,
        );
    }

    /// A policy alone, or a mapping.
    fn rule(&mut self, node: &'n Node) -> Rule<'n> {
        if let Some(text) = node.text() {
            return Rule {
                policy: self.word(Name { text, node }, "a policy", &POLICIES),
                ..Rule::default()
            };
        }
        if !matches!(node.kind, Kind::Map(_)) {
            let message = format!("what follows from a claim is {}, not a policy", node.name());
            self.report(
                Code::WrongForm,
                node,
                message,
                "write require, or { policy: record, check: name }",
            );
            return Rule::default();
        }
        let entries = self.reader.known(node, "a claim", &[KEYS]);
        let mut pick = |key: &str| {
            let name = self.reader.pick_name(&entries, key)?;
            if name.text.trim().is_empty() {
                self.reader.report(
                    Code::WrongForm,
                    name.node,
                    format!("`{key}` is empty"),
                    "say which",
                );
                return None;
            }
            Some(name)
        };
        let (policy, matching) = (pick("policy"), pick("match"));
        let (run, check, findings) = (pick("run"), pick("check"), pick("findings"));
        Rule {
            policy: policy.and_then(|name| self.word(name, "a policy", &POLICIES)),
            matching: matching
                .and_then(|name| Some((self.word(name, "a way to match files", &MATCHES)?, name))),
            run,
            check,
            findings,
        }
    }

    /// Whether what is said goes together with what is claimed.
    fn goes_with(&mut self, rule: &Rule<'n>, kinds: &[ClaimKind]) -> bool {
        let before = self.reader.findings.len();
        let all = |fits: fn(ClaimKind) -> bool| kinds.iter().all(|kind| fits(*kind));
        let lists_files = |kind| {
            matches!(
                kind,
                ClaimKind::FilesModified
                    | ClaimKind::FilesAdded
                    | ClaimKind::FilesDeleted
                    | ClaimKind::FilesRenamed
                    | ClaimKind::FilesChanged
            )
        };
        let is_command = all(|kind| kind == ClaimKind::Command);
        if let Some(name) = rule.run.or(rule.check).filter(|_| !is_command) {
            let message = "this is no claim that a command succeeds";
            self.report(
                Code::BadHolding,
                name.node,
                message,
                "take it out: there is nothing to run for it",
            );
        }
        if let (Some(_), Some(check)) = (rule.run, rule.check) {
            let message = "a command claim names a command or a check, and not both";
            self.report(Code::BadHolding, check.node, message, "keep `run` or `check`");
        }
        if let Some((_, name)) = rule.matching.filter(|_| !all(lists_files)) {
            let message = "`match` says how lists of files must agree, and this claims no files";
            self.report(Code::BadHolding, name.node, message, "take it out");
        }
        if let Some(name) = rule.findings.filter(|_| !all(|kind| kind == ClaimKind::Fixed)) {
            let message =
                "`findings` says what was to be fixed, and this is no claim that something is";
            self.report(Code::BadHolding, name.node, message, "take it out");
        }
        self.reader.findings.len() == before
    }

    fn asked_to_fix(
        &mut self,
        name: Name<'n>,
        scope: Option<&Scope>,
    ) -> Option<counterfoil_contract::Expression> {
        let Some(scope) = scope else {
            let message =
                "`findings` is read where the step starts, and an agent knows no variables";
            self.report(
                Code::BadHolding,
                name.node,
                message,
                "say it in the state that uses the agent",
            );
            return None;
        };
        let expression = self.expression(name, scope)?;
        if let Err(why) = assignable(expression.ty(), &findings_type()) {
            let message =
                format!("expected a list of objects with the texts `id` and `file`: {why}");
            let hint = "write findings.map(one, {'id': one.id, 'file': one.file})";
            self.report(Code::WrongType, name.node, message, hint);
            return None;
        }
        Some(expression)
    }
}

/// What is said about a claim.
#[derive(Default)]
struct Rule<'n> {
    policy: Option<ClaimPolicy>,
    matching: Option<(ClaimMatch, Name<'n>)>,
    run: Option<Name<'n>>,
    check: Option<Name<'n>>,
    findings: Option<Name<'n>>,
}

/// A file may be null: whether that finding is fixed cannot be told from what the step changed.
fn findings_type() -> Type {
    let Type::Object(plain) = object([("id", Type::text()), ("file", nullable(Type::text()))])
    else {
        return Type::Any;
    };
    list_of(Type::Object(Arc::new(ObjectType { fields: plain.fields.clone(), open: true })))
}

/// What `claims` is in the transitions of a state: what became of each claim of its agent.
pub(super) fn claims_type(holding: &ClaimPolicies) -> Type {
    let verdict = one_of(["verified", "refuted", "stale", "unverifiable", NO_CLAIM]);
    let stood = object([("verdict", verdict), ("reason", Type::text())]);
    let names: BTreeSet<&str> =
        holding.claims.iter().map(|held| held.name.as_str()).chain([PROTECTED, TESTS]).collect();
    let fields = names.into_iter().enumerate();
    let fields =
        fields.map(|(at, name)| (name.to_owned(), field(stood.clone(), Presence::Always, at)));
    Type::Object(Arc::new(ObjectType { fields: fields.collect(), open: false }))
}
