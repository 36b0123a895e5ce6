//! Keeps open pages current: a page consists of sections, and a section is sent again when it has
//! changed.
//!
//! However many browsers show a page, it is made once for each change, and so is each message. A message
//! has the version of the page as its id. A browser that lost its connection names the last one, and gets every section again
//! if the page is another one since: nothing is missing then, and nothing is there twice. If a page
//! cannot be made any more, its streams end.

use crate::pages::{Page, Rendered};
use crate::problem::Problem;
use crate::site::Site;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures_util::{Stream, stream};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// How often it is looked whether a page has changed.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// The interval of messages that keep an idle connection open.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// The maximum number of pages that are followed at the same time.
const MAX_PAGES: usize = 500;

/// At most this part of the time one page is made, so that others and the runs themselves get theirs: a
/// page that takes long is made less often.
const MAX_SHARE: u32 = 3;
/// The longest wait for that reason.
const MAX_WAIT: Duration = Duration::from_secs(2);

/// A page as it is sent to all who follow it.
#[derive(Debug)]
struct Current {
    page: Rendered,
    version: String,
    /// The messages that were made, by the version of the page that the browser has.
    messages: Mutex<Vec<(String, Bytes)>>,
}

impl Current {
    fn new(page: Rendered) -> Self {
        Self { version: page.version(), page, messages: Mutex::default() }
    }

    /// The message for a browser that has an earlier page, made once for all of them.
    fn message_since(&self, earlier: Option<&Self>) -> Bytes {
        let version = earlier.map_or("", |earlier| earlier.version.as_str());
        let mut messages = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, message)) = messages.iter().find(|(known, _)| known == version) {
            return message.clone();
        }
        let changes = self.page.changes_since(earlier.map(|earlier| &earlier.page));
        let message = Bytes::from(message(&self.version, &changes));
        messages.push((version.to_owned(), message.clone()));
        message
    }
}

/// A message of a stream; none if nothing is to be told.
fn message(id: &str, data: &str) -> String {
    if data.is_empty() {
        return String::new();
    }
    // Each of these ends a line of a stream.
    let lines = data.replace("\r\n", "\n").replace('\r', "\n");
    let lines = lines.split('\n').map(|line| format!("data: {line}\n"));
    format!("id: {id}\n{}\n", lines.collect::<String>())
}

/// What is known of a page that is followed.
#[derive(Clone, Debug, Default)]
enum Seen {
    /// Nothing yet.
    #[default]
    Nothing,
    Page(Arc<Current>),
    /// It cannot be made.
    Wrong(Problem),
}

/// The pages that are open in browsers.
pub(crate) struct LivePages {
    site: Arc<Site>,
    pages: Mutex<Pages>,
}

#[derive(Default)]
struct Pages {
    followed: BTreeMap<Page, watch::Sender<Seen>>,
    is_closed: bool,
}

impl LivePages {
    pub(crate) fn new(site: Arc<Site>) -> Arc<Self> {
        Arc::new(Self { site, pages: Mutex::default() })
    }

    /// The routes of pages that stay current.
    pub(crate) fn routes<S>(self: Arc<Self>) -> Router<S> {
        Router::new()
            .route("/live", get(follow))
            .route("/live/", get(follow))
            .route("/live/{*page}", get(follow))
            .with_state(self)
    }

    /// Ends all connections.
    pub(crate) fn close(&self) {
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        pages.is_closed = true;
        pages.followed.clear();
    }

    /// The changes of a page. The first one to follow it starts the task that looks for them.
    fn follow(self: &Arc<Self>, page: &Page) -> Result<watch::Receiver<Seen>, Problem> {
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = pages.followed.get(page) {
            return Ok(sender.subscribe());
        }
        if pages.is_closed || pages.followed.len() >= MAX_PAGES {
            return Err(busy());
        }
        let (sender, receiver) = watch::channel(Seen::Nothing);
        pages.followed.insert(page.clone(), sender);
        tokio::spawn(look(Arc::clone(self), page.clone()));
        Ok(receiver)
    }

    /// Hands a page to those who follow it. False if nobody does any more.
    fn publish(&self, page: &Page, current: Option<&Arc<Current>>) -> bool {
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(sender) = pages.followed.get(page) else { return false };
        if sender.receiver_count() == 0 {
            pages.followed.remove(page);
            return false;
        }
        if let Some(current) = current {
            sender.send_replace(Seen::Page(Arc::clone(current)));
        }
        true
    }

    /// Ends the streams of a page that cannot be made. Browsers say then that it is not current, and
    /// ask again.
    fn give_up(&self, page: &Page, problem: Problem) {
        tracing::warn!(detail = problem.detail(), "a page cannot be made");
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = pages.followed.remove(page) {
            sender.send_replace(Seen::Wrong(problem));
        }
    }
}

fn busy() -> Problem {
    Problem::new(
        axum::http::StatusCode::SERVICE_UNAVAILABLE,
        "busy",
        "the server cannot follow more pages",
    )
}

