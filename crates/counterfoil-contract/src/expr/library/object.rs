//! Functions on maps: objects with arbitrary keys.

use super::{FunctionResult, arguments, function_error, string_arg, wrong_type_error};
use crate::expr::meter;
use cel::common::types::{CelMap, CelMapKey};
use cel::common::value::CowVal;

/// The maximum number of members in an object that a function returns.
const MAX_MEMBERS: usize = 1_000_000;

/// `put`: a copy of an object with a member added or replaced.
pub(super) fn put<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> FunctionResult<'b, 'v> {
    let [object, name, value] = arguments(args)?;
    let name = string_arg("put", name.as_ref())?.to_owned();
    let Some(map) = object.as_ref().downcast_ref::<CelMap>() else {
        return Err(wrong_type_error("put", "objects", object.as_ref()));
    };
    meter::count_steps(map.inner().len() + 1)?;
    let mut members = map.clone().into_inner();
    members.insert(CelMapKey::from(name), value.into_owned());
    if members.len() > MAX_MEMBERS {
        return Err(function_error("put", "put() gives more than 1,000,000 members"));
    }
    Ok(CowVal::owned(CelMap::from(members)))
}
