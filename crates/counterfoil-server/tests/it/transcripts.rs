//! The whole text of a reply, and parts of it.

use crate::runs::{self, Run, attempt, replied, reply};
use crate::site::Site;
use counterfoil_engine::journal::Journal;
use counterfoil_flow::Reply;
use sha2::{Digest as _, Sha256};
use std::fs::File;
use std::os::unix::fs::FileExt as _;

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

/// Its pieces are sent while they are read.
#[test]
fn a_large_reply_is_sent_whole_and_only_as_it_was_recorded() {
    let site = Site::start();
    let state = site.state("state");
    let journal = Journal::open(&state).unwrap();
    let mut run = Run::start(&journal, "a");
    let whole: String = (0..200_000).map(|number| format!("{number:07}\n")).collect();
    runs::write(&state, "transcripts/a/one", &whole);
    let sha256 = hex::encode(Sha256::digest(&whole));
    let said = Reply { text: None, sha256, ..reply("transcripts/a/one", "") };
    run.add(&[attempt(&["Work"]), replied(&["Work"], said)]);
    let transcript = TEXT.replace("/text", "/transcript");
    for target in [TEXT, &transcript] {
        let answer = site.get(target).send().expect(200);
        assert_eq!(answer.header("content-length"), Some("1600000"), "{target}");
        assert!(answer.text() == whole, "{target}");
        let part = site.get(target).header("range", "bytes=800000-1599999").send().expect(206);
        assert!(part.text() == whole[800_000..], "{target}");
    }
    // The page shows its first lines.
    assert!(site.page("/runs/a/attempts/Work%231").contains("1600000 bytes"));
    let file = File::options().write(true).open(state.join("transcripts/a/one")).unwrap();
    file.write_all_at(b"x", 1_234_567).unwrap();
    for target in [TEXT, &transcript] {
        site.get(target).header("range", "bytes=0-9").send().expect_problem(410, "transcript");
    }
}

#[test]
fn parts_of_a_transcript_are_read_that_is_larger_than_the_memory() {
    let site = Site::start();
    let state = site.state("state");
    let journal = Journal::open(&state).unwrap();
    let mut run = Run::start(&journal, "a");
    run.add(&[attempt(&["Work"])]);
    runs::write(&state, "transcripts/a/Work_1.1", "");
    let file = File::options().write(true).open(state.join("transcripts/a/Work_1.1")).unwrap();
    let size = 1_u64 << 40;
    file.write_all_at(b"end", size - 3).unwrap();
    let request = site.get(&TEXT.replace("/text", "/transcript")).header("range", "bytes=-3");
    let answer = request.send().expect(206);
    assert_eq!(answer.text(), "end");
    let place = format!("bytes {}-{}/{size}", size - 3, size - 1);
    assert_eq!(answer.header("content-range"), Some(place.as_str()));
}
