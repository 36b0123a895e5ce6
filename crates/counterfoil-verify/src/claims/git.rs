//! Asks git in the workspace, on a thread where it may take its time.

use super::World;
use counterfoil_workspace::git::{Answer, Call};

/// Runs git in the workspace's folder; if that cannot be done, why.
pub(super) async fn git(
    arguments: &[&str],
    stdin: Vec<u8>,
    world: &World<'_>,
) -> Result<Answer, String> {
    let call = Call::new(world.folder, arguments).stdin(stdin);
    let asked = tokio::task::spawn_blocking(move || call.ask());
    asked.await.map_err(|error| error.to_string())?.map_err(|failure| failure.to_string())
}
