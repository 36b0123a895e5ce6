//! Filters of the templates. askama escapes what they return.

use crate::format;
use std::fmt::Display;

/// A text that may come from an agent: characters that hide or reorder text are shown as escapes.
#[askama::filter_fn]
pub(crate) fn shown(text: impl Display, _: &dyn askama::Values) -> askama::Result<String> {
    Ok(format::text(&text.to_string()))
}

/// A text that may come from a file, on one line and shortened.
#[askama::filter_fn]
pub(crate) fn line(text: impl Display, _: &dyn askama::Values) -> askama::Result<String> {
    Ok(format::cell(&text.to_string()))
}
