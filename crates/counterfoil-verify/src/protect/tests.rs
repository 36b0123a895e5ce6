//! What may be written and what may not, by example.

use super::*;
use proptest::prelude::*;
use std::os::unix::ffi::OsStrExt;

fn strings(list: &[&str]) -> Vec<String> {
    list.iter().map(ToString::to_string).collect()
}

fn rules(writes: Option<&[&str]>, protect: &[&str], own: &[&str]) -> WriteRules {
    let writes = writes.map(strings);
    WriteRules::new(writes.as_deref(), &strings(protect), &strings(own)).unwrap()
}

fn modified(paths: impl IntoIterator<Item = PathBuf>) -> Changes {
    Changes {
        files: paths.into_iter().map(|path| (path, Change::Modified)).collect(),
        ..Changes::default()
    }
}

/// The rule that forbids a change of a path; empty if it is allowed.
fn why(rules: &WriteRules, path: &str) -> String {
    let forbidden = rules.violations(&modified([PathBuf::from(path)]));
    forbidden.first().map(|change| change.reason.to_string()).unwrap_or_default()
}

const OUTSIDE: &str = "outside of what this step may write";

#[test]
fn without_rules_only_the_defaults_are_protected() {
    let rules = rules(
        None,
        &[],
        &["flows/fix.yaml", "./flows/prompts", "a/../flows/b.yaml", "../up.yaml", "/etc/x"],
    );
    for (path, expected) in [
        ("src/main.rs", ""),
        ("Cargo.toml", ""),
        ("tests/fixtures/.github/workflows/ci.yml", ""),
        ("docs/agents.md", ""),
        ("MY-AGENTS.md", ""),
        ("../sibling/main.rs", ""),
        ("flows/other.yaml", ""),
        ("etc/x", ""),
        (".github/workflows/ci.yml", "a CI file"),
        ("../../.github/workflows/ci.yml", "a CI file"),
        (".gitlab-ci.yml", "a CI file"),
        ("Jenkinsfile", "a CI file"),
        ("Jenkinsfile.nightly", "a CI file"),
        (".husky/pre-commit", "a check that runs before a commit"),
        (".pre-commit-config.yaml", "a check that runs before a commit"),
        ("sub/.gitattributes", "a file that tells git how to read others"),
        ("AGENTS.md", "instructions for agents"),
        ("deep/down/WARP.md", "instructions for agents"),
        ("../QWEN.md", "instructions for agents"),
        (".kiro/settings.json", "a setting of an agent"),
        ("web/.cursor/rules/a.mdc", "a setting of an agent"),
        ("counterfoil.toml", "a setting of Counterfoil"),
        (".counterfoil/runs/x", "a setting of Counterfoil"),
        (".counterfoil", "a setting of Counterfoil"),
        ("flows/fix.yaml", "a file of the workflow"),
        ("flows/prompts/fix.md", "a file of the workflow"),
        ("flows/b.yaml", "a file of the workflow"),
        ("../up.yaml", "a file of the workflow"),
    ] {
        assert_eq!(why(&rules, path), expected, "{path}");
    }
}

#[test]
fn protect_beats_writes_and_writes_beats_the_defaults() {
    for (writes, protect, path, expected) in [
        // Protected, whatever else is said.
        (&["**"][..], &["src/gen/**"][..], "src/gen/a.rs", "protected by `src/gen/**`"),
        (&["src/gen/a.rs"], &["src"], "src/gen/a.rs", "protected by `src`"),
        (&["AGENTS.md"], &["*.md"], "AGENTS.md", "protected by `*.md`"),
        // The first glob of the list is named.
        (&["**"], &["x", "a/**", "**/b"], "a/b", "protected by `a/**`"),
        // Outside.
        (&["src/**"], &[], "src/a/b.rs", ""),
        (&["src/**"], &[], "srcs/a.rs", OUTSIDE),
        (&["src/**"], &[], "AGENTS.md", OUTSIDE),
        (&["**"], &[], "../x", OUTSIDE),
        (&["**/x"], &[], "../x", OUTSIDE),
        (&[], &[], "a", OUTSIDE),
        // A glob that does not spell out the name leaves the default as it is.
        (&["**"], &[], "AGENTS.md", "instructions for agents"),
        (&["."], &[], "AGENTS.md", "instructions for agents"),
        (&["src/**"], &[], "src/AGENTS.md", "instructions for agents"),
        (&["*.md"], &[], "AGENTS.md", "instructions for agents"),
        (&["**/*.yml"], &[], ".github/workflows/ci.yml", "a CI file"),
        (&["flows"], &[], "flows/fix.yaml", "a file of the workflow"),
        // One that does lifts it.
        (&["AGENTS.md"], &[], "AGENTS.md", ""),
        (&["**", "./AGENTS.md"], &[], "AGENTS.md", ""),
        (&["**/AGENTS.md"], &[], "a/AGENTS.md", ""),
        (&[".github"], &[], ".github/workflows/ci.yml", ""),
        (&[".github/workflows/*.yml"], &[], ".github/workflows/ci.yml", ""),
        (&["Jenkinsfile.nightly"], &[], "Jenkinsfile.nightly", ""),
        (&["flows/fix.yaml"], &[], "flows/fix.yaml", ""),
        // A name that another glob contains does not count here.
        (&["**", "docs/AGENTS.md"], &[], "AGENTS.md", "instructions for agents"),
        (&["**", ".github/CODEOWNERS"], &[], ".github/workflows/ci.yml", "a CI file"),
    ] {
        let rules = rules(Some(writes), protect, &["flows/fix.yaml"]);
        assert_eq!(
            why(&rules, path),
            expected,
            "{path} with writes {writes:?} and protect {protect:?}"
        );
    }
}

