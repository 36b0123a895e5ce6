//! The transcripts in the state folder.

use super::*;

#[test]
fn a_transcript_streams_to_a_file_and_is_known_by_its_hash() {
    let folder = TempDir::new().unwrap();
    let journal = Journal::open(folder.path()).unwrap();
    let mut transcript = transcript(&journal, "run-1", "step 1/try.jsonl", 1000);
    transcript.write(b"hello ").unwrap();
    let path = folder.path().join("transcripts/run-1/step_1_try.jsonl");
    assert_eq!(fs::read(&path).unwrap(), b"hello ", "what streamed in can be followed");
    transcript.write(b"world").unwrap();
    let stored = transcript.finish().unwrap();
    let expected = StoredTranscript {
        path: "transcripts/run-1/step_1_try.jsonl".into(),
        sha256: "b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9".into(),
        bytes: 11,
        truncated_at: None,
    };
    assert_eq!(stored, expected);
    assert_eq!(journal.transcripts().read(&stored).unwrap(), b"hello world");
    let json = serde_json::to_string(&stored).unwrap();
    assert_eq!(serde_json::from_str::<StoredTranscript>(&json).unwrap(), stored);

    for changed in ["hello World", "hello world!", "hello"] {
        fs::write(&path, changed).unwrap();
        assert!(
            matches!(journal.transcripts().read(&stored), Err(TranscriptError::File { .. })),
            "{changed}"
        );
    }
    fs::remove_file(&path).unwrap();
    assert!(
        journal.transcripts().read(&stored).unwrap_err().to_string().contains("cannot be read")
    );
}

#[test]
fn beyond_its_cap_a_transcript_is_counted_and_not_written() {
    let folder = TempDir::new().unwrap();
    let journal = Journal::open(folder.path()).unwrap();
    let mut transcript = transcript(&journal, "run-1", "long", 5);
    for _ in 0..3 {
        transcript.write(b"abcd").unwrap();
    }
    let stored = transcript.finish().unwrap();
    assert_eq!((stored.bytes, stored.truncated_at), (12, Some(5)));
    assert_eq!(journal.transcripts().read(&stored).unwrap(), b"abcda");
}

#[test]
fn names_stay_inside_the_folder_and_nothing_is_written_over() {
    let folder = TempDir::new().unwrap();
    let journal = Journal::open(folder.path()).unwrap();
    for (name, file) in
        [("../../x", "_.._.._x"), ("..", "_.."), ("", "_"), ("a", "a"), ("a", "a-2"), ("é", "_-2")]
    {
        let stored = transcript(&journal, "run-1", name, 0).finish().unwrap();
        assert_eq!(stored.path, format!("transcripts/run-1/{file}"));
    }
    let long = transcript(&journal, "run-1", &"x".repeat(5000), 0).finish().unwrap();
    assert!(long.path.len() < 150);
    assert!(matches!(
        journal.transcripts().create("../x", "a", 0),
        Err(TranscriptError::InvalidRun { .. })
    ));
    for path in [
        "journal.db",
        "/etc/passwd",
        "transcripts/../journal.db",
        "transcripts/run-1/../../journal.db",
    ] {
        let stored = StoredTranscript { path: path.into(), ..long.clone() };
        assert!(
            journal
                .transcripts()
                .read(&stored)
                .unwrap_err()
                .to_string()
                .contains("not in the folder"),
            "{path}"
        );
    }
}
