//! Keeps open pages current: a page consists of sections, and a section is sent again when it has
//! changed.
//!
//! However many browsers show a page, it is made once for each change. A message has the version of the
//! page as its id. A browser that lost its connection names the last one, and gets every section again
//! if the page is another one since: nothing is missing then, and nothing is there twice.

use crate::pages::{Page, Rendered};
use crate::problem::Problem;
use crate::site::Site;
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures_util::{Stream, stream};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// How often it is looked whether a page has changed.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// The interval of messages that keep an idle connection open.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// The maximum number of pages that are followed at the same time.
const MAX_PAGES: usize = 500;

/// A page as it was sent last.
type Current = Arc<Rendered>;

/// The pages that are open in browsers.
pub(crate) struct LivePages {
    site: Arc<Site>,
    pages: Mutex<Pages>,
}

#[derive(Default)]
struct Pages {
    followed: BTreeMap<Page, watch::Sender<Option<Current>>>,
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
    fn follow(self: &Arc<Self>, page: &Page) -> Result<watch::Receiver<Option<Current>>, Problem> {
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = pages.followed.get(page) {
            return Ok(sender.subscribe());
        }
        if pages.is_closed || pages.followed.len() >= MAX_PAGES {
            return Err(Problem::new(
                axum::http::StatusCode::SERVICE_UNAVAILABLE,
                "busy",
                "the server cannot follow more pages",
            ));
        }
        let (sender, receiver) = watch::channel(None);
        pages.followed.insert(page.clone(), sender);
        tokio::spawn(look(Arc::clone(self), page.clone()));
        Ok(receiver)
    }

    /// Hands a page to those who follow it. False if nobody does any more.
    fn publish(&self, page: &Page, rendered: Option<Current>) -> bool {
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(sender) = pages.followed.get(page) else { return false };
        if sender.receiver_count() == 0 {
            pages.followed.remove(page);
            return false;
        }
        if let Some(rendered) = rendered {
            sender.send_replace(Some(rendered));
        }
        true
    }
}

/// Makes a page again whenever its runs have changed, as long as somebody follows it.
async fn look(live: Arc<LivePages>, page: Page) {
    let (mut stamp, mut wrong) = (None, None);
    let mut last: Option<Current> = None;
    loop {
        let (asked, before) = (page.clone(), stamp.clone());
        let looked = Arc::clone(&live.site)
            .blocking(move |site| {
                let now = asked.stamp(site)?;
                if before.as_ref() == Some(&now) {
                    return Ok((now, None));
                }
                Ok((now, Some(asked.render(site)?)))
            })
            .await;
        let changed = match looked {
            Ok((now, rendered)) => {
                stamp = Some(now);
                let rendered = rendered.map(Arc::new);
                rendered.filter(|rendered| last.as_ref() != Some(rendered))
            }
            Err(problem) => {
                if wrong.as_deref() != Some(problem.detail()) {
                    tracing::warn!(detail = problem.detail(), "a page cannot be made");
                    wrong = Some(problem.detail().to_owned());
                }
                None
            }
        };
        if let Some(rendered) = &changed {
            last = Some(Arc::clone(rendered));
        }
        if !live.publish(&page, changed) {
            return;
        }
        tokio::time::sleep(POLL_INTERVAL).await;
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
    let page = match Page::parse(path, Some(query)) {
        Ok(page) => page,
        Err(problem) => return problem.into_answer(),
    };
    // A page that does not exist is an error, and not a stream without messages.
    let asked = page.clone();
    let looked = Arc::clone(&live.site).blocking(move |site| asked.stamp(site).map(drop));
    let found = looked.await.and_then(|()| live.follow(&page));
    match found {
        Ok(receiver) => {
            let keep_alive = KeepAlive::new().interval(KEEP_ALIVE);
            Sse::new(messages(receiver, have)).keep_alive(keep_alive).into_response()
        }
        Err(problem) => problem.into_answer(),
    }
}

/// The version of the page that the browser has, and the query of the page itself.
fn split_version(query: &str) -> (&str, &str) {
    let (first, rest) = query.split_once('&').unwrap_or((query, ""));
    first.strip_prefix("have=").map_or(("", query), |have| (have, rest))
}

/// The messages for one browser, which has a version of the page.
fn messages(
    mut receiver: watch::Receiver<Option<Current>>,
    have: String,
) -> impl Stream<Item = Result<Event, Infallible>> {
    receiver.mark_changed();
    let sent: Option<Current> = None;
    stream::unfold((receiver, sent, have), |(mut receiver, mut sent, have)| async move {
        loop {
            receiver.changed().await.ok()?;
            let current = receiver.borrow_and_update().clone();
            let Some(current) = current else { continue };
            let version = current.version();
            let message = match &sent {
                None if version == have => String::new(),
                sent => current.changes_since(sent.as_deref()),
            };
            sent = Some(current);
            if !message.is_empty() {
                let event = Event::default().id(version).data(message);
                return Some((Ok(event), (receiver, sent, have)));
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
}
