//! The checker: everything that is wrong with a workflow, all at once, each with its place and a
//! way out.
//!
//! A workflow that passes cannot fail on wiring at run time: every name is resolved, every
//! expression typed against the contracts, every list of branches total, every cycle bounded.

mod artifacts;
mod bounds;
mod claims;
mod deed;
mod globs;
mod graph;
mod listing;
mod machine;
mod moves;
mod rules;
mod space;
mod step;
mod templates;
mod terms;
mod types;

pub(crate) use claims::NO_CLAIM;
pub(crate) use moves::problem_type;
pub(crate) use types::run_seen_by_artifacts;

use crate::bundle::{Bundle, Files};
use crate::draft::{AgentDraft, Draft, KindDraft, MachineDraft, Name, Reader};
use crate::finding::{Code, Finding};
use crate::template::Template;
use crate::tree::{self, Kind, Node};
use crate::workflow::{Access, Bounds, ClaimPolicies, Paths, Role, Workflow};
use counterfoil_contract::{Contract, Registry, Source, Type, did_you_mean};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A workflow that does not pass: what is wrong, and the texts that the findings point into.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{}", summarise(findings))]
pub struct Rejected {
    /// What is wrong, in the order of the file.
    pub findings: Vec<Finding>,
    /// The files that were read, by path.
    pub files: BTreeMap<String, String>,
}

fn summarise(findings: &[Finding]) -> String {
    let lines: Vec<String> = findings
        .iter()
        .map(|finding| {
            let line = finding
                .span
                .map(|span| format!(":{}:{}", span.line, span.column))
                .unwrap_or_default();
            format!(
                "{}{line}: {}: {} ({})",
                finding.file, finding.code, finding.message, finding.hint
            )
        })
        .collect();
    lines.join("\n")
}

/// Checks a workflow file against the contracts of a registry and those it brings along.
pub fn check(file: &str, files: &dyn Files, registry: &Registry) -> Result<Workflow, Rejected> {
    check_with(file, files, registry, OwnContracts::InFiles)
}

/// Where the contracts are that a workflow brings along.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OwnContracts {
    /// In the files it names.
    InFiles,
    /// In the registry, from what a run kept.
    InRegistry,
}

fn check_with(
    file: &str,
    files: &dyn Files,
    registry: &Registry,
    own: OwnContracts,
) -> Result<Workflow, Rejected> {
    let text = files.read(file).map_err(|why| Rejected {
        findings: vec![Finding::new(
            Code::MissingFile,
            file,
            format!("cannot read the workflow: {why}"),
            "name a workflow file",
        )],
        files: BTreeMap::new(),
    })?;
    let root = tree::read(&text, file)
        .map_err(|finding| Rejected { findings: vec![finding], files: one_file(file, &text) })?;
    if root.entries().is_none() {
        let message = match root.kind {
            Kind::Null => "the file is empty".to_owned(),
            _ => format!("the file is {}, not a workflow", root.name()),
        };
        let finding = Finding::new(
            Code::WrongForm,
            file,
            message,
            "begin with `workflow: name`, `start:` and `states:`",
        );
        return Err(Rejected { findings: vec![finding], files: one_file(file, &text) });
    }
    let source = Source::whole(&text);
    let mut reader = Reader { file, text: &text, source: &source, findings: Vec::new() };
    let draft = reader.draft(&root);
    let mut checker = Checker {
        reader,
        files,
        registry: registry.clone(),
        read: one_file(file, &text),
        contracts: BTreeMap::new(),
        broken: BTreeSet::new(),
        templates: BTreeMap::new(),
        prompts: BTreeMap::new(),
        agents_used: BTreeSet::new(),
        machines_used: BTreeSet::new(),
        signatures: BTreeMap::new(),
        writers: BTreeSet::new(),
        kept: own == OwnContracts::InRegistry,
    };
    if own == OwnContracts::InFiles {
        checker.own_contracts(&draft.contracts);
    }
    let workflow = checker.workflow(&draft, &root);
    let Checker { reader, read, .. } = checker;
    let mut findings = reader.findings;
    match workflow {
        Some(workflow) if findings.is_empty() => Ok(workflow),
        _ => {
            // In the order of the file, and each once: one prompt can be wrong in the same way for
            // several states.
            findings.sort_by_key(|finding| {
                (finding.file != file, finding.file.clone(), finding.span.map(|span| span.start))
            });
            findings.dedup();
            Err(Rejected { findings, files: read })
        }
    }
}

