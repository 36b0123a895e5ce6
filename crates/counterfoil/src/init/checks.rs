//! Proposes the checks of a project from its build files. No I/O.

use serde_json::Value as Json;
use std::collections::{BTreeMap, BTreeSet};
use toml::Value as Toml;

/// The build files that are read, and the lock files that tell which program runs them.
pub(crate) const BUILD_FILES: [&str; 14] = [
    "Makefile",
    "makefile",
    "GNUmakefile",
    "package.json",
    "pnpm-lock.yaml",
    "yarn.lock",
    "bun.lock",
    "bun.lockb",
    "Cargo.toml",
    "pyproject.toml",
    "uv.lock",
    "poetry.lock",
    "go.mod",
    ".golangci.yml",
];
/// Those whose content matters. Of the others, it is enough that they are there.
pub(crate) const READ_FILES: [&str; 6] =
    ["Makefile", "makefile", "GNUmakefile", "package.json", "Cargo.toml", "pyproject.toml"];

/// The text of each build file that exists; empty for those that are not read.
pub(crate) type BuildFiles = BTreeMap<&'static str, String>;

/// A proposed check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProposedCheck {
    /// The name, as workflows and contracts use it.
    pub(crate) name: &'static str,
    /// The command line.
    pub(crate) run: String,
}

/// The checks that a project probably has, and notes about others that were left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProposedChecks {
    pub(crate) checks: Vec<ProposedCheck>,
    pub(crate) notes: Vec<String>,
}

/// The names of checks that the packs use, each with the names that scripts and targets have for it.
const NAMES: [(&str, &[&str]); 4] = [
    ("test", &["test"]),
    ("lint", &["lint"]),
    ("build", &["build"]),
    ("type-check", &["type-check", "typecheck"]),
];

/// The names of targets and scripts that become checks.
pub(crate) fn target_names() -> impl Iterator<Item = &'static str> {
    NAMES.iter().flat_map(|(_, names)| names.iter().copied())
}

/// Proposes checks. What a project names itself (targets of make, scripts of npm) comes first, then
/// the usual commands of its language. `taken` are the [`target_names`] that files or folders have.
pub(crate) fn propose(files: &BuildFiles, taken: &BTreeSet<&str>) -> ProposedChecks {
    let mut proposed = ProposedChecks::default();
    let make = make(files, taken, &mut proposed.notes);
    let sources = [make, scripts(files), cargo(files), python(files), go(files)];
    for (name, _) in NAMES {
        let mut found = sources.iter().flatten().filter(|check| check.name == name);
        let Some(first) = found.next() else { continue };
        proposed.checks.push(first.clone());
        let others: Vec<String> = found.map(|check| format!("`{}`", check.run)).collect();
        // A target of make usually runs what the language would.
        if !others.is_empty() && !first.run.starts_with("make ") {
            proposed.notes.push(format!(
                "the check '{name}' is `{}`; if {} is needed too, join them with &&",
                first.run,
                others.join(" or ")
            ));
        }
    }
    proposed
}

fn check(name: &'static str, run: impl Into<String>) -> ProposedCheck {
    ProposedCheck { name, run: run.into() }
}

/// The checks among some names, each by the command that runs it.
fn named(known: &BTreeSet<String>, command: impl Fn(&str) -> String) -> Vec<ProposedCheck> {
    let find =
        |names: &'static [&'static str]| names.iter().find(|name| known.contains(**name)).copied();
    NAMES.iter().filter_map(|(name, own)| Some(check(name, command(find(own)?)))).collect()
}

/// Make runs the recipe of a target only if no file or folder has its name, unless the target is
/// declared as `.PHONY`.
fn make(files: &BuildFiles, taken: &BTreeSet<&str>, notes: &mut Vec<String>) -> Vec<ProposedCheck> {
    let text = ["GNUmakefile", "makefile", "Makefile"].iter().find_map(|name| files.get(name));
    let Some(text) = text else { return Vec::new() };
    let phony = phony_targets(text);
    let may_be_done = |target: &str| {
        taken.contains(target) && phony.as_ref().is_some_and(|phony| !phony.contains(target))
    };
    let (done, targets): (BTreeSet<String>, BTreeSet<String>) =
        make_targets(text).into_iter().partition(|target| may_be_done(target));
    notes.extend(done.iter().map(|target| {
        format!(
            "`make {target}` is not proposed: the project has a file or folder `{target}`, so make \
             may not run this target; declare it as .PHONY in the makefile"
        )
    }));
    named(&targets, |target| format!("make {target}"))
}

/// The targets that are declared as no files; none if not all of them are known.
fn phony_targets(text: &str) -> Option<BTreeSet<String>> {
    let text = text.replace("\\\n", " ");
    let declared = text.lines().filter_map(|line| {
        let names = line.strip_prefix(".PHONY")?.trim_start().strip_prefix(':')?;
        names.split('#').next()
    });
    let names: BTreeSet<String> =
        declared.flat_map(str::split_whitespace).map(str::to_owned).collect();
    (!names.iter().any(|name| name.contains('$'))).then_some(names)
}

