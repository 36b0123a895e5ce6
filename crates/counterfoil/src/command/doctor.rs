//! The command `counterfoil doctor`.

use crate::cli::{DoctorArgs, ListFormat};
use crate::doctor::{diagnose, probe};
use crate::exit::Exit;
use crate::{input, output, render};
use anyhow::Result;

pub(crate) fn run(args: &DoctorArgs) -> Result<Exit> {
    let repo = input::repository(args.repo.as_deref())?;
    let diagnosis = diagnose(&probe(&repo));
    match args.format {
        ListFormat::Json => {
            output::write_json(&diagnosis)?;
        }
        ListFormat::Human => {
            let style = output::stdout_line_style();
            output::write_stdout(&render::doctor::diagnosis(&diagnosis, style))?;
        }
    }
    Ok(diagnosis.ok.into())
}
