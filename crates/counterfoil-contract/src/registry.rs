//! Contracts by id, version and alias.

use crate::code::Code;
use crate::compile::{Origin, compile};
use crate::contract::Contract;
use crate::definition::Definition;
use crate::problem::{LoadError, Problem};
use crate::suggest::did_you_mean;
use crate::text::escape_control;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

/// A contract of a registry. It is compiled on demand.
#[derive(Clone, Debug)]
pub struct Entry {
    definition: Arc<Definition>,
    origin: Origin,
    compiled: Arc<OnceLock<Result<Arc<Contract>, LoadError>>>,
}

impl Entry {
    /// The definition of the contract.
    pub fn definition(&self) -> &Definition {
        &self.definition
    }

    /// The compiled contract. It is compiled by the first call.
    ///
    /// # Errors
    ///
    /// If the definition does not compile.
    pub fn contract(&self) -> Result<Arc<Contract>, LoadError> {
        let compiled = || compile((*self.definition).clone(), self.origin).map(Arc::new);
        self.compiled.get_or_init(compiled).clone()
    }
}

/// No contract, or no version of it, has this id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{}{} ({})",
    escape_control(message),
    hint.as_ref().map(|hint| format!("; {}", escape_control(hint))).unwrap_or_default(),
    Code::UnknownContract
)]
pub struct NotFound {
    /// The problem, in a sentence.
    pub message: String,
    /// A similar id, or the versions that exist.
    pub hint: Option<String>,
}

/// Why a registry has no compiled contract for a reference.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ResolveError {
    /// There is no such contract.
    #[error(transparent)]
    NotFound(#[from] NotFound),
    /// The contract does not compile.
    #[error(transparent)]
    Load(#[from] LoadError),
}

/// Contracts by id, version and alias.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    entries: BTreeMap<String, BTreeMap<u32, Entry>>,
    aliases: BTreeMap<String, String>,
}

impl Registry {
    /// An empty registry.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a contract.
    ///
    /// # Errors
    ///
    /// If the id with this version, or an alias, is taken.
    pub fn add(&mut self, definition: Definition) -> Result<(), LoadError> {
        self.add_from(definition, Origin::Author)
    }

    /// Adds a contract that is stored with a run, which [`Contract::compile_stored`] compiles.
    ///
    /// # Errors
    ///
    /// If the id with this version, or an alias, is taken.
    pub fn add_stored(&mut self, definition: Definition) -> Result<(), LoadError> {
        self.add_from(definition, Origin::Store)
    }

    fn add_from(&mut self, definition: Definition, origin: Origin) -> Result<(), LoadError> {
        let (id, version) = (definition.contract.clone(), definition.version);
        let taken = |what: String| {
            LoadError::one(
                &id,
                Problem::new(
                    Code::DuplicateContract,
                    "contract",
                    what,
                    "choose another id or raise the version",
                ),
            )
        };
        if self.entries.get(&id).is_some_and(|versions| versions.contains_key(&version)) {
            return Err(taken(format!("{id}@{version} is defined twice")));
        }
        if let Some(owner) = self.aliases.get(&id) {
            return Err(taken(format!("'{id}' is an alias of {owner}")));
        }
        for alias in &definition.aliases {
            if self.entries.contains_key(alias) {
                return Err(taken(format!("the alias '{alias}' is the id of another contract")));
            }
            if let Some(owner) = self.aliases.get(alias).filter(|owner| **owner != id) {
                return Err(taken(format!("the alias '{alias}' belongs to {owner}")));
            }
        }
        for alias in &definition.aliases {
            self.aliases.insert(alias.clone(), id.clone());
        }
        let entry = Entry { definition: Arc::new(definition), origin, compiled: Arc::default() };
        self.entries.entry(id).or_default().insert(version, entry);
        Ok(())
    }

    /// The newest version of every contract, by id.
    pub fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.entries.values().filter_map(|versions| versions.values().next_back())
    }

    /// Every version of every contract.
    pub fn all(&self) -> impl Iterator<Item = &Entry> {
        self.entries.values().flat_map(BTreeMap::values)
    }

    /// The entry of `id`, `id@version` or an alias.
    ///
    /// # Errors
    ///
    /// If there is no such contract or version.
    ///
    /// # Errors
    ///
    /// If there is no such contract or version.
    pub fn find(&self, reference: &str) -> Result<&Entry, NotFound> {
        let (name, version) = match reference.split_once('@') {
            Some((name, version)) => {
                let number = version.parse::<u32>().map_err(|_| NotFound {
                    message: format!("'{version}' is not a version"),
                    hint: Some(format!("versions are integers, as in {name}@1")),
                })?;
                (name, Some(number))
            }
            None => (reference, None),
        };
        // An alias may be written with the namespace of its contract.
        let qualified_alias = name.split_once('/').and_then(|(namespace, alias)| {
            let id = self.aliases.get(alias)?;
            id.strip_prefix(namespace).is_some_and(|rest| rest.starts_with('/')).then_some(id)
        });
        let id = self.aliases.get(name).or(qualified_alias).map_or(name, String::as_str);
        let Some(versions) = self.entries.get(id) else {
            let known = self.entries.keys().chain(self.aliases.keys()).map(String::as_str);
            return Err(NotFound {
                message: format!("no contract is called '{name}'"),
                hint: did_you_mean(name, known),
            });
        };
        match version {
            None => versions.values().next_back(),
            Some(version) => versions.get(&version),
        }
        .ok_or_else(|| NotFound {
            message: format!("{id} has no version {}", version.unwrap_or_default()),
            hint: Some(format!(
                "it has {}",
                versions.keys().map(ToString::to_string).collect::<Vec<_>>().join(", ")
            )),
        })
    }

    /// The compiled contract of `id`, `id@version` or an alias.
    ///
    /// # Errors
    ///
    /// If there is no such contract or version, or if it does not compile.
    ///
    /// # Errors
    ///
    /// If there is no such contract or version, or if it does not compile.
    pub fn get(&self, reference: &str) -> Result<Arc<Contract>, ResolveError> {
        Ok(self.find(reference)?.contract()?)
    }
}
