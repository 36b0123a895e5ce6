//! Values as JSON.

use super::{Given, arguments, bounded_text, failed, given_text};
use crate::expr::meter;
use crate::expr::path::quoted;
use cel::ExecutionError;
use cel::common::types::{CelBool, CelDouble, CelInt, CelList, CelMap, CelNull, CelString};
use cel::common::value::{CowVal, Val};

/// Any value as compact JSON, the keys of objects sorted.
pub(super) fn json<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Given<'b, 'v> {
    let [value] = arguments(args)?;
    let mut writer = Writer { function: "json", numbers: Numbers::AsTheyAre, text: String::new() };
    writer.write(value.as_ref())?;
    meter::reads_text(writer.text.len())?;
    given_text("json", writer.text)
}

/// A text that two values share exactly if they are equal.
pub(super) fn key(function: &'static str, value: &dyn Val) -> Result<String, ExecutionError> {
    let mut writer = Writer { function, numbers: Numbers::Equal, text: String::new() };
    writer.write(value)?;
    meter::reads_text(writer.text.len())?;
    Ok(writer.text)
}

#[derive(Clone, Copy, PartialEq)]
enum Numbers {
    AsTheyAre,
    /// The number 1.0 equals the integer 1.
    Equal,
}

struct Writer {
    function: &'static str,
    numbers: Numbers,
    text: String,
}

impl Writer {
    /// As deep as the value, which came from JSON or from an expression: both are bounded.
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
            return Err(failed(
                self.function,
                format!("{}() cannot write this value", self.function),
            ));
        }
        self.bounded(self.text.len())
    }

    /// A key takes no more room than its value, which is there already.
    fn bounded(&self, bytes: usize) -> Result<(), ExecutionError> {
        match self.numbers {
            Numbers::AsTheyAre => bounded_text(self.function, bytes),
            Numbers::Equal => Ok(()),
        }
    }

    fn text(&mut self, text: &str) -> Result<(), ExecutionError> {
        // Before it is quoted: what is too long as it is needs not be copied.
        self.bounded(text.len())?;
        self.text.push_str(&quoted(text));
        Ok(())
    }

    fn number(&mut self, number: f64) -> Result<(), ExecutionError> {
        if self.numbers == Numbers::Equal && number.fract() == 0.0 && number.abs() < 9e18 {
            #[allow(clippy::cast_possible_truncation)] // A whole number that fits.
            self.text.push_str(&(number as i64).to_string());
            return Ok(());
        }
        match serde_json::Number::from_f64(number) {
            Some(number) => self.text.push_str(&number.to_string()),
            None if self.numbers == Numbers::Equal => self.text.push_str(&number.to_string()),
            None => {
                return Err(failed(
                    self.function,
                    format!("it gives {number}, which JSON cannot write"),
                ));
            }
        }
        Ok(())
    }

    fn object(&mut self, map: &CelMap<'_>) -> Result<(), ExecutionError> {
        let mut members = Vec::with_capacity(map.inner().len());
        for (name, value) in map.inner() {
            let Some(name) = name.inner().downcast_ref::<CelString>() else {
                return Err(failed(self.function, "an object has a key that is not a string"));
            };
            members.push((name.inner(), value));
        }
        members.sort_unstable_by_key(|(name, _)| *name);
        self.text.push('{');
        for (index, (name, value)) in members.into_iter().enumerate() {
            if index > 0 {
                self.text.push(',');
            }
            self.text(name)?;
            self.text.push(':');
            self.write(value.as_ref())?;
        }
        self.text.push('}');
        Ok(())
    }
}
