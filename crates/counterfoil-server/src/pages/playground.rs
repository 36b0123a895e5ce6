//! A page to try out contracts: it checks a text while it is typed.

use super::{Rendered, Section};
use crate::checking::{MAX_CONTRACT, MAX_TEXT};
use crate::format;
use crate::problem::Problem;
use crate::site::Site;
use askama::Template;
use serde::Deserialize;
use std::sync::Arc;

/// The query of the page.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Query {
    /// The contract that is chosen at first.
    contract: String,
}

/// The form.
#[derive(Template)]
#[template(path = "playground.html")]
struct Playground {
    contracts: Vec<Choice>,
    /// The definition of the contract that is chosen.
    yaml: String,
    max_text: usize,
    max_contract: usize,
}

struct Choice {
    reference: String,
    label: String,
    is_current: bool,
}

/// What is checked first if no contract is known.
const EXAMPLE: &str = "contract: example/review
version: 1
summary: What a review found
fields:
  approved: boolean
  findings:
    - file: string
      line: integer
      problem: string
";

pub(super) fn render(site: &Arc<Site>, query: &Query) -> Result<Rendered, Problem> {
    let known = site.contracts.all(&site.folders)?;
    let chosen = if query.contract.is_empty() {
        None
    } else {
        Some(site.contracts.find(&site.folders, &query.contract)?)
    };
    let current = chosen.as_ref().map(|contract| contract.reference());
    let contracts = known.iter().map(|contract| {
        let reference = contract.reference();
        let summary = format::cell(&contract.definition.summary);
        let name = format::cell(&reference);
        Choice {
            label: if summary.is_empty() { name } else { format!("{name}: {summary}") },
            is_current: current.as_ref() == Some(&reference),
            reference,
        }
    });
    let page = Playground {
        contracts: contracts.collect(),
        yaml: match &chosen {
            Some(contract) => contract.definition.to_yaml().unwrap_or_default(),
            None => EXAMPLE.to_owned(),
        },
        max_text: MAX_TEXT >> 10,
        max_contract: MAX_CONTRACT >> 10,
    };
    let section = Section::new("playground-page", &page)?;
    Ok(Rendered { title: "Playground".to_owned(), sections: vec![section] })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_is_a_contract() {
        let contract = counterfoil_contract::Contract::from_yaml(EXAMPLE).unwrap();
        assert!(contract.check("{\"approved\": true, \"findings\": []}").is_accepted());
    }
}
