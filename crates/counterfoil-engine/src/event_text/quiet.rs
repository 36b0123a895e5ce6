//! The texts of events that a list of all events shows, and that other views of a run leave out.

use super::parts::reason_suffix;
use counterfoil_contract::text::join_limited;
use counterfoil_flow::amount::duration;
use counterfoil_flow::{End, Event, Outcome};

/// The most missing files that are named.
const MAX_MISSING: usize = 5;

/// The text of an event that has no other one.
pub(super) fn quiet_text(event: &Event) -> String {
    match event {
        Event::ContextChecked { missing, .. } if missing.is_empty() => {
            "· the step has what it needs".to_owned()
        }
        Event::ContextChecked { missing, .. } => {
            format!("✗ missing: {}", join_limited(missing, MAX_MISSING))
        }
        Event::ConversationOpened { agent, conversation, .. } => {
            format!("· {agent}: conversation {conversation} opened")
        }
        Event::FrameOpened { frame, state, .. } => format!("· {} starts in {state}", name(frame)),
        // What ended otherwise and has no text failed for the reason of the event before.
        Event::FrameEnded { frame, outcome: End::Done, .. } => format!("✓ {}: done", name(frame)),
        Event::FrameEnded { frame, outcome, .. } => {
            format!("✗ {}: {}", name(frame), outcome.name())
        }
        Event::WorkspacePlanned { frame, .. } => {
            format!("· {} gets a worktree of its own", name(frame))
        }
        Event::WorkspaceOpened { frame, .. } => format!("· {}: worktree opened", name(frame)),
        Event::MergeQueued { frame } => format!("· {}: waits for its merge", name(frame)),
        Event::WorkspaceDropped { frame, .. } => format!("· {}: worktree removed", name(frame)),
        Event::FannedIn { frame } => format!("· {}: no further item starts", name(frame)),
        Event::RunStopped { reason } => format!("! the run was stopped{}", reason_suffix(reason)),
        Event::TimeSkipped { ms } => format!("· {} are not counted as time", duration(*ms)),
        Event::RunEnded { outcome: Outcome::Done, state, .. } => {
            format!("✓ the run is done, in {state}")
        }
        Event::RunEnded { outcome, reason, .. } => {
            format!("✗ the run ended: {}{}", outcome.name(), reason_suffix(reason))
        }
        other => format!("· {}", other.kind().replace('-', " ")),
    }
}

/// What a frame is called.
fn name(frame: &str) -> &str {
    if frame.is_empty() { "the run" } else { frame }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_has_a_text() {
        for (event, expected) in [
            (Event::TimeSkipped { ms: 12 }, "· 12 ms are not counted as time"),
            (Event::FannedIn { frame: "each".to_owned() }, "· each: no further item starts"),
            (Event::RunStopped { reason: String::new() }, "! the run was stopped"),
            (Event::BudgetReached { what: "cost".to_owned() }, "· budget reached"),
        ] {
            assert_eq!(quiet_text(&event), expected);
        }
    }
}
