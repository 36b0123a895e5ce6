//! Which commands of a result may be run, and with which environment. Pure.

use super::evasion;
use crate::config::VerifyConfig;
use counterfoil_contract::claim::Claim;
use std::ffi::OsString;

/// The variables that a command of a result gets: where programs and the user's files are, the
/// language, and the terminal.
const USUAL: [&str; 5] = ["PATH", "HOME", "LANG", "LANGUAGE", "TERM"];
/// Characters with which one command line becomes several commands, or writes elsewhere.
pub(super) const OPERATORS: [char; 13] =
    [';', '&', '|', '<', '>', '`', '$', '(', ')', '{', '}', '\n', '\r'];

/// Whether a command of a result may be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Permission {
    Allowed,
    /// A pattern matches it, but this word of it changes what the command does.
    Evades(String),
    NotAllowed,
}

/// Whether a command may be run: the claim allows it, or the project does, or it is one of the
/// project's own checks.
pub(super) fn permission(line: &str, claim: &Claim, config: &VerifyConfig) -> Permission {
    let line = line.trim();
    if config.checks.values().any(|check| check.run.to_string() == line) {
        return Permission::Allowed;
    }
    let mut permission = Permission::NotAllowed;
    for pattern in claim.allow.iter().chain(&config.allow).map(|pattern| pattern.trim()) {
        if matches(pattern, line) {
            match evasion::find(pattern, line) {
                Some(word) => permission = Permission::Evades(word),
                None => return Permission::Allowed,
            }
        }
    }
    permission
}

/// Whether a pattern matches a whole command line. `*` stands for any text without shell operators,
/// `**` for any text.
fn matches(pattern: &str, line: &str) -> bool {
    // The characters of the line up to which the pattern so far matches.
    let line: Vec<char> = line.chars().collect();
    let mut reached = vec![false; line.len() + 1];
    reached[0] = true;
    let mut pattern = pattern.chars().peekable();
    while let Some(wanted) = pattern.next() {
        if wanted == '*' {
            let any = pattern.next_if_eq(&'*').is_some();
            for at in 0..line.len() {
                reached[at + 1] |= reached[at] && (any || !OPERATORS.contains(&line[at]));
            }
        } else {
            for at in (0..line.len()).rev() {
                reached[at + 1] = reached[at] && line[at] == wanted;
            }
            reached[0] = false;
        }
    }
    reached[line.len()]
}

/// The environment of a command of a result: the usual variables and the named ones.
pub(super) fn scrubbed_environment(
    named: &[String],
    all: impl Iterator<Item = (OsString, OsString)>,
) -> Vec<(OsString, OsString)> {
    let kept = |name: &OsString| {
        name.to_str().is_some_and(|name| {
            USUAL.contains(&name) || name.starts_with("LC_") || named.iter().any(|one| one == name)
        })
    };
    all.filter(|(name, _)| kept(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Check;
    use counterfoil_contract::claim::ClaimKind;

    #[test]
    fn a_star_does_not_leave_the_command() {
        for (pattern, line) in [
            ("cargo test", "cargo test"),
            ("cargo test*", "cargo test --workspace 'a b'"),
            ("* --version", "cargo --version"),
            ("*", "ls -l"),
            ("a && b *", "a && b c"),
            ("**", "a; b | c > $(d)"),
            ("test ** x", "test a;b x"),
        ] {
            assert!(matches(pattern, line), "{pattern}: {line}");
        }
        for (pattern, line) in [
            ("cargo test", "cargo test --workspace"),
            ("cargo test*", "cargo test; rm -rf /"),
            ("cargo test*", "cargo test && curl evil"),
            ("cargo test*", "cargo test | sh"),
            ("cargo test*", "cargo test $(id)"),
            ("cargo test*", "cargo test `id`"),
            ("cargo test*", "cargo test > /etc/passwd"),
            ("cargo test*", "cargo test\nrm -rf /"),
            ("cargo test*", "X=1 cargo test"),
            ("", "ls"),
        ] {
            assert!(!matches(pattern, line), "{pattern}: {line}");
        }
    }

    #[test]
    fn a_long_pattern_is_matched_quickly() {
        assert!(!matches(&"*a".repeat(200), &"a".repeat(199)));
        assert!(matches(&"*a".repeat(200), &"a".repeat(2000)));
    }

    #[test]
    fn the_claim_the_project_and_its_checks_allow() {
        let mut config = VerifyConfig { allow: vec!["make *".into()], ..VerifyConfig::default() };
        config.checks.insert("test".into(), Check::shell("cargo test && echo ok"));
        let claim = Claim::new(ClaimKind::Commands).allowing("pytest*");
        for (line, allowed) in [
            ("pytest -q", Permission::Allowed),
            (" make check ", Permission::Allowed),
            ("cargo test && echo ok", Permission::Allowed),
            ("cargo test", Permission::NotAllowed),
            ("true", Permission::NotAllowed),
            ("make check -n", Permission::Evades("-n".to_owned())),
        ] {
            assert_eq!(permission(line, &claim, &config), allowed, "{line}");
        }
    }

    #[test]
    fn the_environment_has_what_is_usual_and_what_is_named() {
        let all =
            ["PATH", "HOME", "LC_ALL", "TERM", "AWS_SECRET_ACCESS_KEY", "CARGO_HOME", "LD_PRELOAD"]
                .map(|name| (OsString::from(name), OsString::from("x")));
        let names = |named: &[String]| -> Vec<String> {
            let kept = scrubbed_environment(named, all.clone().into_iter());
            kept.into_iter().filter_map(|(name, _)| name.into_string().ok()).collect()
        };
        assert_eq!(names(&[]), ["PATH", "HOME", "LC_ALL", "TERM"]);
        assert_eq!(names(&["CARGO_HOME".into()]), ["PATH", "HOME", "LC_ALL", "TERM", "CARGO_HOME"]);
    }
}
