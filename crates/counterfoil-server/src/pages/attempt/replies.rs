//! The replies of an attempt, and what is wrong with one of them, place by place.

use super::Query;
use super::repairs::{MAX_REQUEST, Repair, fate};
use crate::excerpt::{self, Excerpt, Part};
use crate::folders::RunPlace;
use crate::format::{self, Mark};
use crate::pages::filters;
use crate::revalidation::{MAX_VIOLATIONS, RunContract};
use crate::site::Site;
use askama::Template;
use counterfoil_contract::Violation;
use counterfoil_contract::text::pluralize;
use counterfoil_engine::{Attempt, TranscriptError, TranscriptReader, TranscriptText};

/// The most bytes of a reply that a page looks at. The API has all.
const MAX_REPLY: u64 = 64 << 20;
/// The lines of a reply on a page.
const LINES: usize = 200;
/// The lines that are shown before one that an address names.
const LINES_BEFORE: usize = 5;
/// The most characters of a prompt that a page shows. The API has the whole.
const MAX_PROMPT: usize = 20_000;
/// The most places that a search shows.
const MAX_FOUND: usize = 50;

/// The replies of an attempt.
#[derive(Template)]
#[template(path = "attempt-replies.html")]
pub(super) struct Replies {
    tabs: Vec<Tab>,
    /// Whether only its checks have outputs, which are shown with them.
    is_left_out: bool,
    /// Whether an agent replied. Of any other step it is the output, which nobody asked for.
    is_agent: bool,
    /// What a text is called.
    name: &'static str,
    /// How a step without an agent went: the text of one that failed is accepted.
    mark: Mark,
    /// Whether a reply may follow.
    is_at_work: bool,
    number: usize,
    address: String,
    /// The page with the reply that is shown. Its query can be continued.
    reply_page: String,
    status: String,
    why: String,
    model: String,
    violations: Vec<Wrong>,
    more_violations: usize,
    /// Whether the violations come from validating the reply again.
    is_validated_again: bool,
    /// Why it was not validated again; empty if it was, or need not be.
    not_validated: String,
    prompt: String,
    prompt_is_cut: bool,
    prompt_address: String,
    reply_address: String,
    /// What the agent was asked then, and what came back; none for the last reply.
    repair: Option<Repair>,
    /// Whether the text is shown at once: it is asked for, or there is nothing else to see.
    is_text_open: bool,
    text: Excerpt,
    /// The line that is marked; 0 for none.
    target: usize,
    first_line: usize,
    last_line: usize,
    total_lines: usize,
    /// Its bytes and lines.
    size: String,
    find: String,
    found: Vec<Found>,
    /// Whether there are more places than are shown.
    has_more_found: bool,
    unreadable: String,
}

struct Tab {
    number: usize,
    address: String,
    is_current: bool,
    mark: Mark,
}

/// A violation and its place in the reply.
struct Wrong {
    number: usize,
    code: String,
    pointer: String,
    message: String,
    expected: String,
    received: String,
    hint: String,
    line: usize,
    excerpt: Option<Excerpt>,
    /// What became of it in the next reply, if that is known.
    fate: Option<Mark>,
}

/// A place at which a text was found.
struct Found {
    line: usize,
    address: String,
    parts: Vec<Part>,
}