/// The workflow of a run, from what the run kept.
pub fn reload(bundle: &Bundle) -> Result<Workflow, Rejected> {
    let mut registry = Registry::new();
    for definition in bundle.contracts.values() {
        registry.add(definition.clone()).map_err(|error| Rejected {
            findings: vec![Finding::new(
                Code::UnknownContract,
                &bundle.workflow,
                error.to_string(),
                "the run was started by a program that knew this contract: use that version",
            )],
            files: bundle.files.clone(),
        })?;
    }
    check_with(&bundle.workflow, &bundle.files, &registry, OwnContracts::InRegistry)
}

fn one_file(name: &str, text: &str) -> BTreeMap<String, String> {
    BTreeMap::from([(name.to_owned(), text.to_owned())])
}

struct Checker<'n> {
    reader: Reader<'n>,
    files: &'n dyn Files,
    registry: Registry,
    /// The files read so far.
    read: BTreeMap<String, String>,
    /// The contracts used so far.
    contracts: BTreeMap<String, Arc<Contract>>,
    /// Contracts of its own that do not load, which was reported.
    broken: BTreeSet<String>,
    /// The templates compiled so far; `None` for one that was reported.
    templates: BTreeMap<String, Option<Template>>,
    /// The prompt of each declared agent, also of those that do not hold together.
    prompts: BTreeMap<&'n str, Option<Name<'n>>>,
    agents_used: BTreeSet<&'n str>,
    machines_used: BTreeSet<&'n str>,
    /// What each sub-workflow takes and gives.
    signatures: BTreeMap<&'n str, Signature>,
    /// The sub-workflows in which an agent can write.
    writers: BTreeSet<&'n str>,
    /// Whether this is the workflow of a run: what was good when it began is good now.
    kept: bool,
}

/// What a sub-workflow takes and gives.
struct Signature {
    inputs: BTreeMap<String, crate::workflow::Input>,
    result: Option<Type>,
}

impl<'n> Checker<'n> {
    fn report(
        &mut self,
        code: Code,
        node: &Node,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.reader.report(code, node, message, hint);
    }

