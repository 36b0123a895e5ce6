//! Colours of human output.

use crate::terminal;
use anstyle::{AnsiColor, Style as Ansi};
use counterfoil_contract::diagnostic::Style;

/// The colours that are used, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Color {
    Green,
    Red,
    Yellow,
    Cyan,
    Dim,
}

impl Color {
    /// A text in this colour if the stream shows colours.
    ///
    /// Whether it does is decided once per stream in `output`, because diagnostics need to know
    /// before they are laid out. So text is written with or without colour from the start, and
    /// no stream (`anstream`) has to strip it again.
    ///
    /// The text may be unsafe: it is escaped when it is written (`output`).
    pub(crate) fn paint(self, text: &str, style: Style) -> String {
        if !style.color || text.is_empty() {
            return text.to_owned();
        }
        let ansi = match self {
            Self::Green => AnsiColor::Green.on_default(),
            Self::Red => AnsiColor::Red.on_default(),
            Self::Yellow => AnsiColor::Yellow.on_default(),
            Self::Cyan => AnsiColor::Cyan.on_default(),
            Self::Dim => Ansi::new().dimmed(),
        };
        let [begin, end] = [ansi.render().to_string(), ansi.render_reset().to_string()];
        terminal::trust(&begin) + text + &terminal::trust(&end)
    }
}
