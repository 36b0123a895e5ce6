//! The order of what stands in a layer, and its place from left to right.

use super::layers::{Spot, length};
use std::collections::BTreeMap;

/// How often the order is improved, down and up by turns.
const SORTS: usize = 12;

/// How often the places are improved, after one neighbour or the other at first, then after both.
const MOVES: usize = 48;
const AFTER_ONE: usize = 12;

/// The room between two neighbours.
const GAP: f64 = 16.0;

/// The middle of each spot, from the left edge.
pub(super) fn place(spots: &[Spot]) -> Vec<f64> {
    let layers = spots.iter().map(|spot| spot.layer + 1).max().unwrap_or(0);
    let mut rows: Vec<Vec<usize>> = vec![Vec::new(); layers];
    for (at, spot) in spots.iter().enumerate() {
        rows[spot.layer].push(at);
    }
    sort(spots, &mut rows);
    let mut across = vec![0.0; spots.len()];
    for row in &rows {
        settle(spots, row, &vec![0.0; row.len()], &mut across);
    }
    for turn in 0..MOVES {
        for at in 0..rows.len() {
            let row = if turn % 2 == 0 { &rows[at] } else { &rows[rows.len() - 1 - at] };
            let wanted: Vec<f64> = row
                .iter()
                .map(|spot| {
                    let Spot { above, below, .. } = &spots[*spot];
                    let beside: &mut dyn Iterator<Item = &usize> =
                        match (turn >= AFTER_ONE, turn % 2 == 0) {
                            (true, _) => &mut above.iter().chain(below),
                            (false, true) => &mut above.iter(),
                            (false, false) => &mut below.iter(),
                        };
                    mean(beside.map(|other| across[*other])).unwrap_or(across[*spot])
                })
                .collect();
            settle(spots, row, &wanted, &mut across);
        }
    }
    let left =
        spots.iter().zip(&across).map(|(spot, x)| x - spot.left).fold(f64::INFINITY, f64::min);
    across.iter().map(|x| x - left).collect()
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / length(count))
}

/// Puts each spot where its neighbours are, the usual way to make lines cross less.
fn sort(spots: &[Spot], rows: &mut [Vec<usize>]) {
    let mut places = vec![0.0; spots.len()];
    for row in rows.iter() {
        for (place, spot) in row.iter().enumerate() {
            places[*spot] = length(place);
        }
    }
    for turn in 0..SORTS {
        let down = turn % 2 == 0;
        for at in 0..rows.len() {
            let at = if down { at } else { rows.len() - 1 - at };
            let wanted: BTreeMap<usize, f64> = rows[at]
                .iter()
                .map(|spot| {
                    let beside = if down { &spots[*spot].above } else { &spots[*spot].below };
                    (
                        *spot,
                        mean(beside.iter().map(|other| places[*other])).unwrap_or(places[*spot]),
                    )
                })
                .collect();
            rows[at].sort_by(|one, other| wanted[one].total_cmp(&wanted[other]));
            for (place, spot) in rows[at].iter().enumerate() {
                places[*spot] = length(place);
            }
        }
    }
}

/// Neighbours that stand as close as they may, moved as one.
struct Block {
    sum: f64,
    weight: f64,
    count: usize,
}

/// Moves the spots of a row as little as possible from where they are wanted, so that none overlap
/// and their order stays: isotonic regression by pooling neighbours that would pass each other.
fn settle(spots: &[Spot], row: &[usize], wanted: &[f64], across: &mut [f64]) {
    let mut offsets = Vec::with_capacity(row.len());
    let mut offset = 0.0;
    let mut blocks: Vec<Block> = Vec::new();
    for (at, spot) in row.iter().enumerate() {
        if at > 0 {
            offset += spots[row[at - 1]].right + GAP + spots[*spot].left;
        }
        offsets.push(offset);
        let weight = spots[*spot].weight;
        let mut block = Block { sum: (wanted[at] - offset) * weight, weight, count: 1 };
        while let Some(before) =
            blocks.pop_if(|before| before.sum / before.weight > block.sum / block.weight)
        {
            block.sum += before.sum;
            block.weight += before.weight;
            block.count += before.count;
        }
        blocks.push(block);
    }
    let moved =
        blocks.iter().flat_map(|block| std::iter::repeat_n(block.sum / block.weight, block.count));
    for ((spot, offset), moved) in row.iter().zip(offsets).zip(moved) {
        across[*spot] = moved + offset;
    }
}
