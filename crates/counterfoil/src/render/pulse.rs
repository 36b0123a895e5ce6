//! What an agent is doing right now, so that a hang can be told from work.

use super::text::{time_so_far, usage_suffix};
use counterfoil_agents::agent::AgentProgress;
use counterfoil_contract::text::{escape_control, truncate};
use counterfoil_flow::Usage;
use std::fmt::Write;
use std::time::Duration;

/// A shorter silence is not mentioned.
const QUIET: Duration = Duration::from_secs(10);
/// The most characters of the name of a tool or a model.
const MAX_NAME_CHARS: usize = 60;

/// What is known of an agent at work.
pub(crate) struct Pulse<'p> {
    /// The program.
    pub(crate) program: &'p str,
    /// The model that was configured.
    pub(crate) model: Option<&'p str>,
    /// How far it is.
    pub(crate) progress: &'p AgentProgress,
    /// What it used before this prompt.
    pub(crate) before: Usage,
    /// The time since its last sign of life.
    pub(crate) silent: Duration,
    /// How long the tool runs that runs now.
    pub(crate) in_call: Option<Duration>,
}

impl Pulse<'_> {
    /// The program and its model.
    pub(crate) fn who(&self) -> String {
        let model = self.progress.model.as_deref().or(self.model);
        let name = |text: &str| escape_control(&truncate(text, MAX_NAME_CHARS));
        match model {
            Some(model) => format!("{} {}", name(self.program), name(model)),
            None => name(self.program),
        }
    }

    /// Calls, tokens, cost, the tool that runs and the silence, each preceded by a comma.
    pub(crate) fn details(&self) -> String {
        let AgentProgress { calls, open_call, usage, .. } = self.progress;
        let mut text = match calls {
            0 => String::new(),
            1 => ", 1 call".to_owned(),
            calls => format!(", {calls} calls"),
        };
        let mut used = self.before;
        used += *usage;
        text += &usage_suffix(&Usage { wall_ms: 0, ..used });
        if let Some(tool) = open_call {
            let tool = escape_control(&truncate(tool, MAX_NAME_CHARS));
            let since = self.in_call.map(|since| format!(" for {}", time_so_far(since)));
            let _ = write!(text, ", {tool} is running{}", since.unwrap_or_default());
        }
        if self.silent >= QUIET {
            let _ = write!(text, ", silent for {}", time_so_far(self.silent));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pulse(progress: &AgentProgress, silent: u64, in_call: Option<u64>) -> String {
        let pulse = Pulse {
            program: "claude",
            model: Some("opus"),
            progress,
            before: Usage { input_tokens: 1000, ..Usage::default() },
            silent: Duration::from_secs(silent),
            in_call: in_call.map(Duration::from_secs),
        };
        format!("{}{}", pulse.who(), pulse.details())
    }

    #[test]
    fn work_can_be_told_from_a_hang() {
        let nothing = AgentProgress::default();
        assert_eq!(pulse(&nothing, 3, None), "claude opus, 1000 tokens");
        assert_eq!(pulse(&nothing, 95, None), "claude opus, 1000 tokens, silent for 1 min 35 s");
        let usage = Usage { input_tokens: 500, cost_usd: 0.126, ..Usage::default() };
        let working = AgentProgress {
            model: Some("claude-opus-5".to_owned()),
            calls: 12,
            open_call: Some("Bash\u{1b}[2J".to_owned()),
            usage,
        };
        assert_eq!(
            pulse(&working, 40, Some(40)),
            "claude claude-opus-5, 12 calls, 1500 tokens, $0.13, Bash\\u{1b}[2J is running for 40 s, \
             silent for 40 s"
        );
    }
}
