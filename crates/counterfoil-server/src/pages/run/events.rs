//! The events of a run in words, page by page. A script makes one long list of them; without it, the
//! pages and their links stay.

use super::now::Moment;
use super::timeline::offset;
use crate::event_page::{self, EventPage, Place};
use crate::format::{self, Mark};
use crate::pages::{Change, Rendered, Section, filled, filters};
use crate::problem::Problem;
use crate::query::parse_query;
use crate::site::Site;
use askama::Template;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, State};
use axum::response::{Html, IntoResponse, Response};
use counterfoil_engine::event_text::EventInWords;
use serde::Deserialize;
use std::sync::Arc;

/// The query of the page.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Query {
    /// The number of the first event of the page.
    from: Option<u64>,
    /// The number of the event after the page.
    before: Option<u64>,
    show: Show,
    /// The state that the events are about; all if it is empty.
    state: String,
}

/// Which events are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Show {
    #[default]
    All,
    Trouble,
}

impl Query {
    fn place(&self) -> Result<Place, Problem> {
        match (self.from, self.before) {
            (None, None) => Ok(Place::End),
            (Some(from), None) => Ok(Place::From(from)),
            (None, Some(before)) => Ok(Place::Before(before)),
            (Some(_), Some(_)) => {
                Err(Problem::bad_request("`from` and `before` cannot be used together"))
            }
        }
    }

    fn state(&self) -> &str {
        self.state.trim()
    }

    fn has_filter(&self) -> bool {
        self.show == Show::Trouble || !self.state().is_empty()
    }

    fn is_wanted(&self, event: &EventInWords) -> bool {
        let state = self.state();
        (self.show == Show::All || event.is_trouble())
            && (state.is_empty() || event.is_about(state))
    }

    /// The query of another page of the same events.
    fn link(&self, place: Place) -> String {
        let from = match place {
            Place::From(from) => Some(("from", from.to_string())),
            Place::Before(before) => Some(("before", before.to_string())),
            Place::End => None,
        };
        let show = (self.show == Show::Trouble).then(|| ("show", "trouble".to_owned()));
        let state = Some(("state", self.state().to_owned())).filter(|(_, name)| !name.is_empty());
        let pairs: Vec<(&str, String)> = [show, state, from].into_iter().flatten().collect();
        let query = serde_urlencoded::to_string(&pairs).unwrap_or_default();
        if query.is_empty() { String::new() } else { format!("?{query}") }
    }
}

/// What is above the events.
#[derive(Template)]
#[template(path = "run-events-head.html")]
struct Head<'a> {
    run: &'a str,
    address: &'a str,
    workflow: &'a str,
    last: u64,
    state: &'a str,
    from: String,
    only_trouble: bool,
}

/// The events of the page.
#[derive(Template)]
#[template(path = "run-events.html")]
struct Events {
    rows: String,
    is_empty: bool,
    /// For the script, which makes one list of all events; empty if only some are shown.
    list: String,
    from: u64,
    to: u64,
    last: u64,
    has_filter: bool,
    first_page: Option<String>,
    previous: Option<String>,
    next: Option<String>,
    last_page: Option<String>,
}

/// The rows of a table.
#[derive(Template)]
#[template(path = "event-rows.html")]
struct Rows {
    address: String,
    rows: Vec<Row>,
}

struct Row {
    seq: u64,
    time: Moment,
    /// The time since the start of the run.
    offset: String,
    mark: Mark,
    path: String,
    /// The address of the attempt; empty if the event is not about one.
    attempt: String,
    text: String,
}

