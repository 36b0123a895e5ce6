//! What one contract yields besides its verdicts: the schema with its id, the prompt suffix, the
//! repair prompt, each vendor's native schema, a reference page. Pure text: nothing here decides
//! anything.

mod claims;
pub mod markdown;
pub mod prompt;
pub mod vendor;
