//! The functions on objects whose keys are data.

use super::{Given, arguments, failed, text_of, wrong_kind};
use crate::expr::meter;
use cel::common::types::{CelMap, CelMapKey};
use cel::common::value::CowVal;

/// The most members of an object that a function gives.
const MOST_MEMBERS: usize = 1_000_000;

/// An object with one more member; a member of that name is replaced.
pub(super) fn put<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Given<'b, 'v> {
    let [object, name, value] = arguments(args)?;
    let name = text_of("put", name.as_ref())?.to_owned();
    let Some(map) = object.as_ref().downcast_ref::<CelMap>() else {
        return Err(wrong_kind("put", "objects", object.as_ref()));
    };
    meter::steps(map.inner().len() + 1)?;
    let mut members = map.clone().into_inner();
    members.insert(CelMapKey::from(name), value.into_owned());
    if members.len() > MOST_MEMBERS {
        return Err(failed("put", "put() gives more than 1,000,000 members"));
    }
    Ok(CowVal::owned(CelMap::from(members)))
}