pub(in crate::pages) fn render(
    site: &Arc<Site>,
    run: &str,
    query: &Query,
) -> Result<Rendered, Problem> {
    let place = site.folders.find(run)?;
    let info = place.engine.journal().run(&place.run)?;
    let wanted = |event: &EventInWords| query.is_wanted(event);
    let filter: Option<&dyn Fn(&EventInWords) -> bool> =
        if query.has_filter() { Some(&wanted) } else { None };
    let page = event_page::read(&place, &info.workflow, query.place()?, filter)?;
    let address = format!("/runs/{}", format::encode(&place.run));
    let workflow = format::cell(&info.workflow);
    let head = Head {
        run: &place.run,
        address: &address,
        workflow: &workflow,
        last: page.last,
        state: query.state(),
        from: query.from.map(|from| from.to_string()).unwrap_or_default(),
        only_trouble: query.show == Show::Trouble,
    };
    let link = |place: Place| format!("{address}/events{}", query.link(place));
    let (is_first, is_last) = (page.from <= 1, page.to >= page.last);
    let events = Events {
        rows: rows(&address, info.created_at, &page)?,
        is_empty: page.events.is_empty(),
        list: if query.has_filter() { String::new() } else { format!("{address}/events/rows") },
        from: page.from,
        to: page.to,
        last: page.last,
        has_filter: query.has_filter(),
        first_page: (!is_first).then(|| link(Place::From(1))),
        previous: (!is_first).then(|| link(Place::Before(page.from))),
        next: (!is_last).then(|| link(Place::From(page.to + 1))),
        last_page: (!is_last).then(|| link(Place::End)),
    };
    let mut list = Section::new("run-events", &events)?;
    if !query.has_filter() {
        // The script reads the events that it shows, so that only their number is sent.
        list = list.with_changes(vec![Change::new(
            "#events-end",
            "textContent",
            page.last.to_string(),
        )]);
    }
    let sections = vec![Section::new("run-events-head", &head)?, list];
    Ok(Rendered { title: format!("Events · {workflow}"), sections })
}

/// The rows of a page as HTML.
fn rows(address: &str, started_at: i64, page: &EventPage) -> Result<String, Problem> {
    let rows = page.events.iter().map(|event| Row {
        seq: event.seq,
        time: Moment::new(event.at),
        offset: offset(event.at, started_at),
        mark: mark(&event.sign),
        path: format::cell(&event.path),
        attempt: event
            .attempt
            .as_ref()
            .map(|attempt| format!("{address}/attempts/{}", format::encode(attempt)))
            .unwrap_or_default(),
        text: format::text(&event.text),
    });
    filled(&Rows { address: address.to_owned(), rows: rows.collect() })
}

/// What the sign of an event means.
fn mark(sign: &str) -> Mark {
    let (class, sign, word) = match sign {
        "✗" => ("bad", "✗", "trouble"),
        "↺" => ("warn", "↺", "again"),
        "✓" => ("good", "✓", "done"),
        "–" => ("mute", "–", "cancelled"),
        "?" => ("ask", "?", "question"),
        "!" => ("ask", "!", "from outside"),
        "→" => ("mute", "→", "moves on"),
        "⇠" => ("mute", "⇠", "merge"),
        _ => ("mute", "·", "note"),
    };
    Mark { class, sign, word }
}

/// The query of the rows alone.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RowsQuery {
    from: u64,
}

/// Answers with the rows of a page alone, for the script of the page.
pub(crate) async fn event_rows(
    State(site): State<Arc<Site>>,
    path: Result<Path<String>, PathRejection>,
    RawQuery(query): RawQuery,
) -> Response {
    let made = site.blocking(move |site| {
        let Ok(Path(run)) = path else {
            return Err(Problem::bad_request("the address is not UTF-8"));
        };
        let RowsQuery { from } = parse_query(query.as_deref())?;
        let place = site.folders.find(&run)?;
        let info = place.engine.journal().run(&place.run)?;
        let page = event_page::read(&place, &info.workflow, Place::From(from), None)?;
        rows(&format!("/runs/{}", format::encode(&place.run)), info.created_at, &page)
    });
    made.await.map_or_else(Problem::into_answer, |html| Html(html).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_keeps_what_is_shown_when_it_leads_to_another_one() {
        let query: Query = parse_query(Some("show=trouble&state=a%26b&from=7")).unwrap();
        assert_eq!(query.link(Place::From(101)), "?show=trouble&state=a%26b&from=101");
        assert_eq!(query.link(Place::End), "?show=trouble&state=a%26b");
        assert_eq!(Query::default().link(Place::End), "");
        assert_eq!(Query::default().link(Place::Before(9)), "?before=9");
        assert_eq!(query.place().unwrap(), Place::From(7));
        let both: Query = parse_query(Some("from=1&before=9")).unwrap();
        assert!(both.place().is_err());
        for wrong in ["from=-1", "from=x", "show=some", "page=1"] {
            assert!(parse_query::<Query>(Some(wrong)).is_err(), "{wrong}");
        }
    }
}
