//! The adapters for programs that play agents, over what the real ones were recorded to say.

mod claude;
mod codex;
mod gemini;
mod recorded;
mod records;
