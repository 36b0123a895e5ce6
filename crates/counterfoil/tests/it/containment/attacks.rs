//! The attacks, each without containment and with each kind. An attack that succeeds without
//! containment shows that the test can fail.

use super::project::{CONTAINING, TargetProject, is_available};
use crate::PROGRAM;
use crate::shell_project::{SHELL_AGENT, run_arguments};
use counterfoil_testkit::report_skip;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};

/// An attack: a line of shell with the variables `R` (the folder around everything) and `PORT`, and
/// a file that shows whether it succeeded.
struct Attack {
    line: &'static str,
    /// The file below the folder around everything, and the text that only the attack writes.
    writes: (&'static str, &'static str),
}

const ATTACKS: [Attack; 12] = [
    Attack { line: "echo '# evil' >> .git/config", writes: ("repo/.git/config", "evil") },
    Attack {
        line: "printf '#!/bin/sh\\n# evil\\n' > .git/hooks/post-checkout",
        writes: ("repo/.git/hooks/post-checkout", "evil"),
    },
    Attack {
        line: "mv .git .git-old && mkdir .git && echo evil > .git/config",
        writes: ("repo/.git/config", "evil"),
    },
    Attack {
        line: "ln -s ../../evil.sh .git/hooks/pre-commit && echo evil > linked",
        writes: ("repo/linked", "evil"),
    },
    Attack { line: "echo evil > \"$R/state/evil\"", writes: ("state/evil", "evil") },
    Attack {
        line: "for f in \"$R\"/state/*; do [ -f \"$f\" ] && cp \"$f\" \"$f.evil\" && echo evil > \"$R/state/seen\"; done",
        writes: ("state/seen", "evil"),
    },
    Attack { line: "echo '# evil' >> \"$HOME/.bashrc\"", writes: ("home/.bashrc", "evil") },
    Attack {
        line: "mv \"$HOME/.bashrc\" \"$HOME/x\"; echo evil > \"$HOME/.bashrc\"",
        writes: ("home/.bashrc", "evil"),
    },
    Attack { line: "echo evil > \"$R/other/evil\"", writes: ("other/evil", "evil") },
    Attack {
        line: "ln -s \"$R/other\" link; echo evil > link/evil",
        writes: ("other/evil", "evil"),
    },
    Attack {
        line: "for p in /proc/[0-9]*; do echo evil > \"$p/root$R/other/evil\"; done",
        writes: ("other/evil", "evil"),
    },
    Attack { line: "cat \"$HOME/.ssh/id_test\" > stolen", writes: ("repo/stolen", "a key") },
];

/// Runs an agent that does this, with these settings. It answers also if the attack fails.
fn attack(config: &str, line: &str, port: u16) -> TargetProject {
    let script = "R=$(cd .. && pwd); PORT=@PORT\n{ @LINE\n} 2>> errors\necho ok > work\necho '{\"ok\": true}'\n"
        .replace("@PORT", &port.to_string())
        .replace("@LINE", line);
    let project = TargetProject::new(config, &script);
    let output = project.run_agent();
    // An attack that succeeds may end the run.
    assert!(config.is_empty() || output.code == Some(0), "{line}: {output:?}");
    assert_eq!(project.read("work"), "ok\n", "the work tree is writable: {line}");
    project
}

fn text(path: PathBuf) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

#[test]
fn without_containment_every_attack_succeeds() {
    for Attack { line, writes: (file, evil) } in ATTACKS {
        let project = attack("", line, 0);
        let found = text(project.root_path(file));
        assert!(found.contains(evil), "{line}: {file}: {found:?}, {}", project.read("errors"));
    }
}

#[test]
fn bwrap_stops_every_attack() {
    assert_stopped("bwrap");
}

#[test]
fn landlock_stops_every_attack() {
    assert_stopped("landlock");
}

fn assert_stopped(kind: &str) {
    if !is_available(kind) {
        return;
    }
    for Attack { line, writes: (file, evil) } in ATTACKS {
        let project = attack(&format!("contain = \"{kind}\"\n"), line, 0);
        let found = text(project.root_path(file));
        assert!(!found.contains(evil), "{line}: {file}: {found}");
        assert_eq!(text(project.home(".bashrc")), "# mine\n", "{line}");
        assert!(!project.git(&["status", "--porcelain"]).is_empty(), "git still works");
    }
}

