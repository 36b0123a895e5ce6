//! Functions that read what values of free form say in words.

use super::json::to_value;
use super::{FunctionResult, arguments};
use crate::wording;
use cel::common::types::CelBool;
use cel::common::value::CowVal;
use serde_json::Value;

pub(super) fn leaves_out_severe<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> FunctionResult<'b, 'v> {
    let [value, findings] = arguments(args)?;
    let value = to_value("leavesOutSevere", value.as_ref())?;
    let findings = to_value("leavesOutSevere", findings.as_ref())?;
    Ok(CowVal::owned(CelBool::from(wording::leaves_out_severe(&value, &findings))))
}

pub(super) fn reports_failure<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> FunctionResult<'b, 'v> {
    reading("reportsFailure", args, wording::reports_failure)
}

pub(super) fn reports_nothing<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> FunctionResult<'b, 'v> {
    reading("reportsNothing", args, wording::reports_nothing)
}

pub(super) fn reports_rejection<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> FunctionResult<'b, 'v> {
    reading("reportsRejection", args, wording::reports_rejection)
}

pub(super) fn reports_severe<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> FunctionResult<'b, 'v> {
    reading("reportsSevere", args, wording::reports_severe)
}

fn reading<'b, 'v>(
    function: &'static str,
    args: Vec<CowVal<'b, 'v>>,
    read: fn(&Value) -> bool,
) -> FunctionResult<'b, 'v> {
    let [value] = arguments(args)?;
    Ok(CowVal::owned(CelBool::from(read(&to_value(function, value.as_ref())?))))
}
