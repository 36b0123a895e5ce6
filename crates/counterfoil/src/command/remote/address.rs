//! The address of a server, and the token for it.
//!
//! A token is never part of the command line. For a server of this user on this machine it is in the
//! file that the server wrote; for others it is in a variable.

use crate::command::serve::token::published;
use anyhow::{Result, anyhow, bail};
use counterfoil_contract::text::display_path;
use counterfoil_server::Token;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use ureq::http::Uri;

/// The variable with the token of a server.
pub(super) const VARIABLE: &str = "COUNTERFOIL_SERVER_TOKEN";

/// Where a server is, and what it is told.
#[derive(Debug)]
pub(super) struct Address {
    /// The address as it was given, without a slash at its end.
    pub(super) shown: String,
    /// The scheme, host and port to connect to.
    pub(super) base: String,
    /// The token and where it was found.
    pub(super) token: Option<(Token, TokenSource)>,
}

/// Where a token was found.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TokenSource {
    /// The file of a server on this machine.
    File(String),
    /// The variable.
    Variable,
}

/// The parts of an address.
#[derive(Debug, PartialEq, Eq)]
struct Parts {
    scheme: String,
    host: String,
    port: u16,
}

impl Address {
    /// The address that was given on the command line.
    pub(super) fn find(url: &str) -> Result<Self> {
        let parts = parse(url)?;
        let Parts { scheme, host, port } = &parts;
        let shown = url.trim_end_matches('/').to_owned();
        if scheme == "http" {
            for ip in loopback(host) {
                let address = SocketAddr::new(ip, *port);
                if let Some((path, token)) = published(address)? {
                    require_form(&token, || format!("the token in {}", display_path(&path)))?;
                    let source = TokenSource::File(display_path(&path));
                    // The token is for this address alone, whatever else the name stands for.
                    let base = format!("http://{address}");
                    return Ok(Self { shown, base, token: Some((token, source)) });
                }
            }
        }
        let token = match std::env::var(VARIABLE) {
            Ok(text) if !text.trim().is_empty() => {
                let token = Token::from_text(text.trim());
                require_form(&token, || VARIABLE.to_owned())?;
                Some((token, TokenSource::Variable))
            }
            _ => None,
        };
        Ok(Self { shown, base: format!("{scheme}://{host}:{port}"), token })
    }
}

/// Refuses a token that cannot be part of a request, without quoting it.
fn require_form(token: &Token, what: impl FnOnce() -> String) -> Result<()> {
    let text = token.reveal();
    if text.is_empty() || !text.chars().all(|char| char.is_ascii_graphic()) {
        bail!("{} is not a token of a server", what());
    }
    Ok(())
}

/// The addresses of this machine that a host stands for.
fn loopback(host: &str) -> Vec<IpAddr> {
    if host.eq_ignore_ascii_case("localhost") {
        return vec![IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
    }
    let ip: Option<IpAddr> = host.trim_matches(['[', ']']).parse().ok();
    ip.filter(IpAddr::is_loopback).into_iter().collect()
}

fn parse(url: &str) -> Result<Parts> {
    let wrong = || anyhow!("'{url}' is not the address of a server, such as http://127.0.0.1:4173");
    let uri: Uri = url.parse().map_err(|_| wrong())?;
    let authority = uri.authority().ok_or_else(wrong)?;
    if authority.as_str().contains('@') {
        bail!("the address of a server has no user name; its token is read from {VARIABLE}");
    }
    let scheme = uri.scheme_str().unwrap_or_default();
    let default_port = match scheme {
        "http" => 80,
        "https" if cfg!(feature = "opentelemetry-tls") => 443,
        "https" => bail!(
            "this program was built without TLS and cannot ask {url}; forward a port of this machine \
             to the server (`ssh -N -L 4173:127.0.0.1:4173 HOST`) and give http://127.0.0.1:4173, or \
             build it with the feature `opentelemetry-tls`"
        ),
        _ => return Err(wrong()),
    };
    let port = match authority.as_str().strip_prefix(authority.host()) {
        None | Some("") => Some(default_port),
        Some(_) => authority.port_u16(),
    };
    let has_more = !matches!(uri.path(), "" | "/") || uri.query().is_some();
    if has_more || authority.host().is_empty() {
        return Err(wrong());
    }
    Ok(Parts {
        scheme: scheme.to_owned(),
        host: authority.host().to_owned(),
        port: port.ok_or_else(wrong)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_a_scheme_and_nothing_behind_the_port() {
        for (url, host, port) in [
            ("http://127.0.0.1:4173", "127.0.0.1", 4173),
            ("http://localhost:4173/", "localhost", 4173),
            ("http://[::1]:4173", "[::1]", 4173),
            ("http://build.example", "build.example", 80),
        ] {
            let expected = Parts { scheme: "http".to_owned(), host: host.to_owned(), port };
            assert_eq!(parse(url).unwrap(), expected);
        }
        for url in [
            "",
            "127.0.0.1:4173",
            "localhost",
            "ftp://localhost",
            "file:///etc/passwd",
            "http://localhost:4173/runs",
            "http://localhost:4173/?code=1",
            "http://kim:secret@localhost:4173",
            "http://localhost:99999",
            "http://",
        ] {
            let error = parse(url).unwrap_err().to_string();
            assert!(!error.contains("secret") && error.contains("address"), "{url}: {error}");
        }
    }

    #[cfg(not(feature = "opentelemetry-tls"))]
    #[test]
    fn without_tls_that_is_said() {
        let error = parse("https://build.example").unwrap_err().to_string();
        assert!(error.contains("without TLS") && error.contains("ssh"), "{error}");
    }

    #[test]
    fn only_this_machine_is_loopback() {
        assert_eq!(loopback("LOCALHOST").len(), 2);
        assert_eq!(loopback("[::1]"), [IpAddr::V6(Ipv6Addr::LOCALHOST)]);
        assert_eq!(loopback("127.0.0.1"), [IpAddr::V4(Ipv4Addr::LOCALHOST)]);
        for host in ["localhost.example", "10.0.0.1", "0.0.0.0", "127.0.0.1.example"] {
            assert!(loopback(host).is_empty(), "{host}");
        }
    }

    #[test]
    fn a_token_that_cannot_be_sent_is_refused_and_not_quoted() {
        let token = |text: &str| {
            require_form(&Token::from_text(text), || "the token".to_owned())
                .map_err(|error| error.to_string())
        };
        assert_eq!(token("abc123"), Ok(()));
        for text in ["", "secret\r\nHost: other", "secret word"] {
            assert_eq!(token(text), Err("the token is not a token of a server".to_owned()));
        }
    }
}
