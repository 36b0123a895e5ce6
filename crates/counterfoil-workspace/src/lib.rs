//! The repository that agents work in: git, snapshots of the work tree, separate worktrees for
//! attempts that write at the same time, and merging those back.

mod atomic_write;
mod file_identity;
pub mod git;
mod no_room;
pub mod path;
pub mod refs;
pub mod snapshot;
pub mod workspaces;

pub use atomic_write::{
    Durability, atomic_write, atomic_write_with, make_private_folder, save_json,
};
pub use no_room::NoRoom;
pub use path::folder_names;
pub use workspaces::Workspaces;