/// The targets of a makefile that have plain names. Variables and patterns are left out.
fn make_targets(text: &str) -> BTreeSet<String> {
    let rules = text.lines().filter(|line| !line.starts_with(['\t', ' ', '#', '.']));
    let targets = rules.filter_map(|line| {
        let (names, rest) = line.split_once(':')?;
        // `a := b`, `a ::= b` and `a = b:c` assign; `a: b = c` sets a variable of a target.
        let assigns = rest.starts_with(['=', ':']) || names.contains('=');
        (!assigns).then_some(names)
    });
    let is_plain =
        |name: &&str| name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    targets.flat_map(str::split_whitespace).filter(is_plain).map(str::to_owned).collect()
}

fn scripts(files: &BuildFiles) -> Vec<ProposedCheck> {
    let Some(package) = files.get("package.json") else { return Vec::new() };
    let Ok(package) = serde_json::from_str::<Json>(package) else { return Vec::new() };
    let scripts = package["scripts"].as_object().into_iter().flatten();
    let known: BTreeSet<String> = scripts
        .filter(|(_, line)| {
            // What `npm init` writes fails always.
            let line = line.as_str().unwrap_or_default();
            !line.trim().is_empty() && !line.contains("no test specified")
        })
        .map(|(name, _)| name.clone())
        .collect();
    let manager = package["packageManager"].as_str().and_then(|manager| manager.split('@').next());
    let manager = match manager {
        Some(known @ ("npm" | "pnpm" | "yarn" | "bun")) => known,
        _ if files.contains_key("pnpm-lock.yaml") => "pnpm",
        _ if files.contains_key("yarn.lock") => "yarn",
        _ if files.contains_key("bun.lock") || files.contains_key("bun.lockb") => "bun",
        _ => "npm",
    };
    named(&known, |script| match (manager, script) {
        ("npm" | "pnpm" | "yarn", "test") => format!("{manager} test"),
        _ => format!("{manager} run {script}"),
    })
}

fn cargo(files: &BuildFiles) -> Vec<ProposedCheck> {
    let manifest = files.get("Cargo.toml").and_then(|text| text.parse::<toml::Table>().ok());
    let Some(manifest) = manifest else { return Vec::new() };
    let all = if manifest.contains_key("workspace") { " --workspace" } else { "" };
    vec![
        check("test", format!("cargo test{all}")),
        check("lint", format!("cargo clippy{all} --all-targets -- -D warnings")),
        check("build", format!("cargo build{all}")),
    ]
}

fn python(files: &BuildFiles) -> Vec<ProposedCheck> {
    let project = files.get("pyproject.toml").and_then(|text| text.parse::<toml::Table>().ok());
    let Some(project) = project else { return Vec::new() };
    let tools = project.get("tool").and_then(Toml::as_table);
    let mut needed = BTreeSet::new();
    for table in ["project", "dependency-groups", "build-system"] {
        requirements(project.get(table), &mut needed);
    }
    // Poetry has tables of names instead of lists.
    requirements(tools.and_then(|tools| tools.get("poetry")), &mut needed);
    requirements(tools.and_then(|tools| tools.get("uv")), &mut needed);
    let uses =
        |name: &str| needed.contains(name) || tools.is_some_and(|all| all.contains_key(name));
    let within = if files.contains_key("uv.lock") {
        "uv run "
    } else if files.contains_key("poetry.lock") {
        "poetry run "
    } else {
        ""
    };
    let mut checks = Vec::new();
    if uses("pytest") {
        let pytest = if within.is_empty() { "python3 -m pytest" } else { "pytest" };
        checks.push(check("test", format!("{within}{pytest}")));
    }
    if uses("ruff") {
        checks.push(check("lint", format!("{within}ruff check .")));
    } else if uses("flake8") {
        checks.push(check("lint", format!("{within}flake8")));
    }
    if uses("mypy") {
        checks.push(check("type-check", format!("{within}mypy .")));
    } else if uses("pyright") {
        checks.push(check("type-check", format!("{within}pyright")));
    }
    checks
}

/// The names of the packages that a value of `pyproject.toml` lists: requirements such as
/// `pytest>=8`, or keys of tables.
fn requirements(value: Option<&Toml>, names: &mut BTreeSet<String>) {
    // The parser bounds the depth of the value.
    match value {
        Some(Toml::String(text)) => {
            let end = text.find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '_'));
            names.insert(text[..end.unwrap_or(text.len())].to_lowercase());
        }
        Some(Toml::Array(items)) => items.iter().for_each(|item| requirements(Some(item), names)),
        Some(Toml::Table(table)) => {
            for (key, value) in table {
                names.insert(key.to_lowercase());
                requirements(Some(value), names);
            }
        }
        _ => {}
    }
}

