//! The contracts that the server knows: those that its program gives it, and those of runs.

use crate::folders::Folders;
use crate::problem::Problem;
use counterfoil_contract::{Contract, Definition, LoadError};
use counterfoil_flow::Bundle;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// The newest runs whose contracts are known.
const MAX_RUNS: usize = 500;
/// The most workflows whose contracts are known.
const MAX_BUNDLES: usize = 100;
/// How long one request reads workflows. The next one goes on where it stopped.
const MAX_READ: Duration = Duration::from_millis(300);

/// Gives the contracts that are known besides those of runs. It is asked again for each request, so
/// that contracts can change.
pub type ContractSource = dyn Fn() -> Vec<Definition> + Send + Sync;

/// Where a contract comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The program that serves.
    Program,
    /// A run.
    Run,
}

/// A contract. It is compiled when it is needed.
#[derive(Debug)]
pub(crate) struct KnownContract {
    /// The definition.
    pub(crate) definition: Definition,
    /// Where it comes from.
    pub(crate) origin: Origin,
    compiled: OnceLock<Result<Arc<Contract>, LoadError>>,
}

impl KnownContract {
    fn new(definition: Definition, origin: Origin) -> Arc<Self> {
        Arc::new(Self { definition, origin, compiled: OnceLock::new() })
    }

    /// The id with the version.
    pub(crate) fn reference(&self) -> String {
        reference(&self.definition)
    }

    /// The compiled contract.
    pub(crate) fn contract(&self) -> Result<Arc<Contract>, LoadError> {
        let compile = || Contract::compile(self.definition.clone()).map(Arc::new);
        self.compiled.get_or_init(compile).clone()
    }
}

fn reference(definition: &Definition) -> String {
    format!("{}@{}", definition.contract, definition.version)
}

/// The contracts of the program and of runs.
#[derive(Default)]
pub(crate) struct KnownContracts {
    source: Option<Arc<ContractSource>>,
    /// Those of the program, as they were given last.
    given: Mutex<Vec<Arc<KnownContract>>>,
    /// Those of workflows, by the hash of their bundle. A hash stands for the same content for ever.
    bundles: Mutex<HashMap<String, Vec<Arc<KnownContract>>>>,
}

impl fmt::Debug for KnownContracts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("KnownContracts").finish_non_exhaustive()
    }
}

impl KnownContracts {
    pub(crate) fn new(source: Option<Arc<ContractSource>>) -> Self {
        Self { source, ..Self::default() }
    }

    /// All contracts in the order of their ids, the newest version of each first. Of two with the
    /// same id and version, the one of the program counts, else that of the newer run.
    pub(crate) fn all(&self, folders: &Folders) -> Result<Vec<Arc<KnownContract>>, Problem> {
        let mut known: BTreeMap<(String, std::cmp::Reverse<u32>), Arc<KnownContract>> =
            BTreeMap::new();
        let of_runs = self.of_runs(folders)?;
        for contract in self.given().into_iter().chain(of_runs) {
            let Definition { contract: id, version, .. } = &contract.definition;
            known.entry((id.clone(), std::cmp::Reverse(*version))).or_insert(contract);
        }
        Ok(known.into_values().collect())
    }

    /// The contract with an id, as `ID` or `ID@VERSION`. Without a version it is the newest one.
    pub(crate) fn find(
        &self,
        folders: &Folders,
        name: &str,
    ) -> Result<Arc<KnownContract>, Problem> {
        let is_named = |contract: &&Arc<KnownContract>| {
            contract.definition.contract == name || contract.reference() == name
        };
        // With its version, one of the program is the right one.
        if let Some(given) = self.given().iter().find(|contract| contract.reference() == name) {
            return Ok(Arc::clone(given));
        }
        let all = self.all(folders)?;
        all.iter()
            .find(is_named)
            .cloned()
            .ok_or_else(|| Problem::not_found(format!("there is no contract {name}")))
    }

    /// The contracts of the program. One that did not change stays compiled.
    fn given(&self) -> Vec<Arc<KnownContract>> {
        let Some(source) = &self.source else { return Vec::new() };
        let definitions = source();
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same = definitions.len() == given.len()
            && definitions.iter().zip(given.iter()).all(|(new, old)| *new == old.definition);
        if !is_same {
            let contract = |definition| KnownContract::new(definition, Origin::Program);
            *given = definitions.into_iter().map(contract).collect();
        }
        given.clone()
    }

    /// The contracts of the newest runs, those of the newest run first.
    fn of_runs(&self, folders: &Folders) -> Result<Vec<Arc<KnownContract>>, Problem> {
        let engines = folders.engines()?;
        let mut runs = Vec::new();
        for (_, engine) in &engines {
            let newest = engine.journal().runs(Some(MAX_RUNS))?;
            runs.extend(newest.into_iter().map(|info| (info.created_at, info.bundle, engine)));
        }
        runs.sort_by_key(|(created_at, ..)| std::cmp::Reverse(*created_at));
        let started = Instant::now();
        let mut bundles = self.bundles.lock().unwrap_or_else(PoisonError::into_inner);
        let mut seen: HashMap<String, Vec<Arc<KnownContract>>> = HashMap::new();
        let mut found = Vec::new();
        for (_, hash, engine) in runs {
            if seen.contains_key(&hash) {
                continue;
            }
            if seen.len() == MAX_BUNDLES {
                break;
            }
            let contracts = match bundles.remove(&hash) {
                Some(contracts) => contracts,
                None if started.elapsed() >= MAX_READ => continue,
                // A workflow that cannot be read hides no other.
                None => {
                    engine.journal().bundle(&hash).map_or_else(|_| Vec::new(), |bytes| of(&bytes))
                }
            };
            found.extend(contracts.iter().cloned());
            seen.insert(hash, contracts);
        }
        *bundles = seen;
        Ok(found)
    }
}

/// The contracts in a bundle.
fn of(bytes: &[u8]) -> Vec<Arc<KnownContract>> {
    let Ok(bundle) = Bundle::from_bytes(bytes) else { return Vec::new() };
    bundle
        .contracts
        .into_values()
        .map(|definition| KnownContract::new(definition, Origin::Run))
        .collect()
}
