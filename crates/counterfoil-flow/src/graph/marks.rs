//! The state of a run, as it is marked on the diagram of its workflow.

use counterfoil_contract::text::is_unsafe;
use std::collections::BTreeMap;

/// The marks of a run on the states of its workflow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// The marks by machine, whose name is empty for the main one, and state. Those of states that
    /// the workflow does not have are ignored.
    pub states: BTreeMap<(String, String), Mark>,
}

impl Marks {
    /// The mark of a state.
    pub(super) fn of(&self, machine: &str, state: &str) -> Option<&Mark> {
        self.states.get(&(machine.to_owned(), state.to_owned()))
    }
}

/// What a run did in a state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// How often the run entered the state.
    pub visits: u32,
    /// What the state is to the run now.
    pub status: Option<MarkStatus>,
    /// A short text, such as `47/50`. It is one more line in the box of the state.
    pub note: Option<String>,
    /// The address that the state leads to. Only an address without a scheme or with `http` or
    /// `https` becomes a link, as another one could be code.
    pub href: Option<String>,
}

impl Mark {
    /// The address, if it is safe as a link.
    pub(super) fn link(&self) -> Option<&str> {
        let href = self.href.as_deref()?;
        if href
            .contains(|c: char| is_unsafe(c) || matches!(c, '\n' | '\t' | '\u{fffe}' | '\u{ffff}'))
        {
            return None;
        }
        let beginning = href.split(['/', '?', '#']).next().unwrap_or_default();
        let scheme = beginning.split_once(':').map(|(scheme, _)| scheme);
        scheme.is_none_or(is_web).then_some(href)
    }
}

fn is_web(scheme: &str) -> bool {
    scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https")
}

/// What a state is to a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkStatus {
    /// The run is in the state.
    Current,
    /// The run is in the state and waits, such as for a person.
    Waiting,
    /// The run is in the state, and no process drives it.
    Interrupted,
    /// The run is in the state, its question was answered, and no process drives it.
    Answered,
    /// The step of the state succeeded.
    Done,
    /// The step of the state failed.
    Failed,
    /// A claim of the step was refuted.
    Refuted,
    /// The step was ended because its run was to end. It did not fail.
    Cancelled,
}

impl MarkStatus {
    /// The worse one of two: what failed, then what was refuted, then what is not over, then what was
    /// cancelled, then what is done.
    #[must_use]
    pub fn worse(self, other: Self) -> Self {
        if other.severity() > self.severity() { other } else { self }
    }

    fn severity(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Cancelled => 1,
            Self::Waiting => 2,
            Self::Answered => 3,
            Self::Interrupted => 4,
            Self::Current => 5,
            Self::Refuted => 6,
            Self::Failed => 7,
        }
    }

    /// The name, such as `current`. It is also the end of the class: `cf-current`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Current => "current",
            Self::Waiting => "waiting",
            Self::Interrupted => "interrupted",
            Self::Answered => "answered",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Refuted => "refuted",
            Self::Cancelled => "cancelled",
        }
    }
}
