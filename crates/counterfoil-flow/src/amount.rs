//! Amounts in messages: money and time, as people read them.

/// An amount of dollars: to the cent or, if it is less than a cent, to four digits.
pub fn dollars(amount: f64) -> String {
    if amount > 0.0 && amount < 0.01 { format!("${amount:.4}") } else { format!("${amount:.2}") }
}

/// A duration with the two largest units that matter.
pub fn duration(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        60_000..3_600_000 => format!("{} min {} s", ms / 60_000, ms % 60_000 / 1000),
        _ => format!("{} h {} min", ms / 3_600_000, ms % 3_600_000 / 60_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_the_digits_that_matter() {
        for (amount, text) in [
            (0.0, "$0.00"),
            (3.0, "$3.00"),
            (0.0042, "$0.0042"),
            (0.25, "$0.25"),
            (12.345, "$12.35"),
        ] {
            assert_eq!(dollars(amount), text);
        }
        for (ms, text) in [
            (0, "0 ms"),
            (999, "999 ms"),
            (1_000, "1.0 s"),
            (59_999, "59.9 s"),
            (61_000, "1 min 1 s"),
            (3_660_000, "1 h 1 min"),
        ] {
            assert_eq!(duration(ms), text);
        }
    }
}
