//! What is known of the conversation with one process, from one prompt to the next.

use super::failure;
use crate::adapters::Server;
use counterfoil_flow::Access;
use std::path::PathBuf;

/// The conversation with one process.
#[derive(Debug)]
pub(super) struct Conversation {
    /// The name of the program, for messages.
    pub(super) program: String,
    /// The folder that the agent works in.
    pub(super) cwd: PathBuf,
    /// What it may do there.
    pub(super) access: Access,
    /// Our server, if it is attached.
    pub(super) server: Option<Server>,
    /// The id of the conversation, once there is one.
    pub(super) session: Option<String>,
    /// How to log in.
    pub(super) login: String,
    last_id: i64,
    /// What it has cost so far, in US dollars.
    pub(super) cost_usd: f64,
}

impl Conversation {
    /// A conversation that has not begun.
    pub(super) fn new(
        program: String,
        cwd: PathBuf,
        access: Access,
        server: Option<Server>,
    ) -> Self {
        let login = failure::login_advice(&program, &[]);
        Self { program, cwd, access, server, session: None, login, last_id: 0, cost_usd: 0.0 }
    }

    /// The id of the next request.
    pub(super) fn next_id(&mut self) -> i64 {
        self.last_id += 1;
        self.last_id
    }
}