#[test]
fn a_glob_means_what_people_expect() {
    for (glob, yes, no) in [
        ("src", &["src", "src/a", "src/a/b"][..], &["src2", "a/src", "Src/a"][..]),
        ("src/", &["src/a", "src/a/b"], &["src2/a"]),
        ("/src", &["src/a"], &["a/src"]),
        ("./src//", &["src/a"], &["a/src/b"]),
        ("src/*", &["src/a"], &["src/a/b", "src"]),
        ("src/*/", &["src/a/b"], &["src"]),
        ("*.rs", &["a.rs"], &["a/b.rs"]),
        ("**/*.rs", &["a.rs", "a/b.rs"], &["a.rs/c"]),
        ("a/**/z", &["a/z", "a/b/c/z", "a/z/y"], &["az"]),
        ("{src,docs}", &["src/a", "docs/b/c"], &["tests/a"]),
        ("a[!b]c", &["axc"], &["abc"]),
        (".", &["a", "a/b/c"], &[]),
        ("with space/ö", &["with space/ö"], &["with space/o"]),
        (r"a\*b", &["a*b"], &["axb"]),
    ] {
        let rules = rules(None, &[glob], &[]);
        for path in yes {
            assert_ne!(why(&rules, path), "", "{glob} should match {path}");
        }
        for path in no {
            assert_eq!(why(&rules, path), "", "{glob} should not match {path}");
        }
    }
}

#[test]
fn a_glob_that_cannot_be_used_is_named_with_the_way_out() {
    let long = "a".repeat(2_000);
    let refusals: Vec<String> = [
        "",
        "  ",
        "../x",
        "a/../../x",
        "a/{..,b}",
        "//srv/x",
        "~/x",
        r"C:\x",
        "!src",
        "a[",
        "{a",
        "a**b{",
        &long,
        "a\n[",
    ]
    .iter()
    .map(|glob| match WriteRules::new(Some(&strings(&[glob])), &[], &[]) {
        Err(error) => error.to_string(),
        Ok(_) => format!("`{glob}` was taken"),
    })
    .collect();
    insta::assert_snapshot!(refusals.join("\n"));
    let many = vec!["x".to_owned(); MAX_GLOBS + 1];
    assert!(
        WriteRules::new(None, &many, &[]).unwrap_err().to_string().contains("more than 2000 globs")
    );
}

#[test]
fn paths_are_bytes() {
    let odd = PathBuf::from(OsStr::from_bytes(b"src/\xff\xfe/AGENTS.md"));
    let forbidden = rules(None, &["lib"], &[]).violations(&modified([odd.clone()]));
    assert_eq!(
        forbidden.first().map(|change| &change.reason),
        Some(&ForbiddenReason::Default("instructions for agents"))
    );
    let forbidden =
        rules(Some(&["src/*/*.md"]), &["src/*/AGENTS.md"], &[]).violations(&modified([odd]));
    assert_eq!(
        forbidden.first().map(|change| &change.reason),
        Some(&ForbiddenReason::Protected("src/*/AGENTS.md".to_owned()))
    );
}