#[test]
fn the_repository_of_a_linked_worktree_is_read_only() {
    let script = "R=$(cd .. && pwd)\n{ echo evil > .git\n rm -f .git\n echo evil >> \"$R/repo/.git/config\"\n\
                  echo evil > \"$R/repo/.git/worktrees/other/HEAD\"\n echo evil > \"$R/repo/evil\"\n} 2> errors\n\
                  echo ok > work\necho '{\"ok\": true}'\n";
    let kinds = CONTAINING.into_iter().filter(|kind| is_available(kind));
    for kind in std::iter::once("none").chain(kinds) {
        let project = TargetProject::new(&format!("contain = \"{kind}\"\n"), script);
        let arguments = run_arguments("flow.yaml", SHELL_AGENT);
        let mut command = project.command_of(PROGRAM, &arguments);
        command.arg("--state").arg(project.state()).arg("--repo").arg(project.root_path("other"));
        command.env("HOME", project.home(""));
        let output = project.start_command(&mut command).wait();
        assert_eq!(text(project.root_path("other/work")), "ok\n", "{kind}: {output:?}");
        let evil =
            ["other/.git", "repo/.git/config", "repo/.git/worktrees/other/HEAD", "repo/evil"]
                .map(|file| text(project.root_path(file)).contains("evil"));
        let linked = project.root_path("other/.git").exists();
        match kind {
            "none" => assert_eq!((evil, linked), ([false, true, true, true], false)),
            _ => assert_eq!((evil, linked), ([false; 4], true), "{kind}"),
        }
    }
}

