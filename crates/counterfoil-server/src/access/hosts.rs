//! The hosts by which the server may be called. A page of another site that lets its own name point
//! here (DNS rebinding) calls the server by that name, and is refused.

use axum::http::{HeaderMap, Uri, header};
use std::collections::BTreeSet;

/// The allowed values of the header `Host`, in lower case.
#[derive(Clone, Debug)]
pub(crate) struct Hosts(BTreeSet<String>);

impl Hosts {
    /// The names of this machine itself with this port, and others. Of another name with a port only
    /// that port is allowed. One without is allowed with this port, and alone: a proxy in front of the
    /// server has the port that browsers leave out.
    pub(crate) fn new<'a>(port: u16, others: impl IntoIterator<Item = &'a str>) -> Self {
        let local = ["127.0.0.1", "localhost", "[::1]"].map(|host| format!("{host}:{port}"));
        let mut hosts: BTreeSet<String> = local.into();
        for other in others.into_iter().map(str::to_ascii_lowercase) {
            // The colons of an IPv6 address are in brackets.
            let has_port = other.rsplit_once(':').is_some_and(|(_, port)| !port.contains(']'));
            if !has_port {
                hosts.insert(format!("{other}:{port}"));
            }
            hosts.insert(other);
        }
        Self(hosts)
    }

    /// Whether a request is for one of them. It must name its host exactly once.
    pub(crate) fn allow(&self, uri: &Uri, headers: &HeaderMap) -> bool {
        let mut named = headers.get_all(header::HOST).into_iter();
        let (Some(host), None) = (named.next(), named.next()) else { return false };
        let Ok(host) = host.to_str() else { return false };
        let host = host.to_ascii_lowercase();
        // A request for a proxy names the host in its target, too.
        let target = uri.authority().map(|authority| authority.as_str().to_ascii_lowercase());
        self.0.contains(&host) && target.is_none_or(|target| target == host)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    #[test]
    fn only_the_exact_hosts_are_allowed() {
        let hosts = Hosts::new(4173, ["Build.example", "proxy.example:8443", "[fe80::1]"]);
        let allow = |target: &str, host: &[&'static str]| {
            let headers = host
                .iter()
                .map(|host| (header::HOST, HeaderValue::from_static(host)))
                .collect::<HeaderMap>();
            hosts.allow(&target.parse().unwrap(), &headers)
        };
        for host in [
            "127.0.0.1:4173",
            "localhost:4173",
            "[::1]:4173",
            "build.EXAMPLE:4173",
            "build.example",
            "proxy.example:8443",
            "[fe80::1]:4173",
        ] {
            assert!(allow("/", &[host]), "{host}");
        }
        for host in [
            "evil.example:4173",
            "127.0.0.1",
            "127.0.0.1:4174",
            "localhost.:4173",
            "localhost:4173.evil.example",
            "user@localhost:4173",
            "proxy.example",
            "proxy.example:4173",
            "build.example:80",
            "",
        ] {
            assert!(!allow("/", &[host]), "{host}");
        }
        assert!(!allow("/", &[]));
        assert!(!allow("/", &["localhost:4173", "localhost:4173"]));
        assert!(!allow("http://evil.example:4173/", &["localhost:4173"]));
        assert!(allow("http://localhost:4173/", &["localhost:4173"]));
    }
}
