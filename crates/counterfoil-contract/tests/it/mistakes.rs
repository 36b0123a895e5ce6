//! Runs the cases of `mistakes.yaml`: contracts that do not load, or load with a warning.

use counterfoil_contract::Contract;
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// The beginning of every contract, as YAML.
    contract: String,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    /// The lines that follow.
    lines: String,
    /// The problems with which the contract does not load.
    #[serde(default)]
    refused: Vec<String>,
    /// The warnings about a contract that loads.
    #[serde(default)]
    warned: Vec<String>,
}

#[test]
fn every_mistake_of_a_contract_is_named() {
    let file: File = serde_saphyr::from_str(include_str!("mistakes.yaml")).unwrap();
    for case in &file.cases {
        let yaml = format!("{}\n{}", file.contract, case.lines);
        let (refused, warned) = match Contract::from_yaml(&yaml) {
            Ok(contract) => (Vec::new(), contract.lint()),
            Err(error) => (error.problems, Vec::new()),
        };
        let texts = |problems: Vec<counterfoil_contract::Problem>| -> Vec<String> {
            problems.iter().map(ToString::to_string).collect()
        };
        assert_eq!(texts(refused), case.refused, "{}", case.name);
        assert_eq!(texts(warned), case.warned, "{}", case.name);
    }
}
