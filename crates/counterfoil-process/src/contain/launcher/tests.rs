use super::*;
use crate::contain::places::{Access, Place};

fn place(path: &str, access: Access) -> Place {
    Place { path: path.into(), access, folder: true }
}

#[test]
fn the_arguments_of_bwrap_follow_the_policy() {
    let mut hidden_file = place("/h/.netrc", Access::Hidden);
    hidden_file.folder = false;
    let places = [
        place("/tmp", Access::Private),
        place("/h/.ssh", Access::Hidden),
        hidden_file,
        place("/h/repo", Access::Write),
        place("/h/repo/.git", Access::Read),
    ];
    let command = ["sh".into(), "-c".into(), "true".into()];
    let argv = bwrap::argv(Path::new("/bin/bwrap"), &places, false, Path::new("/h/repo"), &command);
    let line = argv.join(std::ffi::OsStr::new(" ")).into_string();
    assert_eq!(
        line.as_deref(),
        Ok("/bin/bwrap --unshare-user --unshare-ipc --cap-drop ALL --unshare-net \
            --ro-bind / / --dev /dev --proc /proc --perms 1777 --tmpfs /tmp --tmpfs /h/.ssh \
            --ro-bind /dev/null /h/.netrc --bind /h/repo /h/repo --ro-bind /h/repo/.git /h/repo/.git \
            --remount-ro /h/.ssh --chdir /h/repo -- sh -c true")
    );
    let with_network = bwrap::argv(Path::new("bwrap"), &places, true, Path::new("/"), &command);
    assert!(!with_network.contains(&"--unshare-net".into()));
}

#[test]
fn the_arguments_for_landlock_follow_the_policy() {
    let restriction = Restriction {
        places: vec![place("/h/repo", Access::Write), place("/h/repo/.git", Access::Read)],
        mounts: true,
        network: false,
        cwd: "/h/repo".into(),
        argv: vec!["--".into(), "x".into()],
    };
    let argv = landlock_argv::argv(Path::new("/bin/counterfoil"), &restriction);
    let line = argv.join(std::ffi::OsStr::new(" ")).into_string();
    assert_eq!(
        line.as_deref(),
        Ok("/bin/counterfoil contained --write /h/repo --read /h/repo/.git --mounts --no-network \
            --cwd /h/repo -- -- x")
    );
}

#[test]
fn without_mounts_a_writable_folder_is_replaced_by_its_entries() {
    let places = [
        place("/tmp", Access::Private),
        place("/h/repo", Access::Write),
        place("/h/.npm", Access::Write),
        place("/h/repo/.git", Access::Read),
        place("/h/repo/sub/state", Access::Hidden),
        place("/h/repo/sub/state/worktree", Access::Write),
    ];
    let entries = |folder: &Path| {
        let names: &[&str] = match folder.to_str() {
            Some("/h/repo") => &["/h/repo/.git", "/h/repo/src", "/h/repo/sub"],
            Some("/h/repo/sub") => &["/h/repo/sub/state", "/h/repo/sub/a"],
            _ => panic!("{} must not be split", folder.display()),
        };
        names.iter().map(|name| place(name, Access::Write)).collect()
    };
    let rules = landlock_argv::without_mounts(&places, &entries);
    let paths: Vec<_> = rules.iter().map(|rule| rule.path.to_string_lossy()).collect();
    assert_eq!(
        paths,
        ["/h/.npm", "/h/repo/src", "/h/repo/sub/a", "/h/repo/sub/state/worktree", "/tmp"]
    );
}

#[test]
fn what_landlock_cannot_do_here_is_an_error() {
    let old = Landlock { network: false, mounts: false };
    let new = Landlock { network: true, mounts: true };
    let plain = Settings { kind: Kind::Landlock, ..Settings::default() };
    let offline = Settings { network: false, ..plain.clone() };
    let hiding = Settings { hidden: vec!["/h/secret".into()], ..plain.clone() };
    for settings in [&plain, &offline, &hiding] {
        assert_eq!(missing(new, settings), Ok(()));
    }
    assert_eq!(missing(old, &plain), Ok(()));
    assert!(missing(old, &offline).is_err_and(|why| why.contains("Linux 6.7")));
    assert!(missing(old, &hiding).is_err_and(|why| why.contains("user name spaces")));
}

#[test]
fn a_kernel_without_landlock_starts_nothing() {
    let settings = Settings { kind: Kind::Landlock, ..Settings::default() };
    let launcher = Launcher::new(settings, Some("/bin/counterfoil".into()), None);
    let why = "Landlock does not work here".to_owned();
    assert!(launcher.landlock.set(Support::No(why.clone())).is_ok());
    let refused = launcher.argv(vec!["true".into()], Path::new("/"));
    assert_eq!(refused, Err(Unavailable { kind: Kind::Landlock, why }));
    let unknown = Launcher::new(launcher.settings().clone(), None, None);
    assert!(unknown.argv(vec!["true".into()], Path::new("/")).is_err());
}

#[test]
fn the_recommended_kind_is_one_that_works() {
    let (yes, no) = (Landlock { network: true, mounts: true }, || "no".to_owned());
    let kind = |bwrap, landlock| Availability { bwrap, landlock }.recommended();
    assert_eq!(kind(Support::Yes("b".into()), Support::Yes(yes)), Some(Kind::Bwrap));
    assert_eq!(kind(Support::No(no()), Support::Yes(yes)), Some(Kind::Landlock));
    assert_eq!(kind(Support::No(no()), Support::No(no())), None);
}

#[test]
fn what_landlock_can_do_is_passed_on_as_text() {
    for landlock in
        [Landlock { network: true, mounts: false }, Landlock { network: false, mounts: true }]
    {
        assert_eq!(landlock.to_string().parse(), Ok(landlock));
    }
    assert!("network maybe".parse::<Landlock>().is_err());
}

#[test]
fn a_failure_of_the_containment_is_not_one_of_the_command() {
    let launcher = |kind| Launcher::new(Settings { kind, ..Settings::default() }, None, None);
    let cases = [
        (Kind::None, 1, "bwrap: no", None),
        (
            Kind::Bwrap,
            1,
            "bwrap: setting up uid map: denied\n",
            Some("c setting up uid map: denied"),
        ),
        (Kind::Bwrap, 1, "bwrap: execvp x: No such file", Some("p x: No such file")),
        (Kind::Bwrap, 2, "bwrap: no", None),
        (Kind::Bwrap, 1, "error: tests failed", None),
        (Kind::Landlock, 125, "the command cannot be contained: no\n", Some("c no")),
        (Kind::Landlock, 1, "the command cannot be contained: no", None),
        (Kind::Landlock, 125, "", None),
    ];
    for (kind, code, errors, expected) in cases {
        let found = launcher(kind).setup_failure(code, errors).map(|failure| match failure {
            SetupFailure::Containment(why) => format!("c {why}"),
            SetupFailure::Program(why) => format!("p {why}"),
        });
        assert_eq!(found.as_deref(), expected, "{kind} {code} {errors}");
    }
}
