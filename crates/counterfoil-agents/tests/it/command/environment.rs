//! What a `command:` agent sees of our environment.

use super::program::Program;
use counterfoil_agents::agent::ReplyStatus;

/// What a shell sets itself, and what tells every agent which attempt it works for.
const OF_EVERY_ATTEMPT: [&str; 6] =
    ["PWD", "OLDPWD", "SHLVL", "_", "COUNTERFOIL_ATTEMPT", "TRACEPARENT"];

fn program() -> Program {
    let mut program = Program::new("echo '{\"ok\": true}'");
    program.variables = vec![
        ("HOME", "/home/ana"),
        ("ACME_KEY", "a"),
        ("ACME_URL", "b"),
        ("ACME_SECRET_KEY", "c"),
        ("OTHER_API_KEY", "d"),
        ("LC_ALL", "C"),
    ];
    program
}

/// The names of the variables that it saw, without those of every attempt.
fn seen(settings: &str) -> Vec<String> {
    let program = program();
    assert_eq!(program.ask(&[], settings, 1)[0].status, ReplyStatus::Complete);
    let env = program.file("env-0");
    let names = env.lines().filter_map(|line| Some(line.split_once('=')?.0.to_owned()));
    let mut names: Vec<String> =
        names.filter(|name| !OF_EVERY_ATTEMPT.contains(&&**name)).collect();
    names.sort();
    names
}

#[test]
fn by_default_it_sees_what_every_program_sees() {
    assert_eq!(seen(""), ["HOME", "LC_ALL", "PATH"]);
}

#[test]
fn what_the_settings_pass_on_is_seen_too() {
    for (pass, expected) in [
        ("[\"ACME_KEY\"]", vec!["ACME_KEY", "HOME", "LC_ALL", "PATH"]),
        ("[\"ACME_*\", \"!ACME_SECRET*\"]", vec!["ACME_KEY", "ACME_URL", "HOME", "LC_ALL", "PATH"]),
        (
            "[\"*\"]",
            vec![
                "ACME_KEY",
                "ACME_SECRET_KEY",
                "ACME_URL",
                "HOME",
                "LC_ALL",
                "OTHER_API_KEY",
                "PATH",
            ],
        ),
        ("[\"!LC_ALL\"]", vec!["HOME", "PATH"]),
    ] {
        // By the name of the agent, and by the name of its program.
        for name in ["qa", "acme"] {
            assert_eq!(
                seen(&format!("[agents.{name}]\npass = {pass}\n")),
                expected,
                "{name} {pass}"
            );
        }
    }
}

#[test]
fn the_tables_of_the_agent_and_of_its_program_add_up() {
    let settings = "[agents.acme]\npass = [\"ACME_*\"]\nenv = { MODE = \"x\", LEVEL = \"1\" }\n\
                    [agents.qa]\npass = [\"!ACME_SECRET_KEY\"]\nenv = { LEVEL = \"2\" }\n";
    assert_eq!(seen(settings), ["ACME_KEY", "ACME_URL", "HOME", "LC_ALL", "LEVEL", "MODE", "PATH"]);
    let program = program();
    program.ask(&[], settings, 1);
    let env = program.file("env-0");
    assert!(env.contains("\nLEVEL=2\n") && env.contains("MODE=x"), "{env}");
}

#[test]
fn a_program_that_fails_is_told_which_keys_it_was_not_given() {
    let mut failing = Program::new("echo 'no key' >&2; exit 3");
    failing.variables = program().variables;
    let reply = &failing.ask(&[], "", 1)[0];
    let ReplyStatus::Failed { reason, .. } = &reply.status else { panic!("{:?}", reply.status) };
    assert_eq!(reason, "the command ended with exit code 3: no key");
    assert_eq!(
        reply.details.notes,
        [
            "it was not given ACME_KEY, ACME_SECRET_KEY, OTHER_API_KEY; what it needs is named by `pass` \
          in [agents.acme] of counterfoil.toml"
        ]
    );
    let reply = &failing.ask(&[], "[agents.qa]\npass = [\"*\"]\n", 1)[0];
    assert_eq!(reply.details.notes, [""; 0]);
}
