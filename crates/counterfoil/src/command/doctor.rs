//! `counterfoil doctor`

use crate::cli::{DoctorArgs, ListFormat};
use crate::doctor::{judge, look};
use crate::exit::Exit;
use crate::{input, output, tell};
use anyhow::Result;

pub(crate) fn run(args: &DoctorArgs) -> Result<Exit> {
    let repo = input::repository(args.repo.as_deref())?;
    let diagnosis = judge(&look(&repo));
    match args.format {
        ListFormat::Json => output::data(&(serde_json::to_string_pretty(&diagnosis)? + "\n"))?,
        ListFormat::Human => {
            output::data(&tell::doctor::diagnosis(&diagnosis, output::style_of_data()))?
        }
    }
    Ok(diagnosis.ok.into())
}
