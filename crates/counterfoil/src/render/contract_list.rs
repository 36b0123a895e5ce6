//! The list of contracts.

use super::list::list;
use super::table::Column;
use crate::report::contract::ContractListItem;
use counterfoil_contract::diagnostic::Style;

/// The contracts with their versions, framings, agents and summaries, and the files of those of the
/// project.
pub(crate) fn contract_list(contracts: &[ContractListItem<'_>], style: Style) -> String {
    let columns = [
        Column::wrapping(""),
        Column::fixed(""),
        Column::fixed(""),
        Column::wrapping(""),
        Column::wrapping(""),
    ];
    let rows: Vec<Vec<String>> = contracts.iter().map(row).collect();
    // In a narrow terminal, the summary stands below.
    list(&columns, &rows, 4, style)
}

fn row(contract: &ContractListItem<'_>) -> Vec<String> {
    let note = contract.deprecated.map(|_| "(deprecated)");
    let path = contract.path.map(|path| format!("({path})"));
    let summary = contract.summary.split_whitespace().chain(note).chain(path.as_deref());
    vec![
        contract.id.to_owned(),
        format!("v{}", contract.version),
        contract.framing.name().to_owned(),
        contract.agent.unwrap_or("-").to_owned(),
        summary.collect::<Vec<_>>().join(" "),
    ]
}
