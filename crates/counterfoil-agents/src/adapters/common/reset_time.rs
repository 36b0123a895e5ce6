//! Finds the time at which a limit is lifted in the message of a program.

use jiff::{Span, SpanRelativeTo, Timestamp};

/// The phrases before a time, in lower case.
const CUES: [&str; 19] = [
    "again in",
    "again after",
    "again at",
    "retry in",
    "retry after",
    "retry-after",
    "retryafter",
    "retrydelay",
    "retry_delay",
    "reset after",
    "resets after",
    "reset in",
    "resets in",
    "resets_in_seconds",
    "reset at",
    "resets at",
    "resetsat",
    "resets_at",
    // `usage limit reached|1760000000`
    "limit reached|",
];

/// How much of a message is searched.
const MAX_TEXT_BYTES: usize = 16 << 10;

/// The latest reset time in a message, in milliseconds since 1970. `at` is the current time.
///
/// A time of day alone is ignored, because its time zone is unknown here.
pub(crate) fn parse_reset_time(message: &str, at: i64) -> Option<i64> {
    let message = &message[..message.floor_char_boundary(MAX_TEXT_BYTES)];
    // ASCII lower case keeps the length, so offsets stay valid.
    let lowercase = message.to_ascii_lowercase();
    CUES.iter()
        .flat_map(|cue| lowercase.match_indices(cue).map(|(start, _)| start + cue.len()))
        .filter_map(|start| {
            let rest = message[start..].trim_start_matches([' ', ':', '=', '"', '\'', '~']);
            number(rest, at).or_else(|| span(rest, at)).or_else(|| date(rest))
        })
        .max()
}

/// A number without a unit: seconds from now, or a Unix time in seconds or milliseconds.
fn number(text: &str, at: i64) -> Option<i64> {
    let length = text.bytes().take_while(u8::is_ascii_digit).count();
    let rest = text[length..].trim_start_matches(['"', '\'']);
    let unit = rest.trim_start().starts_with(|c: char| c.is_ascii_alphabetic());
    let continues =
        rest.starts_with(['.', '-', ':']) && rest[1..].starts_with(|c: char| c.is_ascii_digit());
    if unit || continues {
        return None;
    }
    match text[..length].parse::<i64>().ok()? {
        seconds @ ..1_000_000_000 => at.checked_add(seconds.checked_mul(1000)?),
        seconds @ ..1_000_000_000_000 => seconds.checked_mul(1000),
        millis => Some(millis),
    }
}

/// A duration from now: `12s`, `1h2m3.5s`, `3 days 4 hours`.
fn span(text: &str, at: i64) -> Option<i64> {
    let (mut end, mut seen) = (0, 0);
    while seen < 8 {
        let rest = &text[end..];
        let pause = rest.len() - rest.trim_start_matches([' ', ',']).len();
        let rest = &rest[pause..];
        let number = rest.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
        let gap = rest[number..].bytes().take_while(|byte| *byte == b' ').count();
        let unit = rest[number + gap..].bytes().take_while(u8::is_ascii_alphabetic).count();
        let known = rest[number + gap..number + gap + unit].starts_with(['d', 'h', 'm', 's']);
        if number == 0 || unit == 0 || !known {
            break;
        }
        end += pause + number + gap + unit;
        seen += 1;
    }
    let span: Span = text[..end].parse().ok()?;
    let length = span.to_duration(SpanRelativeTo::days_are_24_hours()).ok()?;
    at.checked_add(i64::try_from(length.as_millis()).ok()?)
}

/// An RFC 3339 or HTTP date with a time zone.
fn date(text: &str) -> Option<i64> {
    let word = text.split([' ', '"', '\'', ',', ')']).next()?.trim_end_matches('.');
    let http = text.get(..29).and_then(|date| jiff::fmt::rfc2822::parse(date).ok());
    let time = word.parse::<Timestamp>().ok().or_else(|| http.map(|date| date.timestamp()))?;
    Some(time.as_millisecond())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_800_000_000_000;

    #[test]
    fn the_time_is_found_in_messages_of_programs() {
        let seconds =
            |message: &str| parse_reset_time(message, NOW).map(|reset| (reset - NOW) / 1000);
        for (message, expected) in [
            ("Rate limit reached. Please try again in 12s.", 12),
            ("try again in 1.5s", 1),
            ("Try again in 6m0s. Visit", 360),
            ("Try again in 3 days 4 hours 5 minutes.", 3 * 86400 + 4 * 3600 + 5 * 60),
            ("Please retry in 34.074824224s.", 34),
            ("Your quota will reset after 18h33m27s.", 18 * 3600 + 33 * 60 + 27),
            (r#"{"@type":"…RetryInfo","retryDelay":"34s"}"#, 34),
            (r#"{"resets_in_seconds":3600}"#, 3600),
            ("HTTP 429, Retry-After: 30", 30),
            ("retry after 2 minutes", 120),
            ("retry-after: Fri, 15 Jan 2027 08:00:10 GMT", 10),
            ("limit resets at 2027-01-15T08:00:20Z.", 20),
            ("Usage limit reached|1800000060", 60),
            ("AI usage limit reached|1800000060", 60),
            (r#""resetsAt":1800000060000"#, 60),
            ("try again in 5s; the day's quota resets in 2h", 7200),
        ] {
            assert_eq!(seconds(message), Some(expected), "{message}");
        }
    }

    #[test]
    fn a_message_without_a_time_gives_none() {
        for message in [
            "",
            "You've hit your limit · resets 3pm (Europe/Berlin)",
            "try again at 3:45 PM",
            "try again in a moment",
            "try again in 3 moons",
            "try again in 99999999999999999999s",
            "retry-after: ",
            "retry after é",
            "resets at 2027-99-99T08:00:20Z",
        ] {
            assert_eq!(parse_reset_time(message, NOW), None, "{message}");
        }
        let long = "try again in ".repeat(100_000) + "5s";
        assert_eq!(parse_reset_time(&long, NOW), None);
    }
}
