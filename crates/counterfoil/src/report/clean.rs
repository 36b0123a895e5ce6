//! Which of the things that runs left are removed.

/// What a run left in the state folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Remains {
    pub(crate) run: String,
    /// Whether the run ended, so that nothing needs its files.
    pub(crate) ended: bool,
    /// The time of its last event, in milliseconds since 1970.
    pub(crate) updated_at: i64,
    /// The size of its files.
    pub(crate) bytes: u64,
}

/// What was asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CleanLimits {
    /// Now, in milliseconds since 1970.
    pub(crate) now: i64,
    /// The least age of a run, in milliseconds.
    pub(crate) older_than: u64,
    /// If given, only as much is removed as is needed to have less than this.
    pub(crate) max_size: Option<u64>,
}

/// The runs whose files are removed, the oldest first. Never one that has not ended.
pub(crate) fn select(all: &[Remains], limits: CleanLimits) -> Vec<&Remains> {
    let is_old = |one: &&Remains| {
        u64::try_from(limits.now.saturating_sub(one.updated_at)).unwrap_or(0) >= limits.older_than
    };
    let mut old: Vec<&Remains> =
        all.iter().filter(|one| one.ended && one.bytes > 0).filter(is_old).collect();
    old.sort_by_key(|one| one.updated_at);
    let mut left: u64 = all.iter().map(|one| one.bytes).sum();
    let is_needed = |one: &&Remains| {
        let needed = limits.max_size.is_none_or(|most| left >= most);
        if needed {
            left -= one.bytes;
        }
        needed
    };
    old.into_iter().filter(is_needed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_runs_that_ended_are_selected_until_there_is_room() {
        let one = |run: &str, ended, updated_at, bytes| Remains {
            run: run.to_owned(),
            ended,
            updated_at,
            bytes,
        };
        let all = [
            one("new", true, 950, 10),
            one("open", false, 1, 1000),
            one("b", true, 20, 20),
            one("a", true, 10, 30),
            one("empty", true, 5, 0),
        ];
        let selected = |older_than, max_size| {
            let limits = CleanLimits { now: 1000, older_than, max_size };
            select(&all, limits).iter().map(|one| one.run.as_str()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(selected(100, None), "a b");
        assert_eq!(selected(0, None), "a b new");
        assert_eq!(selected(985, None), "a");
        assert_eq!(selected(2000, None), "");
        // 1060 bytes in all.
        assert_eq!(selected(0, Some(2000)), "");
        assert_eq!(selected(0, Some(1060)), "a");
        assert_eq!(selected(0, Some(1020)), "a b");
        assert_eq!(selected(0, Some(0)), "a b new");
    }
}
