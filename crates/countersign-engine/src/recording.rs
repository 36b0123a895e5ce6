//! Recordings: what agents said in a run and what came of it, as files that can be looked at, kept with a project, and judged again.

pub mod redact;
