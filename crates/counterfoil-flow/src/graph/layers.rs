//! The layout of a frame: states in layers from the first to the ends, labels in the layers between
//! them.
//!
//! Arrows that lead far to the same state for the same reason share a trunk: fewer lines to follow,
//! and the size of the drawing does not grow with states times arrows. Every box and label has a
//! spot in a layer and lines bend only between layers, so nothing is drawn over a text.

use super::picture::{Frame, Kind, Shape};
use super::rows;
use std::collections::{BTreeMap, BTreeSet};

/// How many bends of trunks one frame may have; what is beyond runs straight, behind the boxes.
const BENDS: usize = 20_000;

/// The room between two layers, before that for lines that go far to the side.
const GAP: f64 = 20.0;

/// A width and a height.
#[derive(Clone, Copy, Default)]
pub(super) struct Size {
    pub(super) width: f64,
    pub(super) height: f64,
}

/// A place.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Point {
    pub(super) x: f64,
    pub(super) y: f64,
}

/// Where everything of a frame goes.
pub(super) struct Layout {
    /// The whole.
    pub(super) size: Size,
    /// The middle of each node.
    pub(super) nodes: Vec<Point>,
    /// The line of each arrow, in the order of the frame.
    pub(super) lines: Vec<Line>,
}

/// The line of an arrow.
pub(super) struct Line {
    /// From the state it leaves: pairs of places, one where it enters a layer and one where it
    /// leaves it. Empty for an arrow from a state to itself.
    pub(super) bends: Vec<Point>,
    /// The middle of its label.
    pub(super) label: Point,
    /// Whether it ends at the state, and not in the trunk of another arrow.
    pub(super) arrives: bool,
}

/// Something that takes room in a layer: a node, a label, or a line passing by.
pub(super) struct Spot {
    pub(super) layer: usize,
    /// The room it takes to the left of its middle.
    pub(super) left: f64,
    /// And to the right.
    pub(super) right: f64,
    pub(super) height: f64,
    /// How much it resists being moved.
    pub(super) weight: f64,
    /// The spots above that lines lead to.
    pub(super) above: Vec<usize>,
    /// And below.
    pub(super) below: Vec<usize>,
}

impl Spot {
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

/// A count as a length.
pub(super) fn length(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

/// Lays out a frame, given the size of each node and of the label of each arrow.
pub(super) fn arrange(frame: &Frame, nodes: &[Size], labels: &[Size]) -> Layout {
    let ranks = ranks(frame);
    // Nodes are in even layers: each arrow passes at least one odd layer, where its label is.
    let mut spots: Vec<Spot> =
        nodes.iter().zip(&ranks).map(|(size, rank)| Spot::new(rank * 2, *size, 1.0)).collect();
    let paths = paths(frame, labels, &mut spots);
    let links: BTreeSet<(usize, usize)> = paths
        .iter()
        .flat_map(|path| path.windows(2))
        .map(|pair| {
            let [one, other] = [pair[0], pair[1]];
            if spots[one].layer < spots[other].layer { (one, other) } else { (other, one) }
        })
        .collect();
    for (upper, lower) in &links {
        spots[*upper].below.push(*lower);
        spots[*lower].above.push(*upper);
    }
    let across = rows::place(&spots);
    let (tops, bottoms) = heights(&spots, &across, &links);
    let middle = |spot: usize| f64::midpoint(tops[spots[spot].layer], bottoms[spots[spot].layer]);
    let ports = Ports::of(frame, &spots, &across);
    let mut drawn = BTreeSet::new();
    let mut lines = Vec::with_capacity(paths.len());
    for (at, (arrow, path)) in frame.arrows.iter().zip(&paths).enumerate() {
        if arrow.from == arrow.to {
            let right = across[arrow.from] + nodes[arrow.from].width / 2.0;
            // Several of them have their labels below one another, in the middle of the box
            // together.
            let all: f64 = loops(frame, labels, arrow.from).map(|(_, height)| height).sum();
            let before = loops(frame, labels, arrow.from).take_while(|(other, _)| *other < at);
            let top =
                middle(arrow.from) - all / 2.0 + before.map(|(_, height)| height).sum::<f64>();
            let y = top + labels[at].height.max(LOOP_HEIGHT) / 2.0;
            let label = Point { x: right + LOOP + labels[at].width / 2.0, y };
            lines.push(Line { bends: Vec::new(), label, arrives: true });
            continue;
        }
        let mut line = Line { bends: Vec::new(), label: Point::default(), arrives: true };
        line.label = path
            .get(1)
            .map(|spot| Point { x: across[*spot], y: middle(*spot) })
            .unwrap_or_default();
        for pair in path.windows(2) {
            let [one, other] = [pair[0], pair[1]];
            if !drawn.insert((one, other, arrow.kind)) {
                // The rest of the trunk is there already.
                line.arrives = false;
                break;
            }
            let down = spots[one].layer < spots[other].layer;
            for (spot, toward, leaving) in [(one, other, true), (other, one, false)] {
                let layer = spots[spot].layer;
                let x = ports.at(spot, toward).unwrap_or(across[spot]);
                let edge = if down == leaving { bottoms[layer] } else { tops[layer] };
                if spot < nodes.len() {
                    // A line begins and ends at the box, not at the edge of its layer.
                    let half = nodes[spot].height / 2.0;
                    let y = if down == leaving { middle(spot) + half } else { middle(spot) - half };
                    let ends = [Point { x, y }, Point { x, y: edge }];
                    line.bends.extend(if leaving { ends } else { [ends[1], ends[0]] });
                } else {
                    line.bends.push(Point { x, y: edge });
                }
            }
        }
        lines.push(line);
    }
    let width = (0..spots.len()).map(|at| across[at] + spots[at].right).fold(0.0, f64::max);
    let height = bottoms.last().copied().unwrap_or_default();
    let nodes = (0..nodes.len()).map(|at| Point { x: across[at], y: middle(at) }).collect();
    Layout { size: Size { width, height }, nodes, lines }
}

/// The room for the line of an arrow from a state to itself.
pub(super) const LOOP: f64 = 34.0;
const LOOP_HEIGHT: f64 = 18.0;

/// The arrows from a state to itself, at most one of a kind, each with the height of its label.
fn loops<'a>(
    frame: &'a Frame,
    labels: &'a [Size],
    node: usize,
) -> impl Iterator<Item = (usize, f64)> + 'a {
    let arrows = frame.arrows.iter().zip(labels).enumerate();
    let own = arrows.filter(move |(_, (arrow, _))| arrow.from == node && arrow.to == node);
    own.map(|(at, (_, label))| (at, label.height.max(LOOP_HEIGHT)))
}

