//! Fixtures for tests that run the binary in temporary projects. Any crate may use them.
//!
//! [`TestProject`] is a temporary repository with helpers to write files, call git and run the
//! binary. [`CommandOutput`] and [`RunOutput`] are what a command printed, and [`normalize`] replaces
//! what differs from one run to the next. This crate depends on no other crate of the workspace, so
//! it compiles early; a test binary passes the path of the program itself:
//!
//! ```ignore
//! let project = TestProject::new(env!("CARGO_BIN_EXE_counterfoil"));
//! project.write("flow.yaml", WORKFLOW);
//! let output = project.run(&["run", "flow.yaml"]);
//! assert_eq!(output.code, Some(0), "{output:?}");
//! ```
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::missing_panics_doc,
    reason = "a fixture that cannot be set up fails the test"
)]

mod command;
mod files;
mod git;
mod mock_server;
pub mod normalize;
mod output;
mod process;
mod project;
mod real_clis;
mod script;
mod temp;

pub use command::{RunningCommand, TestCommand};
pub use files::{FileTree, changed_paths, read_tree, write_executable};
pub use git::git_command;
pub use mock_server::{MockServer, ModelRequest, mock_server_command};
pub use output::{CommandOutput, RunOutput};
pub use process::{TIMEOUT, processes_in_attempts, send_signal, wait_until};
pub use project::TestProject;
pub use real_clis::{installed_browser, installed_clis, report_skip, testing_dir};
pub use script::AgentScript;
pub use temp::memory_dir;