#[test]
fn a_breach_says_what_became_of_the_file() {
    let files =
        [("AGENTS.md", Change::Deleted), ("a.rs", Change::Modified), ("b/x", Change::Added)];
    let files = files.map(|(path, change)| (PathBuf::from(path), change)).into();
    let forbidden = rules(None, &["b"], &[]).violations(&Changes { files, ..Changes::default() });
    let found: Vec<_> =
        forbidden.iter().map(|change| (change.path.to_str().unwrap(), change.change)).collect();
    assert_eq!(found, [("AGENTS.md", Change::Deleted), ("b/x", Change::Added)]);
}

#[test]
fn fifty_thousand_changes_are_judged() {
    let globs: Vec<String> = (0..200).map(|n| format!("part{n}/**/*.lock")).collect();
    let rules = WriteRules::new(Some(&strings(&["**"])), &globs, &[]).unwrap();
    let changes = modified(
        (0..50_000).map(|n| PathBuf::from(format!("part{}/deep/er/file{n}.lock", n % 400))),
    );
    assert_eq!(rules.violations(&changes).len(), 25_000);
}

#[test]
fn the_defaults_are_read_and_each_matches_something() {
    let list = defaults();
    assert!(list.len() > 60, "{} globs", list.len());
    for DefaultProtection { glob, what } in list {
        assert!(!what.is_empty(), "{glob}");
        let path = glob.replace("**/", "").replace("/**", "/x").replace('*', "x");
        assert_eq!(why(&rules(None, &[], &[]), &path), *what, "{path}");
    }
}

#[test]
fn what_people_read() {
    let forbidden =
        |path: &str, change, reason| ForbiddenChange { path: PathBuf::from(path), change, reason };
    let one = [forbidden(
        "AGENTS.md",
        Change::Modified,
        ForbiddenReason::Default("instructions for agents"),
    )];
    let some = [
        forbidden(".github/ci.yml", Change::Deleted, ForbiddenReason::Default("a CI file")),
        forbidden("gen/a\nb.rs", Change::Added, ForbiddenReason::Protected("gen/**".to_owned())),
        forbidden("../x", Change::Modified, ForbiddenReason::Outside),
    ];
    let many: Vec<ForbiddenChange> = (0..30)
        .map(|n| forbidden(&format!("out/{n:02}"), Change::Added, ForbiddenReason::Outside))
        .collect();
    let paths = |list: &[ForbiddenChange]| {
        list.iter().map(|change| change.path.clone()).collect::<Vec<_>>()
    };
    let stuck = [(PathBuf::from("../x"), "permission denied".to_owned())];
    let record = ClaimPolicy::Record;
    insta::assert_json_snapshot!([
        report(&[], &[], &[], record, false),
        report(&[], &[], &[], record, true),
        report(&one, &paths(&one), &[], ClaimPolicy::Require, true),
        report(&some, &paths(&some), &stuck, record, true),
        report(&one, &[], &[], record, true),
        report(&many, &paths(&many), &[], record, true),
    ]);
}

proptest! {
    #[test]
    fn any_glob_is_taken_or_refused_in_one_line(glob in "[a-c./*?{},!\\[\\]\\\\~ -]{0,24}", path in "[a-c./]{1,12}") {
        match WriteRules::new(Some(std::slice::from_ref(&glob)), std::slice::from_ref(&glob), std::slice::from_ref(&path)) {
            Ok(rules) => drop(rules.violations(&modified([PathBuf::from(path)]))),
            Err(error) => prop_assert!(!error.to_string().is_empty() && !error.to_string().contains('\n')),
        }
    }

    #[test]
    fn a_protected_path_is_never_let_through(path in "[a-c]{1,3}(/[a-c]{1,3}){0,3}", writes in "[a-c/*]{1,8}") {
        prop_assume!(!writes.starts_with("//"));
        let rules = WriteRules::new(Some(&[writes, path.clone()]), std::slice::from_ref(&path), &[]);
        if let Ok(rules) = rules {
            prop_assert_eq!(rules.violations(&modified([PathBuf::from(&path), PathBuf::from(path).join("x")])).len(), 2);
        }
    }
}

#[test]
fn protected_places_end_before_the_first_wildcard() {
    let rules = rules(
        None,
        &[
            "notes/**",
            "!notes/today/**",
            "./src/gen/*.rs",
            "Cargo.lock",
            "**/secret",
            "{a,b}/c",
            "x/{a,b}",
        ],
        &[],
    );
    let places = ["notes", "src/gen", "Cargo.lock", "x"].map(PathBuf::from);
    assert_eq!(rules.protected_places(), places);
}
