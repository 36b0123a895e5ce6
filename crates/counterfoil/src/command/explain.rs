//! The command `counterfoil explain`.

use crate::cli::ExplainArgs;
use crate::exit::Exit;
use crate::output;
use anyhow::{Result, bail};
use counterfoil_contract::Code;
use counterfoil_flow::Code as WorkflowCode;

pub(crate) fn run(args: &ExplainArgs) -> Result<Exit> {
    let Some(code) = &args.code else {
        let contracts = Code::ALL.iter().map(|code| format!("{code}  {}", code.title()));
        let workflows = WorkflowCode::ALL.iter().map(|code| format!("{code}  {}", code.title()));
        let lines: Vec<String> = contracts.chain(workflows).collect();
        output::write_stdout(&(lines.join("\n") + "\n"))?;
        return Ok(Exit::Success);
    };
    let page = match (code.parse::<Code>(), code.parse::<WorkflowCode>()) {
        (Ok(code), _) => code.page(),
        (_, Ok(code)) => code.page(),
        (Err(error), Err(_)) => bail!("{error}; list all codes with `counterfoil explain`"),
    };
    output::write_markdown(page)?;
    Ok(Exit::Success)
}
