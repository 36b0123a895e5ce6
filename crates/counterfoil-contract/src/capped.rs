//! Lists of a report with a limit. What does not fit is counted, so a text with a million mistakes
//! costs no more than its first thousand.

/// The most entries of a list in a report.
pub(crate) const MAX_LISTED: usize = 1000;

/// The most bytes of text in such a list. The first entry is listed whatever its length.
const MAX_LISTED_BYTES: usize = 1 << 20;

/// An entry of such a list.
pub(crate) trait Entry {
    /// The bytes of its texts.
    fn bytes(&self) -> usize;
}

/// A list that keeps its first entries and counts the others.
#[derive(Clone, Debug)]
pub(crate) struct Capped<T> {
    list: Vec<T>,
    bytes: usize,
    left_out: usize,
}

impl<T> Default for Capped<T> {
    fn default() -> Self {
        Self { list: Vec::new(), bytes: 0, left_out: 0 }
    }
}

impl<T: Entry> Capped<T> {
    /// Adds an entry, which is made only if it is kept. False if it is only counted.
    pub(crate) fn push(&mut self, make: impl FnOnce() -> T) -> bool {
        if self.is_full() {
            self.left_out += 1;
            return false;
        }
        let entry = make();
        self.bytes += entry.bytes();
        if self.bytes > MAX_LISTED_BYTES && !self.list.is_empty() {
            self.left_out += 1;
            return false;
        }
        self.list.push(entry);
        true
    }

    /// Whether further entries are only counted.
    pub(crate) fn is_full(&self) -> bool {
        self.list.len() >= MAX_LISTED || self.bytes > MAX_LISTED_BYTES
    }

    /// Adds the entries of another list, and what it left out.
    #[cfg(feature = "rules")]
    pub(crate) fn append(&mut self, other: Self) {
        let Self { list, left_out, .. } = other;
        for entry in list {
            self.push(|| entry);
        }
        self.left_out += left_out;
    }

    /// Counts entries that are not listed.
    pub(crate) fn leave_out(&mut self, count: usize) {
        self.left_out += count;
    }

    /// Removes entries of the list. What was left out stays counted.
    pub(crate) fn retain(&mut self, keep: impl FnMut(&T) -> bool) {
        self.list.retain(keep);
    }
}

impl<T> Capped<T> {
    /// Whether there was no entry at all.
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty() && self.left_out == 0
    }

    /// The entries that are kept.
    pub(crate) fn list(&self) -> &[T] {
        &self.list
    }

    /// The entries that are kept, to be put into another order.
    pub(crate) fn list_mut(&mut self) -> &mut [T] {
        &mut self.list
    }

    /// How many entries are only counted.
    #[cfg(test)]
    pub(crate) fn left_out(&self) -> usize {
        self.left_out
    }

    /// The entries that are kept, and the number of the others.
    pub(crate) fn into_parts(self) -> (Vec<T>, usize) {
        (self.list, self.left_out)
    }
}

impl<T: Entry> From<Vec<T>> for Capped<T> {
    fn from(entries: Vec<T>) -> Self {
        let mut capped = Self::default();
        for entry in entries {
            capped.push(|| entry);
        }
        capped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Entry for String {
        fn bytes(&self) -> usize {
            self.len()
        }
    }

    fn text(length: usize) -> String {
        "x".repeat(length)
    }

    #[test]
    fn the_first_entries_are_kept_and_the_others_counted() {
        let mut capped = Capped::default();
        let mut made = 0;
        for _ in 0..MAX_LISTED + 25 {
            capped.push(|| {
                made += 1;
                text(1)
            });
        }
        assert_eq!((made, capped.list().len(), capped.left_out()), (MAX_LISTED, MAX_LISTED, 25));
    }

    #[test]
    fn long_texts_fill_a_list_early_but_the_first_is_always_kept() {
        let mut capped = Capped::default();
        capped.push(|| text(MAX_LISTED_BYTES + 1));
        capped.push(|| text(1));
        assert_eq!((capped.list().len(), capped.left_out()), (1, 1));
        let mut capped: Capped<String> = Capped::default();
        for _ in 0..5 {
            capped.push(|| text(MAX_LISTED_BYTES / 3));
        }
        assert_eq!((capped.list().len(), capped.left_out()), (3, 2));
    }
}
