//! Selects the result of a reply. A result can be submitted through the tool, returned as the
//! program's own structured output, or written in the text. All of them are validated against the
//! contract. No I/O.
//!
//! The last submission counts. Without submissions the structured output counts, and without either
//! the text. If what counts was refused, the agent is asked for the result again, whatever another
//! channel gives: what was refused may say what the other one leaves out. Where the reply
//! contradicts itself, and where the result is a copy of an earlier result of the run, the agent is
//! asked once: the report is rejected with a question. Where unknown fields are refused, so is a
//! result that leaves out a problem which such a field reported.

use crate::submissions::Submission;
use counterfoil_contract::policy::UnknownFields;
use counterfoil_contract::question::{ReportedProblems, ask_about_copy, contradiction, is_copy};
use counterfoil_contract::report::SalvagedItems;
use counterfoil_contract::shown::Shown;
use counterfoil_contract::text::pluralize;
use counterfoil_contract::{Code, Context, Contract, Policy, Report, Status};
use counterfoil_flow::{BoundRule, Channel, QuotedValue, apply_rules};
use serde_json::Value;
use std::mem::discriminant;
use std::sync::Arc;

/// The candidates for the result of one reply.
#[derive(Clone, Copy, Debug, Default)]
pub struct ResultCandidates<'o> {
    /// The text of the reply: its last message.
    pub text: &'o [u8],
    /// All messages that may have the result, if there are several. They are read if the last one
    /// has nothing.
    pub messages: Option<&'o [u8]>,
    /// The result from the program's own structured output.
    pub structured: Option<&'o Value>,
    /// The results that were submitted, in order.
    pub submissions: &'o [Submission],
    /// What is known of the attempt.
    pub context: Option<&'o Arc<Context>>,
}

/// The result that was selected.
#[derive(Clone, Debug)]
pub struct SelectedResult {
    /// The report on the selected result.
    pub report: Report,
    /// The channel of the selected result.
    pub channel: Channel,
    /// Contradictions between the channels, and rejected submissions.
    pub notes: Vec<String>,
    /// The items of every attempt of the reply that was refused or that the agent is asked about.
    pub items: SalvagedItems,
    /// Whether the messages before the last one were read.
    pub read_earlier: bool,
}

impl SelectedResult {
    fn new(report: Report, channel: Channel, notes: Vec<String>) -> Self {
        Self { report, channel, notes, items: SalvagedItems::default(), read_earlier: false }
    }
}

/// Selects the results of the replies of one attempt. It remembers what the agent was asked, so
/// that nothing is asked twice.
pub struct ResultSelector<'c> {
    contract: &'c Contract,
    policy: Policy,
    rules: &'c [BoundRule],
    shown: Shown,
    quotes: &'c [QuotedValue],
    asked_about_channels: bool,
    asked_about_copies: Vec<Value>,
    problems: ReportedProblems,
}

impl<'c> ResultSelector<'c> {
    /// A selector for an attempt. `prompt` is the first prompt: later ones quote the agent's own
    /// replies. `quotes` are the values of the run that it contains.
    pub fn new(
        contract: &'c Contract,
        rules: &'c [BoundRule],
        prompt: &str,
        quotes: &'c [QuotedValue],
    ) -> Self {
        let values = quotes.iter().map(|quote| &quote.value);
        Self {
            contract,
            policy: contract.policy().clone(),
            rules,
            shown: Shown::with_prompts(contract, &[prompt]).except(values),
            quotes,
            asked_about_channels: false,
            asked_about_copies: Vec::new(),
            problems: ReportedProblems::default(),
        }
    }

    /// The same selector with another answer to unknown fields than the contract's.
    #[must_use]
    pub fn with_unknown_fields(mut self, unknown_fields: UnknownFields) -> Self {
        self.policy.unknown_fields = unknown_fields;
        self
    }

    /// Selects the result of the next reply.
    pub fn select(&mut self, mut candidates: ResultCandidates<'_>) -> SelectedResult {
        let policy = match candidates.context {
            Some(context) => self.policy.with_context(context),
            None => self.policy.clone(),
        };
        let mut text = self.read_text(candidates.text, &policy);
        let is_only_text = candidates.structured.is_none() && candidates.submissions.is_empty();
        let all = candidates.messages.filter(|_| is_only_text && text.status == Status::Absent);
        let all = all.map(|messages| (messages, self.read_text(messages, &policy)));
        let all = all.filter(|(_, report)| report.status != Status::Absent);
        let read_earlier = all.is_some();
        if let Some((messages, report)) = all {
            (candidates.text, text) = (messages, report);
        }
        let submitted: Vec<Report> =
            candidates.submissions.iter().map(|one| self.validate(&one.value, &policy)).collect();
        let structured = candidates.structured.map(|value| self.validate(value, &policy));
        // One event for each rejection: a channel that does not count rejects nothing.
        for report in &submitted {
            self.contract.log_rejection(report);
        }
        let is_logged = submitted.last().is_some_and(|report| !report.is_accepted());
        let (accepted, refused): (Vec<&Report>, Vec<&Report>) =
            submitted.iter().chain(&structured).partition(|report| report.is_accepted());
        let (accepted, mut items) = (self.items(&accepted), self.items(&refused));
        self.note_problems(&items, &policy);
        let selected = self.select_channel(text, submitted, structured, candidates.text);
        let mut selected = self.ask_about_copy(selected);
        selected.read_earlier = read_earlier;
        if read_earlier {
            selected.notes.push(
                "its last message has no result; the messages before it were read".to_owned(),
            );
        }
        let all_items = |selector: &Self| {
            let mut all = accepted.clone();
            all.extend(selector.contract.salvage_text(candidates.text, &policy, &selector.shown));
            all
        };
        let codes = selected.report.codes();
        let is_accepted = selected.report.is_accepted();
        // A copy has the items of somebody else.
        if !is_accepted && !codes.contains(&Code::CopyOfEarlier) {
            items.extend(all_items(self));
        }
        // Of two results that differ the agent says which one it means.
        let asks = [Code::CopyOfEarlier, Code::ChannelsDiffer, Code::DifferingResults];
        if !codes.iter().any(|code| asks.contains(code)) {
            self.note_problems(&items, &policy);
            selected.report = self.problems.ask_about_left_out(selected.report);
            if is_accepted && !selected.report.is_accepted() {
                items.extend(all_items(self));
            }
        }
        selected.items = items;
        if !(is_logged && selected.channel == Channel::Submitted) {
            self.contract.log_rejection(&selected.report);
        }
        selected
    }

