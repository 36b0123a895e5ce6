//! The hidden command `counterfoil contained`: it restricts itself, and then becomes the command.

use crate::cli::ContainedArgs;
use crate::exit::Exit;
use crate::output;
use counterfoil_process::contain::{
    self, Access, NOT_CONTAINED, NOT_CONTAINED_PREFIX, Place, Restriction,
};
use std::path::PathBuf;

/// The exit codes of a shell for a program that cannot be executed and for one that does not exist.
#[cfg(target_os = "linux")]
const NOT_EXECUTABLE: u8 = 126;
#[cfg(target_os = "linux")]
const NO_PROGRAM: u8 = 127;

pub(crate) fn run(args: ContainedArgs) -> Exit {
    if args.probe {
        return match contain::probe_here() {
            Ok(landlock) => match output::write_stdout(&format!("{landlock}\n")) {
                Ok(()) => Exit::Success,
                Err(_) => Exit::Failure,
            },
            Err(why) => {
                output::write_stderr(&format!("{why}\n"));
                Exit::Failure
            }
        };
    }
    become_command(&restriction(args))
}

fn restriction(args: ContainedArgs) -> Restriction {
    let place = |access: Access, folder: bool| {
        move |path: PathBuf| {
            let folder = folder && path.is_dir();
            Place { path, access, folder }
        }
    };
    let hidden = |folder: bool| move |path: PathBuf| Place { path, access: Access::Hidden, folder };
    let mut places: Vec<Place> = Vec::new();
    places.extend(args.writes.into_iter().map(place(Access::Write, true)));
    places.extend(args.reads.into_iter().map(place(Access::Read, true)));
    places.extend(args.private.into_iter().map(place(Access::Private, true)));
    places.extend(args.hidden_folders.into_iter().map(hidden(true)));
    places.extend(args.hidden_files.into_iter().map(hidden(false)));
    places.sort_by_key(|place| place.path.components().count());
    Restriction {
        places,
        mounts: args.mounts,
        network: !args.no_network,
        cwd: args.cwd,
        argv: args.argv,
    }
}

#[cfg(target_os = "linux")]
fn become_command(restriction: &Restriction) -> Exit {
    match contain::enter(restriction) {
        contain::EnterError::NotContained(why) => not_contained(&why),
        error @ contain::EnterError::Program { .. } => {
            output::write_stderr(&format!("{error}\n"));
            let contain::EnterError::Program { source, .. } = error else { return Exit::Failure };
            Exit::Own(match source.kind() {
                std::io::ErrorKind::NotFound => NO_PROGRAM,
                _ => NOT_EXECUTABLE,
            })
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn become_command(_: &Restriction) -> Exit {
    not_contained("Landlock is not available on this platform")
}

fn not_contained(why: &str) -> Exit {
    output::write_stderr(&format!("{NOT_CONTAINED_PREFIX}{why}\n"));
    Exit::Own(u8::try_from(NOT_CONTAINED).unwrap_or(u8::MAX))
}
