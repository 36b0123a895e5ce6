//! Texts without what differs from run to run.

/// Takes out of a text what differs from run to run: ids, times, durations.
pub(crate) fn steady(text: &str) -> String {
    let shapes = [
        ("@-@-@-@-@", "RUN"),
        ("01@-@", "RUN"),
        ("#-#-# #:#:#", "DATE TIME"),
        ("#-#-# #:#", "DATE TIME"),
        ("#:#:#", "TIME"),
        (", # ms", ""),
        (", #.# s", ""),
        (" # ms ", " "),
        (" #.# s ", " "),
        (" # ms\n", "\n"),
        (" #.# s\n", "\n"),
        ("time=\"#.#\"", "time=\"SECONDS\""),
    ];
    shapes.iter().fold(text.to_owned(), |text, (shape, with)| replaced(&text, shape, with))
}

/// Replaces what has a shape: `#` is a number, `@` one in hexadecimal, the rest is as it stands.
pub(crate) fn replaced(text: &str, shape: &str, with: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        // Numbers and ids begin where no other word is going on.
        let inside = out.ends_with(|c: char| c.is_alphanumeric() || c == '-')
            && shape.starts_with(['#', '@']);
        match shaped(rest, shape).filter(|_| !inside) {
            Some(length) => {
                out.push_str(with);
                rest = &rest[length..];
            }
            None => {
                out.push(next);
                rest = &rest[next.len_utf8()..];
            }
        }
    }
    out
}

/// How much of the start of a text has a shape.
fn shaped(text: &str, shape: &str) -> Option<usize> {
    shape.chars().try_fold(0, |at, expected| {
        let rest = &text[at..];
        let length = match expected {
            '#' => rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len()),
            '@' => rest.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(rest.len()),
            other => rest.strip_prefix(other).map_or(0, |_| other.len_utf8()),
        };
        (length > 0).then_some(at + length)
    })
}
