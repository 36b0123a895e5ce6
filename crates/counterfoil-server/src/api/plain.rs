//! Answers with a text, or with a range of its bytes. They are never shown as a page.

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use counterfoil_engine::{TranscriptError, TranscriptText};
use futures_util::stream;
use std::io;
use std::sync::Arc;

/// The bytes of a text that are in memory at a time, for each client.
const PIECE_BYTES: u64 = 256 << 10;

/// The part of a text that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Whole,
    /// From a byte to the one before another.
    Range(u64, u64),
    /// Nothing of it is there.
    None,
}

impl Part {
    fn of(range: Option<&HeaderValue>, total: u64) -> Self {
        let asked = range.and_then(|range| range.to_str().ok()).and_then(parse_range);
        let (from, to) = match asked {
            None => return Self::Whole,
            Some((Some(from), to)) => {
                (from, to.map_or(total, |to| to.saturating_add(1)).min(total))
            }
            Some((None, last)) => (total.saturating_sub(last.unwrap_or(0)), total),
        };
        if from < to { Self::Range(from, to) } else { Self::None }
    }

    /// The answer with the bytes from one place to another.
    fn answer(self, total: u64, body: impl FnOnce(u64, u64) -> Body) -> Response {
        let kind = (header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
        let ranges = (header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        let place = |text: String| {
            let text = HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static(""));
            (header::CONTENT_RANGE, text)
        };
        let length = |bytes: u64| (header::CONTENT_LENGTH, HeaderValue::from(bytes));
        match self {
            Self::Whole => ([kind, ranges, length(total)], body(0, total)).into_response(),
            Self::Range(from, to) => {
                let place = place(format!("bytes {from}-{}/{total}", to - 1));
                let headers = [kind, ranges, place, length(to - from)];
                (StatusCode::PARTIAL_CONTENT, headers, body(from, to)).into_response()
            }
            Self::None => {
                let headers = [kind, place(format!("bytes */{total}"))];
                (StatusCode::RANGE_NOT_SATISFIABLE, headers).into_response()
            }
        }
    }
}

/// The answer with a text that is in memory.
pub(super) fn plain(bytes: Vec<u8>, range: Option<&HeaderValue>) -> Response {
    let bytes = Bytes::from(bytes);
    let total = bytes.len() as u64;
    let at = |place: u64| usize::try_from(place).unwrap_or(usize::MAX).min(bytes.len());
    let body = |from, to| Body::from(bytes.slice(at(from)..at(to)));
    Part::of(range, total).answer(total, body)
}

/// The answer with a text that is read while it is sent: it may be larger than the memory.
pub(super) fn streamed(text: TranscriptText, range: Option<&HeaderValue>) -> Response {
    let total = text.size();
    Part::of(range, total).answer(total, |from, to| pieces(text, from, to))
}

fn pieces(text: TranscriptText, from: u64, to: u64) -> Body {
    let text = Arc::new(text);
    Body::from_stream(stream::try_unfold(from, move |at| {
        let text = Arc::clone(&text);
        async move {
            if at >= to {
                return Ok(None);
            }
            let count = usize::try_from(PIECE_BYTES.min(to - at)).unwrap_or(usize::MAX);
            let read = move || text.read_at(at, count);
            let read = tokio::task::spawn_blocking(read).await.map_err(io::Error::other)?;
            // A client that was told the length learns that this is not the end of the text.
            let piece = read.map_err(|why: TranscriptError| {
                tracing::warn!(%why, "a text cannot be sent as a whole");
                io::Error::other(why)
            })?;
            let next = at + piece.len() as u64;
            Ok::<_, io::Error>(Some((Bytes::from(piece), next)))
        }
    }))
}

/// The first and the last byte of a header `Range` with one range: `bytes=0-99`, `bytes=100-`,
/// `bytes=-50`. Others are ignored, as the standard allows.
fn parse_range(text: &str) -> Option<(Option<u64>, Option<u64>)> {
    let (from, to) = text.strip_prefix("bytes=")?.split_once('-')?;
    let number = |text: &str| {
        if text.is_empty() { Some(None) } else { text.trim().parse().ok().map(Some) }
    };
    match (number(from)?, number(to)?) {
        (None, None) => None,
        range => Some(range),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_range_is_read_and_others_are_ignored() {
        for (text, range) in [
            ("bytes=0-99", Some((Some(0), Some(99)))),
            ("bytes=100-", Some((Some(100), None))),
            ("bytes=-50", Some((None, Some(50)))),
            ("bytes=-", None),
            ("bytes=a-b", None),
            ("lines=1-2", None),
            ("bytes=0-1,3-4", None),
        ] {
            assert_eq!(parse_range(text), range, "{text}");
        }
    }

    #[test]
    fn a_range_is_a_part_and_one_outside_is_refused() {
        let part = |range: &'static str| Part::of(Some(&HeaderValue::from_static(range)), 10);
        assert_eq!(part("bytes=2-4"), Part::Range(2, 5));
        assert_eq!(part("bytes=2-400"), Part::Range(2, 10));
        assert_eq!(part("bytes=-3"), Part::Range(7, 10));
        assert_eq!(part("bytes=10-"), Part::None);
        assert_eq!(part("bytes=5-2"), Part::None);
        assert_eq!(part("nothing"), Part::Whole);
        assert_eq!(Part::of(None, 10), Part::Whole);
    }
}
