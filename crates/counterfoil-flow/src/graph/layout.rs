//! The layered layout of a cluster: states in layers from the start to the ends, labels in the
//! layers between them.
//!
//! Long arrows of the same kind to the same state share a trunk. This reduces the number of lines,
//! and the size of the image does not grow with states times arrows. Every box and label has a slot
//! in a layer and lines bend only between layers, so no line crosses a text.

use super::diagram::{ArrowKind, Cluster, Shape};
use super::positions;
use std::collections::{BTreeMap, BTreeSet};

/// The maximum number of trunk bends in a cluster. Further lines run straight, behind the boxes.
const MAX_TRUNK_BENDS: usize = 20_000;

/// The minimum distance between two layers; long horizontal lines increase it.
const GAP: f64 = 20.0;

/// A width and a height.
#[derive(Clone, Copy, Default)]
pub(super) struct Size {
    pub(super) width: f64,
    pub(super) height: f64,
}

/// A position.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Point {
    pub(super) x: f64,
    pub(super) y: f64,
}

/// The positions of everything in a cluster.
pub(super) struct Layout {
    /// The size of the cluster.
    pub(super) size: Size,
    /// The centre of each node.
    pub(super) nodes: Vec<Point>,
    /// The line of each arrow, in the order of the cluster's arrows.
    pub(super) lines: Vec<Line>,
}

/// The line of an arrow.
pub(super) struct Line {
    /// The bends, starting at the source state: a pair of points for each layer, where the line
    /// enters and leaves it. Empty for an arrow from a state to itself.
    pub(super) bends: Vec<Point>,
    /// The centre of its label.
    pub(super) label: Point,
    /// Whether it ends at the target state, rather than in the trunk of another arrow.
    pub(super) arrives: bool,
}

/// An element of a layer: a node, a label, or a line that passes through.
pub(super) struct Slot {
    pub(super) layer: usize,
    /// The width to the left of its centre.
    pub(super) left: f64,
    /// The width to the right of its centre.
    pub(super) right: f64,
    pub(super) height: f64,
    /// Its weight when positions are balanced.
    pub(super) weight: f64,
    /// The connected slots in the layer above.
    pub(super) above: Vec<usize>,
    /// The connected slots in the layer below.
    pub(super) below: Vec<usize>,
}

impl Slot {
    fn new(layer: usize, size: Size, weight: f64) -> Self {
        let half = size.width / 2.0;
        Self {
            layer,
            left: half,
            right: half,
            height: size.height,
            weight,
            above: vec![],
            below: vec![],
        }
    }
}

