//! The checker: reports every problem of a workflow at once, each with its position and a hint.
//!
//! A workflow that passes has no wiring errors at run time: every name is resolved, every expression
//! is type-checked against the contracts, the transitions of every state cover every case, and every
//! cycle is bounded.

mod artifacts;
mod bounds;
mod builtin;
mod checks;
mod claims;
mod contracts;
mod globs;
mod listing;
mod machine;
mod rules;
mod state_graph;
mod step;
mod templates;
mod terms;
mod transitions;
mod types;
mod workspace;

use crate::ast::{self, Reader, SpannedStr};
use crate::bundle::{Bundle, Files};
use crate::finding::{Code, Finding};
use crate::template::Template;
use crate::workflow::{Access, Bounds, CheckUse, ClaimPolicies, Paths, Role, Workflow};
use crate::yaml_tree::{self, Kind, Node};
use counterfoil_contract::expr::Type;
use counterfoil_contract::source::Source;
use counterfoil_contract::suggest::did_you_mean;
use counterfoil_contract::text::{escape_control, escape_names};
use counterfoil_contract::work::{self, MAX_COMPILE_TIME};
use counterfoil_contract::{Contract, Registry};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The error for a workflow that does not pass the checker.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{}", summary_lines(findings))]
pub struct Rejected {
    /// The problems, in the order of the file.
    pub findings: Vec<Finding>,
    /// The texts of the files that were read, by path; the findings refer to them.
    pub files: BTreeMap<String, String>,
}

fn summary_lines(findings: &[Finding]) -> String {
    let lines: Vec<String> = findings
        .iter()
        .map(|finding| {
            let line = finding
                .span
                .map(|span| format!(":{}:{}", span.line, span.column))
                .unwrap_or_default();
            format!(
                "{}{line}: {}: {} ({})",
                escape_control(&finding.file),
                finding.code,
                escape_names(&finding.message),
                escape_control(&finding.hint)
            )
        })
        .collect();
    lines.join("\n")
}

/// Checks a workflow file against the contracts of a registry and the workflow's own contracts.
///
/// # Errors
///
/// Returns every problem found, with the texts of the files read.
pub fn check(file: &str, files: &dyn Files, registry: &Registry) -> Result<Workflow, Rejected> {
    check_with(file, files, registry, OwnContracts::InFiles)
}

/// Whether a text can be the name of a workflow, a state, an agent, a limit or a sub-workflow.
pub fn is_name(text: &str) -> bool {
    text.len() <= 80
        && text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '/'))
}

/// Where the contracts listed under `contracts:` are loaded from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OwnContracts {
    /// From the files that the workflow lists.
    InFiles,
    /// From the registry, which contains the contracts stored with the run.
    InRegistry,
}

/// The finding for a workflow that takes too long to check.
fn too_slow(file: &str) -> Finding {
    let seconds = MAX_COMPILE_TIME.as_secs();
    let message =
        format!("the workflow takes more than {seconds} seconds to check, which ended here");
    Finding::new(Code::WrongForm, file, message, "split it into smaller workflows")
}

fn check_with(
    file: &str,
    files: &dyn Files,
    registry: &Registry,
    own: OwnContracts,
) -> Result<Workflow, Rejected> {
    work::within_processor_time(MAX_COMPILE_TIME, || check_in_time(file, files, registry, own))
}

/// Why a file is no workflow at all, and what helps.
fn no_workflow(root: &Node) -> Option<(String, &'static str)> {
    const NEEDS: &str = "a workflow needs `workflow: name`, `start:` and `states:`";
    let Some(entries) = root.entries() else {
        let message = match root.kind {
            Kind::Null => "the file is empty".to_owned(),
            _ => format!("the file is {}, not a workflow", root.describe()),
        };
        return Some((message, NEEDS));
    };
    let has = |name: &str| entries.iter().any(|(key, _)| key.text() == Some(name));
    (has("contract") && !has("workflow") && !has("states")).then(|| {
        let message = "the file is a contract, not a workflow".to_owned();
        (message, "check it with `counterfoil contract lint`; a workflow names it in `contracts:`")
    })
}

