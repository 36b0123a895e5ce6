//! The schemas of the data, made from the types that are printed.

use super::form;
use crate::doctor::Diagnosis;
use crate::log::line::LogLine;
use crate::notify::Notification;
use crate::report::check::{BatchInput, BatchOutput, CheckReport, VerifyReport};
use crate::report::contract::ContractListItem;
use crate::report::lint::{ContractLint, WorkflowLint};
use crate::report::pack::{PackListItem, PackReport};
use crate::report::receipt::ReceiptVerification;
use crate::report::replay::ReplayResults;
use crate::report::step::StepDiff;
use crate::schema::DataKind;
use counterfoil_contract::compat::Comparison;
use counterfoil_engine::ledger::StatsReport;
use counterfoil_engine::lists::{ClaimList, EventLine, OpenQuestions, RunListItem};
use counterfoil_engine::receipt::SealedReceipt;
use counterfoil_engine::trouble::TroubleReport;
use counterfoil_engine::{Attempt, RunReport};
use counterfoil_flow::Event;
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};

/// The schema of a kind of data, as it is derived.
pub(super) fn schema(kind: DataKind) -> Schema {
    match kind {
        DataKind::Check => printed::<CheckReport<'_>>(),
        DataKind::BatchInput => read::<BatchInput>(),
        DataKind::BatchOutput => printed::<BatchOutput<'_>>(),
        DataKind::Verify => printed::<VerifyReport<'_>>(),
        DataKind::ContractList => printed::<Vec<ContractListItem<'_>>>(),
        DataKind::ContractLint => printed::<ContractLint>(),
        DataKind::ContractDiff => printed::<Comparison>(),
        DataKind::WorkflowCheck => printed::<WorkflowLint>(),
        DataKind::Run => printed::<RunReport>(),
        DataKind::ShowStep => printed::<Vec<Attempt>>(),
        DataKind::ShowDiff => printed::<StepDiff>(),
        DataKind::ShowClaims => printed::<ClaimList>(),
        DataKind::ShowTrouble => printed::<TroubleReport<'_>>(),
        DataKind::Event => form::flat_events(&printed::<EventLine>(), printed::<Event>()),
        DataKind::Runs => printed::<Vec<RunListItem>>(),
        DataKind::Answer => printed::<Vec<OpenQuestions>>(),
        DataKind::ClaimsStats => printed::<StatsReport>(),
        DataKind::Receipt => printed::<SealedReceipt>(),
        DataKind::ReceiptVerify => printed::<ReceiptVerification>(),
        DataKind::Replay => printed::<ReplayResults<'_>>(),
        DataKind::Doctor => printed::<Diagnosis>(),
        DataKind::PackList => printed::<Vec<PackListItem<'_>>>(),
        DataKind::PackShow => printed::<PackReport>(),
        DataKind::Notification => printed::<Notification<'_>>(),
        DataKind::Log => printed::<LogLine>(),
    }
}

/// The schema of what is printed of a type.
fn printed<T: JsonSchema>() -> Schema {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let settings = settings.with_transform(RecursiveTransform(form::for_output));
    settings.into_generator().into_root_schema_for::<T>()
}

/// The schema of what is read as a type. A field that it does not know is refused.
fn read<T: JsonSchema>() -> Schema {
    SchemaSettings::draft2020_12().for_deserialize().into_generator().into_root_schema_for::<T>()
}
