//! The whole text of a reply, and parts of it.

use crate::runs;
use crate::site::Site;

const TEXT: &str = "/api/v1/runs/a/attempts/Work%231/replies/1/text";

#[test]
fn a_range_is_the_part_that_was_asked_for() {
    let site = Site::start();
    let _run = runs::asking(&site.state("state"));
    let whole = site.get(TEXT).send().expect(200);
    assert_eq!(
        (whole.text().as_str(), whole.header("accept-ranges")),
        ("0123456789", Some("bytes"))
    );
    for (range, part, place) in [
        ("bytes=0-0", "0", "bytes 0-0/10"),
        ("bytes=2-4", "234", "bytes 2-4/10"),
        ("bytes=7-", "789", "bytes 7-9/10"),
        ("bytes=7-99", "789", "bytes 7-9/10"),
        ("bytes=-3", "789", "bytes 7-9/10"),
        ("bytes=-99", "0123456789", "bytes 0-9/10"),
        ("bytes=0-18446744073709551615", "0123456789", "bytes 0-9/10"),
    ] {
        let answer = site.get(TEXT).header("range", range).send().expect(206);
        assert_eq!(answer.text(), part, "{range}");
        assert_eq!(answer.header("content-range"), Some(place), "{range}");
    }
}

#[test]
fn a_range_behind_the_end_is_refused_and_others_are_ignored() {
    let site = Site::start();
    let _run = runs::asking(&site.state("state"));
    for range in ["bytes=10-", "bytes=99-100", "bytes=-0"] {
        let answer = site.get(TEXT).header("range", range).send().expect(416);
        assert_eq!(answer.header("content-range"), Some("bytes */10"), "{range}");
    }
    for range in
        ["bytes=0-1,3-4", "lines=1-2", "bytes=x-y", "bytes=-", "bytes=99999999999999999999-"]
    {
        let answer = site.get(TEXT).header("range", range).send().expect(200);
        assert_eq!(answer.text(), "0123456789", "{range}");
    }
}

#[test]
fn the_prompt_is_beside_the_reply() {
    let site = Site::start();
    let _run = runs::asking(&site.state("state"));
    let prompt = site.get(&TEXT.replace("/text", "/prompt")).send().expect(200);
    assert_eq!(prompt.text(), "What are the digits?");
}

#[test]
fn a_reply_whose_file_is_gone_is_gone() {
    let site = Site::start();
    let _run = runs::asking(&site.state("state"));
    std::fs::remove_file(site.state("state").join("transcripts/a/one.text")).unwrap();
    site.get(TEXT).send().expect_problem(410, "transcript");
    assert!(site.page("/runs/a/attempts/Work%231").contains("cannot be read"));
}
