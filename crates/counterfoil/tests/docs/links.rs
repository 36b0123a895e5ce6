//! Links in the documentation lead somewhere, in the source tree and in the book, and every page of
//! `docs/` is in the book.

use crate::{markdown_below, read, root, trial};
use libtest_mimic::Trial;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use regex::Regex;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path};

const SUMMARY: &str = "docs/SUMMARY.md";
/// The folder of the book. Nothing else is on its website.
const BOOK: &str = "docs/";

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("links", "every_link_leads_somewhere", every_link_leads_somewhere),
        trial("links", "every_page_is_in_the_book", every_page_is_in_the_book),
        trial("links", "links_that_lead_nowhere_are_found", links_that_lead_nowhere_are_found),
        trial("links", "anchors_are_those_of_mdbook", anchors_are_those_of_mdbook),
    ]
}

/// A link or a picture in a page, and its line.
struct Link {
    line: usize,
    target: String,
}

fn links(text: &str) -> Vec<Link> {
    let events = Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter();
    let links = events.filter_map(|(event, range)| match event {
        Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
            let line = text[..range.start].matches('\n').count() + 1;
            Some(Link { line, target: dest_url.into_string() })
        }
        _ => None,
    });
    links.collect()
}

/// The anchors of a page: one for each heading, as mdBook names them, and those in HTML.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    let mut heading: Option<String> = None;
    let html = Regex::new(r#"\b(?:id|name)="([^"]+)""#).unwrap();
    for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::End(TagEnd::Heading(_)) => {
                let anchor = anchor(&heading.take().unwrap_or_default());
                let numbered = (1..).map(|number| format!("{anchor}-{number}"));
                let free = std::iter::once(anchor.clone())
                    .chain(numbered)
                    .find(|one| !anchors.contains(one));
                anchors.extend(free);
            }
            Event::Text(part) | Event::Code(part) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&part);
                }
            }
            Event::Html(part) | Event::InlineHtml(part) => {
                anchors.extend(html.captures_iter(&part).map(|found| found[1].to_owned()));
            }
            _ => {}
        }
    }
    anchors
}

/// The anchor of a heading.
fn anchor(heading: &str) -> String {
    let kept = |letter: char| match letter {
        '_' | '-' => Some(letter),
        _ if letter.is_alphanumeric() => Some(letter),
        _ if letter.is_whitespace() => Some('-'),
        _ => None,
    };
    heading.trim().to_lowercase().chars().filter_map(kept).collect()
}

