//! Finds the folders that a policy is made of.

use super::Settings;
use super::places::{Access, Place, Surroundings};
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Folders of the home folder with credentials.
const SECRETS: [&str; 17] = [
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".password-store",
    ".netrc",
    ".git-credentials",
    ".pypirc",
    ".config/gcloud",
    ".config/gh",
    ".config/git/credentials",
    ".local/share/keyrings",
    ".local/share/counterfoil",
    ".cargo/credentials.toml",
    ".cargo/credentials",
];
/// Caches of build tools in the home folder. The first ones are created, because the tools fail
/// without them.
const CACHES: [&str; 20] = [
    ".npm",
    ".cache/pip",
    ".cache/uv",
    ".cache/pypoetry",
    ".cache/pipenv",
    ".cache/yarn",
    ".cache/pnpm",
    ".cache/node",
    ".cache/deno",
    ".cache/go-build",
    ".cache/golangci-lint",
    ".cache/sccache",
    ".cache/ccache",
    ".cache/zig",
    ".local/share/pnpm/store",
    ".bun/install/cache",
    ".gradle/caches",
    ".gradle/wrapper",
    ".m2/repository",
    "go/pkg",
];
/// How many of [`CACHES`] are created.
const CREATED_CACHES: usize = 2;
/// The caches of cargo in its own folder: two folders, and the files that it locks.
const CARGO_CACHES: [&str; 5] =
    ["registry", "git", ".package-cache", ".package-cache-mutate", ".global-cache"];
/// Variables that name a cache.
const CACHE_VARIABLES: [&str; 8] = [
    "npm_config_cache",
    "NPM_CONFIG_CACHE",
    "PIP_CACHE_DIR",
    "UV_CACHE_DIR",
    "YARN_CACHE_FOLDER",
    "GOCACHE",
    "GOMODCACHE",
    "SCCACHE_DIR",
];
/// Where the sockets of services are, such as those of a desktop session or of a container engine.
const SOCKETS: [&str; 1] = ["/run"];
/// What stays visible there: how names are resolved, and where some systems have their programs.
const VISIBLE: [&str; 6] = [
    "/run/systemd/resolve",
    "/run/resolvconf",
    "/run/NetworkManager",
    "/run/current-system",
    "/run/wrappers",
    "/run/opengl-driver",
];
/// Folders for temporary files.
const TEMPORARY: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

