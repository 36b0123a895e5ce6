//! The pages that people see. A page consists of sections, so that open pages can be kept current
//! ([`crate::live`]). Pages only show: what changes a run is a form that the script of the pages sends
//! to the API.

mod all_claims;
mod attempt;
mod checked;
mod claims;
mod diff;
#[expect(
    clippy::inline_always,
    clippy::unnecessary_wraps,
    clippy::unused_self,
    unreachable_pub,
    reason = "askama generates it so"
)]
mod filters;
mod health;
mod inbox;
mod playground;
mod run;
mod runs;

pub(crate) use crate::assets;
use crate::problem::Problem;
use crate::query::parse_query;
use crate::site::Site;
pub(crate) use all_claims::{find as claims_in, matching as runs_with_claims};
use askama::Template;
pub(crate) use attempt::find as find_attempt;
use axum::extract::{RawQuery, State};
use axum::http::{Method, StatusCode, Uri};
use axum::response::{Html, IntoResponse, Response};
pub(crate) use checked::checked;
pub(crate) use diff::diff_fragment;
pub(crate) use run::events::event_rows;
use sha2::{Digest as _, Sha256};
use std::sync::Arc;

/// A page by its address.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Page {
    /// The runs of all state folders.
    Runs(runs::Query),
    /// A run.
    Run { run: String, query: run::Query },
    /// The events of a run.
    Events { run: String, query: run::events::Query },
    /// An attempt of a run.
    Attempt { run: String, attempt: String, query: attempt::Query },
    /// The claims of a run.
    Claims { run: String, query: claims::Query },
    /// The open questions of all runs.
    Inbox,
    /// The claims of all runs.
    AllClaims(all_claims::Query),
    /// The figures of all runs.
    Health(health::Query),
    /// The attempts behind a figure.
    HealthAttempts(health::attempts::Query),
    /// The form that checks texts. It is not made again: people write in it.
    Playground(playground::Query),
}

/// What has to change before a page is made again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stamp {
    /// The id of a run, its last event, whether a process drives it, and when its agents wrote last.
    Run(String, u64, bool, Option<i64>),
    /// The same, and the size of the transcript that an attempt writes.
    Attempt(String, u64, bool, u64),
    /// The changes of each state folder, and the time in seconds: a process may have ended.
    Folders(Vec<u64>, u64),
    /// A number that changes when the figures of all runs may have changed.
    Counted(u64),
    /// Nothing.
    Never,
}

/// A page, made for everybody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rendered {
    /// The title of the window.
    pub(crate) title: String,
    /// The sections in order.
    pub(crate) sections: Vec<Section>,
}

/// A part of a page that changes as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Section {
    /// The id of the element that holds it.
    pub(crate) id: &'static str,
    /// Its content.
    pub(crate) html: String,
    /// What is sent if it changes; the content as a whole if there is nothing.
    changes: Vec<Change>,
}

/// A part of an open page that is replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    /// The selector of the element.
    target: String,
    /// How htmx replaces its content.
    swap: &'static str,
    html: String,
}

impl Change {
    /// A change of the content of an element.
    pub(crate) fn new(target: &str, swap: &'static str, html: String) -> Self {
        Self { target: target.to_owned(), swap, html }
    }

    fn message(&self) -> String {
        let Self { target, swap, html } = self;
        format!("<hx-partial hx-target=\"{target}\" hx-swap=\"{swap}\">{html}</hx-partial>")
    }
}

impl Section {
    /// Fills in the template of a section.
    pub(crate) fn new(id: &'static str, template: &impl Template) -> Result<Self, Problem> {
        Ok(Self { id, html: filled(template)?, changes: Vec::new() })
    }

    /// The same section, of which these parts are sent if it changes.
    pub(crate) fn with_changes(mut self, changes: Vec<Change>) -> Self {
        self.changes = changes;
        self
    }

    /// What is sent if it has changed.
    fn changes(&self) -> Vec<Change> {
        if self.changes.is_empty() {
            return vec![Change::new(&format!("#{}", self.id), "innerMorph", self.html.clone())];
        }
        self.changes.clone()
    }
}

impl Rendered {
    /// A text that changes with the page.
    pub(crate) fn version(&self) -> String {
        let mut hash = Sha256::new();
        let sections =
            self.sections.iter().flat_map(|Section { id, html, .. }| [*id, html.as_str()]);
        for part in std::iter::once(self.title.as_str()).chain(sections) {
            hash.update(part.len().to_le_bytes());
            hash.update(part);
        }
        let hash = hex::encode(hash.finalize());
        hash.get(..16).unwrap_or(&hash).to_owned()
    }

    /// The sections that differ from those of an earlier page, for htmx: a script that is an ordinary
    /// part of the page replaces them. Empty if nothing differs.
    pub(crate) fn changes_since(&self, earlier: Option<&Self>) -> String {
        let is_new =
            |section: &&Section| !earlier.is_some_and(|earlier| earlier.sections.contains(section));
        let mut changes: Vec<Change> =
            self.sections.iter().filter(is_new).flat_map(Section::changes).collect();
        if earlier.is_none_or(|earlier| earlier.title != self.title) {
            changes.push(Change::new("#page-title", "textContent", escaped(&self.title)));
        }
        changes.iter().map(Change::message).collect()
    }
}

