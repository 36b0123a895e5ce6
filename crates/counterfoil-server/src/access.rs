//! Who may ask the server for what: the allowed hosts, the token, the sessions of browsers, and the
//! headers that every answer carries.
//!
//! A request passes through these, in this order ([`crate::routes`]): its host, the protection against
//! requests that another site made a browser send (`tower_http::csrf`), and who sends it. The routes
//! come last.

mod cookie;
mod headers;
mod hosts;
mod secret;
mod session;

pub(crate) use cookie::{cookie_name, session_of};
pub(crate) use headers::add_headers;
pub(crate) use hosts::Hosts;
pub use secret::Token;
pub(crate) use session::Sessions;
