//! Files that hold no code, by their names.

use std::path::Path;

/// The ends of the names of texts, data, settings, styles and media.
const EXTENSIONS: [&str; 60] = [
    "adoc",
    "avif",
    "bmp",
    "cfg",
    "conf",
    "crt",
    "css",
    "csv",
    "diff",
    "eot",
    "env",
    "gif",
    "gz",
    "ico",
    "ini",
    "jpeg",
    "jpg",
    "json",
    "json5",
    "jsonc",
    "jsonl",
    "less",
    "lock",
    "log",
    "markdown",
    "md",
    "mod",
    "mp3",
    "mp4",
    "ndjson",
    "org",
    "otf",
    "patch",
    "pdf",
    "pem",
    "png",
    "po",
    "pot",
    "properties",
    "pyi",
    "rst",
    "scss",
    "snap",
    "sum",
    "svg",
    "tar",
    "toml",
    "tsv",
    "ttf",
    "txt",
    "typed",
    "wav",
    "webm",
    "webp",
    "woff",
    "woff2",
    "xml",
    "yaml",
    "yml",
    "zip",
];
/// The names of texts without an extension, in capitals.
const NAMES: [&str; 10] = [
    "AUTHORS",
    "CHANGELOG",
    "CODEOWNERS",
    "CONTRIBUTING",
    "COPYING",
    "LICENSE",
    "MAINTAINERS",
    "NOTICE",
    "README",
    "VERSION",
];

/// Whether a file holds text, data or settings, and no code.
pub(super) fn is_plain(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    match path.extension() {
        Some(extension) => {
            let extension = extension.to_string_lossy().to_lowercase();
            // Declarations of types have no bodies.
            EXTENSIONS.contains(&extension.as_str()) || name.ends_with(".d.ts")
        }
        None => name.starts_with('.') || NAMES.contains(&name.to_uppercase().as_str()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_data_hold_no_code() {
        for name in ["a.md", "Cargo.lock", "x/A.PNG", "a.d.ts", ".gitignore", "LICENSE", "a.yml"] {
            assert!(is_plain(Path::new(name)), "{name}");
        }
        for name in ["a.c", "deploy.sh", "X.java", "X.kt", "x.vue", "Makefile", "tool", "a.ts"] {
            assert!(!is_plain(Path::new(name)), "{name}");
        }
    }
}
