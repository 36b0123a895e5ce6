//! Setting up, as people meet it: hooks, `init`, `doctor`.
#![allow(clippy::unwrap_used)]

#[path = "setup/doctor.rs"]
mod doctor;
#[path = "setup/hook.rs"]
mod hook;
#[path = "setup/house.rs"]
mod house;
#[path = "setup/init.rs"]
mod init;
