//! Setting up a project: hooks, `init`, `doctor`.

mod doctor;
mod hook;
mod init;
mod project;
