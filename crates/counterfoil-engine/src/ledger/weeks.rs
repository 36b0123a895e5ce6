//! Figures by week, which show whether a rate rises or falls.

use super::figures::Figures;
use super::stats::{Dimension, Group, Tally};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A day in milliseconds.
const DAY_MS: i64 = 24 * 60 * 60 * 1000;
/// A week in milliseconds.
const WEEK_MS: i64 = 7 * DAY_MS;

/// The beginning of the week of a time: Monday at midnight, UTC. Both are in milliseconds since 1970.
pub fn week_of(at: i64) -> i64 {
    // 1970 began on a Thursday.
    let day = at.div_euclid(DAY_MS);
    (day - (day + 3).rem_euclid(7)).saturating_mul(DAY_MS)
}

/// The figures of runs by the week in which they started. The figures have all properties.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Weeks(pub BTreeMap<i64, Arc<Figures>>);

/// The figures of a group in one week.
#[derive(Clone, Debug, PartialEq)]
pub struct Week {
    /// The beginning of the week, in milliseconds since 1970.
    pub starts_at: i64,
    /// The figures.
    pub group: Group,
}

/// A group with its figures of the last weeks.
#[derive(Clone, Debug, PartialEq)]
pub struct Trend {
    /// The figures of all weeks, those before the last ones included.
    pub group: Group,
    /// The last weeks, the earliest first. A week without runs has no figures.
    pub weeks: Vec<Week>,
}

impl Weeks {
    /// The figures of all weeks, grouped by these properties.
    pub fn tally(&self, by: &[Dimension]) -> Tally {
        self.sum(by).tally(by)
    }

    /// The groups in the order of [`Tally`], each with its last weeks.
    pub fn trends(&self, by: &[Dimension], now: i64, last: usize) -> Vec<Trend> {
        let this = week_of(now);
        let last = i64::try_from(last).unwrap_or(0);
        let shown: Vec<(i64, Figures)> = (0..last)
            .rev()
            .map(|before| this.saturating_sub(before.saturating_mul(WEEK_MS)))
            .map(|week| {
                let figures = self.0.get(&week).map(|figures| figures.grouped(by));
                (week, figures.unwrap_or_default())
            })
            .collect();
        let trend = |group: Group| Trend {
            weeks: shown
                .iter()
                .map(|(week, figures)| Week { starts_at: *week, group: figures.group(&group.key) })
                .collect(),
            group,
        };
        self.tally(by).groups.into_iter().map(trend).collect()
    }

    /// The sum of all weeks.
    fn sum(&self, by: &[Dimension]) -> Figures {
        let mut sum = Figures::default();
        for figures in self.0.values() {
            sum.add(&figures.grouped(by));
        }
        sum
    }
}
