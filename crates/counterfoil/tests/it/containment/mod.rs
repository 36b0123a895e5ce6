//! Containment of commands, checks and command agents: what an attack reaches without it, with
//! bwrap, and with Landlock. Real processes; docs/security.md has the table.

mod project;

mod attacks;
mod checks;
mod supervision;
mod unavailable;
