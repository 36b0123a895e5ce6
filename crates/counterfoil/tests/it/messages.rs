//! How messages are written. The snapshots have the messages that the tests have seen.

use std::path::{Path, PathBuf};

/// The snapshots below a folder.
fn snapshots(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            snapshots(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "snap") {
            found.push(path);
        }
    }
}

#[test]
fn a_labelled_message_has_no_full_stop() {
    let mut files = Vec::new();
    snapshots(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests"), &mut files);
    let mut seen = 0;
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let is_labelled =
            |line: &&str| ["error: ", "warning: ", "note: "].iter().any(|it| line.starts_with(it));
        for message in text.lines().filter(is_labelled) {
            seen += 1;
            assert!(!message.ends_with('.'), "{}: {message}", file.display());
            // What follows a suggestion is a sentence.
            let after = message.split("'? ").nth(1).unwrap_or_default();
            assert!(!after.starts_with(char::is_lowercase), "{}: {message}", file.display());
        }
    }
    assert!(seen > 30, "{seen}");
}
