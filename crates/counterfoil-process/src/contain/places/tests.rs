use super::*;
use Access::{Hidden, Private, Read, Write};

fn paths(paths: &[&str]) -> Vec<PathBuf> {
    paths.iter().map(PathBuf::from).collect()
}

/// A project in a home folder, as on most machines.
fn usual() -> Surroundings {
    Surroundings {
        workspace: "/home/u/work/repo".into(),
        git: paths(&["/home/u/work/repo/.git"]),
        state: Some("/home/u/work/repo/.counterfoil".into()),
        home: Some("/home/u".into()),
        caches: paths(&["/home/u/.cargo/registry", "/home/u/.npm"]),
        temporary: paths(&["/tmp", "/dev/shm"]),
        sockets: paths(&["/run"]),
        visible: paths(&["/run/systemd/resolve"]),
        secrets: paths(&["/home/u/.ssh", "/home/u/.netrc"]),
        programs: paths(&["/usr/bin", "/home/u/.cargo/bin"]),
        files: paths(&["/home/u/.netrc"]).into_iter().collect(),
        ..Surroundings::default()
    }
}

/// The access to some paths in a policy.
fn accesses(around: &Surroundings, paths: &[&str]) -> Vec<Access> {
    let places = places(around);
    paths.iter().map(|path| access_of(&places, Path::new(path))).collect()
}

#[test]
fn the_work_tree_and_the_caches_are_writable_and_nothing_else() {
    let cases = [
        ("/home/u/work/repo/src/lib.rs", Write),
        ("/home/u/work/repo/new", Write),
        ("/home/u/work/repo/.gitignore", Write),
        ("/home/u/work/repo/.git", Read),
        ("/home/u/work/repo/.git/hooks/pre-commit", Read),
        ("/home/u/work/repo/.counterfoil/journal.db", Read),
        ("/home/u/work/other", Read),
        ("/home/u/.bashrc", Read),
        ("/home/u/.cargo/bin/cargo", Read),
        ("/home/u/.cargo/registry/index", Write),
        ("/home/u/.npm/_cacache", Write),
        ("/home/u/.ssh/id_ed25519", Hidden),
        ("/home/u/.netrc", Hidden),
        ("/usr/bin/sh", Read),
        ("/tmp/x", Private),
        ("/dev/shm/x", Private),
        ("/run/user/1000/bus", Hidden),
        ("/run/systemd/resolve/stub-resolv.conf", Read),
    ];
    let (names, expected): (Vec<&str>, Vec<Access>) = cases.into_iter().unzip();
    assert_eq!(accesses(&usual(), &names), expected);
}

/// Nothing can be mounted over what is not visible.
#[test]
fn a_secret_in_a_folder_that_is_empty_anyway_is_left_out() {
    let around = Surroundings { secrets: paths(&["/tmp/data/keys"]), ..usual() };
    assert!(places(&around).iter().all(|place| !place.path.ends_with("keys")));
    assert_eq!(accesses(&around, &["/tmp/data/keys/key"]), [Private]);
}

#[test]
fn a_place_that_changes_nothing_is_left_out() {
    let listed = places(&usual());
    let has = |path: &str| listed.iter().any(|place| place.path == Path::new(path));
    assert!(has("/home/u/work/repo/.git") && has("/home/u/.netrc"));
    assert!(!has("/home/u") && !has("/usr/bin") && !has("/home/u/.cargo/bin"), "{listed:#?}");
    let file = listed.iter().find(|place| place.path == Path::new("/home/u/.netrc"));
    assert!(file.is_some_and(|place| !place.folder));
}

#[test]
fn a_linked_worktree_of_the_state_folder_is_writable_and_its_repository_is_not() {
    let around = Surroundings {
        workspace: "/home/u/work/repo/.counterfoil/workspaces/run/one".into(),
        git: paths(&[
            "/home/u/work/repo/.counterfoil/workspaces/run/one/.git",
            "/home/u/work/repo/.git",
            "/home/u/work/repo/.git/worktrees/one",
        ]),
        ..usual()
    };
    let one = "/home/u/work/repo/.counterfoil/workspaces/run/one";
    assert_eq!(
        accesses(
            &around,
            &[
                &format!("{one}/src"),
                &format!("{one}/.git"),
                "/home/u/work/repo/.counterfoil/workspaces/run/two/src",
                "/home/u/work/repo/src",
                "/home/u/work/repo/.git/config",
                "/home/u/work/repo/.git/worktrees/one/HEAD",
            ]
        ),
        [Write, Read, Read, Read, Read, Read]
    );
}

#[test]
fn in_a_folder_for_temporary_files_what_is_beside_the_work_tree_can_be_read() {
    let around = Surroundings {
        workspace: "/tmp/t1/repo".into(),
        git: paths(&["/tmp/t1/repo/.git"]),
        state: Some("/tmp/t1/state".into()),
        home: Some("/tmp/t1/home".into()),
        caches: paths(&["/tmp/t1/home/.npm"]),
        ..usual()
    };
    assert_eq!(
        accesses(
            &around,
            &[
                "/tmp/t1/repo/x",
                "/tmp/t1/repo/.git/config",
                "/tmp/t1/state/journal.db",
                "/tmp/t1/home/.bashrc",
                "/tmp/t1/home/.npm/x",
                "/tmp/t1/other/file",
                "/tmp/new",
            ]
        ),
        [Write, Read, Read, Read, Write, Read, Private]
    );
}

#[test]
fn folders_between_a_writable_place_and_one_in_it_cannot_be_moved() {
    let around = Surroundings { state: Some("/home/u/work/repo/a/b/state".into()), ..usual() };
    let places = places(&around);
    let own = |path: &str| places.iter().find(|place| place.path == Path::new(path));
    for pin in ["/home/u/work/repo/a", "/home/u/work/repo/a/b"] {
        assert!(own(pin).is_some_and(|place| place.access == Write), "{pin}: {places:#?}");
    }
    assert_eq!(own("/home/u/work/repo/a/b/state").map(|place| place.access), Some(Read));
}

#[test]
fn the_settings_add_writable_and_hidden_places_and_hiding_wins() {
    let around = Surroundings {
        writable: paths(&["/opt/cache", "/home/u/.ssh"]),
        hidden: paths(&["/home/u/work/repo/secrets", "/opt/cache/private"]),
        ..usual()
    };
    assert_eq!(
        accesses(
            &around,
            &[
                "/opt/cache/x",
                "/opt/cache/private/x",
                "/home/u/work/repo/secrets/k",
                "/home/u/.ssh/x"
            ]
        ),
        [Write, Hidden, Hidden, Write]
    );
}

#[test]
fn parents_come_before_what_is_in_them() {
    let places = places(&usual());
    for (at, place) in places.iter().enumerate() {
        let later = &places[at + 1..];
        assert!(!later.iter().any(|other| place.path.starts_with(&other.path)), "{places:#?}");
    }
}
