//! Everything that is generated from a contract: the schema with its id, the prompt suffix, the
//! repair prompts, the native schema of each vendor, and a reference page.

mod claims;
pub mod markdown;
pub mod prompt;
pub mod vendor;
