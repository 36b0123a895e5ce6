//! Runs git in the workspace on a thread that may block.

use super::VerifyContext;
use counterfoil_workspace::git::{GitCommand, GitOutput};
use counterfoil_workspace::refs::READ_COMMITS_THEMSELVES;

/// Runs git in the workspace's folder.
pub(super) async fn git(
    arguments: &[&str],
    stdin: Vec<u8>,
    context: &VerifyContext<'_>,
) -> Result<GitOutput, String> {
    // Grafts could hide which commits are old.
    let call =
        GitCommand::new(context.folder, arguments).env("GIT_GRAFT_FILE", "/dev/null").stdin(stdin);
    let call = READ_COMMITS_THEMSELVES.into_iter().fold(call, GitCommand::config);
    let asked = tokio::task::spawn_blocking(move || call.output());
    asked.await.map_err(|error| error.to_string())?.map_err(|failure| failure.to_string())
}