fn check_in_time(
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
            "pass the path of a workflow file",
        )],
        files: BTreeMap::new(),
    })?;
    let root = yaml_tree::parse(&text, file)
        .map_err(|finding| Rejected { findings: vec![finding], files: one_file(file, &text) })?;
    if let Some((message, hint)) = no_workflow(&root) {
        let finding = Finding::new(Code::WrongForm, file, message, hint);
        return Err(Rejected { findings: vec![finding], files: one_file(file, &text) });
    }
    let source = Source::whole(&text);
    let mut reader = Reader { file, text: &text, source: &source, findings: Vec::new() };
    let decl = reader.workflow(&root);
    let mut checker = Checker {
        reader,
        files,
        registry: registry.clone(),
        read: one_file(file, &text),
        contracts: BTreeMap::new(),
        refusing: BTreeMap::new(),
        broken: BTreeSet::new(),
        templates: BTreeMap::new(),
        prompts: BTreeMap::new(),
        agents_used: BTreeSet::new(),
        machines_used: BTreeSet::new(),
        has_unknown_agent: false,
        has_unknown_machine: false,
        signatures: BTreeMap::new(),
        writers: BTreeSet::new(),
        is_stored: own == OwnContracts::InRegistry,
        checks: Vec::new(),
        check_uses: Vec::new(),
        skipped: Vec::new(),
        late: false,
    };
    if own == OwnContracts::InFiles {
        checker.own_contracts(&decl.contracts);
    }
    let workflow = checker.workflow(&decl, &root);
    let workflow = workflow.filter(|_| !checker.is_late(&root));
    let Checker { reader, read, .. } = checker;
    let mut findings = reader.findings;
    match workflow {
        Some(workflow) if findings.is_empty() => Ok(workflow),
        _ => {
            // In the order of the file and without duplicates: several states can cause the same
            // finding in a prompt that they share.
            findings.sort_by_key(|finding| {
                (finding.file != file, finding.file.clone(), finding.span.map(|span| span.start))
            });
            findings.dedup();
            Err(Rejected { findings, files: read })
        }
    }
}

/// Checks the workflow of a run again, from the files and contracts stored with the run.
///
/// # Errors
///
/// Returns every problem found, with the texts of the stored files.
pub fn reload(bundle: &Bundle) -> Result<Workflow, Rejected> {
    let mut registry = Registry::new();
    for definition in bundle.contracts.values() {
        registry.add_stored(definition.clone()).map_err(|error| Rejected {
            findings: vec![Finding::new(
                Code::UnknownContract,
                &bundle.workflow,
                error.to_string(),
                "the run was started by a version that supports this contract: use that version",
            )],
            files: bundle.files.clone(),
        })?;
    }
    let mut workflow =
        check_with(&bundle.workflow, &bundle.files, &registry, OwnContracts::InRegistry)?;
    if bundle.require_claims {
        workflow.require_claims();
    }
    Ok(workflow)
}

fn one_file(name: &str, text: &str) -> BTreeMap<String, String> {
    BTreeMap::from([(name.to_owned(), text.to_owned())])
}

struct Checker<'n> {
    reader: Reader<'n>,
    files: &'n dyn Files,
    registry: Registry,
    /// The texts of the files read so far, by path.
    read: BTreeMap<String, String>,
    /// The contracts used so far, by reference.
    contracts: BTreeMap<String, Arc<Contract>>,
    /// Those that refuse unknown fields for some agents, by reference.
    refusing: BTreeMap<String, Arc<Contract>>,
    /// The workflow's own contracts that do not load; a finding has been reported for each.
    broken: BTreeSet<String>,
    /// The templates compiled so far, by file; `None` for one with reported problems.
    templates: BTreeMap<String, Option<Template>>,
    /// The prompt of each declared agent, including agents with problems.
    prompts: BTreeMap<&'n str, Option<SpannedStr<'n>>>,
    agents_used: BTreeSet<&'n str>,
    machines_used: BTreeSet<&'n str>,
    /// A state names an agent or a sub-workflow that does not exist.
    has_unknown_agent: bool,
    has_unknown_machine: bool,
    /// The inputs and the result type of each sub-workflow.
    signatures: BTreeMap<&'n str, Signature>,
    /// The sub-workflows that contain an agent with write access.
    writers: BTreeSet<&'n str>,
    /// Whether this is the stored workflow of a run. Checks that are stricter than those of the
    /// version that started the run do not apply to it.
    is_stored: bool,
    /// The names of the checks that states run, in the order of the file.
    checks: Vec<String>,
    /// The places that rely on checks.
    check_uses: Vec<CheckUse>,
    /// Files in the folders of contracts that are none.
    skipped: Vec<String>,
    /// Whether the check took too long, and was ended.
    late: bool,
}

