//! The cookie of a browser's session.

use axum::http::{HeaderMap, header};

/// The name of the cookie. Cookies are shared by all ports of a host, so the name has the port.
pub(crate) fn cookie_name(port: u16) -> String {
    format!("counterfoil-{port}")
}

/// The id of the session that a request names. If several cookies have the name, there is none:
/// another server of the host may have set one of them.
pub(crate) fn session_of(headers: &HeaderMap, port: u16) -> Option<&str> {
    let name = cookie_name(port);
    let cookies = headers.get_all(header::COOKIE).into_iter();
    let mut found = cookies
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .filter(|(key, _)| *key == name)
        .map(|(_, value)| value);
    match (found.next(), found.next()) {
        (Some(only), None) => Some(only),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(cookies: &[&'static str]) -> HeaderMap {
        let values = cookies
            .iter()
            .map(|cookie| (header::COOKIE, axum::http::HeaderValue::from_static(cookie)));
        values.collect()
    }

    #[test]
    fn the_session_is_in_the_cookie_with_the_port() {
        for (cookies, session) in [
            (&["counterfoil-4173=abc"][..], Some("abc")),
            (&["a=b; counterfoil-4173=abc; c=d"], Some("abc")),
            (&["a=b", "counterfoil-4173=abc"], Some("abc")),
            (&["counterfoil-4174=abc"], None),
            (&["counterfoil-4173=abc; counterfoil-4173=def"], None),
            (&["xcounterfoil-4173=abc"], None),
            (&[], None),
        ] {
            assert_eq!(session_of(&headers(cookies), 4173), session, "{cookies:?}");
        }
    }
}
