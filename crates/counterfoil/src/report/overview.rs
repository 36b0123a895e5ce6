//! A run on one screen: which of its lines are shown, and which are folded into a count.

/// A line about something that is over: an attempt, a question, a merge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OverviewLine {
    /// The path of the state; empty if it is about no state.
    pub(crate) path: String,
    /// The text, with its details on further lines.
    pub(crate) text: String,
    /// The number of rows that it takes.
    pub(crate) rows: usize,
    /// How much it matters.
    pub(crate) weight: Weight,
}

/// How much a line matters. The lightest are folded first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Weight {
    /// Nothing has to be said about it but that it is finished.
    Finished,
    /// It went on after this, as after a repair that was requested.
    Notable,
    /// A step failed, or a claim was refuted.
    Trouble,
}

/// A part of the screen.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Shown<'a> {
    Line(&'a OverviewLine),
    /// Lines that are not shown: how many, and the paths of their states.
    Folded {
        count: usize,
        paths: Vec<&'a str>,
    },
}

/// The last lines are never folded.
const LAST: usize = 3;

/// The lines that fit into this number of rows. The lightest are folded first, and of those the
/// oldest; the last rows stay.
pub(crate) fn fold(lines: &[OverviewLine], rows: usize) -> Vec<Shown<'_>> {
    let mut needed: usize = lines.iter().map(|line| line.rows).sum();
    let mut folded = vec![false; lines.len()];
    let foldable = lines.len().saturating_sub(LAST);
    for weight in [Weight::Finished, Weight::Notable, Weight::Trouble] {
        for (index, line) in lines.iter().enumerate().take(foldable) {
            // The line that says how many are folded takes a row.
            if needed < rows || needed == rows && !folded.contains(&true) {
                break;
            }
            if line.weight == weight {
                folded[index] = true;
                needed -= line.rows;
            }
        }
    }
    let mut shown = Vec::new();
    for (line, is_folded) in lines.iter().zip(folded) {
        match shown.last_mut() {
            _ if !is_folded => shown.push(Shown::Line(line)),
            Some(Shown::Folded { count, paths }) => {
                *count += 1;
                if !paths.contains(&line.path.as_str()) && !line.path.is_empty() {
                    paths.push(&line.path);
                }
            }
            _ => shown.push(Shown::Folded {
                count: 1,
                paths: Some(line.path.as_str())
                    .into_iter()
                    .filter(|path| !path.is_empty())
                    .collect(),
            }),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn screen(marks: &str, rows: usize) -> String {
        let lines: Vec<OverviewLine> = marks
            .chars()
            .enumerate()
            .map(|(index, mark)| OverviewLine {
                path: format!("s{}", index % 2),
                text: mark.to_string(),
                rows: 1,
                weight: match mark {
                    '+' => Weight::Finished,
                    '-' => Weight::Notable,
                    _ => Weight::Trouble,
                },
            })
            .collect();
        let one = |shown: &Shown<'_>| match shown {
            Shown::Line(line) => line.text.clone(),
            Shown::Folded { count, paths } => format!("({count} {})", paths.join(",")),
        };
        fold(&lines, rows).iter().map(one).collect()
    }

    #[test]
    fn the_lightest_lines_are_folded_first_and_the_last_ones_stay() {
        assert_eq!(screen("", 5), "");
        assert_eq!(screen("+++++", 5), "+++++");
        assert_eq!(screen("++++++", 5), "(2 s0,s1)++++");
        assert_eq!(screen("++-+++++++", 6), "(2 s0,s1)-(3 s1,s0)++++");
        assert_eq!(screen("--------", 4), "(5 s0,s1)---");
        assert_eq!(screen("++++++", 1), "(3 s0,s1)+++");
        assert_eq!(screen("x-+-+++", 5), "x(3 s1,s0)+++");
        assert_eq!(screen("xx-xxxx", 4), "(4 s0,s1)xxx");
    }
}
