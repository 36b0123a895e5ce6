//! Checks the claim settings of agents and states, and defines the type of `claims` in guards.

use super::Checker;
use super::machine::join_limited;
use crate::ast::{Reader, SpannedStr};
use crate::finding::Code;
use crate::variable_types::{Presence, field, list_of, nullable, object};
use crate::workflow::{COMPLETE, ClaimPolicies, PROTECTED, StateClaims, TESTS, complete_claim};
use crate::yaml_tree::{Kind, Node};
use counterfoil_contract::claim::{ClaimKind, ClaimMatch, ClaimPolicy, EffectiveClaim};
use counterfoil_contract::expr::{ObjectType, Scope, Type, assignable};
use counterfoil_contract::suggest::did_you_mean;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

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
const KEYS: &[&str] = &["policy", "match", "check", "run", "findings", "allow"];

impl<'n> Checker<'n> {
    /// One of a set of keywords. Another word is reported with the alternatives.
    pub(super) fn keyword<T: Copy>(
        &mut self,
        name: SpannedStr<'_>,
        what: &str,
        known: &[(&str, T)],
    ) -> Option<T> {
        if let Some((_, found)) = known.iter().find(|(word, _)| *word == name.text) {
            return Some(*found);
        }
        let keywords = known.iter().map(|(word, _)| *word);
        let hint = did_you_mean(name.text, keywords.clone())
            .unwrap_or_else(|| format!("write {}", keywords.collect::<Vec<_>>().join(" or ")));
        self.report(Code::WrongForm, name.node, format!("'{}' is not {what}", name.text), hint);
        None
    }

    /// A policy that the workflow sets for all its agents.
    pub(super) fn policy(&mut self, name: Option<SpannedStr<'n>>) -> ClaimPolicy {
        name.and_then(|name| self.keyword(name, "a policy", &POLICIES)).unwrap_or_default()
    }

    /// The policy for writes to protected files. They are always reverted, so `ignore` is an error.
    pub(super) fn protection(&mut self, name: Option<SpannedStr<'n>>) -> ClaimPolicy {
        let policy = self.policy(name);
        if let Some(name) = name.filter(|_| policy == ClaimPolicy::Ignore) {
            self.report_ignored_protection(name.node);
            return ClaimPolicy::Record;
        }
        policy
    }

    fn report_ignored_protection(&mut self, node: &Node) {
        let message = "`protected` cannot be ignored: writes to protected files are always reverted and reported";
        self.report(
            Code::BadClaimSetting,
            node,
            message,
            "write record, or require to reject the result as well",
        );
    }

    /// The claim policies of an agent: those of its contract, changed by its declaration.
    pub(super) fn agent_policies(
        &mut self,
        node: Option<&'n Node>,
        base: ClaimPolicies,
    ) -> ClaimPolicies {
        self.state_claims(node, base, None).policies
    }

