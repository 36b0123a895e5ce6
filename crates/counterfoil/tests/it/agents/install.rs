//! Installing the command lines, with a fake npm: what is skipped, what fails, and that no partial
//! installation is visible.

use counterfoil_testkit::testing_dir;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use tempfile::TempDir;

/// An npm that writes down how it was called, and installs programs that say their versions.
const NPM: &str = r#"#!/bin/sh
echo "$1" >> "$CALLS"
program() {
  mkdir -p "$(dirname "$1")"
  printf '#!/bin/sh\necho "%s"\n' "$2" > "$1"
  chmod +x "$1"
}
case $1 in
  view)
    [ "$REGISTRY" = dead ] && echo 'npm error code ECONNREFUSED' >&2 && exit 1
    [ "$REGISTRY" = empty ] && echo 'npm error code E404' >&2 && exit 1
    exit 0 ;;
  ci)
    [ "$REGISTRY" = empty ] && echo 'npm error code E404' >&2 && exit 1
    program node_modules/@anthropic-ai/claude-code-here-musl/claude "0.0.1 (the wrong one)"
    program node_modules/@anthropic-ai/claude-code-here/claude "CLAUDE (Claude Code)"
    program node_modules/@openai/codex-here/vendor/here/bin/codex "codex-cli CODEX"
    program node_modules/.bin/claude-agent-acp
    program node_modules/.bin/codex-acp
    [ "$REGISTRY" = torn ] || program node_modules/.bin/gemini "GEMINI" ;;
esac
"#;

/// A place to install to.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        use crate::agents::project::VendorCli;
        use std::os::unix::fs::PermissionsExt;
        let folder = TempDir::new().unwrap();
        let bin = folder.path().join("bin");
        std::fs::create_dir(&bin).unwrap();
        let npm = NPM
            .replace("CLAUDE", &VendorCli::Claude.pinned_version("newest"))
            .replace("CODEX", &VendorCli::Codex.pinned_version("newest"))
            .replace("GEMINI", &VendorCli::Gemini.pinned_version("newest"));
        for (name, text) in [("npm", npm.as_str()), ("node", "#!/bin/sh\n")] {
            std::fs::write(bin.join(name), text).unwrap();
            std::fs::set_permissions(bin.join(name), PermissionsExt::from_mode(0o755)).unwrap();
        }
        Self { folder }
    }

    /// Where the command lines go.
    fn clis(&self) -> PathBuf {
        self.folder.path().join("cache/clis")
    }

    fn start(&self, registry: &str) -> Child {
        let ours = std::env::var_os("PATH").unwrap_or_default();
        let path =
            std::iter::once(self.folder.path().join("bin")).chain(std::env::split_paths(&ours));
        let mut command = Command::new(testing_dir().join("install-clis"));
        command.env_clear().env("PATH", std::env::join_paths(path).unwrap());
        command.env("COUNTERFOIL_TEST_CLIS", self.clis()).env("HOME", self.folder.path());
        command.env("CALLS", self.folder.path().join("calls")).env("REGISTRY", registry);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    fn install(&self, registry: &str) -> (i32, String, String) {
        ended(self.start(registry).wait_with_output().unwrap())
    }

    /// How npm was called so far.
    fn calls(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("calls")).unwrap_or_default()
    }

    /// The names in the cache.
    fn cached(&self) -> Vec<String> {
        let cache = self.folder.path().join("cache");
        let names = std::fs::read_dir(cache).into_iter().flatten().flatten();
        names.map(|entry| entry.file_name().into_string().unwrap()).collect()
    }
}

fn ended(output: Output) -> (i32, String, String) {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn says(program: &Path) -> String {
    let output = Command::new(program).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn both_ends_of_the_supported_versions_are_pinned() {
    use crate::agents::project::VendorCli;
    for cli in [VendorCli::Claude, VendorCli::Codex, VendorCli::Gemini] {
        let adapter = counterfoil_agents::adapters::adapter(cli.name()).unwrap();
        let pinned = (cli.pinned_version("oldest"), cli.pinned_version("newest"));
        let (oldest, newest) = adapter.versions();
        assert_eq!((pinned.0.as_str(), pinned.1.as_str()), (oldest, newest), "{}", cli.name());
    }
}

#[test]
fn what_is_installed_is_taken_from_the_cache_the_next_time() {
    let place = Place::new();
    let (code, out, err) = place.install("alive");
    assert_eq!((code, Path::new(out.trim())), (0, place.clis().as_path()), "{err}");
    assert!(
        says(&place.clis().join("bin/claude")).ends_with("(Claude Code)"),
        "the one that is pinned"
    );
    assert!(says(&place.clis().join("bin/codex")).starts_with("codex-cli"));
    assert_eq!(place.calls(), "view\nci\n");
    assert_eq!(place.install("dead").0, 0, "what is there needs no registry");
    assert_eq!(place.calls(), "view\nci\n");
    assert_eq!(place.cached(), ["clis"]);
}

#[test]
fn a_registry_that_does_not_answer_is_the_one_reason_to_skip() {
    let place = Place::new();
    let (code, _, err) = place.install("dead");
    assert_eq!(code, 75);
    assert!(err.starts_with("SKIPPED: ") && err.contains("ECONNREFUSED"), "{err}");
    for (registry, words) in [("empty", "npm ci failed"), ("torn", "npm has installed no gemini")] {
        let (code, _, err) = place.install(registry);
        assert!(code == 1 && err.contains(words), "{registry}: {code} {err}");
    }
    assert!(place.cached().is_empty(), "{:?}", place.cached());
}

#[test]
fn two_that_install_at_once_end_with_one_whole_folder() {
    let place = Place::new();
    let both = [place.start("alive"), place.start("alive")];
    for child in both {
        let (code, out, err) = ended(child.wait_with_output().unwrap());
        assert_eq!((code, Path::new(out.trim())), (0, place.clis().as_path()), "{err}");
    }
    assert_eq!(place.cached(), ["clis"]);
    assert!(place.clis().join("bin/gemini").exists());
}

#[test]
fn a_folder_with_something_else_in_it_is_left_alone() {
    let place = Place::new();
    std::fs::create_dir_all(place.clis()).unwrap();
    std::fs::write(place.clis().join("mine"), "mine").unwrap();
    let (code, _, err) = place.install("alive");
    assert!(code == 1 && err.contains("holds something else"), "{code} {err}");
    assert_eq!(std::fs::read_to_string(place.clis().join("mine")).unwrap(), "mine");
}