fn go(files: &BuildFiles) -> Vec<ProposedCheck> {
    if !files.contains_key("go.mod") {
        return Vec::new();
    }
    let has_linter = files.contains_key(".golangci.yml");
    let lint = if has_linter { "golangci-lint run ./..." } else { "go vet ./..." };
    vec![check("test", "go test ./..."), check("lint", lint), check("build", "go build ./...")]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Files with their texts, and the checks that they lead to.
    type Case<'c> = (&'c [(&'static str, &'c str)], &'c [&'c str]);

    fn proposed(files: &[(&'static str, &str)]) -> Vec<String> {
        let files = files.iter().map(|(name, text)| (*name, (*text).to_owned())).collect();
        let proposed = propose(&files, &BTreeSet::new());
        proposed.checks.into_iter().map(|one| format!("{}: {}", one.name, one.run)).collect()
    }

    #[test]
    fn each_kind_of_project_has_its_checks() {
        let cases: [Case<'_>; 11] = [
            (&[], &[]),
            (
                &[("Cargo.toml", "[package]\nname = \"a\"\n")],
                &[
                    "test: cargo test",
                    "lint: cargo clippy --all-targets -- -D warnings",
                    "build: cargo build",
                ],
            ),
            (
                &[("Cargo.toml", "[workspace]\nmembers = []\n")],
                &[
                    "test: cargo test --workspace",
                    "lint: cargo clippy --workspace --all-targets -- -D warnings",
                    "build: cargo build --workspace",
                ],
            ),
            (&[("Cargo.toml", "not toml")], &[]),
            (
                &[(
                    "package.json",
                    r#"{"scripts": {"test": "vitest", "typecheck": "tsc", "start": "x"}}"#,
                )],
                &["test: npm test", "type-check: npm run typecheck"],
            ),
            (
                &[
                    (
                        "package.json",
                        r#"{"scripts": {"test": "echo \"Error: no test specified\" && exit 1", "lint": "eslint ."}}"#,
                    ),
                    ("pnpm-lock.yaml", ""),
                ],
                &["lint: pnpm run lint"],
            ),
            (&[("package.json", "[1]"), ("yarn.lock", "")], &[]),
            (
                &[(
                    "pyproject.toml",
                    "[project]\ndependencies = [\"Pytest-Cov\"]\n[dependency-groups]\ndev = [\"pytest>=8\", \"ruff\"]\n[tool.mypy]\nstrict = true\n",
                )],
                &["test: python3 -m pytest", "lint: ruff check .", "type-check: mypy ."],
            ),
            (
                &[
                    ("pyproject.toml", "[tool.poetry.group.dev.dependencies]\npytest = \"^8\"\n"),
                    ("poetry.lock", ""),
                ],
                &["test: poetry run pytest"],
            ),
            (
                &[("go.mod", "")],
                &["test: go test ./...", "lint: go vet ./...", "build: go build ./..."],
            ),
            (
                &[
                    (
                        "Makefile",
                        "test := 1\nCC = a:b\n.PHONY: lint\nbuild test: deps\n\tcargo test\n%.o: %.c\n# lint: x\n",
                    ),
                    ("go.mod", ""),
                ],
                &["test: make test", "lint: go vet ./...", "build: make build"],
            ),
        ];
        for (files, expected) in cases {
            assert_eq!(proposed(files), expected, "{files:?}");
        }
    }

    #[test]
    fn what_is_left_out_is_noted() {
        let files = BTreeMap::from([
            ("package.json", r#"{"scripts": {"test": "vitest"}}"#.to_owned()),
            ("Cargo.toml", "[package]\n".to_owned()),
        ]);
        insta::assert_snapshot!(propose(&files, &BTreeSet::new()).notes.join("\n"), @"the check 'test' is `npm test`; if `cargo test` is needed too, join them with &&");
    }

    #[test]
    fn a_target_that_make_may_not_run_is_not_proposed() {
        let taken = BTreeSet::from(["test", "build"]);
        for (makefile, expected, notes) in [
            ("test:\n\tpytest\nlint:\n\truff\n", &["make lint"][..], 1),
            (".PHONY: lint \\\n  test # all\ntest:\n\tpytest\n", &["make test"], 0),
            (".PHONY : test\ntest:\n\tpytest\nbuild:\n\tcc\n", &["make test"], 1),
            (".PHONY: $(ALL)\ntest:\n\tpytest\n", &["make test"], 0),
        ] {
            let files = BTreeMap::from([("Makefile", makefile.to_owned())]);
            let proposed = propose(&files, &taken);
            let runs: Vec<&str> = proposed.checks.iter().map(|one| one.run.as_str()).collect();
            assert_eq!((&runs[..], proposed.notes.len()), (expected, notes), "{makefile}");
        }
        // What the language would run is proposed instead.
        let files = BTreeMap::from([
            ("Makefile", "test:\n\tgo test\n".to_owned()),
            ("go.mod", String::new()),
        ]);
        let proposed = propose(&files, &taken);
        assert_eq!(proposed.checks[0].run, "go test ./...");
        insta::assert_snapshot!(proposed.notes.join("\n"), @"`make test` is not proposed: the project has a file or folder `test`, so make may not run this target; declare it as .PHONY in the makefile");
    }
}
