//! The events of a run: what is recorded, and with `Accept: text/event-stream` what will be.

use super::path::PathParts;
use crate::problem::Problem;
use crate::query::parse_query;
use crate::site::Site;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use counterfoil_engine::lists::EventLine;
use futures_util::stream;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::convert::Infallible;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How often it is looked whether there are new events.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// The interval of messages that keep an idle connection open.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// The events of one answer, or of one look at the journal.
const MAX_EVENTS: usize = 1000;

/// The query of the events.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct EventsQuery {
    /// Only events after the one with this number.
    after: u64,
    /// The number of events, at most 1000.
    limit: Option<usize>,
}

/// Events of a run.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct EventsAnswer {
    /// The events, in order.
    events: Vec<EventLine>,
    /// The number of the last event that is recorded.
    last: u64,
}

pub(super) async fn events(
    State(site): State<Arc<Site>>,
    PathParts(run): PathParts<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    let query: EventsQuery = match parse_query(query.as_deref()) {
        Ok(query) => query,
        Err(problem) => return problem.into_answer(),
    };
    let accepts = |kind: &str| {
        let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
        accept.is_some_and(|accept| accept.contains(kind))
    };
    if !accepts("text/event-stream") {
        let limit = query.limit.unwrap_or(MAX_EVENTS).clamp(1, MAX_EVENTS);
        let read = site.blocking(move |site| read(site, &run, query.after, limit));
        return super::json(read.await);
    }
    // A client that lost its connection tells the last event that it has.
    let after = match headers.get("last-event-id").map(HeaderValue::to_str) {
        None => query.after,
        Some(Ok("")) => query.after,
        Some(id) => match id.ok().and_then(|id| id.parse().ok()) {
            Some(after) => after,
            None => {
                let why = "`Last-Event-ID` is not the number of an event";
                return Problem::bad_request(why).into_answer();
            }
        },
    };
    // An unknown run is an error before the stream begins.
    let found = Arc::clone(&site).blocking(move |site| Ok(site.folders.find(&run)?.run)).await;
    // Its whole id: another run may have this part of it later.
    let run = match found {
        Ok(run) => run,
        Err(problem) => return problem.into_answer(),
    };
    let follower = Follower { site, run, after, waiting: Vec::new(), is_over: false };
    let stream = stream::unfold(follower, |mut follower| async move {
        let message = follower.next().await?;
        Some((Ok::<_, Infallible>(message), follower))
    });
    Sse::new(stream).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response()
}

/// Reads the events of a run after a number.
fn read(site: &Site, run: &str, after: u64, limit: usize) -> Result<EventsAnswer, Problem> {
    let place = site.folders.find(run)?;
    let journal = place.engine.journal();
    let last = journal.last_seq(&place.run)?;
    let mut events = Vec::new();
    if after < last {
        journal.visit(&place.run, after + 1, |stored| {
            events.push(EventLine::new(&stored));
            if events.len() < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
    }
    Ok(EventsAnswer { events, last })
}

/// Follows a run for one client.
struct Follower {
    site: Arc<Site>,
    run: String,
    after: u64,
    /// Events that were read and not sent, the next one last.
    waiting: Vec<EventLine>,
    is_over: bool,
}

impl Follower {
    /// The next message; none after the end.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.waiting.pop() {
                self.after = event.seq;
                return Some(message(&event));
            }
            if self.is_over || self.site.is_stopping.load(Ordering::Relaxed) {
                return None;
            }
            let (run, after) = (self.run.clone(), self.after);
            let look = move |site: &Arc<Site>| {
                // Asked before the events are read: what happens afterwards is read the next time.
                let place = site.folders.find(&run)?;
                let info = place.engine.journal().run(&place.run)?;
                let ended = info.has_ended() && !info.is_driven();
                Ok((read(site, &run, after, MAX_EVENTS)?, ended))
            };
            match Arc::clone(&self.site).blocking(look).await {
                Ok((mut answer, ended)) => {
                    if answer.events.is_empty() && ended {
                        self.is_over = true;
                        return Some(Event::default().event("end").data(self.after.to_string()));
                    }
                    answer.events.reverse();
                    self.waiting = answer.events;
                    if self.waiting.is_empty() {
                        tokio::time::sleep(POLL_INTERVAL).await;
                    }
                }
                Err(problem) => {
                    self.is_over = true;
                    let data = serde_json::to_string(&problem).unwrap_or_default();
                    return Some(Event::default().event("problem").data(data));
                }
            }
        }
    }
}

fn message(event: &EventLine) -> Event {
    let data = serde_json::to_string(event).unwrap_or_default();
    Event::default().id(event.seq.to_string()).event("event").data(data)
}