/// Connects by TCP and sends by UDP, with the tools that every test machine has.
const NETWORK: &str = "python3 -c '
import socket, sys
for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
    try:
        s = socket.socket(socket.AF_INET, kind); s.settimeout(2)
        s.connect((\"127.0.0.1\", int(sys.argv[1]))); s.send(b\"evil\")
        print(\"sent\", int(kind))
    except OSError as error:
        print(\"failed\", int(kind), error)
' $PORT > network";

/// What an agent with these settings says of TCP and UDP.
fn network(config: &str) -> (bool, bool) {
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = tcp.local_addr().unwrap().port();
    let udp = UdpSocket::bind(("127.0.0.1", port)).unwrap();
    udp.set_nonblocking(true).unwrap();
    tcp.set_nonblocking(true).unwrap();
    let project = attack(config, NETWORK, port);
    let said = project.read("network");
    let (by_tcp, by_udp) = (tcp.accept().is_ok(), udp.recv(&mut [0; 16]).is_ok());
    assert_eq!(said.contains("sent 1"), by_tcp, "{said}");
    (by_tcp, by_udp)
}

#[test]
fn the_network_is_there_unless_it_is_turned_off() {
    assert_eq!(network(""), (true, true));
    for kind in CONTAINING.into_iter().filter(|kind| is_available(kind)) {
        let config = |network| format!("[contain]\nkind = \"{kind}\"\nnetwork = {network}\n");
        assert_eq!(network(&config(true)), (true, true), "{kind}");
        // Landlock knows TCP only.
        assert_eq!(network(&config(false)), (false, kind == "landlock"), "{kind}");
    }
}

/// Everything with credentials that is hidden in the home folder, each with a file in it.
const CREDENTIALS: [&str; 17] = [
    ".ssh/secret",
    ".gnupg/secret",
    ".aws/secret",
    ".azure/secret",
    ".kube/secret",
    ".docker/secret",
    ".password-store/secret",
    ".netrc",
    ".git-credentials",
    ".pypirc",
    ".config/gcloud/secret",
    ".config/gh/secret",
    ".config/git/credentials",
    ".local/share/keyrings/secret",
    ".local/share/counterfoil/keys/secret",
    ".cargo/credentials.toml",
    ".cargo/credentials",
];

#[test]
fn credentials_are_hidden() {
    let line = "for file in @FILES; do cat \"$HOME/$file\" >> stolen; done";
    let line = line.replace("@FILES", &CREDENTIALS.join(" "));
    let script = format!("{{ {line}\n}} 2> errors\necho '{{\"ok\": true}}'\n");
    let kinds = CONTAINING.into_iter().filter(|kind| is_available(kind));
    for kind in std::iter::once("none").chain(kinds) {
        let project = TargetProject::new(&format!("contain = \"{kind}\"\n"), &script);
        for file in CREDENTIALS {
            let path = project.home(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, format!("{file}\n")).unwrap();
        }
        assert_eq!(project.run_agent().code, Some(0), "{kind}");
        let stolen = project.read("stolen");
        let expected = if kind == "none" { CREDENTIALS.join("\n") } else { String::new() };
        assert_eq!(stolen.trim_end(), expected, "{kind}");
    }
}

#[test]
fn the_sockets_of_services_are_hidden() {
    // What stays visible is in docs/security.md: what resolves names, and programs.
    let visible = ["NetworkManager", "current-system", "opengl-driver", "resolvconf", "systemd"];
    let is_hidden = |name: &str| !visible.contains(&name) && name != "wrappers";
    let names = |text: &str| text.lines().map(str::to_owned).filter(|name| is_hidden(name)).count();
    for kind in CONTAINING.into_iter().filter(|kind| is_available(kind)) {
        let project = attack("contain = \"none\"\n", "ls -A /run > seen", 0);
        if names(&project.read("seen")) == 0 {
            return report_skip("nothing is in /run here");
        }
        let project = attack(&format!("contain = \"{kind}\"\n"), "ls -A /run > seen", 0);
        assert_eq!(names(&project.read("seen")), 0, "{kind}: {}", project.read("seen"));
    }
}

/// A new folder that is not below one for temporary files, which are replaced inside. If there is no
/// room for one, the test is reported as skipped.
fn folder_that_stays() -> Option<tempfile::TempDir> {
    let home = std::env::home_dir().unwrap_or_default();
    let places = [Path::new(env!("CARGO_TARGET_TMPDIR")), &home, Path::new("/var/cache")];
    let is_temporary =
        |place: &&Path| ["/tmp", "/var/tmp", "/dev/shm"].iter().any(|one| place.starts_with(one));
    let found = places
        .into_iter()
        .filter(|place| !is_temporary(place))
        .find_map(|place| tempfile::tempdir_in(place).ok());
    if found.is_none() {
        report_skip("there is no folder to write to but those for temporary files");
    }
    found
}

#[test]
fn modes_of_files_outside_can_be_changed_with_landlock() {
    let kinds = CONTAINING.into_iter().filter(|kind| is_available(kind));
    for kind in std::iter::once("none").chain(kinds) {
        let Some(home) = folder_that_stays() else { return };
        let file = home.path().join("mine");
        std::fs::write(&file, "").unwrap();
        let script = "chmod 604 \"$HOME/mine\"\necho '{\"ok\": true}'\n";
        let project = TargetProject::new(&format!("contain = \"{kind}\"\n"), script);
        let output = project.run_with(&[("HOME", home.path().to_str().unwrap())]);
        assert_eq!(output.code, Some(0), "{output:?}");
        let mode = std::fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777 == 0o604, kind != "bwrap", "{kind}: {mode:o}");
    }
}

#[test]
fn abstract_sockets_can_be_reached_with_bwrap_and_a_network() {
    let connect = "python3 -c '
import socket, sys
s = socket.socket(socket.AF_UNIX); s.connect(\"\\0counterfoil-\" + sys.argv[1])' $PORT";
    let reaches = |config: &str| {
        // A free port makes the name of the socket unique.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let name = SocketAddr::from_abstract_name(format!("counterfoil-{port}")).unwrap();
        let listener = UnixListener::bind_addr(&name).unwrap();
        listener.set_nonblocking(true).unwrap();
        attack(config, connect, port);
        listener.accept().is_ok()
    };
    assert!(reaches(""));
    for kind in CONTAINING.into_iter().filter(|kind| is_available(kind)) {
        let config = |network| format!("[contain]\nkind = \"{kind}\"\nnetwork = {network}\n");
        assert_eq!(reaches(&config(true)), kind == "bwrap", "{kind}");
        assert!(!reaches(&config(false)), "{kind} without a network");
    }
}

#[test]
fn the_settings_add_writable_and_hidden_places() {
    for kind in CONTAINING.into_iter().filter(|kind| is_available(kind)) {
        let line = "echo in > \"$HOME/extra/file\"; cat \"$HOME/.bashrc\" > seen";
        let script = format!("{{ {line}\n}} 2> errors\necho '{{\"ok\": true}}'\n");
        let config = format!(
            "[contain]\nkind = \"{kind}\"\nwritable = [\"~/extra\"]\nhidden = [\"~/.bashrc\"]\n"
        );
        let project = TargetProject::new(&config, &script);
        std::fs::create_dir_all(project.home("extra")).unwrap();
        assert_eq!(project.run_agent().code, Some(0), "{kind}");
        assert_eq!(text(project.home("extra/file")), "in\n", "{kind}");
        assert_eq!(project.read_or_empty("seen"), "", "{kind}");
    }
}

#[test]
fn temporary_files_are_private_and_devices_are_there() {
    let line = "echo x > /tmp/counterfoil-escape && cat /tmp/counterfoil-escape > tmp; \
                echo y > /dev/null && head -c 4 /dev/urandom | wc -c > random; mktemp > made";
    for kind in CONTAINING.into_iter().filter(|kind| is_available(kind)) {
        let project = attack(&format!("contain = \"{kind}\"\n"), line, 0);
        assert_eq!(project.read_or_empty("tmp"), "x\n", "{kind}: {}", project.read("errors"));
        assert_eq!(project.read_or_empty("random").trim(), "4", "{kind}");
        assert!(!PathBuf::from("/tmp/counterfoil-escape").exists(), "{kind}");
        assert!(!PathBuf::from(project.read("made").trim()).exists(), "{kind}");
    }
}