    fn read_text(&self, text: &[u8], policy: &Policy) -> Report {
        let mut report = self.contract.check_bytes_shown_quietly(text, policy, &self.shown);
        apply_rules(self.rules, self.contract, &mut report);
        report
    }

    fn note_problems(&mut self, items: &SalvagedItems, policy: &Policy) {
        if policy.unknown_fields == UnknownFields::Refuse {
            for result in &items.results {
                self.problems.note(result);
            }
        }
    }

    fn items(&self, reports: &[&Report]) -> SalvagedItems {
        let mut items = SalvagedItems::default();
        for report in reports {
            items.extend(self.contract.salvage_report(report));
        }
        items
    }

    fn validate(&self, value: &Value, policy: &Policy) -> Report {
        let mut report = self.contract.check_value_shown_quietly(value, policy, &self.shown);
        apply_rules(self.rules, self.contract, &mut report);
        report
    }

    fn select_channel(
        &mut self,
        text: Report,
        mut submitted: Vec<Report>,
        structured: Option<Report>,
        bytes: &[u8],
    ) -> SelectedResult {
        let count = submitted.len();
        let accepted = submitted.iter().filter(|report| report.value.is_some()).count();
        let mut notes: Vec<String> = rejected_note(count - accepted).into_iter().collect();
        let (report, channel, others) = match (submitted.pop(), structured) {
            (Some(report), structured) => (
                report,
                Channel::Submitted,
                vec![("structured output", structured), ("final text", Some(text))],
            ),
            (None, Some(report)) => (report, Channel::Native, vec![("final text", Some(text))]),
            (None, None) => return SelectedResult::new(text, Channel::Text, notes),
        };
        if report.value.is_some() {
            let selected = SelectedResult::new(report, channel, notes);
            return self.ask_about_channels(selected, &others, bytes);
        }
        if accepted > 0 {
            notes.push("the last submission was rejected after an accepted one".to_owned());
        }
        let mut valid =
            others.iter().filter(|(_, other)| other.as_ref().is_some_and(Report::is_accepted));
        if let Some((name, _)) = valid.next() {
            notes.push(format!("the {name} is valid, and does not count beside a rejected result"));
        }
        SelectedResult::new(report, channel, notes)
    }

    /// Asks about a value that another channel gives differently, once. After that it is only
    /// noted.
    fn ask_about_channels(
        &mut self,
        mut selected: SelectedResult,
        others: &[(&str, Option<Report>)],
        text: &[u8],
    ) -> SelectedResult {
        for (channel, other) in others {
            let Some(other) = other else { continue };
            let other = with_rejected_value(other, text, &selected.report);
            let Some(found) = contradiction(&selected.report, &other) else { continue };
            selected.notes.push(format!("a contradiction: {}", found.describe(channel)));
            if !self.asked_about_channels {
                self.asked_about_channels = true;
                selected.report = found.ask(selected.report, channel);
                break;
            }
        }
        selected
    }

    /// Asks about a copy of an earlier result, once. It counts when it is sent again.
    fn ask_about_copy(&mut self, mut selected: SelectedResult) -> SelectedResult {
        let Some(value) = selected.report.value.clone() else { return selected };
        if self.asked_about_copies.contains(&value) {
            return selected;
        }
        let mut earlier = self.quotes.iter().filter(|quote| !quote.input);
        let copied = earlier.find(|quote| is_copy(self.contract, &value, &quote.value));
        if let Some(quote) = copied {
            selected.notes.push(format!("the result equals `{}`", quote.name));
            selected.report = ask_about_copy(selected.report, &quote.name);
            self.asked_about_copies.push(value);
        }
        selected
    }
}

fn rejected_note(count: usize) -> Option<String> {
    (count > 0).then(|| format!("{} rejected", pluralize(count, "submission")))
}

/// A report on the text with the values that a rejected result gives. A value of another kind, such
/// as a list in a remark where the result is an object, is not an attempt at the same result.
fn with_rejected_value(report: &Report, text: &[u8], selected: &Report) -> Report {
    let raw = report.provenance.span.filter(|_| report.status == Status::Rejected);
    let raw = raw.and_then(|span| text.get(span.start..span.end));
    let value: Option<Value> = raw.and_then(|raw| serde_json::from_slice(raw).ok());
    let kind = selected.value.as_ref().map(discriminant);
    let value = value.filter(|value| Some(discriminant(value)) == kind);
    Report { value: report.value.clone().or(value), ..report.clone() }
}

#[cfg(test)]
mod tests;
