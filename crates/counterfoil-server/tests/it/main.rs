//! The server over real connections: who is refused, what the pages and the API answer, and how
//! open pages stay current.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod client;
mod runs;
mod site;

mod activity;
mod bodies;
mod claims;
mod damage;
mod diagrams;
mod diffs;
mod event_pages;
mod events;
mod figures;
mod folders;
mod forgery;
mod headers;
mod hostile;
mod hosts;
mod identity;
mod interruptions;
mod listing;
mod live;
mod offers;
mod outcomes;
mod paths;
mod replies;
mod tool_calls;
mod transcripts;
mod writing;
