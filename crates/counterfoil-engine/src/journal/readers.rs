//! The connections that read the journal. Readers in several threads do not wait for each other.

use super::error::Result;
use super::schema;
use super::{Error, Settings};
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// How many connections beside the main one are kept open.
const MAX_IDLE: usize = 3;

/// The main connection, and those that were opened because it was in use.
#[derive(Debug)]
pub(super) struct Readers {
    path: PathBuf,
    settings: Settings,
    main: Mutex<Connection>,
    idle: Mutex<Vec<Connection>>,
}

/// A poisoned lock is harmless: reading leaves no inconsistent state.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Readers {
    pub(super) fn new(main: Connection, path: &Path, settings: &Settings) -> Self {
        let (path, settings) = (path.to_owned(), settings.clone());
        Self { path, settings, main: Mutex::new(main), idle: Mutex::default() }
    }

    /// Reads with any connection: one that is free, or a new one.
    pub(super) fn read<T>(
        &self,
        query: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T> {
        let main = match self.main.try_lock() {
            Ok(main) => Some(main),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        };
        let read = if let Some(main) = main {
            query(&main)
        } else {
            // Not in the condition, where the list would stay locked.
            let idle = lock(&self.idle).pop();
            let connection = match idle {
                Some(connection) => connection,
                None => schema::open_to_read(&self.path, &self.settings)?.connection,
            };
            let read = query(&connection);
            let mut idle = lock(&self.idle);
            if idle.len() < MAX_IDLE {
                idle.push(connection);
            }
            read
        };
        read.map_err(|error| Error::store(&self.path, &error))
    }

    /// Reads with the main connection: the versions of data that `SQLite` tells can be compared only
    /// within one.
    pub(super) fn read_with_main<T>(
        &self,
        query: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T> {
        query(&lock(&self.main)).map_err(|error| Error::store(&self.path, &error))
    }
}