/// Converts a count to a length.
pub(super) fn length(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

/// Computes the layout of a cluster from the sizes of its nodes and labels.
pub(super) fn arrange(cluster: &Cluster, nodes: &[Size], labels: &[Size]) -> Layout {
    let ranks = ranks(cluster);
    // Nodes are in even layers: each arrow crosses at least one odd layer, which has its label.
    let mut slots: Vec<Slot> =
        nodes.iter().zip(&ranks).map(|(size, rank)| Slot::new(rank * 2, *size, 1.0)).collect();
    let paths = paths(cluster, labels, &mut slots);
    let links: BTreeSet<(usize, usize)> = paths
        .iter()
        .flat_map(|path| path.windows(2))
        .map(|pair| {
            let [one, other] = [pair[0], pair[1]];
            if slots[one].layer < slots[other].layer { (one, other) } else { (other, one) }
        })
        .collect();
    for (upper, lower) in &links {
        slots[*upper].below.push(*lower);
        slots[*lower].above.push(*upper);
    }
    let xs = positions::assign(&slots);
    let (tops, bottoms) = heights(&slots, &xs, &links);
    let middle = |slot: usize| f64::midpoint(tops[slots[slot].layer], bottoms[slots[slot].layer]);
    let ports = Ports::for_cluster(cluster, &slots, &xs);
    let mut drawn = BTreeSet::new();
    let mut lines = Vec::with_capacity(paths.len());
    for (at, (arrow, path)) in cluster.arrows.iter().zip(&paths).enumerate() {
        if arrow.from == arrow.to {
            let right = xs[arrow.from] + nodes[arrow.from].width / 2.0;
            // Several labels are stacked, centred on the box.
            let all: f64 = loops(cluster, labels, arrow.from).map(|(_, height)| height).sum();
            let before = loops(cluster, labels, arrow.from).take_while(|(other, _)| *other < at);
            let top =
                middle(arrow.from) - all / 2.0 + before.map(|(_, height)| height).sum::<f64>();
            let y = top + labels[at].height.max(LOOP_HEIGHT) / 2.0;
            let label = Point { x: right + LOOP + labels[at].width / 2.0, y };
            lines.push(Line { bends: Vec::new(), label, arrives: true });
            continue;
        }
        let mut line = Line { bends: Vec::new(), label: Point::default(), arrives: true };
        line.label =
            path.get(1).map(|slot| Point { x: xs[*slot], y: middle(*slot) }).unwrap_or_default();
        for pair in path.windows(2) {
            let [one, other] = [pair[0], pair[1]];
            if !drawn.insert((one, other, arrow.kind)) {
                // The rest of the trunk has been drawn.
                line.arrives = false;
                break;
            }
            let down = slots[one].layer < slots[other].layer;
            for (slot, toward, leaving) in [(one, other, true), (other, one, false)] {
                let layer = slots[slot].layer;
                let x = ports.at(slot, toward).unwrap_or(xs[slot]);
                let edge = if down == leaving { bottoms[layer] } else { tops[layer] };
                if slot < nodes.len() {
                    // A line starts and ends at the box, not at the edge of its layer.
                    let half = nodes[slot].height / 2.0;
                    let y = if down == leaving { middle(slot) + half } else { middle(slot) - half };
                    let ends = [Point { x, y }, Point { x, y: edge }];
                    line.bends.extend(if leaving { ends } else { [ends[1], ends[0]] });
                } else {
                    line.bends.push(Point { x, y: edge });
                }
            }
        }
        lines.push(line);
    }
    let width = (0..slots.len()).map(|at| xs[at] + slots[at].right).fold(0.0, f64::max);
    let height = bottoms.last().copied().unwrap_or_default();
    let nodes = (0..nodes.len()).map(|at| Point { x: xs[at], y: middle(at) }).collect();
    Layout { size: Size { width, height }, nodes, lines }
}

/// The width of the line of an arrow from a state to itself.
pub(super) const LOOP: f64 = 34.0;
const LOOP_HEIGHT: f64 = 18.0;

/// The arrows from a state to itself, each with the height of its label.
fn loops<'a>(
    cluster: &'a Cluster,
    labels: &'a [Size],
    node: usize,
) -> impl Iterator<Item = (usize, f64)> + 'a {
    let arrows = cluster.arrows.iter().zip(labels).enumerate();
    let own = arrows.filter(move |(_, (arrow, _))| arrow.from == node && arrow.to == node);
    own.map(|(at, (_, label))| (at, label.height.max(LOOP_HEIGHT)))
}

/// The rank of each node: every arrow goes to a higher rank, except those that close a cycle.
fn ranks(cluster: &Cluster) -> Vec<usize> {
    let count = cluster.nodes.len();
    let mut out: Vec<Vec<usize>> = vec![Vec::new(); count];
    for arrow in cluster.arrows.iter().filter(|arrow| arrow.from != arrow.to) {
        out[arrow.from].push(arrow.to);
    }
    // Depth-first search without recursion: a node is finished after all its successors.
    let (mut seen, mut open, mut finished) = (vec![false; count], vec![false; count], Vec::new());
    let mut forward: Vec<Vec<usize>> = vec![Vec::new(); count];
    for root in 0..count {
        let mut stack = if seen[root] { Vec::new() } else { vec![(root, 0)] };
        while let Some((node, next)) = stack.pop() {
            seen[node] = true;
            open[node] = true;
            let Some(to) = out[node].get(next).copied() else {
                open[node] = false;
                finished.push(node);
                continue;
            };
            stack.push((node, next + 1));
            if !open[to] {
                forward[node].push(to);
            }
            if !seen[to] {
                stack.push((to, 0));
            }
        }
    }
    let mut ranks = vec![0; count];
    for node in finished.into_iter().rev() {
        for to in &forward[node] {
            ranks[*to] = ranks[*to].max(ranks[node] + 1);
        }
    }
    ranks
}