/// The inputs and the result type of a sub-workflow.
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

    /// Whether the check takes too long. The first place where this is noticed is reported.
    fn is_late(&mut self, node: &Node) -> bool {
        if !self.late && work::is_over() {
            self.late = true;
            let at = self.reader.source.span(node.start, node.start + 1);
            let finding = too_slow(self.reader.file).at(at);
            self.reader.findings.push(finding);
        }
        self.late
    }

    fn workflow(&mut self, decl: &ast::Workflow<'n>, root: &'n Node) -> Option<Workflow> {
        if let Some(name) = decl.name {
            self.check_name(name, "a workflow");
        }
        self.checks = checks::names(decl);
        let paths = self.paths(decl);
        let agents = self.agents(decl, &paths);
        self.writers = workspace::writers(decl, &agents);
        for (name, machine) in &decl.machines {
            if self.is_late(name.node) {
                return None;
            }
            self.check_name(*name, "a sub-workflow");
            let (inputs, _) = self.inputs(machine);
            let result = machine.result.and_then(|node| self.declared_type(node)).map(|(ty, _)| ty);
            self.signatures.insert(name.text, Signature { inputs, result });
        }
        let main = self.machine("", &decl.main, &agents);
        if let (Some(node), Some(main)) = (decl.protect, &main) {
            self.check_protect_types(node, &main.types);
        }
        let mut machines = BTreeMap::new();
        for (name, machine) in &decl.machines {
            if let Some(machine) = self.machine(name.text, machine, &agents) {
                machines.insert(name.text.to_owned(), machine);
            }
        }
        if self.is_late(root) {
            return None;
        }
        self.check_recursion(decl);
        self.check_nested_workspaces(decl, &agents);
        if decl.main.is_clear() && decl.machines.iter().all(|(_, machine)| machine.is_clear()) {
            self.check_unused(decl);
        }
        let budget = decl.budget.map(|node| self.budget(node)).unwrap_or_default();
        let contracts = self
            .contracts
            .iter()
            .map(|(id, contract)| (id.clone(), contract.definition().clone()))
            .collect();
        Some(Workflow {
            name: decl.name?.text.to_owned(),
            version: decl.version,
            summary: decl.summary.clone(),
            main: main?,
            machines,
            agents,
            budget,
            paths,
            checks: self.checks.clone(),
            check_uses: {
                let mut uses = std::mem::take(&mut self.check_uses);
                uses.sort_by_key(|found| found.span.start);
                uses
            },
            skipped: std::mem::take(&mut self.skipped),
            contract_paths: decl.contracts.iter().map(|path| path.text.to_owned()).collect(),
            bundle: Bundle {
                workflow: self.reader.file.to_owned(),
                files: self.read.clone(),
                contracts,
                require_claims: false,
            },
        })
    }

    /// Reports what is declared and not used, unless a name that is not known may stand for it.
    fn check_unused(&mut self, decl: &ast::Workflow<'n>) {
        for (name, _) in &decl.agents {
            if !self.agents_used.contains(name.text) && !self.has_unknown_agent {
                let message = format!("agent '{}' is never used", name.text);
                self.report(Code::Unused, name.node, message, "use it in a state, or remove it");
            }
        }
        for (name, _) in &decl.machines {
            if !self.machines_used.contains(name.text) && !self.has_unknown_machine {
                let message = format!("sub-workflow '{}' is never run", name.text);
                self.report(Code::Unused, name.node, message, "run it from a state, or remove it");
            }
        }
    }

    /// Checks the name of a state, an agent, a limit or a sub-workflow.
    fn check_name(&mut self, name: SpannedStr<'_>, what: &str) {
        if !is_name(name.text) {
            let message = format!("'{}' is not a valid name for {what}", name.text);
            self.report(
                Code::BadName,
                name.node,
                message,
                "use up to 80 letters, digits, -, _ and /, starting with a letter",
            );
        }
    }

    /// The paths that agents may write, and the policies for violations.
    fn paths(&mut self, decl: &ast::Workflow<'n>) -> Paths {
        Paths {
            writes: decl.writes.map(|node| self.globs(node, "writes")),
            protect: decl.protect.map(|node| self.protected(node)).unwrap_or_default(),
            protection: self.protection(decl.protection),
            tests: self.policy(decl.tests),
        }
    }

    fn agents(&mut self, decl: &ast::Workflow<'n>, paths: &Paths) -> BTreeMap<String, Role> {
        let mut agents = BTreeMap::new();
        for (name, agent) in &decl.agents {
            if self.is_late(name.node) {
                break;
            }
            self.check_name(*name, "an agent");
            self.prompts.insert(name.text, agent.prompt);
            if let Some(role) = self.agent(agent, paths) {
                agents.insert(name.text.to_owned(), role);
            }
        }
        agents
    }

    fn agent(&mut self, agent: &ast::Agent<'n>, paths: &Paths) -> Option<Role> {
        let contract = agent.contract.and_then(|name| self.contract(name));
        if let (Some(name), Some(contract)) = (agent.contract, &contract) {
            self.artifact_contracts(name, contract);
        }
        let contract = contract.map(|contract| self.read_by(contract, agent.unknown_fields));
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
                    format!("'{other}' is not an access mode"),
                    hint,
                );
                Access::default()
            }
        };
        let own = agent.writes.map(|node| self.globs(node, "writes"));
        if let (Access::ReadOnly, Some(node)) = (access, agent.writes) {
            let message = "a read-only agent cannot have `writes`";
            self.report(
                Code::BadClaimSetting,
                node,
                message,
                "remove `writes`, or remove `access: read-only`",
            );
        }
        let writes = match access {
            Access::ReadOnly => Some(Vec::new()),
            Access::WorkspaceWrite => own.or_else(|| paths.writes.clone()),
        };
        let bounds = self.bounds(&agent.settings, Bounds::default());
        let contract = contract?;
        let declared = ClaimPolicies {
            claims: contract.effective_claims(),
            protected: paths.protection,
            tests: paths.tests,
        };
        let policies = self.agent_policies(agent.settings.claims, declared);
        Some(Role { contract, prompt: prompt?, access, writes, claim_policies: policies, bounds })
    }

    /// Reports sub-workflows that run themselves, directly or through others.
    fn check_recursion(&mut self, decl: &ast::Workflow<'n>) {
        let names = decl.machines.iter().enumerate().map(|(at, (name, _))| (name.text, at));
        let index: BTreeMap<&str, usize> = names.collect();
        let called = |machine: &ast::Machine<'n>| -> Vec<usize> {
            called_machines(machine).iter().filter_map(|name| index.get(name).copied()).collect()
        };
        let calls: Vec<Vec<usize>> =
            decl.machines.iter().map(|(_, machine)| called(machine)).collect();
        let component = state_graph::component_of_each(&calls);
        for (at, (name, _)) in decl.machines.iter().enumerate() {
            // A cycle stays in one component, and each step inside of a component is on a cycle.
            if calls[at].iter().any(|to| component[*to] == component[at]) {
                let message = format!("sub-workflow '{}' runs itself", name.text);
                let hint = "use a cycle with a limit instead";
                self.report(Code::Recursive, name.node, message, hint);
            }
        }
    }
}

/// The sub-workflows that the states of a machine run.
fn called_machines<'n>(machine: &ast::Machine<'n>) -> Vec<&'n str> {
    use crate::ast;
    machine
        .states
        .iter()
        .filter_map(|(_, state)| match &state.kind {
            ast::StateKind::Call { machine, .. } => Some(machine.text),
            ast::StateKind::Each(each) => match &each.body {
                Some(ast::Body::Machine { machine, .. }) => Some(machine.text),
                _ => None,
            },
            _ => None,
        })
        .collect()
}
