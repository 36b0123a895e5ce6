//! Nothing outside of a state folder can be read, whatever an address or a journal names.

use crate::runs::{self, Run, attempt, replied, reply};
use crate::site::{Site, encode};
use counterfoil_engine::journal::Journal;
use counterfoil_flow::Reply;
use std::os::unix::fs::symlink;

const SECRET: &str = "the-secret-outside";

/// A server with a secret beside the state folder, and a run with these replies.
fn site_with(replies: impl FnOnce(&Site) -> Vec<Reply>) -> Site {
    let site = Site::start();
    let journal = Journal::open(&site.state("state")).unwrap();
    let mut run = Run::start(&journal, "a");
    std::fs::write(site.folder().join("secret"), SECRET).unwrap();
    std::fs::write(site.folder().join("secret.prompt"), SECRET).unwrap();
    for (at, reply) in replies(&site).into_iter().enumerate() {
        let path = [format!("S{at}")];
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        run.add(&[attempt(&path), replied(&path, reply)]);
    }
    site
}

/// Neither the API nor the page of the attempt has the secret.
#[track_caller]
fn is_refused(site: &Site, at: usize, what: &str) {
    let id = encode(&format!("S{at}#1"));
    for part in ["text", "prompt", "transcript"] {
        let answer = site.get(&format!("/api/v1/runs/a/attempts/{id}/replies/1/{part}")).send();
        assert!(!answer.text().contains(SECRET), "{part} of {what}");
        answer.expect_problem(410, "transcript");
    }
    let page = site.page(&format!("/runs/a/attempts/{id}"));
    assert!(!page.contains(SECRET), "{what}");
    assert!(page.contains("cannot be read"), "{what}: {page}");
}

#[test]
fn references_that_lead_outside_are_refused() {
    let paths = |site: &Site| {
        let absolute = site.folder().join("secret").display().to_string();
        vec![
            "../secret".to_owned(),
            "transcripts/../../secret".to_owned(),
            "./../secret".to_owned(),
            "transcripts/a/../../../secret".to_owned(),
            format!("/{absolute}"),
            absolute,
            "../secret\0".to_owned(),
            "../secret#x".to_owned(),
            "..\\secret".to_owned(),
            "%2e%2e/secret".to_owned(),
            "~/secret".to_owned(),
            String::new(),
            ".".to_owned(),
            "transcripts".to_owned(),
        ]
    };
    let mut all = Vec::new();
    let site = site_with(|site| {
        all = paths(site);
        all.iter().map(|path| reply(path, path)).collect()
    });
    for (at, path) in all.iter().enumerate() {
        is_refused(&site, at, path);
    }
}

#[test]
fn a_link_to_a_file_outside_is_not_followed() {
    let site = site_with(|site| {
        let folder = site.state("state").join("transcripts/a");
        std::fs::create_dir_all(&folder).unwrap();
        for name in ["link.text", "link.prompt"] {
            symlink(site.folder().join("secret"), folder.join(name)).unwrap();
        }
        vec![reply("transcripts/a/link", "transcripts/a/link.text")]
    });
    is_refused(&site, 0, "a link to a file");
}

#[test]
fn a_link_to_a_folder_outside_is_not_followed() {
    // A server that is told of the run before there is a link has opened the folder already.
    let site = site_with(|_| vec![reply("transcripts/b/secret", "transcripts/b/secret")]);
    site.page("/runs/a");
    let folder = site.state("state").join("transcripts");
    std::fs::create_dir_all(&folder).unwrap();
    symlink(site.folder(), folder.join("b")).unwrap();
    is_refused(&site, 0, "a link to a folder");
}

#[test]
fn parts_of_addresses_lead_nowhere() {
    let site = Site::start();
    let _run = runs::asking(&site.state("state"));
    std::fs::write(site.folder().join("secret"), SECRET).unwrap();
    let parts = [
        "..",
        "%2e%2e",
        "%2e%2e%2f",
        "..%2f..%2fsecret",
        "%2fetc%2fpasswd",
        "a%2f..%2fa",
        "a%00",
        "%00",
        "%ff%fe",
        "a%5c..",
        "%252e%252e%252fsecret",
        "journal.db",
    ];
    for part in parts {
        for target in [
            format!("/runs/{part}"),
            format!("/runs/{part}/claims"),
            format!("/runs/{part}/events"),
            format!("/runs/{part}/events/rows?from=1"),
            format!("/runs/a/attempts/{part}"),
            format!("/{part}"),
            format!("/api/v1/runs/{part}"),
            format!("/api/v1/runs/{part}/events"),
            format!("/api/v1/runs/a/attempts/{part}"),
            format!("/api/v1/runs/a/attempts/{part}/replies/1/text"),
            format!("/api/v1/runs/a/attempts/Work%231/replies/{part}/text"),
            format!("/assets/x/{part}"),
            format!("/assets/x/{part}/Cargo.toml"),
            format!("/assets/{part}/src/lib.rs"),
            format!("/assets/{part}/../Cargo.toml"),
        ] {
            let answer = site.get(&target).send();
            assert!(matches!(answer.status, 400 | 404), "{target}: {}", answer.status);
            let text = answer.text();
            for outside in [SECRET, "root:", "[package]", "SQLite format"] {
                assert!(!text.contains(outside), "{target}: {text}");
            }
        }
    }
}

#[test]
fn what_is_not_a_number_is_a_problem_too() {
    let site = Site::start();
    let _run = runs::asking(&site.state("state"));
    let replies = "/api/v1/runs/a/attempts/Work%231/replies";
    for number in ["0", "2", "18446744073709551615"] {
        site.get(&format!("{replies}/{number}/text")).send().expect_problem(404, "not-found");
    }
    for number in ["x", "-1", "1.0", "18446744073709551616"] {
        let answer = site.get(&format!("{replies}/{number}/text")).send();
        assert!(matches!(answer.status, 400 | 404), "{number}: {}", answer.status);
        assert_eq!(answer.header("content-type"), Some("application/problem+json"), "{number}");
    }
    let answer = site.get("/api/v1/runs/%ff").send().expect(400);
    assert_eq!(answer.header("content-type"), Some("application/problem+json"));
}
