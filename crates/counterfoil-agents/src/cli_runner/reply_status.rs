//! Combines the final event and the exit status of a program into the status of its reply.

use crate::adapters::{Failure, ParsedReply, Verdict};
use crate::agent::ReplyStatus;
use crate::termination;
use counterfoil_flow::AttemptOutcome;
use counterfoil_process::Exit;

/// The status of a reply. A reply is complete only if both the final event and the exit status
/// indicate success. A process that we ended after its final event has no exit status of its own.
pub(crate) fn reply_status(
    name: &str,
    parsed: &ParsedReply,
    exit: Exit,
    ended_by_us: bool,
    errors: &[u8],
) -> ReplyStatus {
    let ended = match exit {
        Exit::Code(code) => format!("exit code {code}"),
        Exit::Signal(signal) => format!("signal {signal}"),
    };
    let stderr = termination::stderr_suffix(errors, 600);
    match &parsed.verdict {
        Verdict::Complete if exit == Exit::Code(parsed.exit) || ended_by_us => {
            ReplyStatus::Complete
        }
        Verdict::Complete => ReplyStatus::failed(
            AttemptOutcome::Agent,
            format!("{name} said it was done and ended with {ended}{stderr}"),
        ),
        Verdict::Failed(Failure { outcome, reason, reset_at, .. }) => {
            ReplyStatus::Failed { outcome: *outcome, reason: reason.clone(), reset_at: *reset_at }
        }
        Verdict::Missing => ReplyStatus::failed(
            AttemptOutcome::Agent,
            format!("{name} ended with {ended} and never said it was done{stderr}"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(verdict: Verdict, exit: i32, code: i32) -> ReplyStatus {
        reply_status(
            "acme",
            &ParsedReply { verdict, exit, ..ParsedReply::default() },
            Exit::Code(code),
            false,
            b"why",
        )
    }

    #[test]
    fn a_reply_is_complete_only_with_the_expected_exit_status() {
        assert_eq!(ended(Verdict::Complete, 0, 0), ReplyStatus::Complete);
        assert_eq!(ended(Verdict::Complete, 1, 1), ReplyStatus::Complete);
        let failed = |reason| ReplyStatus::failed(AttemptOutcome::Agent, reason);
        let done = "acme said it was done and ended with exit code 1: why";
        assert_eq!(ended(Verdict::Complete, 0, 1), failed(done));
        let never = "acme ended with exit code 0 and never said it was done: why";
        assert_eq!(ended(Verdict::Missing, 0, 0), failed(never));
    }
}