pub(super) fn replies(
    (site, place): (&Site, &RunPlace),
    (attempt, is_at_work): (&Attempt, bool),
    contract: Option<RunContract<'_>>,
    query: &Query,
) -> Replies {
    let run = format::encode(&place.run);
    let id = format::encode(&format::attempt_id(&attempt.path, attempt.n));
    let address = format!("/runs/{run}/attempts/{id}");
    let is_agent = attempt.agent.is_some();
    let count = attempt.replies.len();
    let number = if query.reply == 0 { last_reply(attempt) } else { query.reply.min(count) };
    let tabs = attempt.replies.iter().enumerate().map(|(at, reply)| Tab {
        number: at + 1,
        address: format!("{address}?reply={}#replies", at + 1),
        is_current: at + 1 == number,
        mark: format::reply(&reply.status),
    });
    let api = format!("/api/v1/runs/{run}/attempts/{id}/replies/{number}");
    let mut page = Replies {
        tabs: tabs.collect(),
        is_left_out: !is_agent && count == 0 && !attempt.checks.is_empty(),
        is_agent,
        name: if is_agent { "reply" } else { "output" },
        mark: format::attempt(attempt),
        is_at_work,
        number,
        status: String::new(),
        why: String::new(),
        model: String::new(),
        violations: Vec::new(),
        more_violations: 0,
        is_validated_again: false,
        not_validated: String::new(),
        prompt: String::new(),
        prompt_is_cut: false,
        prompt_address: format!("{api}/prompt"),
        reply_address: format!("{api}/text"),
        repair: None,
        is_text_open: query.line > 0 || query.from > 0 || !query.find.trim().is_empty(),
        text: Excerpt::default(),
        target: query.line,
        first_line: 0,
        last_line: 0,
        total_lines: 0,
        size: String::new(),
        find: query.find.clone(),
        found: Vec::new(),
        has_more_found: false,
        unreadable: String::new(),
        reply_page: format!("{address}?reply={number}"),
        address,
    };
    let Some(reply) = number.checked_sub(1).and_then(|at| attempt.replies.get(at)) else {
        return page;
    };
    page.status = format::cell(&reply.status);
    page.why = format::text(&reply.why);
    page.model = format::cell(reply.model.as_deref().unwrap_or_default());
    let files = TranscriptReader::new(place.engine.journal().folder());
    if is_agent {
        page.fill_prompt(files.prompt_text(reply, &site.verified));
    }
    let fate_of = |violation: &Violation| fate(attempt, number, violation);
    let opened = files.reply_text(reply, &site.verified);
    match opened.and_then(|text| Ok((text.whole(MAX_REPLY)?, text.size()))) {
        Ok((Some(text), _)) => {
            if reply.status == "cancelled" && text.is_empty() {
                "– cancelled, no reply".clone_into(&mut page.status);
            }
            if number == count {
                page.fill_violations(&recorded(attempt), &text, fate_of);
            } else if let Some(contract) = contract.filter(|_| reply.status != "accepted") {
                page.is_validated_again = true;
                match site.validated.of(&site.checks, contract, &text) {
                    Ok(again) => {
                        page.fill_violations(&again.violations, &text, fate_of);
                        page.more_violations = again.total.saturating_sub(again.violations.len());
                    }
                    Err(why) => why.clone_into(&mut page.not_validated),
                }
            }
            page.is_text_open |= page.violations.is_empty();
            page.repair = attempt.replies.get(number).map(|next| {
                let request = begin(files.prompt_text(next, &site.verified), MAX_REQUEST);
                Repair::new(number + 1, next, &page.address, request)
            });
            page.fill_text(&text, query);
        }
        Ok((None, size)) => {
            page.size = format!("{size} bytes");
            page.unreadable = format!("it has {size} bytes, and only the raw text shows so many");
        }
        Err(why) => page.unreadable = format::text(&why.to_string()),
    }
    page
}

impl Replies {
    /// Adds what is wrong with the reply.
    fn fill_violations(
        &mut self,
        violations: &[Violation],
        text: &[u8],
        fate_of: impl Fn(&Violation) -> Option<Mark>,
    ) {
        self.more_violations = violations.len().saturating_sub(MAX_VIOLATIONS);
        let shown = violations.iter().take(MAX_VIOLATIONS).enumerate();
        let wrong = |(at, violation): (usize, &Violation)| Wrong {
            fate: fate_of(violation),
            ..wrong(at + 1, violation, text)
        };
        self.violations = shown.map(wrong).collect();
    }

