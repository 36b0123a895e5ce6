//! Files whose bytes are not those of their blobs: ends of lines, filters, Git LFS.

use super::*;
use std::time::Duration;

#[test]
fn line_ends_are_compared_as_git_does() {
    let repo = TestRepo::new();
    repo.write(".gitattributes", "*.txt text=auto\n*.crlf eol=crlf\n*.raw -text\n");
    repo.write("lines.txt", "one\r\ntwo\r\n");
    repo.write("dos.crlf", "one\r\ntwo\r\n");
    repo.write("unix.raw", "one\ntwo\n");
    repo.write("unix.txt", "one\ntwo\n");
    repo.commit("lines");
    let mut snapshotter = repo.snapshotter();
    let before = snapshotter.snapshot();
    let read = |snapshotter: &Snapshotter, name: &str| {
        snapshotter.content(&before, Path::new(name)).unwrap().unwrap()
    };
    assert_eq!(read(&snapshotter, "dos.crlf"), b"one\r\ntwo\r\n");
    // Written again as they were, and with the line ends that git takes for the same.
    repo.write("lines.txt", "one\r\ntwo\r\n");
    repo.write("dos.crlf", "one\r\ntwo\r\n");
    repo.write("unix.txt", "one\r\ntwo\r\n");
    assert_eq!(changed(&mut snapshotter, &before), no_changes());
    repo.write("unix.raw", "one\r\ntwo\r\n");
    assert_eq!(changed(&mut snapshotter, &before), ["M unix.raw"]);
    // What the attributes say later does not matter.
    repo.write(".gitattributes", "* text=auto\n");
    assert_eq!(changed(&mut snapshotter, &before), ["M .gitattributes", "M unix.raw"]);
    repo.remove("dos.crlf");
    assert_eq!(snapshotter.restore(&before, &["dos.crlf".into()]), []);
    assert_eq!(fs::read(repo.at("dos.crlf")).unwrap(), b"one\r\ntwo\r\n");
}

#[test]
fn no_filter_runs_and_what_it_would_convert_is_compared_by_its_bytes() {
    let repo = TestRepo::new();
    let ran = repo.at(".git/ran");
    let filter = |letters: &str| format!("echo ran >> {}; tr {letters}", ran.display());
    repo.write(".gitattributes", "*.up filter=up\n");
    repo.git(&["config", "filter.up.clean", &filter("A-Z a-z")]);
    repo.git(&["config", "filter.up.smudge", &filter("a-z A-Z")]);
    repo.git(&["config", "filter.up.required", "true"]);
    repo.write("loud.up", "LOUD\n");
    repo.write("racy.up", "RACY\n");
    repo.commit("filtered");
    // So that the times of one of them show that it is unchanged.
    std::thread::sleep(Duration::from_millis(120));
    repo.write("racy.up", "RACY\n");
    fs::remove_file(&ran).unwrap();
    let keep = tempfile::tempdir().unwrap();
    let mut snapshotter = repo.keeping(&keep);
    let before = snapshotter.snapshot();
    let content = snapshotter.content(&before, Path::new("loud.up")).unwrap().unwrap();
    assert_eq!(content, b"LOUD\n");
    repo.write("loud.up", "LOUD\n");
    assert_eq!(changed(&mut snapshotter, &before), no_changes());
    // A filter that makes everything equal to what was committed.
    repo.git(&["config", "filter.up.clean", "echo loud"]);
    repo.write("loud.up", "QUIET\n");
    repo.write("racy.up", "quiet\n");
    assert_eq!(changed(&mut snapshotter, &before), ["M loud.up", "M racy.up"]);
    let both = ["loud.up", "racy.up"].map(PathBuf::from);
    assert_eq!(snapshotter.restore(&before, &both), []);
    assert_eq!(fs::read(repo.at("loud.up")).unwrap(), b"LOUD\n");
    assert_eq!(fs::read(repo.at("racy.up")).unwrap(), b"RACY\n");
    assert!(!ran.exists());
}

#[test]
fn large_files_are_compared_by_their_pointers() {
    let repo = TestRepo::new();
    let content = "large\n";
    repo.write("plain", content);
    let output = Command::new("sha256sum").arg(repo.at("plain")).output().unwrap().stdout;
    let hash = String::from_utf8(output).unwrap()[..64].to_owned();
    repo.remove("plain");
    // As Git LFS commits it: the pointer in the index, the content in the work tree.
    let version = "version https://git-lfs.github.com/spec/v1";
    repo.write("large.bin", &format!("{version}\noid sha256:{hash}\nsize 6\n"));
    repo.commit("large");
    repo.write(".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n");
    repo.commit("attributes");
    repo.write("large.bin", content);
    repo.write(&format!(".git/lfs/objects/{}/{}/{hash}", &hash[..2], &hash[2..4]), content);
    let mut snapshotter = repo.snapshotter();
    let before = snapshotter.snapshot();
    assert_eq!(
        before.id,
        Revision::open(repo.path(), Settings::default(), "HEAD").unwrap().snapshot.id
    );
    repo.write("large.bin", "other\n");
    assert_eq!(changed(&mut snapshotter, &before), ["M large.bin"]);
    assert_eq!(snapshotter.restore(&before, &["large.bin".into()]), []);
    assert_eq!(fs::read_to_string(repo.at("large.bin")).unwrap(), content);
}
