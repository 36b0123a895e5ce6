//! A page of the events of a run in words. It is read from the journal at its place, so that its cost
//! does not grow with the run.

use crate::folders::RunPlace;
use crate::problem::Problem;
use counterfoil_engine::event_text::{EventInWords, EventsInWords};
use std::collections::VecDeque;
use std::ops::ControlFlow;

/// The events of a page.
pub(crate) const PAGE: usize = 100;
/// The most events that are read for a page of those that match something.
const MAX_READ: u64 = 5000;

/// Which events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The first ones from this number on.
    From(u64),
    /// The last ones before this number.
    Before(u64),
    /// The last ones of the run.
    End,
}

/// Some events of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EventPage {
    /// The events, in order.
    pub(crate) events: Vec<EventInWords>,
    /// The number of the first event that was looked at.
    pub(crate) from: u64,
    /// The number of the last event that was looked at.
    pub(crate) to: u64,
    /// The number of the last event that is recorded.
    pub(crate) last: u64,
}

/// The numbers of the events to look at, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range {
    from: u64,
    to: u64,
    /// Whether the last matching events are wanted, and not the first ones.
    keeps_last: bool,
}

/// The range of a place in a run with `last` events, of which at most `span` are looked at.
fn range(place: Place, last: u64, span: u64) -> Range {
    let before = |end: u64| {
        let end = end.clamp(1, last + 1);
        Range { from: end.saturating_sub(span).max(1), to: end - 1, keeps_last: true }
    };
    match place {
        Place::From(from) => {
            let from = from.clamp(1, last.max(1));
            Range { from, to: last.min(from.saturating_add(span - 1)), keeps_last: false }
        }
        Place::Before(end) => before(end),
        Place::End => before(last + 1),
    }
}

/// Reads the events at a place. Without a filter, a page has all events of its range.
pub(crate) fn read(
    run: &RunPlace,
    workflow: &str,
    place: Place,
    filter: Option<&dyn Fn(&EventInWords) -> bool>,
) -> Result<EventPage, Problem> {
    let journal = run.engine.journal();
    let last = journal.last_seq(&run.run)?;
    let span = if filter.is_some() { MAX_READ } else { PAGE as u64 };
    let Range { mut from, mut to, keeps_last } = range(place, last, span);
    let mut words = EventsInWords::new(&run.run, workflow);
    let mut events: VecDeque<EventInWords> = VecDeque::new();
    if from <= to {
        journal.visit(&run.run, EventsInWords::begin_for(from), |stored| {
            if stored.seq > to {
                return ControlFlow::Break(());
            }
            let event = words.on_event(&stored);
            let is_wanted = event.seq >= from && filter.is_none_or(|filter| filter(&event));
            if is_wanted {
                events.push_back(event);
            }
            let is_full = events.len() > PAGE;
            if is_full && keeps_last {
                events.pop_front();
            }
            // The page ends with the last event that has room on it.
            let is_done = stored.seq >= to || (!keeps_last && events.len() >= PAGE);
            if is_done { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
    }
    if events.len() == PAGE {
        match (keeps_last, events.front(), events.back()) {
            (true, Some(first), _) => from = first.seq,
            (false, _, Some(end)) => to = end.seq,
            _ => {}
        }
    }
    Ok(EventPage { events: events.into(), from, to, last })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_has_a_range_inside_of_the_run() {
        for (place, last, expected) in [
            (Place::From(0), 250, (1, 100)),
            (Place::From(1), 250, (1, 100)),
            (Place::From(200), 250, (200, 250)),
            (Place::From(u64::MAX), 250, (250, 250)),
            (Place::Before(0), 250, (1, 0)),
            (Place::Before(101), 250, (1, 100)),
            (Place::Before(u64::MAX), 250, (151, 250)),
            (Place::End, 250, (151, 250)),
            (Place::End, 7, (1, 7)),
            (Place::End, 0, (1, 0)),
            (Place::From(5), 0, (1, 0)),
        ] {
            let Range { from, to, .. } = range(place, last, 100);
            assert_eq!((from, to), expected, "{place:?} of {last}");
        }
    }
}
