//! The JSON Schemas of contract files, workflow files and `counterfoil.toml`, for editors.

use clap::ValueEnum;

/// What a schema describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// A contract file
    Contract,
    /// A workflow file
    Workflow,
    /// The file counterfoil.toml
    Config,
}

impl Kind {
    /// Every kind.
    pub(crate) const ALL: [Self; 3] = [Self::Contract, Self::Workflow, Self::Config];

    /// The schema as JSON.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Contract => include_str!("schema/contract.schema.json"),
            Self::Workflow => counterfoil_flow::JSON_SCHEMA,
            Self::Config => counterfoil_engine::config::JSON_SCHEMA,
        }
    }

    /// The name of the file that it is written to.
    pub(crate) fn file_name(self) -> &'static str {
        match self {
            Self::Contract => "counterfoil-contract.schema.json",
            Self::Workflow => "counterfoil-workflow.schema.json",
            Self::Config => "counterfoil-config.schema.json",
        }
    }
}
