//! `countersign explain`

use crate::cli::ExplainArgs;
use crate::exit::Exit;
use crate::output;
use anyhow::{Result, bail};
use countersign_contract::Code;

pub(crate) fn run(args: &ExplainArgs) -> Result<Exit> {
    let Some(code) = &args.code else {
        let lines: Vec<String> = Code::ALL.iter().map(|code| format!("{code}  {}", code.title())).collect();
        output::data(&(lines.join("\n") + "\n"))?;
        return Ok(Exit::Good);
    };
    match code.parse::<Code>() {
        Ok(code) => {
            output::data(code.page())?;
            Ok(Exit::Good)
        }
        Err(error) => bail!("{error}; `countersign explain` lists all codes"),
    }
}
