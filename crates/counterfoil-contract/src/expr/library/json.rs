//! Conversion of values to JSON.

use super::{FunctionResult, arguments, check_text_size, function_error, string_result};
use crate::expr::meter;
use crate::expr::path::quoted;
use cel::ExecutionError;
use cel::common::types::{CelBool, CelDouble, CelInt, CelList, CelMap, CelNull, CelString};
use cel::common::value::{CowVal, Val};
use serde_json::Value;

/// `json(value)`: any value as compact JSON with sorted object keys.
pub(super) fn json<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> FunctionResult<'b, 'v> {
    let [value] = arguments(args)?;
    let mut writer = Writer { function: "json", numbers: Numbers::Exact, text: String::new() };
    writer.write(value.as_ref())?;
    meter::count_text_read(writer.text.len())?;
    string_result("json", writer.text)
}

/// A key that is the same for two values exactly if they are equal.
pub(super) fn key(function: &'static str, value: &dyn Val) -> Result<String, ExecutionError> {
    let mut writer = Writer { function, numbers: Numbers::Canonical, text: String::new() };
    writer.write(value)?;
    meter::count_text_read(writer.text.len())?;
    Ok(writer.text)
}

/// A value as JSON.
///
/// The recursion is bounded: the depth of JSON input and of expressions is limited.
pub(super) fn to_value(function: &'static str, value: &dyn Val) -> Result<Value, ExecutionError> {
    if let Some(text) = value.downcast_ref::<CelString>() {
        meter::count_text_read(text.inner().len())?;
        return Ok(Value::from(text.inner()));
    }
    meter::count_steps(1)?;
    if let Some(list) = value.downcast_ref::<CelList>() {
        let items = list.inner().iter().map(|item| to_value(function, item.as_ref()));
        return Ok(Value::Array(items.collect::<Result<_, _>>()?));
    }
    if let Some(map) = value.downcast_ref::<CelMap>() {
        let members = sorted_members(function, map)?;
        let members = members
            .into_iter()
            .map(|(name, value)| Ok((name.to_owned(), to_value(function, value)?)));
        return Ok(Value::Object(members.collect::<Result<_, ExecutionError>>()?));
    }
    if let Some(number) = value.downcast_ref::<CelDouble>() {
        return Ok(Value::from(*number.inner()));
    }
    if let Some(int) = value.downcast_ref::<CelInt>() {
        return Ok(Value::from(*int.inner()));
    }
    if let Some(flag) = value.downcast_ref::<CelBool>() {
        return Ok(Value::from(*flag.inner()));
    }
    if value.downcast_ref::<CelNull>().is_some() {
        return Ok(Value::Null);
    }
    Err(function_error(function, format!("{function}() cannot read this value")))
}

/// The members of an object, sorted by name.
fn sorted_members<'a, 'v>(
    function: &str,
    map: &'a CelMap<'v>,
) -> Result<Vec<(&'a str, &'a (dyn Val + 'v))>, ExecutionError> {
    let mut members = Vec::with_capacity(map.inner().len());
    for (name, value) in map.inner() {
        let Some(name) = name.inner().downcast_ref::<CelString>() else {
            return Err(function_error(function, "an object has a key that is not a string"));
        };
        members.push((name.inner(), value.as_ref()));
    }
    members.sort_unstable_by_key(|(name, _)| *name);
    Ok(members)
}

#[derive(Clone, Copy, PartialEq)]
enum Numbers {
    Exact,
    /// The double 1.0 is written like the integer 1, because they are equal.
    Canonical,
}

struct Writer {
    function: &'static str,
    numbers: Numbers,
    text: String,
}

impl Writer {
    /// The recursion is bounded: the depth of JSON input and of expressions is limited.
    fn write(&mut self, value: &dyn Val) -> Result<(), ExecutionError> {
        if let Some(text) = value.downcast_ref::<CelString>() {
            self.text(text.inner())?;
        } else if let Some(int) = value.downcast_ref::<CelInt>() {
            self.text.push_str(&int.inner().to_string());
        } else if let Some(flag) = value.downcast_ref::<CelBool>() {
            self.text.push_str(if *flag.inner() { "true" } else { "false" });
        } else if value.downcast_ref::<CelNull>().is_some() {
            self.text.push_str("null");
        } else if let Some(number) = value.downcast_ref::<CelDouble>() {
            self.number(*number.inner())?;
        } else if let Some(list) = value.downcast_ref::<CelList>() {
            self.text.push('[');
            for (index, item) in list.inner().iter().enumerate() {
                if index > 0 {
                    self.text.push(',');
                }
                self.write(item.as_ref())?;
            }
            self.text.push(']');
        } else if let Some(map) = value.downcast_ref::<CelMap>() {
            self.object(map)?;
        } else {
            return Err(function_error(
                self.function,
                format!("{}() cannot write this value", self.function),
            ));
        }
        self.check_size(self.text.len())
    }

    /// Limits only output for users. A key is no larger than its value, which exists already.
    fn check_size(&self, bytes: usize) -> Result<(), ExecutionError> {
        match self.numbers {
            Numbers::Exact => check_text_size(self.function, bytes),
            Numbers::Canonical => Ok(()),
        }
    }

    fn text(&mut self, text: &str) -> Result<(), ExecutionError> {
        // Checked before quoting, so that a string that is too long is not copied.
        self.check_size(text.len())?;
        self.text.push_str(&quoted(text));
        Ok(())
    }

    fn number(&mut self, number: f64) -> Result<(), ExecutionError> {
        if self.numbers == Numbers::Canonical && number.fract() == 0.0 && number.abs() < 9e18 {
            #[allow(clippy::cast_possible_truncation)] // A whole number that fits.
            self.text.push_str(&(number as i64).to_string());
            return Ok(());
        }
        match serde_json::Number::from_f64(number) {
            Some(number) => self.text.push_str(&number.to_string()),
            None if self.numbers == Numbers::Canonical => self.text.push_str(&number.to_string()),
            None => {
                return Err(function_error(
                    self.function,
                    format!("it gives {number}, which JSON cannot represent"),
                ));
            }
        }
        Ok(())
    }

    fn object(&mut self, map: &CelMap<'_>) -> Result<(), ExecutionError> {
        self.text.push('{');
        for (index, (name, value)) in sorted_members(self.function, map)?.into_iter().enumerate() {
            if index > 0 {
                self.text.push(',');
            }
            self.text(name)?;
            self.text.push(':');
            self.write(value)?;
        }
        self.text.push('}');
        Ok(())
    }
}
