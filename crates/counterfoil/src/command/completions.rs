//! The commands `counterfoil completions` and `counterfoil man`.

use crate::cli::{self, ManArgs};
use crate::exit::Exit;
use crate::{completion, output};
use anyhow::{Context, Result, bail};
use clap_complete::env::Shells;
use counterfoil_contract::text::display_path;

/// Prints the script that makes a shell ask this program for completions.
pub(crate) fn completions(shell: clap_complete::Shell) -> Result<Exit> {
    let name = shell.to_string();
    let shells = Shells::builtins();
    let Some(completer) = shells.iter().find(|shell| shell.name() == name) else {
        bail!("{name} has no completions");
    };
    let mut text = Vec::new();
    let program = "counterfoil";
    completer.write_registration(completion::VARIABLE, program, program, program, &mut text)?;
    output::write_stdout(&String::from_utf8_lossy(&text))?;
    Ok(Exit::Success)
}

/// Prints the manual page of the program, or writes those of all commands to a folder.
pub(crate) fn man(args: &ManArgs) -> Result<Exit> {
    let command = cli::command();
    let Some(folder) = &args.write else {
        let mut text = Vec::new();
        clap_mangen::Man::new(command).render(&mut text)?;
        output::write_stdout(&String::from_utf8_lossy(&text))?;
        return Ok(Exit::Success);
    };
    let shown = display_path(folder);
    std::fs::create_dir_all(folder).with_context(|| format!("cannot create {shown}"))?;
    clap_mangen::generate_to(command, folder)
        .with_context(|| format!("cannot write the manual pages to {shown}"))?;
    output::write_stderr(&format!("manual pages written to {shown}\n"));
    Ok(Exit::Success)
}
