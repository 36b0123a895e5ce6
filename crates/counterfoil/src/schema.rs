//! What there are JSON Schemas of: files that people write, and data that the program prints or reads.

use clap::ValueEnum;
use clap::builder::PossibleValue;
use std::sync::LazyLock;

/// What a schema describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A file that people write.
    File(FileKind),
    /// Data that the program prints or reads.
    Data(DataKind),
}

/// A file that people write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FileKind {
    /// A contract file
    Contract,
    /// A workflow file
    Workflow,
    /// The file counterfoil.toml
    Config,
}

/// Data that the program prints or reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DataKind {
    /// The report of `check`; of several files, each line
    Check,
    /// A line that `check --batch` reads
    BatchInput,
    /// A line that `check --batch` prints
    BatchOutput,
    /// The report of `verify`
    Verify,
    /// The output of `contract list`
    ContractList,
    /// The output of `contract lint`
    ContractLint,
    /// The output of `contract diff`
    ContractDiff,
    /// The output of `workflow check`
    WorkflowCheck,
    /// A run: `run`, `resume`, `answer --resume`, `show`
    Run,
    /// The attempts of a step: `show RUN STEP`
    ShowStep,
    /// The changes of a step: `show RUN STEP --diff`
    ShowDiff,
    /// The claims of a run: `show --claims`
    ShowClaims,
    /// What went wrong in a run: `show --trouble`
    ShowTrouble,
    /// A line of `show --events`
    Event,
    /// The list of `runs`
    Runs,
    /// The open questions: `answer` without an answer
    Answer,
    /// The output of `claims stats`
    ClaimsStats,
    /// A receipt
    Receipt,
    /// The output of `receipt verify`
    ReceiptVerify,
    /// The output of `replay`
    Replay,
    /// The output of `doctor`
    Doctor,
    /// The output of `pack list`
    PackList,
    /// The output of `pack show`
    PackShow,
    /// A line that the command of `run --notify` reads
    Notification,
    /// A line of the log, as JSON
    Log,
}

static ALL: LazyLock<Vec<Kind>> = LazyLock::new(|| {
    let files = FileKind::value_variants().iter().copied().map(Kind::File);
    files.chain(DataKind::value_variants().iter().copied().map(Kind::Data)).collect()
});

impl ValueEnum for Kind {
    fn value_variants<'a>() -> &'a [Self] {
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        match self {
            Self::File(kind) => kind.to_possible_value(),
            Self::Data(kind) => kind.to_possible_value(),
        }
    }
}

impl Kind {
    /// The name on the command line.
    pub(crate) fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// What the schema describes, in a few words.
    pub(crate) fn about(self) -> String {
        let value = self.to_possible_value();
        value.and_then(|value| value.get_help().map(ToString::to_string)).unwrap_or_default()
    }

    /// The name of the file that the schema is written to.
    pub(crate) fn file_name(self) -> String {
        format!("counterfoil-{}.schema.json", self.name())
    }
}

impl FileKind {
    /// The name of the file that the schema is written to.
    pub(crate) fn file_name(self) -> String {
        Kind::File(self).file_name()
    }

    /// The schema as JSON.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Contract => include_str!("schema/contract.schema.json"),
            Self::Workflow => counterfoil_flow::JSON_SCHEMA,
            Self::Config => counterfoil_engine::config::JSON_SCHEMA,
        }
    }
}

/// The kinds with what they describe, in two groups.
pub(crate) fn list() -> String {
    let is_file = |kind: &&Kind| matches!(kind, Kind::File(_));
    let (files, data): (Vec<&Kind>, Vec<&Kind>) = Kind::value_variants().iter().partition(is_file);
    let rows = |kinds: Vec<&Kind>| -> String {
        kinds.iter().map(|kind| format!("  {:<14}  {}\n", kind.name(), kind.about())).collect()
    };
    format!(
        "Files that people write:\n{}\nData that the program prints or reads:\n{}",
        rows(files),
        rows(data)
    )
}