impl Page {
    /// The page with a path, without the slash at its beginning, and a query.
    pub(crate) fn parse(path: &str, query: Option<&str>) -> Result<Self, Problem> {
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        Ok(match parts.as_slice() {
            [] => Self::Runs(parse_query(query)?),
            ["inbox"] => Self::Inbox,
            ["claims"] => Self::AllClaims(parse_query(query)?),
            ["health"] => Self::Health(parse_query(query)?),
            ["health", "attempts"] => Self::HealthAttempts(parse_query(query)?),
            ["playground"] => Self::Playground(parse_query(query)?),
            ["runs", run] => Self::Run { run: decode(run)?, query: parse_query(query)? },
            ["runs", run, "events"] => {
                Self::Events { run: decode(run)?, query: parse_query(query)? }
            }
            ["runs", run, "claims"] => {
                Self::Claims { run: decode(run)?, query: parse_query(query)? }
            }
            ["runs", run, "attempts", attempt] => Self::Attempt {
                run: decode(run)?,
                attempt: decode(attempt)?,
                query: parse_query(query)?,
            },
            _ => return Err(Problem::not_found("there is no such page")),
        })
    }

    /// Makes the page.
    pub(crate) fn render(&self, site: &Arc<Site>) -> Result<Rendered, Problem> {
        match self {
            Self::Runs(query) => runs::render(site, query),
            Self::Run { run, query } => run::render(site, run, query),
            Self::Events { run, query } => run::events::render(site, run, query),
            Self::Attempt { run, attempt, query } => attempt::render(site, run, attempt, query),
            Self::Claims { run, query } => claims::render(site, run, query),
            Self::Inbox => inbox::render(site),
            Self::AllClaims(query) => all_claims::render(site, query),
            Self::Health(query) => health::render(site, query),
            Self::HealthAttempts(query) => health::attempts::render(site, query),
            Self::Playground(query) => playground::render(site, query),
        }
    }

    /// The part of the navigation that it belongs to.
    fn part(&self) -> &'static str {
        match self {
            Self::Inbox => "inbox",
            Self::AllClaims(_) => "claims",
            Self::Health(_) | Self::HealthAttempts(_) => "health",
            Self::Playground(_) => "playground",
            Self::Runs(_)
            | Self::Run { .. }
            | Self::Events { .. }
            | Self::Attempt { .. }
            | Self::Claims { .. } => "runs",
        }
    }

    /// Whether open pages are kept current.
    fn is_live(&self) -> bool {
        !matches!(self, Self::Playground(_))
    }

    /// What has to change before the page is made again.
    pub(crate) fn stamp(&self, site: &Arc<Site>) -> Result<Stamp, Problem> {
        match self {
            Self::Run { run, .. }
            | Self::Events { run, .. }
            | Self::Attempt { run, .. }
            | Self::Claims { run, .. } => {
                let place = site.folders.find(run)?;
                let info = place.engine.journal().run(&place.run)?;
                let is_driven = info.driver.is_some_and(|driver| driver.live);
                Ok(match self {
                    Self::Attempt { attempt, .. } => {
                        let size = site.tool_calls.size(&place, attempt);
                        Stamp::Attempt(place.run, info.last_seq, is_driven, size)
                    }
                    // Only this page says when agents wrote.
                    Self::Run { .. } => {
                        let active = site.activity.last(&place);
                        Stamp::Run(place.run, info.last_seq, is_driven, active)
                    }
                    _ => Stamp::Run(place.run, info.last_seq, is_driven, None),
                })
            }
            Self::AllClaims(_) | Self::Health(_) | Self::HealthAttempts(_) => {
                Ok(Stamp::Counted(site.counted.stamp(&site.folders)?))
            }
            Self::Playground(_) => Ok(Stamp::Never),
            Self::Runs(_) | Self::Inbox => {
                let mut changes = Vec::new();
                for (_, engine) in site.folders.engines()? {
                    changes.push(engine.journal().last_change()?);
                }
                let seconds = std::time::SystemTime::now()
                    .duration_since(std::time::UNIX_EPOCH)
                    .map_or(0, |since| since.as_secs());
                Ok(Stamp::Folders(changes, seconds))
            }
        }
    }
}

/// Decodes a part of a path.
fn decode(part: &str) -> Result<String, Problem> {
    percent_encoding::percent_decode_str(part)
        .decode_utf8()
        .map(std::borrow::Cow::into_owned)
        .map_err(|_| Problem::bad_request("the address is not UTF-8"))
}

/// A whole page.
#[derive(Template)]
#[template(path = "page.html")]
struct Whole<'a> {
    title: &'a str,
    version: &'a str,
    /// The address of the changes of this page; empty for a page that does not change.
    live: String,
    /// The part of the navigation that is current.
    current: &'a str,
    sections: &'a [Section],
}

