//! The hidden command `counterfoil watch`: it ends agents and checks if the process that drives them
//! is killed.

use crate::exit::Exit;

/// Has the children of this process watched.
pub(crate) fn watch_children() {
    if let Ok(program) = std::env::current_exe() {
        counterfoil_process::watch_with(vec![program.into(), "watch".into()]);
    }
}

pub(crate) fn run() -> Exit {
    counterfoil_process::watch(std::io::stdin().lock());
    Exit::Success
}
