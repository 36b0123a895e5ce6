//! The order of the slots in each layer, and their horizontal positions.

use super::layout::{Slot, length};
use std::collections::BTreeMap;

/// The number of passes that improve the order, alternately down and up.
const ORDER_PASSES: usize = 12;

/// The number of passes that improve the positions. The first ones consider only the layer above or
/// below, the others both.
const POSITION_PASSES: usize = 48;
const ONE_SIDED_PASSES: usize = 12;

/// The distance between two neighbours.
const GAP: f64 = 16.0;

/// The horizontal centre of each slot.
pub(super) fn assign(slots: &[Slot]) -> Vec<f64> {
    let layers = slots.iter().map(|slot| slot.layer + 1).max().unwrap_or(0);
    let mut rows: Vec<Vec<usize>> = vec![Vec::new(); layers];
    for (at, slot) in slots.iter().enumerate() {
        rows[slot.layer].push(at);
    }
    order_rows(slots, &mut rows);
    let mut xs = vec![0.0; slots.len()];
    for row in &rows {
        place_row(slots, row, &vec![0.0; row.len()], &mut xs);
    }
    for turn in 0..POSITION_PASSES {
        for at in 0..rows.len() {
            let row = if turn % 2 == 0 { &rows[at] } else { &rows[rows.len() - 1 - at] };
            let preferred: Vec<f64> = row
                .iter()
                .map(|slot| {
                    let Slot { above, below, .. } = &slots[*slot];
                    let neighbours: &mut dyn Iterator<Item = &usize> =
                        match (turn >= ONE_SIDED_PASSES, turn % 2 == 0) {
                            (true, _) => &mut above.iter().chain(below),
                            (false, true) => &mut above.iter(),
                            (false, false) => &mut below.iter(),
                        };
                    mean(neighbours.map(|other| xs[*other])).unwrap_or(xs[*slot])
                })
                .collect();
            place_row(slots, row, &preferred, &mut xs);
        }
    }
    let left = slots.iter().zip(&xs).map(|(slot, x)| x - slot.left).fold(f64::INFINITY, f64::min);
    xs.iter().map(|x| x - left).collect()
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / length(count))
}

/// Orders the slots of each row by the mean position of their neighbours (the barycentre heuristic),
/// which reduces crossings.
fn order_rows(slots: &[Slot], rows: &mut [Vec<usize>]) {
    let mut places = vec![0.0; slots.len()];
    for row in rows.iter() {
        for (place, slot) in row.iter().enumerate() {
            places[*slot] = length(place);
        }
    }
    for turn in 0..ORDER_PASSES {
        let down = turn % 2 == 0;
        for at in 0..rows.len() {
            let at = if down { at } else { rows.len() - 1 - at };
            let preferred: BTreeMap<usize, f64> = rows[at]
                .iter()
                .map(|slot| {
                    let neighbours = if down { &slots[*slot].above } else { &slots[*slot].below };
                    (
                        *slot,
                        mean(neighbours.iter().map(|other| places[*other]))
                            .unwrap_or(places[*slot]),
                    )
                })
                .collect();
            rows[at].sort_by(|one, other| preferred[one].total_cmp(&preferred[other]));
            for (place, slot) in rows[at].iter().enumerate() {
                places[*slot] = length(place);
            }
        }
    }
}

/// Adjacent slots at minimum distance, which move together.
struct Block {
    sum: f64,
    weight: f64,
    count: usize,
}

/// Places the slots of a row as close as possible to their preferred positions, without overlap and
/// in the same order: isotonic regression with the pool-adjacent-violators algorithm.
fn place_row(slots: &[Slot], row: &[usize], preferred: &[f64], xs: &mut [f64]) {
    let mut offsets = Vec::with_capacity(row.len());
    let mut offset = 0.0;
    let mut blocks: Vec<Block> = Vec::new();
    for (at, slot) in row.iter().enumerate() {
        if at > 0 {
            offset += slots[row[at - 1]].right + GAP + slots[*slot].left;
        }
        offsets.push(offset);
        let weight = slots[*slot].weight;
        let mut block = Block { sum: (preferred[at] - offset) * weight, weight, count: 1 };
        while let Some(before) =
            blocks.pop_if(|before| before.sum / before.weight > block.sum / block.weight)
        {
            block.sum += before.sum;
            block.weight += before.weight;
            block.count += before.count;
        }
        blocks.push(block);
    }
    let shifted =
        blocks.iter().flat_map(|block| std::iter::repeat_n(block.sum / block.weight, block.count));
    for ((slot, offset), shifted) in row.iter().zip(offsets).zip(shifted) {
        xs[*slot] = shifted + offset;
    }
}
