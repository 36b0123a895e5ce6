//! The text of a reply, from the parts of its messages.

use crate::adapters::common::activity_line;

/// The text that the agent wrote since the last tool call that is not ours, of bounded length.
#[derive(Debug)]
pub(super) struct MessageText {
    text: String,
    /// The most bytes that are kept. It is one more than a contract reads, so that a longer text is
    /// not taken for a whole one.
    max_bytes: usize,
    message: Option<String>,
    is_broken: bool,
    /// Where the current line begins.
    line_start: usize,
}

impl MessageText {
    pub(super) fn new(max_bytes: usize) -> Self {
        Self { text: String::new(), max_bytes, message: None, is_broken: false, line_start: 0 }
    }

    /// Adds a part of a message. Returns the last line that is complete.
    pub(super) fn push(&mut self, part: &str, message: Option<&str>) -> Option<String> {
        if part.is_empty() {
            return None;
        }
        let is_other = std::mem::take(&mut self.is_broken) || self.message.as_deref() != message;
        if is_other && !self.text.is_empty() {
            self.add("\n\n");
        }
        if self.message.as_deref() != message {
            self.message = message.map(str::to_owned);
        }
        let before = self.text.len();
        self.add(part);
        let end = before + self.text[before..].rfind('\n')?;
        let line = activity_line(self.text[self.line_start..end].lines().next_back()?);
        self.line_start = end + 1;
        line
    }

    fn add(&mut self, part: &str) {
        let room = self.max_bytes.saturating_sub(self.text.len());
        self.text.push_str(&part[..part.floor_char_boundary(room)]);
    }

    /// What follows is another message.
    pub(super) fn break_message(&mut self) {
        self.is_broken = true;
    }

    /// What was said is outdated.
    pub(super) fn clear(&mut self) {
        self.text.clear();
        self.line_start = 0;
    }

    pub(super) fn get(&self) -> &str {
        &self.text
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_message_are_joined_and_messages_are_kept_apart() {
        let mut text = MessageText::new(100);
        assert_eq!(text.push("Look", None), None);
        assert_eq!(text.push("ing.\nAnd", None), Some("Looking.".to_owned()));
        text.push("", Some("m1"));
        text.push(" on", None);
        text.break_message();
        text.push("Done", None);
        text.push("Other", Some("m2"));
        text.push(" one", Some("m2"));
        assert_eq!(text.get(), "Looking.\nAnd on\n\nDone\n\nOther one");
        text.clear();
        text.push("New\n", Some("m2"));
        assert_eq!(text.into_text(), "New\n");
    }

    #[test]
    fn a_text_is_bounded_at_a_character() {
        let mut text = MessageText::new(5);
        for _ in 0..10 {
            text.push("äöü\n", None);
        }
        assert_eq!(text.get(), "äö");
    }
}