    /// The claim policies of a state: those of its agent, changed by the state. `findings` needs a
    /// scope to be evaluated in.
    pub(super) fn state_claims(
        &mut self,
        node: Option<&'n Node>,
        mut policies: ClaimPolicies,
        scope: Option<&Scope>,
    ) -> StateClaims {
        let mut findings = BTreeMap::new();
        let entries = node.map(|node| self.reader.entries(node, "`claims`")).unwrap_or_default();
        for (name, node) in entries {
            let is_known = policies.claims.iter().any(|claim| claim.name == name.text);
            match name.text {
                PROTECTED => {
                    if let Some(policy) = self.engine_claim(name, node, is_known) {
                        if policy == ClaimPolicy::Ignore {
                            self.report_ignored_protection(node);
                        } else {
                            policies.protected = policy;
                        }
                    }
                }
                TESTS => {
                    let policy = self.engine_claim(name, node, is_known);
                    policies.tests = policy.unwrap_or(policies.tests);
                }
                _ => {}
            }
            let is_engine_claim = matches!(name.text, PROTECTED | TESTS | COMPLETE);
            if name.text == COMPLETE && !is_known {
                let policy = self.engine_claim(name, node, is_known).unwrap_or(ClaimPolicy::Record);
                policies.claims.push(complete_claim(policy));
            }
            if !is_known && !is_engine_claim {
                self.unknown_claim(name, &policies.claims);
            }
            if !is_known {
                continue;
            }
            let settings = self.claim_settings(node);
            // Several fields can have claims of the same name; the setting applies to each.
            let named: Vec<&mut EffectiveClaim> =
                policies.claims.iter_mut().filter(|claim| claim.name == name.text).collect();
            let kinds: Vec<ClaimKind> = named.iter().map(|claim| claim.claim.kind).collect();
            if !self.applies_to(&settings, &kinds) {
                continue;
            }
            for effective in named {
                let claim = &mut effective.claim;
                claim.policy = settings.policy.unwrap_or(claim.policy);
                claim.matching = settings.matching.map_or(claim.matching, |(matching, _)| matching);
                if let Some((patterns, _)) = &settings.allow {
                    claim.allow.clone_from(patterns);
                }
                // `run` and `check` replace each other.
                if settings.run.is_some() || settings.check.is_some() {
                    claim.run = settings.run.map(|name| name.text.to_owned());
                    claim.check = settings.check.map(|name| name.text.to_owned());
                }
            }
            if let Some(expected) = settings.findings
                && let Some(expression) = self.findings_expression(expected, scope)
            {
                findings.insert(name.text.to_owned(), expression);
            }
        }
        StateClaims { policies, findings }
    }

    /// The policy of a claim that the engine makes. Such a claim has no other settings; those of a
    /// claim of the contract with its name are not its own.
    fn engine_claim(
        &mut self,
        name: SpannedStr<'n>,
        node: &'n Node,
        is_in_contract: bool,
    ) -> Option<ClaimPolicy> {
        let settings = self.claim_settings(node);
        if is_in_contract {
            return settings.policy;
        }
        let others = [
            settings.run,
            settings.check,
            settings.findings,
            settings.matching.map(|(_, name)| name),
        ];
        let nodes = others.into_iter().flatten().map(|name| name.node);
        if let Some(other) = nodes.chain(settings.allow.as_ref().map(|(_, node)| *node)).next() {
            let message =
                format!("the engine makes the claim '{}': it has only a policy", name.text);
            self.report(
                Code::BadClaimSetting,
                other,
                message,
                format!("write {}: require", name.text),
            );
        }
        settings.policy
    }

    fn unknown_claim(&mut self, name: SpannedStr<'n>, claims: &[EffectiveClaim]) {
        let known: BTreeSet<&str> = claims
            .iter()
            .map(|claim| claim.name.as_str())
            .chain([PROTECTED, TESTS, COMPLETE])
            .collect();
        let hint = did_you_mean(name.text, known.iter().copied())
            .unwrap_or_else(|| format!("known claims: {}", join_limited(known.iter().copied())));
        self.report(
            Code::UnknownClaim,
            name.node,
            format!("no claim is named '{}'", name.text),
            hint,
        );
    }