    /// Adds what the agent was asked.
    fn fill_prompt(&mut self, prompt: Result<TranscriptText, TranscriptError>) {
        match begin(prompt, MAX_PROMPT) {
            Ok((shown, is_cut)) => {
                self.prompt_is_cut = is_cut;
                self.prompt = format::text(&shown);
            }
            Err(why) => {
                let why = format::text(&why.to_string());
                self.prompt = format!("The prompt cannot be read: {why}");
            }
        }
    }

    /// Adds the lines of the reply, and the places at which a text was found.
    fn fill_text(&mut self, text: &[u8], query: &Query) {
        self.total_lines = text.split(|byte| *byte == b'\n').count();
        let (bytes, lines) = (pluralize(text.len(), "byte"), pluralize(self.total_lines, "line"));
        self.size = format!("{bytes}, {lines}");
        let wanted = query.find.trim();
        self.text = match query.at {
            // A line can be as long as the reply.
            Some(at) if !wanted.is_empty() => excerpt::around(text, at, at + wanted.len()),
            _ => {
                let before = query.line.saturating_sub(LINES_BEFORE);
                let first = if query.from > 0 { query.from } else { before };
                excerpt::lines_from(text, first.clamp(1, self.total_lines), LINES)
            }
        };
        self.first_line = self.text.lines.first().map_or(1, |line| line.number);
        self.last_line = self.text.lines.last().map_or(self.first_line, |line| line.number);
        if !wanted.is_empty() {
            self.find_in(text, wanted);
        }
    }

    /// Adds the places at which a text is found, with what is around them.
    fn find_in(&mut self, text: &[u8], wanted: &str) {
        let (mut line, mut counted) = (1, 0);
        for at in memchr::memmem::find_iter(text, wanted) {
            if self.found.len() == MAX_FOUND {
                self.has_more_found = true;
                return;
            }
            line += memchr::memchr_iter(b'\n', &text[counted..at]).count();
            counted = at;
            let pairs = [
                ("reply", self.number.to_string()),
                ("find", wanted.to_owned()),
                ("at", at.to_string()),
            ];
            let query = serde_urlencoded::to_string(pairs).unwrap_or_default();
            self.found.push(Found {
                line,
                address: format!("{}?{query}#L{line}", self.address),
                parts: excerpt::row_around(text, at, at + wanted.len()),
            });
        }
    }
}

/// The number of the reply that is shown first: the last one, if possible one that came.
fn last_reply(attempt: &Attempt) -> usize {
    let came = attempt.replies.iter().rposition(|reply| reply.status != "cancelled");
    came.map_or(attempt.replies.len(), |at| at + 1)
}

/// The first characters of a text, and whether it has more.
fn begin(
    text: Result<TranscriptText, TranscriptError>,
    characters: usize,
) -> Result<(String, bool), TranscriptError> {
    let text = text?;
    let size = text.size();
    // A character has at most four bytes.
    let bytes = if size == 0 { Vec::new() } else { text.read_at(0, 4 * characters)? };
    let read = String::from_utf8_lossy(&bytes);
    let shown: String = read.chars().take(characters).collect();
    let is_cut = shown.len() < read.len() || (bytes.len() as u64) < size;
    Ok((shown, is_cut))
}

/// The violations that are recorded: those of the last reply.
/// Those of an earlier reply follow from its text.
fn recorded(attempt: &Attempt) -> Vec<Violation> {
    let violations = attempt.violations.iter();
    violations.filter_map(|violation| serde_json::from_value(violation.clone()).ok()).collect()
}

fn wrong(number: usize, violation: &Violation, text: &[u8]) -> Wrong {
    Wrong {
        number,
        code: violation.code.to_string(),
        pointer: format::cell(&violation.pointer),
        message: format::text(&violation.message),
        expected: format::text(&violation.expected),
        received: format::text(&violation.received),
        hint: format::text(&violation.hint),
        line: violation.span.map_or(0, |span| span.line),
        excerpt: violation.span.map(|span| excerpt::around(text, span.start, span.end)),
        fate: None,
    }
}
