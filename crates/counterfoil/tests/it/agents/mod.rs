//! The real command lines of the agents, driven by the real binary, with a mock of the vendors'
//! APIs: nothing leaves the machine. testing/README.md describes how they are installed.

mod mock;
mod project;

mod accepted;
mod acp;
mod acp_scripted;
mod channels;
mod checks;
mod continuing;
mod execution_loop;
mod fakes;
mod feature_pipeline;
mod gated_team;
mod hooks;
mod install;
mod money;
mod overnight;
mod permissions;
mod results;
mod review_fix;
mod spec_pipeline;
mod stops;
mod trouble;
mod watching;