    fn workflow(&mut self, draft: &Draft<'n>, root: &'n Node) -> Option<Workflow> {
        if let Some(name) = draft.name {
            self.plain_name(name, "a workflow");
        }
        let paths = self.paths(draft);
        let agents = self.agents(draft, &paths);
        self.writers = space::writers(draft, &agents);
        for (name, machine) in &draft.machines {
            self.plain_name(*name, "a sub-workflow");
            let (inputs, _) = self.inputs(machine);
            let result = machine.result.and_then(|node| self.type_of(node)).map(|(ty, _)| ty);
            self.signatures.insert(name.text, Signature { inputs, result });
        }
        let main = self.machine("", &draft.main, &agents);
        if let (Some(node), Some(main)) = (draft.protect, &main) {
            self.protected_by(node, &main.types);
        }
        let mut machines = BTreeMap::new();
        for (name, machine) in &draft.machines {
            if let Some(machine) = self.machine(name.text, machine, &agents) {
                machines.insert(name.text.to_owned(), machine);
            }
        }
        self.recursion(draft);
        self.nested(draft, &agents);
        // A state that is two things may be what uses them.
        let clear = |machine: &MachineDraft<'_>| {
            !machine.states.iter().any(|(_, state)| matches!(state.kind, KindDraft::Unclear))
        };
        if clear(&draft.main) && draft.machines.iter().all(|(_, machine)| clear(machine)) {
            self.unused(draft);
        }
        let budget = draft.budget.map(|node| self.budget(node)).unwrap_or_default();
        if draft.main.states.is_empty() {
            self.report(Code::MissingKey, root, "the workflow has no states", "add `states:`");
        }
        let contracts = self
            .contracts
            .iter()
            .map(|(id, contract)| (id.clone(), contract.definition().clone()))
            .collect();
        Some(Workflow {
            name: draft.name?.text.to_owned(),
            version: draft.version,
            summary: draft.summary.clone(),
            main: main?,
            machines,
            agents,
            budget,
            paths,
            bundle: Bundle {
                workflow: self.reader.file.to_owned(),
                files: self.read.clone(),
                contracts,
            },
        })
    }

    fn unused(&mut self, draft: &Draft<'n>) {
        for (name, _) in &draft.agents {
            if !self.agents_used.contains(name.text) {
                let message = format!("agent '{}' does nothing in this workflow", name.text);
                self.report(Code::Unused, name.node, message, "use it in a state, or take it out");
            }
        }
        for (name, _) in &draft.machines {
            if !self.machines_used.contains(name.text) {
                let message = format!("sub-workflow '{}' is never run", name.text);
                self.report(
                    Code::Unused,
                    name.node,
                    message,
                    "run it from a state, or take it out",
                );
            }
        }
    }

    /// Names of states, agents, limits: letters, digits, `-` and `_`.
    fn plain_name(&mut self, name: Name<'_>, what: &str) {
        let good = name.text.len() <= 80
            && name.text.starts_with(|first: char| first.is_ascii_alphabetic())
            && name.text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '/'));
        if !good {
            let message = format!("'{}' cannot be the name of {what}", name.text);
            self.report(
                Code::BadName,
                name.node,
                message,
                "use letters, digits, - and _, at most 80, a letter first",
            );
        }
    }

    fn own_contracts(&mut self, paths: &[Name<'n>]) {
        let mut added_from = Vec::new();
        for path in paths {
            let files = match self.files.list(path.text) {
                Ok(files) => files,
                Err(why) => {
                    let message = format!("cannot read contracts from {}: {why}", path.text);
                    self.report(
                        Code::MissingFile,
                        path.node,
                        message,
                        "paths are relative to the workflow file",
                    );
                    continue;
                }
            };
            for file in files {
                let added = self.files.read(&file).and_then(|text| {
                    let definition = counterfoil_contract::Definition::from_yaml(&text, &file);
                    let definition = definition.map_err(|error| error.to_string())?;
                    let id = definition.contract.clone();
                    self.registry.add(definition).map_err(|error| error.to_string())?;
                    Ok(id)
                });
                match added {
                    Ok(id) => added_from.push((id, file, path.node)),
                    Err(why) => {
                        let hint = format!("`counterfoil contract lint {file}` says more");
                        self.report(Code::MissingFile, path.node, format!("{file}: {why}"), hint);
                    }
                }
            }
        }
        // One that does not hold together is found here, used or not.
        for (id, file, node) in added_from {
            if let Err(counterfoil_contract::ResolveError::Load(error)) = self.registry.get(&id) {
                let hint = format!("`counterfoil contract lint {file}` says more");
                self.report(Code::MissingFile, node, format!("{file}: {error}"), hint);
                self.broken.insert(id);
            }
        }
    }

    fn contract(&mut self, name: Name<'n>) -> Option<Arc<Contract>> {
        match self.registry.get(name.text) {
            Ok(contract) => {
                self.contracts.insert(contract.reference().to_owned(), contract.clone());
                Some(contract)
            }
            Err(counterfoil_contract::ResolveError::NotFound(error)) => {
                let hint = error
                    .hint
                    .clone()
                    .unwrap_or_else(|| "`counterfoil contract list` shows all".into());
                self.report(Code::UnknownContract, name.node, error.message, hint);
                None
            }
            Err(counterfoil_contract::ResolveError::Load(_)) if self.broken.contains(name.text) => {
                None
            }
            Err(counterfoil_contract::ResolveError::Load(error)) => {
                let message = format!("contract '{}' does not load: {error}", name.text);
                self.report(
                    Code::UnknownContract,
                    name.node,
                    message,
                    "`counterfoil contract lint` says more",
                );
                None
            }
        }
    }

    /// A run keeps the contracts that its claims hold artifacts to, as it keeps those of its
    /// agents.
    fn contracts_of_artifacts(&mut self, name: Name<'n>, contract: &Contract) {
        for (field, claim) in &contract.definition().claims {
            let Some(id) = &claim.contract else { continue };
            match self.registry.get(id) {
                Ok(found) => {
                    self.contracts.insert(found.reference().to_owned(), found);
                }
                Err(error) => {
                    let whose = contract.reference();
                    let message =
                        format!("the claim `{field}` of {whose} holds a file to '{id}': {error}");
                    let hint =
                        "add that contract to the folders in `contracts:`, or correct the claim";
                    self.report(Code::UnknownContract, name.node, message, hint);
                }
            }
        }
    }

    /// What agents may write, and what follows if they write something else.
    fn paths(&mut self, draft: &Draft<'n>) -> Paths {
        Paths {
            writes: draft.writes.map(|node| self.globs(node, "writes")),
            protect: draft.protect.map(|node| self.protected(node)).unwrap_or_default(),
            protection: self.protection(draft.protection),
            tests: self.policy(draft.tests),
        }
    }

    fn agents(&mut self, draft: &Draft<'n>, paths: &Paths) -> BTreeMap<String, Role> {
        let mut agents = BTreeMap::new();
        for (name, agent) in &draft.agents {
            self.plain_name(*name, "an agent");
            self.prompts.insert(name.text, agent.prompt);
            if let Some(role) = self.agent(agent, paths) {
                agents.insert(name.text.to_owned(), role);
            }
        }
        agents
    }

    fn agent(&mut self, agent: &AgentDraft<'n>, paths: &Paths) -> Option<Role> {
        let contract = agent.contract.and_then(|name| self.contract(name));
        if let (Some(name), Some(contract)) = (agent.contract, &contract) {
            self.contracts_of_artifacts(name, contract);
        }
        let prompt = agent.prompt.and_then(|name| self.file_template(name));
        let access = match agent.access.map(|name| (name, name.text)) {
            None => Access::default(),
            Some((_, "read-only")) => Access::ReadOnly,
            Some((_, "workspace-write")) => Access::WorkspaceWrite,
            Some((name, other)) => {
                let hint = did_you_mean(other, ["read-only", "workspace-write"])
                    .unwrap_or_else(|| "write read-only or workspace-write".into());
                self.report(
                    Code::WrongForm,
                    name.node,
                    format!("'{other}' is not an access"),
                    hint,
                );
                Access::default()
            }
        };
        let own = agent.writes.map(|node| self.globs(node, "writes"));
        if let (Access::ReadOnly, Some(node)) = (access, agent.writes) {
            let message = "the agent only reads, so there is nowhere it may write";
            self.report(
                Code::BadHolding,
                node,
                message,
                "take `writes` out, or `access: read-only`",
            );
        }
        let writes = match access {
            Access::ReadOnly => Some(Vec::new()),
            Access::WorkspaceWrite => own.or_else(|| paths.writes.clone()),
        };
        let bounds = self.bounds(&agent.settings, Bounds::default());
        let contract = contract?;
        let declared = ClaimPolicies {
            claims: contract.held_claims(),
            protected: paths.protection,
            tests: paths.tests,
        };
        let holding = self.holding(agent.settings.claims, declared);
        let suffix = counterfoil_contract::render::prompt::suffix(&contract);
        Some(Role {
            contract,
            prompt: prompt?,
            suffix,
            access,
            writes,
            claim_policies: holding,
            bounds,
        })
    }

    /// A sub-workflow that contains itself would never end.
    fn recursion(&mut self, draft: &Draft<'n>) {
        let calls: BTreeMap<&str, Vec<&str>> =
            draft.machines.iter().map(|(name, machine)| (name.text, called(machine))).collect();
        for (name, _) in &draft.machines {
            let mut open = calls.get(name.text).cloned().unwrap_or_default();
            let mut seen = BTreeSet::new();
            while let Some(next) = open.pop() {
                if next == name.text {
                    let message = format!("sub-workflow '{}' contains itself", name.text);
                    self.report(
                        Code::Recursive,
                        name.node,
                        message,
                        "use a loop with a limit instead",
                    );
                    break;
                }
                if seen.insert(next) {
                    open.extend(calls.get(next).into_iter().flatten());
                }
            }
        }
    }
}

fn called<'n>(machine: &MachineDraft<'n>) -> Vec<&'n str> {
    use crate::draft::BodyDraft;
    machine
        .states
        .iter()
        .filter_map(|(_, state)| match &state.kind {
            KindDraft::Call { machine, .. } => Some(machine.text),
            KindDraft::Each(each) => match &each.body {
                Some(BodyDraft::Machine { machine, .. }) => Some(machine.text),
                _ => None,
            },
            _ => None,
        })
        .collect()
}