/// The slots on the path of each arrow, from its source to its target. Adds slots for labels and
/// trunks.
fn paths(cluster: &Cluster, labels: &[Size], slots: &mut Vec<Slot>) -> Vec<Vec<usize>> {
    let mut trunks: BTreeMap<(usize, ArrowKind, bool, usize), usize> = BTreeMap::new();
    let mut paths = Vec::with_capacity(cluster.arrows.len());
    for (arrow, label) in cluster.arrows.iter().zip(labels) {
        if arrow.from == arrow.to {
            let node = &mut slots[arrow.from];
            node.right = node.right.max(node.left + LOOP + label.width);
            let all: f64 = loops(cluster, labels, arrow.from).map(|(_, height)| height).sum();
            node.height = node.height.max(all);
            paths.push(Vec::new());
            continue;
        }
        let (begin, end) = (slots[arrow.from].layer, slots[arrow.to].layer);
        let down = begin < end;
        let mut layer = if down { begin + 1 } else { begin.saturating_sub(1) };
        let mut path = vec![arrow.from];
        if label.width > 0.0 {
            path.push(slots.len());
            slots.push(Slot::new(layer, *label, 2.0));
            layer = if down { layer + 1 } else { layer.saturating_sub(1) };
        }
        while layer != end {
            let key = (arrow.to, arrow.kind, down, layer);
            let known = trunks.get(&key).copied();
            let slot = match known {
                Some(slot) => slot,
                None if trunks.len() < MAX_TRUNK_BENDS => {
                    slots.push(Slot::new(layer, Size { width: 6.0, height: 0.0 }, 8.0));
                    trunks.insert(key, slots.len() - 1);
                    slots.len() - 1
                }
                None => break,
            };
            path.push(slot);
            layer = if down { layer + 1 } else { layer.saturating_sub(1) };
        }
        path.push(arrow.to);
        paths.push(path);
    }
    paths
}

/// The top and the bottom of each layer.
fn heights(slots: &[Slot], xs: &[f64], links: &BTreeSet<(usize, usize)>) -> (Vec<f64>, Vec<f64>) {
    let layers = slots.iter().map(|slot| slot.layer + 1).max().unwrap_or(0);
    let mut tall = vec![0.0_f64; layers];
    let mut aside = vec![0.0_f64; layers];
    for slot in slots {
        tall[slot.layer] = tall[slot.layer].max(slot.height);
    }
    for (upper, lower) in links {
        let layer = slots[*upper].layer;
        aside[layer] = aside[layer].max((xs[*upper] - xs[*lower]).abs());
    }
    let (mut tops, mut bottoms, mut y) = (Vec::new(), Vec::new(), 0.0);
    for layer in 0..layers {
        tops.push(y);
        y += tall[layer];
        bottoms.push(y);
        y += GAP + (aside[layer] / 8.0).min(40.0);
    }
    (tops, bottoms)
}

/// The points where lines touch a box: next to each other, in the order of the other ends.
struct Ports {
    points: BTreeMap<(usize, usize), f64>,
}

impl Ports {
    fn for_cluster(cluster: &Cluster, slots: &[Slot], xs: &[f64]) -> Self {
        let mut points = BTreeMap::new();
        for (at, (node, slot)) in cluster.nodes.iter().zip(slots).enumerate() {
            for side in [&slot.above, &slot.below] {
                let mut sorted = side.clone();
                sorted.sort_by(|one, other| xs[*one].total_cmp(&xs[*other]));
                let step = match node.shape {
                    // Lines of a diamond meet at its tip.
                    Shape::Branch | Shape::Start => 0.0,
                    _ => (slot.left * 1.2 / length(sorted.len().max(1))).min(16.0),
                };
                let middle = length(sorted.len().saturating_sub(1)) / 2.0;
                for (place, other) in sorted.iter().enumerate() {
                    points.insert((at, *other), xs[at] + (length(place) - middle) * step);
                }
            }
        }
        Self { points }
    }

    fn at(&self, slot: usize, toward: usize) -> Option<f64> {
        self.points.get(&(slot, toward)).copied()
    }
}