/// Makes a page again whenever its runs have changed, as long as somebody follows it.
async fn look(live: Arc<LivePages>, page: Page) {
    let mut stamp = None;
    let mut last: Option<Arc<Current>> = None;
    loop {
        let (asked, before) = (page.clone(), stamp.clone());
        let looked = Arc::clone(&live.site)
            .blocking(move |site| {
                let began = Instant::now();
                let now = asked.stamp(site)?;
                if before.as_ref() == Some(&now) {
                    return Ok((now, None, began.elapsed()));
                }
                let page = Current::new(asked.render(site)?);
                Ok((now, Some(page), began.elapsed()))
            })
            .await;
        let took = match looked {
            Ok((now, made, took)) => {
                stamp = Some(now);
                let is_new =
                    |made: &Current| last.as_ref().is_none_or(|last| last.page != made.page);
                let changed = made.filter(is_new).map(Arc::new);
                if !live.publish(&page, changed.as_ref()) {
                    return;
                }
                last = changed.or(last);
                took
            }
            // What cannot be made would otherwise stay on the screen as if it were current.
            Err(problem) => return live.give_up(&page, problem),
        };
        tokio::time::sleep(POLL_INTERVAL.max((took * (MAX_SHARE - 1)).min(MAX_WAIT))).await;
    }
}

/// Sends the sections of a page, and again whenever they change.
async fn follow(State(live): State<Arc<LivePages>>, uri: Uri, headers: HeaderMap) -> Response {
    let (have, query) = split_version(uri.query().unwrap_or_default());
    // After a lost connection, the browser has the version of the last message.
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    let have = last.filter(|id| !id.is_empty()).unwrap_or(have).to_owned();
    // The page decodes its path itself: a part of it may contain an encoded slash.
    let path = uri.path().strip_prefix("/live").unwrap_or_default().trim_start_matches('/');
    let found = match Page::parse(path, Some(query)) {
        Ok(page) => begin(&live, &page).await,
        Err(problem) => Err(problem),
    };
    match found {
        Ok(receiver) => (
            [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-cache")],
            Body::from_stream(messages(receiver, have)),
        )
            .into_response(),
        Err(problem) => problem.into_answer(),
    }
}

/// Begins to follow a page. One that does not exist or cannot be made is an error, and not a stream
/// without messages.
async fn begin(live: &Arc<LivePages>, page: &Page) -> Result<watch::Receiver<Seen>, Problem> {
    let mut receiver = live.follow(page)?;
    let seen = receiver.wait_for(|seen| !matches!(seen, Seen::Nothing)).await;
    match seen.as_deref() {
        Ok(Seen::Wrong(problem)) => return Err(problem.clone()),
        Ok(_) => {}
        Err(_) => return Err(busy()),
    }
    drop(seen);
    Ok(receiver)
}

/// The version of the page that the browser has, and the query of the page itself.
fn split_version(query: &str) -> (&str, &str) {
    let (first, rest) = query.split_once('&').unwrap_or((query, ""));
    first.strip_prefix("have=").map_or(("", query), |have| (have, rest))
}

/// The messages for one browser, which has a version of the page.
fn messages(
    mut receiver: watch::Receiver<Seen>,
    have: String,
) -> impl Stream<Item = Result<Bytes, Infallible>> {
    receiver.mark_changed();
    let sent: Option<Arc<Current>> = None;
    stream::unfold((receiver, sent, have), |(mut receiver, mut sent, have)| async move {
        loop {
            match tokio::time::timeout(KEEP_ALIVE, receiver.changed()).await {
                Ok(changed) => changed.ok()?,
                Err(_) => {
                    let comment = Bytes::from_static(b":\n\n");
                    return Some((Ok(comment), (receiver, sent, have)));
                }
            }
            let current = match &*receiver.borrow_and_update() {
                Seen::Nothing => continue,
                Seen::Page(current) => Arc::clone(current),
                Seen::Wrong(_) => return None,
            };
            let message = match &sent {
                None if current.version == have => Bytes::new(),
                sent => current.message_since(sent.as_deref()),
            };
            sent = Some(current);
            if !message.is_empty() {
                return Some((Ok(message), (receiver, sent, have)));
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_apart_from_the_query_of_the_page() {
        for (query, expected) in [
            ("have=abc&view=failed&q=x", ("abc", "view=failed&q=x")),
            ("have=abc", ("abc", "")),
            ("view=failed", ("", "view=failed")),
            ("", ("", "")),
        ] {
            assert_eq!(split_version(query), expected);
        }
    }

    #[test]
    fn a_message_has_each_line_of_its_data() {
        assert_eq!(message("v", ""), "");
        assert_eq!(message("v", "a"), "id: v\ndata: a\n\n");
        assert_eq!(
            message("v", "a\n\nb\r\nc\rd"),
            "id: v\ndata: a\ndata: \ndata: b\ndata: c\ndata: d\n\n"
        );
    }

    #[test]
    fn a_message_is_made_once_for_each_page_that_browsers_have() {
        let page =
            |title: &str| Current::new(Rendered { title: title.to_owned(), sections: Vec::new() });
        let (one, other) = (page("one"), page("other"));
        let made = other.message_since(None);
        assert_eq!(made.as_ptr(), other.message_since(None).as_ptr());
        let text = String::from_utf8(made.to_vec()).unwrap();
        assert!(text.starts_with("id: ") && text.contains("other"), "{text}");
        assert_eq!(
            other.message_since(Some(&one)).as_ptr(),
            other.message_since(Some(&one)).as_ptr()
        );
    }
}