/// What is asked of the environment of this process.
pub(super) type Variable<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// Finds what a policy for a command in a folder is made of.
///
/// # Errors
///
/// A path of the settings does not exist.
pub(super) fn find(
    settings: &Settings,
    folder: &Path,
    state: Option<&Path>,
    programs: &[PathBuf],
    variable: Variable<'_>,
) -> Result<Surroundings, String> {
    let home = variable("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
    let home = home.and_then(|home| existing(&home));
    let folder = existing(folder).ok_or_else(|| format!("{} is not a folder", folder.display()))?;
    let (workspace, git) = work_tree(&folder, home.as_deref());
    let in_home = |name: &str| home.as_deref().map(|home| home.join(name));
    let cargo = variable("CARGO_HOME").map(PathBuf::from).or_else(|| in_home(".cargo"));
    let cache_home = variable("XDG_CACHE_HOME").map(PathBuf::from);
    let mut created: Vec<PathBuf> =
        CACHES[..CREATED_CACHES].iter().filter_map(|name| in_home(name)).collect();
    if let Some(cargo) = cargo.as_deref().filter(|cargo| cargo.is_dir()) {
        created.extend(CARGO_CACHES[..2].iter().map(|name| cargo.join(name)));
    }
    for cache in &created {
        // One that cannot be created is not writable for its tool either.
        let _ = std::fs::create_dir_all(cache);
    }
    let caches = CACHES.iter().filter_map(|name| in_home(name));
    let moved = CACHES
        .iter()
        .filter_map(|name| Some(cache_home.as_deref()?.join(name.strip_prefix(".cache/")?)));
    let of_cargo = CARGO_CACHES.iter().filter_map(|name| Some(cargo.as_deref()?.join(name)));
    let named = CACHE_VARIABLES.iter().filter_map(|name| variable(name)).map(PathBuf::from);
    let caches = found(caches.chain(moved).chain(of_cargo).chain(named));
    let temporary = TEMPORARY.iter().map(PathBuf::from);
    let temporary = temporary.chain(variable("TMPDIR").map(PathBuf::from));
    let configured = |paths: &[PathBuf], key: &str| -> Result<Vec<PathBuf>, String> {
        let resolve = |path: &PathBuf| {
            let full = match path.strip_prefix("~") {
                Ok(rest) => home.as_deref().map(|home| home.join(rest)),
                Err(_) => Some(path.clone()),
            };
            full.and_then(|full| existing(&full)).ok_or_else(|| {
                format!(
                    "{} in `{key}` of [contain] does not exist; create it or remove it there",
                    path.display()
                )
            })
        };
        paths.iter().map(resolve).collect()
    };
    let (writable, hidden) =
        (configured(&settings.writable, "writable")?, configured(&settings.hidden, "hidden")?);
    let on_path = variable("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&on_path).filter(|folder| folder.is_absolute());
    let toolchains = ["RUSTUP_HOME", "NVM_DIR", "PYENV_ROOT", "VIRTUAL_ENV", "GOROOT", "JAVA_HOME"];
    let toolchains = toolchains.iter().filter_map(|name| variable(name)).map(PathBuf::from);
    let programs = programs.iter().cloned().chain(on_path).chain(toolchains).chain(cargo.clone());
    // The keys of journals and the tokens of servers, if they are not in the home folder.
    let keys = variable("XDG_DATA_HOME").map(|data| PathBuf::from(data).join("counterfoil"));
    let mut around = Surroundings {
        git,
        state: state.and_then(existing),
        caches,
        temporary: found(temporary),
        sockets: found(SOCKETS.iter().map(PathBuf::from)),
        visible: found(VISIBLE.iter().map(PathBuf::from)),
        secrets: found(SECRETS.iter().filter_map(|name| in_home(name)).chain(keys)),
        programs: found(programs),
        writable,
        hidden,
        home,
        workspace,
        files: BTreeSet::new(),
    };
    // A folder that contains what is worked in cannot be private or hidden.
    around.temporary.retain(|folder| !around.workspace.eq(folder));
    let lists = [&around.git, &around.caches, &around.secrets, &around.writable, &around.hidden];
    let lists = lists.into_iter().chain([&around.programs, &around.visible]);
    let files = lists.flatten().filter(|path| !path.is_dir()).cloned().collect();
    around.files = files;
    Ok(around)
}

/// The path without symbolic links, if it exists.
fn existing(path: &Path) -> Option<PathBuf> {
    path.canonicalize().ok()
}

/// Those of some paths that exist, without symbolic links. The root folder is left out.
fn found(paths: impl Iterator<Item = PathBuf>) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = paths
        .filter(|path| path.is_absolute())
        .filter_map(|path| existing(&path))
        .filter(|path| path.parent().is_some())
        .collect();
    found.sort();
    found.dedup();
    found
}

/// The work tree around a folder, and what belongs to git: `.git`, the git folder, and the common
/// one of a linked worktree. Without a repository, or if the work tree contains the home folder, it
/// is the folder itself.
fn work_tree(folder: &Path, home: Option<&Path>) -> (PathBuf, Vec<PathBuf>) {
    for above in folder.ancestors() {
        let dot_git = above.join(".git");
        let Ok(meta) = dot_git.metadata() else { continue };
        let mut git = vec![dot_git.clone()];
        let folder_of_git = if meta.is_dir() {
            Some(dot_git)
        } else {
            let named = std::fs::read(&dot_git).unwrap_or_default();
            let named = named.strip_prefix(b"gitdir: ").map(<[u8]>::trim_ascii_end);
            named.map(|named| above.join(OsStr::from_bytes(named)))
        };
        if let Some(real) = folder_of_git {
            let common = std::fs::read(real.join("commondir")).ok();
            git.extend(common.map(|common| real.join(OsStr::from_bytes(common.trim_ascii_end()))));
            git.push(real);
        }
        let contains_home = home.is_some_and(|home| home.starts_with(above));
        let top = if contains_home { folder } else { above };
        return (top.to_owned(), found(git.into_iter()));
    }
    (folder.to_owned(), Vec::new())
}

/// The entries of a folder as writable places; those that are symbolic links are left out.
pub(super) fn entries(folder: &Path) -> Vec<Place> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let entries = entries.filter_map(|entry| {
        let entry = entry.ok()?;
        let kind = entry.file_type().ok()?;
        (!kind.is_symlink()).then(|| Place {
            path: entry.path(),
            access: Access::Write,
            folder: kind.is_dir(),
        })
    });
    entries.collect()
}
