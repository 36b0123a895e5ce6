//! The structured log on stderr. Everything in it is redacted as in `counterfoil export`: what an
//! agent returned may quote a key.
//!
//! A log of JSON lines consists of nothing else: what is said to people is a line of it, too.

pub(crate) mod line;

use crate::cli::LogFormat;
use crate::{output, redaction};
use counterfoil_contract::suggest::did_you_mean;
use counterfoil_contract::text::{Form, neutralize};
use line::{LogFields, LogLine};
use serde_json::Value;
use std::io::Write;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::Directive;

/// The variable that says what is logged.
const VARIABLE: &str = "COUNTERFOIL_LOG";
/// What is logged if only a format is given.
const DEFAULT_FILTER: &str = "info";

/// Starts the log, if it is asked for. `keeps_messages` is for commands whose stderr a program reads:
/// what they say there stays as it is.
pub(crate) fn start(format: Option<LogFormat>, keeps_messages: bool) {
    let filter = std::env::var(VARIABLE).ok().filter(|filter| !filter.is_empty());
    let filter = match (filter, format) {
        (None, None) => return,
        (Some(filter), _) => filter,
        (None, Some(_)) => DEFAULT_FILTER.to_owned(),
    };
    let (filter, mut warnings) = understood(&filter);
    warnings.extend(unknown_levels(&filter));
    // Without redaction there is no log. The redactor must not be made while a line is written.
    if !redaction::prepare() {
        return;
    }
    let log = tracing_subscriber::fmt().with_ansi(false).with_env_filter(EnvFilter::new(filter));
    let _ = match format.unwrap_or(LogFormat::Json) {
        LogFormat::Json => {
            if !keeps_messages {
                output::write_messages_as(message_line);
            }
            log.json().with_span_list(false).with_writer(|| EventWriter(json_line)).try_init()
        }
        LogFormat::Text => log.with_writer(|| EventWriter(text_line)).try_init(),
    };
    for warning in warnings {
        output::write_message("warning", &warning);
    }
}

/// The words of a filter that can be parsed, and warnings for the others, which the subscriber would
/// write between the lines of the log.
fn understood(filter: &str) -> (String, Vec<String>) {
    let words = filter.split(',').filter(|word| !word.trim().is_empty());
    let (good, bad): (Vec<&str>, Vec<&str>) =
        words.partition(|word| word.parse::<Directive>().is_ok());
    let warning = |word: &&str| {
        format!(
            "{VARIABLE}: '{word}' is not understood, and enables nothing; write a level, or TARGET=LEVEL as in counterfoil=debug"
        )
    };
    (good.join(","), bad.iter().map(warning).collect())
}

/// Warnings for words of a filter that are neither levels nor parts of the program: a misspelt level
/// would silently log nothing.
fn unknown_levels(filter: &str) -> Vec<String> {
    const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];
    let is_unknown = |word: &&str| {
        let word = word.to_ascii_lowercase();
        !word.is_empty()
            && word.chars().all(|c| c.is_ascii_alphanumeric())
            && !word.starts_with("counterfoil")
            && !LEVELS.contains(&word.as_str())
            && !word.parse::<usize>().is_ok_and(|level| level < LEVELS.len())
    };
    let words = filter.split(',').map(str::trim).filter(is_unknown);
    let warning = |word: &str| {
        let hint = did_you_mean(word, LEVELS)
            .unwrap_or_else(|| format!("the levels are {}", LEVELS.join(", ")));
        format!("{VARIABLE}: '{word}' is not a level, and enables nothing; {hint}")
    };
    words.map(warning).collect()
}

/// Writes events. The subscriber passes each of them as a whole.
struct EventWriter(fn(&str) -> String);

impl Write for EventWriter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        output::write_log(&self.0(&String::from_utf8_lossy(bytes)));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// An event as a line of JSON.
fn json_line(event: &str) -> String {
    let Ok(mut event) = serde_json::from_str::<Value>(event) else {
        return message_line(event);
    };
    complete(&mut event);
    let line = redaction::json(&event.to_string()).unwrap_or_default();
    neutralize(&line, Form::Json).into_owned() + "\n"
}

/// Leaves out fields that say nothing, and names the agent of the attempt where an event does not.
fn complete(event: &mut Value) {
    let agent = event.pointer("/span/agent").cloned();
    let Some(fields) = event.get_mut("fields").and_then(Value::as_object_mut) else { return };
    let had_agent = fields.contains_key("agent");
    fields.retain(|_, value| value.as_str() != Some(""));
    if had_agent && !fields.contains_key("agent") {
        fields.extend(agent.map(|agent| ("agent".to_owned(), agent)));
    }
}

/// An event as a line of text.
fn text_line(event: &str) -> String {
    neutralize(&redaction::text(event.trim_end()), Form::Line).into_owned() + "\n"
}

/// A message for people as a line of JSON.
fn message_line(text: &str) -> String {
    let line = LogLine {
        // As many digits as the subscriber writes.
        timestamp: format!("{:.6}", jiff::Timestamp::now()),
        level: level(text),
        fields: LogFields { message: redaction::text(text.trim_end()), ..LogFields::default() },
        target: "counterfoil::message",
        span: None,
    };
    let line = serde_json::to_string(&line).unwrap_or_default();
    neutralize(&line, Form::Json).into_owned() + "\n"
}

/// The level of a message for people, by the word that it begins with.
fn level(text: &str) -> &'static str {
    match text.split_once(':') {
        Some(("error", _)) => "ERROR",
        Some(("warning", _)) => "WARN",
        _ => "INFO",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_event_names_the_agent_of_its_attempt_and_nothing_empty() {
        let mut event = json!({
            "fields": {"message": "result not accepted", "agent": "", "stage": ""},
            "span": {"name": "attempt", "agent": "coder"},
        });
        complete(&mut event);
        assert_eq!(event["fields"], json!({"message": "result not accepted", "agent": "coder"}));
        let mut event = json!({"fields": {"message": "result not accepted", "agent": ""}});
        complete(&mut event);
        assert_eq!(event["fields"], json!({"message": "result not accepted"}));
    }

    #[test]
    fn a_misspelt_level_is_said() {
        for good in [
            "info",
            "WARN",
            "3",
            "counterfoil=debug",
            "counterfoil_engine",
            "warn,counterfoil_flow=trace",
            "[attempt]=info",
            "off",
        ] {
            assert_eq!(unknown_levels(good), [""; 0], "{good}");
        }
        let warnings = unknown_levels("inof,error");
        assert_eq!(warnings.len(), 1);
        assert!(warnings[0].contains("'inof'") && warnings[0].contains("'info'"), "{warnings:?}");
    }

    #[test]
    fn what_is_not_understood_of_a_filter_is_said() {
        let (filter, warnings) = understood("info,bogus===,counterfoil=debug");
        assert_eq!(filter, "info,counterfoil=debug");
        assert_eq!(warnings.len(), 1);
        assert!(warnings[0].contains("'bogus==='"), "{warnings:?}");
    }

    #[test]
    fn a_line_of_the_log_is_one_line() {
        assert_eq!(text_line("INFO a\nINFO b\u{1b}[2J\n"), "INFO a\\nINFO b\\u{1b}[2J\n");
        let line = message_line("a\nb\u{202e}\n");
        assert_eq!(line.lines().count(), 1);
        let parsed: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(parsed["fields"]["message"], "a\nb\u{202e}");
        assert_eq!(parsed["level"], "INFO");
        for (text, level) in [("error: no such file", "ERROR"), ("warning: old", "WARN")] {
            assert_eq!(self::level(text), level);
        }
    }
}
