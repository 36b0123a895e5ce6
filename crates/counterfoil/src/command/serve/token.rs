//! The token of a server: a file that only its user can read, where the commands of this program
//! find it.

use crate::{output, state_folder};
use anyhow::{Context as _, Result, anyhow, bail};
use counterfoil_contract::text::display_path;
use counterfoil_server::Token;
use counterfoil_workspace::{Durability, save_json};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// The shortest token that is accepted.
const MIN_LENGTH: usize = 32;
/// The most bytes that are read of a token file.
const MAX_BYTES: u64 = 4096;

/// The file of a running server.
#[derive(Serialize, Deserialize)]
struct PublishedToken {
    token: String,
    /// The process of the server.
    pid: u32,
}

/// The token in a file, or a new one.
pub(super) fn read_or_make(file: Option<&Path>) -> Result<Token> {
    let Some(file) = file else {
        return Token::random().context("there are no random numbers");
    };
    let name = display_path(file);
    let metadata = fs::metadata(file).with_context(|| format!("cannot read {name}"))?;
    // Opening a pipe would block.
    if !metadata.is_file() || metadata.len() > MAX_BYTES {
        bail!("{name} is not a file with a token");
    }
    if metadata.mode() & 0o077 != 0 {
        bail!("other users can read {name}; keep it to yourself with `chmod 600 {name}`");
    }
    let text = fs::read_to_string(file).with_context(|| format!("cannot read {name}"))?;
    let token = text.trim();
    if token.len() < MIN_LENGTH || !token.chars().all(|char| char.is_ascii_graphic()) {
        bail!(
            "{name} must have a token of at least {MIN_LENGTH} letters and digits, such as from \
             `openssl rand -hex 32`"
        );
    }
    Ok(Token::from_text(token))
}

/// Writes the token of a server to the file in which the commands of this program look for it.
/// `None` if there is no folder for it.
pub(super) fn publish(address: SocketAddr, token: &Token) -> Result<Option<Published>> {
    let Some(path) = path(address) else { return Ok(None) };
    let published = PublishedToken { token: token.reveal().to_owned(), pid: std::process::id() };
    save_json(&path, Durability::Unsynced, &published)
        .with_context(|| format!("cannot write {}", display_path(&path)))?;
    Ok(Some(Published(path)))
}

/// The token that a server of this user at an address has published, and its file.
pub(in crate::command) fn published(address: SocketAddr) -> Result<Option<(PathBuf, Token)>> {
    let Some(path) = path(address) else { return Ok(None) };
    let name = display_path(&path);
    let metadata = match fs::metadata(&path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) if error.kind() == ErrorKind::NotADirectory => return Ok(None),
        Err(error) => return Err(error).with_context(|| format!("cannot read {name}")),
    };
    // Opening a pipe would block.
    if !metadata.is_file() || metadata.len() > MAX_BYTES {
        bail!("{name} is not a file with a token; remove it and start the server again");
    }
    let bytes = fs::read(&path).with_context(|| format!("cannot read {name}"))?;
    let published: PublishedToken = serde_json::from_slice(&bytes)
        // What is wrong is not quoted: it may be a part of the token.
        .map_err(|_| anyhow!("{name} has no token; remove it and start the server again"))?;
    Ok(Some((path, Token::from_text(published.token))))
}

/// The file with the token of a running server. It is removed when this is dropped.
pub(super) struct Published(PathBuf);

impl Drop for Published {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.0) {
            let path = display_path(&self.0);
            output::write_message("warning", &format!("{path} cannot be removed: {error}"));
        }
    }
}

/// The file with the token of a server.
fn path(address: SocketAddr) -> Option<PathBuf> {
    let folder = state_folder::keys_folder()?;
    let name = format!("{}-{}.json", address.ip().to_string().replace(':', "_"), address.port());
    Some(folder.parent()?.join("servers").join(name))
}