/// The path in the source tree of a link in a page. None if it leaves the tree.
fn resolve(page: &str, link: &str) -> Option<String> {
    let folder = Path::new(page).parent()?;
    let mut parts: Vec<String> = Vec::new();
    for part in folder.join(link).components() {
        match part {
            Component::Normal(name) => parts.push(name.to_string_lossy().into_owned()),
            Component::ParentDir => drop(parts.pop()?),
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(parts.join("/"))
}

/// Says why a link leads nowhere.
fn dead(page: &str, target: &str, text_of: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let is_external =
        target.split_once(':').is_some_and(|(scheme, _)| !scheme.contains(['/', '#']));
    if is_external {
        return None;
    }
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let path = if path.is_empty() { Some(page.to_owned()) } else { resolve(page, path) };
    let Some(path) = path else { return Some("leads out of the source tree".to_owned()) };
    let Some(text) = text_of(&path) else { return Some(format!("there is no {path}")) };
    if page.starts_with(BOOK) && !path.starts_with(BOOK) {
        return Some(format!("leads out of {BOOK}, so the book does not have it; name the path"));
    }
    // GitHub lists a folder, and a website does not.
    if page.starts_with(BOOK) && Path::new(&path).extension().is_none() {
        return Some("leads to a folder, which the book does not have".to_owned());
    }
    let found = anchors(&text);
    (!anchor.is_empty() && !found.contains(anchor))
        .then(|| format!("{path} has no heading #{anchor}; it has {found:?}"))
}

fn every_link_leads_somewhere() {
    let top = ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "CHANGELOG.md"];
    let pages = top.into_iter().map(str::to_owned).chain(markdown_below("docs"));
    // Folders and files that are no pages have no anchors.
    let text_of = |path: &str| {
        let file = root().join(path);
        let exists = file.exists();
        exists.then(|| std::fs::read_to_string(file).unwrap_or_default())
    };
    let mut dead_links = Vec::new();
    let mut count = 0;
    for page in pages {
        for link in links(&read(&page)) {
            count += 1;
            if let Some(why) = dead(&page, &link.target, &text_of) {
                dead_links.push(format!("{page}:{}: {}: {why}", link.line, link.target));
            }
        }
    }
    assert!(count > 100, "only {count} links were found");
    assert!(dead_links.is_empty(), "{}", dead_links.join("\n"));
}

fn every_page_is_in_the_book() {
    let listed =
        links(&read(SUMMARY)).into_iter().filter_map(|link| resolve(SUMMARY, &link.target));
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for page in listed {
        *counts.entry(page).or_default() += 1;
    }
    let pages: Vec<String> =
        markdown_below("docs").into_iter().filter(|page| page != SUMMARY).collect();
    let missing: Vec<String> = pages
        .iter()
        .filter(|page| !counts.contains_key(*page))
        .map(|page| page.trim_start_matches("docs/").to_owned())
        .collect();
    assert!(missing.is_empty(), "not in {SUMMARY}: {}", missing.join(", "));
    let twice: Vec<&String> =
        counts.iter().filter(|(_, count)| **count > 1).map(|(page, _)| page).collect();
    assert!(twice.is_empty(), "more than once in {SUMMARY}: {twice:?}");
    // That its links lead somewhere is a test of its own.
    let book = read("book.toml");
    for page in pages.iter().filter_map(|page| page.strip_prefix(BOOK)) {
        let Some(folder) = page.strip_suffix("/README.md") else { continue };
        let redirect = format!("\"/{folder}/README.html\" = \"index.html\"");
        assert!(book.contains(&redirect), "book.toml lacks the redirect {redirect}");
    }
}

fn links_that_lead_nowhere_are_found() {
    let text_of = |path: &str| match path {
        "docs/a.md" => Some("# One `x`\n\n## Two\n\n## Two\n".to_owned()),
        "docs/pictures/a.svg" | "docs/pictures" | "A.md" => Some(String::new()),
        _ => None,
    };
    for (target, part) in [
        ("a.md", ""),
        ("./a.md#one-x", ""),
        ("../docs/a.md#two-1", ""),
        ("#two", ""),
        ("pictures/a.svg", ""),
        ("https://example.com/x#y", ""),
        ("b.md", "there is no docs/b.md"),
        ("a.md#two-2", "no heading #two-2"),
        ("#three", "no heading #three"),
        ("../../a.md", "out of the source tree"),
        ("/docs/a.md", "out of the source tree"),
        ("../A.md", "leads out of docs/"),
        ("../A.md#one", "leads out of docs/"),
        ("pictures", "leads to a folder"),
        ("pictures/", "leads to a folder"),
    ] {
        let why = dead("docs/a.md", target, &text_of).unwrap_or_default();
        assert!(why.contains(part) && why.is_empty() == part.is_empty(), "{target}: {why:?}");
    }
    // A page that is not in the book may name both.
    for target in ["A.md", "docs/a.md#two", "docs/pictures"] {
        assert_eq!(dead("B.md", target, &text_of), None, "{target}");
    }
    let page = "# A\n\n[one](x.md) and\n![two](y.svg)\n\n| [three] |\n|---|\n| `[four](z)` |\n\n[three]: w.md\n";
    let found: Vec<(usize, String)> =
        links(page).into_iter().map(|link| (link.line, link.target)).collect();
    assert_eq!(found, [(3, "x.md".to_owned()), (4, "y.svg".to_owned()), (6, "w.md".to_owned())]);
}

fn anchors_are_those_of_mdbook() {
    // What mdBook 0.5 makes of these headings.
    for (heading, expected) in [
        ("Exit codes", "exit-codes"),
        ("`check --batch`: many texts", "check---batch-many-texts"),
        ("What's new? (2026)", "whats-new-2026"),
        ("snake_case & co.", "snake_case--co"),
    ] {
        let found = anchors(&format!("## {heading}\n"));
        assert!(found.contains(expected), "{heading}: {found:?}");
    }
}