/// A page that says what is wrong.
#[derive(Template)]
#[template(path = "problem.html")]
struct ProblemPage<'a> {
    title: &'a str,
    detail: &'a str,
    hint: &'a str,
}

/// Answers with the page of an address.
pub(crate) async fn page(
    State(site): State<Arc<Site>>,
    method: Method,
    uri: Uri,
    RawQuery(query): RawQuery,
) -> Response {
    if method != Method::GET && method != Method::HEAD {
        return Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method", "pages can only be read")
            .into_answer();
    }
    let path = uri.path().trim_start_matches('/').to_owned();
    let query_text = query.as_ref().map(|query| format!("&{query}")).unwrap_or_default();
    let live = format!("/live/{path}?");
    let made = site
        .blocking(move |site| {
            let page = Page::parse(&path, query.as_deref())?;
            Ok((page.render(site)?, page.part(), page.is_live()))
        })
        .await;
    let made = made.and_then(|(rendered, current, is_live)| {
        // The page need not be sent again if it is the same when it begins to be followed.
        let address = || format!("{live}have={}{query_text}", rendered.version());
        filled(&Whole {
            title: &rendered.title,
            version: assets::version(),
            live: if is_live { address() } else { String::new() },
            current,
            sections: &rendered.sections,
        })
    });
    made.map_or_else(|problem| problem_page(&problem), |html| Html(html).into_response())
}

/// The answer with a page that says what is wrong.
fn problem_page(problem: &Problem) -> Response {
    let template = ProblemPage {
        title: problem.title(),
        detail: problem.detail(),
        hint: problem.hint().unwrap_or_default(),
    };
    let section = Section::new("problem", &template);
    let html = section.and_then(|section| {
        filled(&Whole {
            title: problem.title(),
            version: assets::version(),
            live: String::new(),
            current: "",
            sections: &[section],
        })
    });
    match html {
        Ok(html) => (problem.status(), Html(html)).into_response(),
        Err(problem) => problem.into_answer(),
    }
}

/// The page for a browser that has no session.
pub(crate) fn sign_in() -> Response {
    let problem = Problem::new(
        StatusCode::UNAUTHORIZED,
        "sign-in",
        "This browser is not signed in, or the link was used before.",
    )
    .with_hint("In a terminal, counterfoil ui prints a new link and opens it.");
    problem_page(&problem)
}

/// A page that goes on to another one.
#[derive(Template)]
#[template(path = "signed-in.html")]
struct SignedIn<'a> {
    next: &'a str,
}

/// The page for a browser that just got its session. It goes on to a run or to the list of runs.
pub(crate) fn signed_in(run: Option<&str>) -> Response {
    let template = SignedIn { next: &after_sign_in(run) };
    filled(&template).map_or_else(Problem::into_answer, |html| Html(html).into_response())
}

/// Where a browser goes on that was signed in. Only the id of a run leads to a page of its own: the
/// link may have been made by somebody else.
fn after_sign_in(run: Option<&str>) -> String {
    let is_id = |run: &&str| {
        !run.is_empty() && run.chars().all(|char| char.is_ascii_alphanumeric() || char == '-')
    };
    run.filter(is_id).map_or_else(|| "/".to_owned(), |run| format!("/runs/{run}"))
}

/// A text as HTML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn filled(template: &impl Template) -> Result<String, Problem> {
    template.render().map_err(|error| {
        tracing::error!(%error, "a template cannot be filled in");
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "template", "the page cannot be made")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sign_in_leads_to_a_run_and_nowhere_else() {
        for (run, next) in [
            (None, "/"),
            (Some("0198-ab"), "/runs/0198-ab"),
            (Some(""), "/"),
            (Some("../../x"), "/"),
            (Some("//evil.example.com"), "/"),
            (Some("a?b"), "/"),
            (Some("a; url=x"), "/"),
        ] {
            assert_eq!(after_sign_in(run), next, "{run:?}");
        }
    }

    #[test]
    fn the_pages_about_all_runs_have_addresses() {
        for (path, query, part, is_live) in [
            ("claims", "", "claims", true),
            ("claims", "contract=a%2Fb%401&field=ok&order=refuted&from=40", "claims", true),
            ("health", "by=version", "health", true),
            ("health/attempts", "agent=x&model=&what=violations&from=40", "health", true),
            ("playground", "contract=a%2Fb", "playground", false),
            ("runs/a/claims", "q=x", "runs", true),
            ("runs/a/events", "from=9&show=trouble&state=qa", "runs", true),
        ] {
            let page = Page::parse(path, Some(query)).unwrap();
            assert_eq!((page.part(), page.is_live()), (part, is_live), "{path}?{query}");
        }
        for (path, query) in [
            ("health", "by=weather"),
            ("claims", "order=x"),
            ("health/attempts", "unknown=1"),
            ("runs/a/events", "from=x"),
        ] {
            let problem = Page::parse(path, Some(query)).unwrap_err();
            assert_eq!(problem.status(), StatusCode::BAD_REQUEST, "{path}?{query}");
        }
    }
}