/// How far each node is from the first: every arrow leads down, but for those that close a cycle.
fn ranks(frame: &Frame) -> Vec<usize> {
    let count = frame.nodes.len();
    let mut out: Vec<Vec<usize>> = vec![Vec::new(); count];
    for arrow in frame.arrows.iter().filter(|arrow| arrow.from != arrow.to) {
        out[arrow.from].push(arrow.to);
    }
    // Depth first, without recursion: a node is finished after all it leads to.
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

/// The spots that each arrow passes, from the state it leaves to the one it reaches; new spots for
/// labels and trunks.
fn paths(frame: &Frame, labels: &[Size], spots: &mut Vec<Spot>) -> Vec<Vec<usize>> {
    let mut trunks: BTreeMap<(usize, Kind, bool, usize), usize> = BTreeMap::new();
    let mut paths = Vec::with_capacity(frame.arrows.len());
    for (arrow, label) in frame.arrows.iter().zip(labels) {
        if arrow.from == arrow.to {
            let node = &mut spots[arrow.from];
            node.right = node.right.max(node.left + LOOP + label.width);
            let all: f64 = loops(frame, labels, arrow.from).map(|(_, height)| height).sum();
            node.height = node.height.max(all);
            paths.push(Vec::new());
            continue;
        }
        let (begin, end) = (spots[arrow.from].layer, spots[arrow.to].layer);
        let down = begin < end;
        let mut layer = if down { begin + 1 } else { begin.saturating_sub(1) };
        let mut path = vec![arrow.from];
        if label.width > 0.0 {
            path.push(spots.len());
            spots.push(Spot::new(layer, *label, 2.0));
            layer = if down { layer + 1 } else { layer.saturating_sub(1) };
        }
        while layer != end {
            let key = (arrow.to, arrow.kind, down, layer);
            let known = trunks.get(&key).copied();
            let spot = match known {
                Some(spot) => spot,
                None if trunks.len() < BENDS => {
                    spots.push(Spot::new(layer, Size { width: 6.0, height: 0.0 }, 8.0));
                    trunks.insert(key, spots.len() - 1);
                    spots.len() - 1
                }
                None => break,
            };
            path.push(spot);
            layer = if down { layer + 1 } else { layer.saturating_sub(1) };
        }
        path.push(arrow.to);
        paths.push(path);
    }
    paths
}

/// The top and the bottom of each layer.
fn heights(
    spots: &[Spot],
    across: &[f64],
    links: &BTreeSet<(usize, usize)>,
) -> (Vec<f64>, Vec<f64>) {
    let layers = spots.iter().map(|spot| spot.layer + 1).max().unwrap_or(0);
    let mut tall = vec![0.0_f64; layers];
    let mut aside = vec![0.0_f64; layers];
    for spot in spots {
        tall[spot.layer] = tall[spot.layer].max(spot.height);
    }
    for (upper, lower) in links {
        let layer = spots[*upper].layer;
        aside[layer] = aside[layer].max((across[*upper] - across[*lower]).abs());
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

/// Where lines touch a box: beside one another, in the order of where they go.
struct Ports {
    places: BTreeMap<(usize, usize), f64>,
}

impl Ports {
    fn of(frame: &Frame, spots: &[Spot], across: &[f64]) -> Self {
        let mut places = BTreeMap::new();
        for (at, (node, spot)) in frame.nodes.iter().zip(spots).enumerate() {
            for side in [&spot.above, &spot.below] {
                let mut sorted = side.clone();
                sorted.sort_by(|one, other| across[*one].total_cmp(&across[*other]));
                let step = match node.shape {
                    // A diamond has only its tip.
                    Shape::Branch | Shape::Start => 0.0,
                    _ => (spot.left * 1.2 / length(sorted.len().max(1))).min(16.0),
                };
                let middle = length(sorted.len().saturating_sub(1)) / 2.0;
                for (place, other) in sorted.iter().enumerate() {
                    places.insert((at, *other), across[at] + (length(place) - middle) * step);
                }
            }
        }
        Self { places }
    }

    fn at(&self, spot: usize, toward: usize) -> Option<f64> {
        self.places.get(&(spot, toward)).copied()
    }
}
