//! The violations of one value: the first of them in full, and of the others what is needed to go
//! on.

use super::pointer_set::PointerSet;
use crate::capped::Capped;
use crate::code::Code;
use crate::report::Violation;
use crate::work;
use std::collections::HashSet;
use std::rc::Rc;

/// The violations of one value.
#[derive(Debug)]
pub(crate) struct Findings {
    listed: Capped<Violation>,
    /// The pointers of all violations.
    pointers: Rc<PointerSet>,
    /// The first tokens of their pointers.
    fields: PointerSet,
    /// Whether the value itself has a violation.
    is_root: bool,
    /// The pointers of the violations that are not listed, if they are needed.
    others: Option<Vec<String>>,
    /// Whether there are violations whose pointers are not known.
    is_incomplete: bool,
    /// The number of values, if only the first error is listed.
    values_left_out: usize,
}

impl Findings {
    /// Violations that were found while parsing. `keep_pointers` says whether the pointers of those
    /// that are not listed are needed.
    pub(super) fn new(parsed: Capped<Violation>, keep_pointers: bool) -> Self {
        let mut found = Self {
            listed: Capped::default(),
            pointers: Rc::default(),
            fields: PointerSet::default(),
            is_root: false,
            others: keep_pointers.then(Vec::new),
            is_incomplete: false,
            values_left_out: 0,
        };
        found.append(parsed);
        found
    }

    /// Adds a violation of the value at a pointer.
    pub(super) fn push(&mut self, pointer: &str, make: impl FnOnce() -> Violation) {
        self.note(pointer);
        if !self.listed.push(make)
            && let Some(others) = &mut self.others
        {
            others.push(pointer.to_owned());
        }
    }

    /// Adds violations, of which some may be left out already.
    pub(super) fn append(&mut self, more: Capped<Violation>) {
        let (list, left_out) = more.into_parts();
        for violation in list {
            self.push(&violation.pointer.clone(), || violation);
        }
        self.listed.leave_out(left_out);
        self.is_incomplete |= left_out > 0;
    }

    /// Notes that the value is so large that only its first error is listed.
    pub(super) fn leave_out_values(&mut self, values: usize) {
        self.values_left_out = values;
        self.is_incomplete = true;
    }

    pub(super) fn values_left_out(&self) -> usize {
        self.values_left_out
    }

    fn note(&mut self, pointer: &str) {
        work::count_text(pointer.len());
        Rc::make_mut(&mut self.pointers).insert(pointer);
        match pointer.split('/').nth(1) {
            None => self.is_root = true,
            Some(field) => self.fields.insert(field),
        }
    }

    /// Adds a violation for each placeholder. It is the cause of the other violations of the same
    /// value, which go. One inside of a value that is a placeholder is not added.
    pub(super) fn add_placeholders(
        &mut self,
        placeholders: &[String],
        make: impl Fn(&str) -> Violation,
    ) {
        if placeholders.is_empty() {
            return;
        }
        let mut known = PointerSet::default();
        for violation in self.listed.list().iter().filter(|one| one.code == Code::Placeholder) {
            known.insert(&violation.pointer);
        }
        let added = || placeholders.iter().filter(|pointer| !known.contains_around(pointer));
        let causes: HashSet<&str> = added().map(String::as_str).collect();
        self.listed.retain(|violation| !causes.contains(violation.pointer.as_str()));
        for pointer in added() {
            self.push(pointer, || make(pointer));
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.listed.is_empty()
    }

    /// The pointers of all violations so far.
    pub(super) fn pointers(&self) -> Rc<PointerSet> {
        Rc::clone(&self.pointers)
    }

    /// Whether the value itself has a violation.
    #[cfg(feature = "rules")]
    pub(super) fn concerns_root(&self) -> bool {
        self.is_root
    }

    /// Whether a field of the result, or something inside of it, has a violation.
    #[cfg(feature = "rules")]
    pub(super) fn concerns_field(&self, token: &str) -> bool {
        self.fields.contains(token)
    }

    /// Whether there are violations whose pointers are not known.
    pub(super) fn is_incomplete(&self) -> bool {
        self.is_incomplete
    }

    /// The violations that are listed.
    pub(super) fn listed(&self) -> &[Violation] {
        self.listed.list()
    }

    /// The pointers of those that are not, if they were to be kept.
    pub(super) fn others(&self) -> &[String] {
        self.others.as_deref().unwrap_or_default()
    }

    /// The violations in the order of the text.
    pub(super) fn in_order(mut self) -> Capped<Violation> {
        self.listed.list_mut().sort_by_key(|violation| {
            violation.span.map_or((usize::MAX, 0), |span| (span.start, span.end))
        });
        self.listed
    }
}
