//! Amounts in messages: money and time, as people read them.

use std::time::Duration;

/// An amount of dollars: to the cent or, if it is less than a cent, to four digits.
pub fn dollars(amount: f64) -> String {
    if amount > 0.0 && amount < 0.01 { format!("${amount:.4}") } else { format!("${amount:.2}") }
}

/// A duration in milliseconds, with the units that matter.
pub fn duration(ms: u64) -> String {
    counterfoil_contract::text::duration(Duration::from_millis(ms))
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
        assert_eq!(duration(61_000), "1 min 1 s");
    }
}
