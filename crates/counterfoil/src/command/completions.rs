//! The commands `counterfoil completions` and `counterfoil man`.

use crate::cli::Cli;
use crate::exit::Exit;
use crate::output;
use anyhow::Result;
use clap::CommandFactory;

pub(crate) fn completions(shell: clap_complete::Shell) -> Result<Exit> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "counterfoil", &mut text);
    output::write_stdout(&String::from_utf8_lossy(&text))?;
    Ok(Exit::Success)
}

pub(crate) fn man() -> Result<Exit> {
    let mut text = Vec::new();
    clap_mangen::Man::new(Cli::command()).render(&mut text)?;
    output::write_stdout(&String::from_utf8_lossy(&text))?;
    Ok(Exit::Success)
}