    /// The settings of a claim: a policy alone, or a mapping.
    fn claim_settings(&mut self, node: &'n Node) -> ClaimSettings<'n> {
        if let Some(text) = node.text() {
            return ClaimSettings {
                policy: self.keyword(SpannedStr { text, node }, "a policy", &POLICIES),
                ..ClaimSettings::default()
            };
        }
        if !matches!(node.kind, Kind::Map(_)) {
            let message = format!("the setting of a claim is {}, not a policy", node.describe());
            self.report(
                Code::WrongForm,
                node,
                message,
                "write require, or { policy: record, check: name }",
            );
            return ClaimSettings::default();
        }
        let entries = self.reader.known_entries(node, "a claim", &[KEYS]);
        let mut pick = |key: &str| {
            let name = self.reader.get_string(&entries, key)?;
            if name.text.trim().is_empty() {
                self.reader.report(
                    Code::WrongForm,
                    name.node,
                    format!("`{key}` is empty"),
                    "write a value, or remove the key",
                );
                return None;
            }
            Some(name)
        };
        let (policy, matching) = (pick("policy"), pick("match"));
        let (run, check, findings) = (pick("run"), pick("check"), pick("findings"));
        let allow = Reader::get(&entries, "allow").map(|node| {
            let patterns = self.reader.strings(node, "`allow`");
            (patterns.into_iter().map(|pattern| pattern.text.to_owned()).collect(), node)
        });
        ClaimSettings {
            policy: policy.and_then(|name| self.keyword(name, "a policy", &POLICIES)),
            matching: matching.and_then(|name| {
                Some((self.keyword(name, "a way to match lists of files", &MATCHES)?, name))
            }),
            run,
            check,
            findings,
            allow,
        }
    }

    /// Whether the settings apply to claims of these kinds. Those that do not are reported.
    fn applies_to(&mut self, settings: &ClaimSettings<'n>, kinds: &[ClaimKind]) -> bool {
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
        if let Some(name) = settings.run.or(settings.check).filter(|_| !is_command) {
            let message = "`run` and `check` apply only to a claim that a command succeeds";
            self.report(Code::BadClaimSetting, name.node, message, "remove the key");
        }
        if let (Some(_), Some(check)) = (settings.run, settings.check) {
            let message = "a command claim has either `run` or `check`, not both";
            self.report(Code::BadClaimSetting, check.node, message, "keep one of them");
        }
        if let Some((_, name)) = settings.matching.filter(|_| !all(lists_files)) {
            let message = "`match` applies only to a claim that lists files";
            self.report(Code::BadClaimSetting, name.node, message, "remove the key");
        }
        if let Some((_, node)) =
            settings.allow.as_ref().filter(|_| !all(|kind| kind == ClaimKind::Commands))
        {
            let message = "`allow` applies only to a claim on commands that stand in the result";
            self.report(Code::BadClaimSetting, node, message, "remove the key");
        }
        if let Some(name) = settings.findings.filter(|_| !all(|kind| kind == ClaimKind::Fixed)) {
            let message = "`findings` applies only to a claim that findings are fixed";
            self.report(Code::BadClaimSetting, name.node, message, "remove the key");
        }
        self.reader.findings.len() == before
    }

    fn findings_expression(
        &mut self,
        name: SpannedStr<'n>,
        scope: Option<&Scope>,
    ) -> Option<counterfoil_contract::expr::Expression> {
        let Some(scope) = scope else {
            let message =
                "`findings` is evaluated when a step starts, so it cannot be set on an agent";
            self.report(
                Code::BadClaimSetting,
                name.node,
                message,
                "set it in the state that uses the agent",
            );
            return None;
        };
        let expression = self.expression(name, scope)?;
        if let Err(why) = assignable(expression.ty(), &findings_type()) {
            let message =
                format!("expected a list of objects with the strings `id` and `file`: {why}");
            let hint = "write findings.map(one, {'id': one.id, 'file': one.file})";
            self.report(Code::WrongType, name.node, message, hint);
            return None;
        }
        Some(expression)
    }
}

/// The settings of a claim under `claims:`.
#[derive(Default)]
struct ClaimSettings<'n> {
    policy: Option<ClaimPolicy>,
    matching: Option<(ClaimMatch, SpannedStr<'n>)>,
    run: Option<SpannedStr<'n>>,
    check: Option<SpannedStr<'n>>,
    findings: Option<SpannedStr<'n>>,
    /// The patterns of the commands that may be run.
    allow: Option<(Vec<String>, &'n Node)>,
}

/// The type of `findings`. `file` may be null; whether such a finding is fixed cannot be verified from
/// the changes of the step. `also` names further files whose change counts.
fn findings_type() -> Type {
    let Type::Object(plain) = object([("id", Type::text()), ("file", nullable(Type::text()))])
    else {
        return Type::Any;
    };
    let mut fields = plain.fields.clone();
    fields.insert("also".into(), field(list_of(Type::text()), Presence::Optional, 2));
    list_of(Type::Object(Arc::new(ObjectType { fields, open: true })))
}
