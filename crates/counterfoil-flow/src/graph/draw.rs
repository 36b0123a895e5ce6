//! Draws a diagram as SVG elements: boxes, arrows and labels. The variants of the image share it; a
//! [`Look`] is what differs between them.

use super::diagram::{Arrow, ArrowKind, Cluster, Diagram, Node, Shape};
use super::layout::{self, LOOP, Layout, Point, Size, length};
use std::borrow::Cow;
use std::fmt::Write;
use unicode_width::UnicodeWidthStr;

/// The margin around the image and inside clusters.
const MARGIN: f64 = 20.0;

/// The height of a cluster's title.
const TITLE: f64 = 34.0;

/// The height of a line in a node.
const LINE: f64 = 16.0;
/// The height of a line in a label.
const LABEL_LINE: f64 = 14.0;

/// A part of the image that has attributes of its own in each variant.
#[derive(Clone, Copy)]
pub(super) enum Part {
    /// The border of a sub-workflow.
    Frame,
    /// The title of a cluster.
    Title,
    /// The line below the title.
    Summary,
    /// The line of an arrow.
    Line,
    /// The line of an arrow that a failure takes.
    Trouble,
    /// The arrowhead.
    Head,
    /// The outline of a node.
    Box,
    /// The double sides of a sub-workflow or a fan-out.
    Bars,
    /// The name of a state.
    Name,
    /// A further line of a node.
    Step,
    /// The last line of a node, if it has a note.
    Note,
    /// The area behind a label.
    Behind,
    /// A line of an arrow's label.
    Label,
}

/// What differs between the variants of the image.
pub(super) trait Look {
    /// The attributes of a part, each after a space.
    fn attributes(&self, part: Part) -> &'static str;

    /// The identifier of the arrowhead.
    fn head(&self) -> &str;

    /// The note of a node: one more line in its box.
    fn note(&self, cluster: &Cluster, node: &Node) -> Option<String>;

    /// Opens the group of a node.
    fn open_node(&self, out: &mut String, cluster: &Cluster, node: &Node);

    /// Draws what lies on top of a node, and closes its group.
    fn close_node(
        &self,
        out: &mut String,
        cluster: &Cluster,
        node: &Node,
        middle: Point,
        size: Size,
    );
}

/// The elements of an image and its size.
pub(super) struct Drawing {
    /// The elements, in the order in which they are painted.
    pub(super) body: String,
    /// The size, in whole units.
    pub(super) size: Size,
}

/// Draws all clusters below each other.
pub(super) fn draw(diagram: &Diagram, look: &impl Look) -> Drawing {
    let mut body = String::new();
    let mut whole = Size { width: 0.0, height: MARGIN };
    for (at, cluster) in diagram.clusters.iter().enumerate() {
        let boxes: Vec<Size> = cluster
            .nodes
            .iter()
            .map(|node| box_size(node, look.note(cluster, node).as_deref()))
            .collect();
        let labels: Vec<Size> =
            cluster.arrows.iter().map(|arrow| label_size(&arrow.lines)).collect();
        let layout = layout::arrange(cluster, &boxes, &labels);
        let heading = heading(diagram, at);
        let inner = if at == 0 { 0.0 } else { MARGIN };
        let title_width = columns(&heading.0) * 8.6;
        let width = layout.size.width.max(title_width).max(columns(&heading.1) * 6.6) + inner * 2.0;
        let height = TITLE + LINE + layout.size.height + inner;
        let (x, y) = (MARGIN, whole.height);
        if at > 0 {
            let (width, height) = (width.round(), height.round());
            let frame = look.attributes(Part::Frame);
            put(
                &mut body,
                format_args!(
                    "<rect{frame} x=\"{x:.0}\" y=\"{y:.0}\" width=\"{width}\" height=\"{height}\" rx=\"8\"/>\n"
                ),
            );
        }
        let (left, top) = (x + inner, y + if at == 0 { 4.0 } else { 24.0 });
        for (part, text, y) in
            [(Part::Title, &heading.0, top), (Part::Summary, &heading.1, top + 18.0)]
        {
            if !text.is_empty() {
                let attributes = look.attributes(part);
                put(
                    &mut body,
                    format_args!(
                        "<text{attributes} x=\"{left:.0}\" y=\"{y:.0}\">{}</text>\n",
                        escape_xml(text)
                    ),
                );
            }
        }
        // Centre the content if the title makes the cluster wider.
        let content_left = left + (width - inner * 2.0 - layout.size.width) / 2.0;
        let origin = Point { x: content_left, y: y + TITLE + LINE };
        draw_cluster(&mut body, look, cluster, &boxes, &labels, &layout, origin);
        whole.width = whole.width.max(width + MARGIN * 2.0);
        whole.height += height + MARGIN;
    }
    let size = Size { width: whole.width.ceil(), height: whole.height.ceil() };
    Drawing { body, size }
}

/// The definition of the arrowhead.
pub(super) fn arrowhead(look: &impl Look) -> String {
    let (id, attributes) = (look.head(), look.attributes(Part::Head));
    format!(
        "<defs><marker id=\"{id}\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"8\" markerHeight=\"8\" orient=\"auto\">\
         <path d=\"M0 0L8 4L0 8z\"{attributes}/></marker></defs>"
    )
}

/// The title of a cluster and its subtitle.
fn heading(diagram: &Diagram, cluster: usize) -> (String, String) {
    if cluster == 0 {
        let about: String = diagram.summary.chars().take(100).collect();
        let more = if about.len() < diagram.summary.len() { "…" } else { "" };
        return (diagram.name.clone(), format!("{about}{more}"));
    }
    let callers: Vec<&str> = diagram
        .calls
        .iter()
        .filter(|call| call.runs == cluster)
        .filter_map(|call| {
            diagram.clusters[call.cluster].nodes[call.node].lines.first().map(String::as_str)
        })
        .take(5)
        .collect();
    let by =
        if callers.is_empty() { String::new() } else { format!("run by {}", callers.join(", ")) };
    (diagram.clusters[cluster].name.clone(), by)
}

fn draw_cluster(
    out: &mut String,
    look: &impl Look,
    cluster: &Cluster,
    boxes: &[Size],
    labels: &[Size],
    layout: &Layout,
    origin: Point,
) {
    let shifted = |point: &Point| Point { x: point.x + origin.x, y: point.y + origin.y };
    for (arrow, line) in cluster.arrows.iter().zip(&layout.lines) {
        let path = if arrow.from == arrow.to {
            let (middle, size) = (shifted(&layout.nodes[arrow.from]), boxes[arrow.from]);
            let (right, far) =
                (middle.x + size.width / 2.0, middle.x + size.width / 2.0 + LOOP - 8.0);
            let half = (size.height / 2.0 - 7.0).max(0.0);
            let y = shifted(&line.label).y.clamp(middle.y - half, middle.y + half);
            let (up, down) = (y - 7.0, y + 7.0);
            format!(
                "M{right:.0} {up:.0}C{far:.0} {:.0} {far:.0} {:.0} {right:.0} {down:.0}",
                up - 12.0,
                down + 12.0
            )
        } else {
            curve(&line.bends.iter().map(shifted).collect::<Vec<_>>())
        };
        let part = if arrow.kind == ArrowKind::Failure { Part::Trouble } else { Part::Line };
        put(out, format_args!("<path{} d=\"{path}\"", look.attributes(part)));
        if line.arrives {
            put(out, format_args!(" marker-end=\"url(#{})\"", look.head()));
        }
        out.push_str("/>\n");
    }
    for ((node, middle), size) in cluster.nodes.iter().zip(&layout.nodes).zip(boxes) {
        draw_node(out, look, cluster, node, shifted(middle), *size);
    }
    for ((arrow, line), size) in cluster.arrows.iter().zip(&layout.lines).zip(labels) {
        draw_label(out, look, arrow, shifted(&line.label), *size);
    }
}

/// The path through the bends of a line: straight inside a layer, curved between layers.
fn curve(bends: &[Point]) -> String {
    let mut path = String::new();
    let mut before: Option<Point> = None;
    for point in bends {
        let (x, y) = (point.x, point.y);
        match before {
            None => put(&mut path, format_args!("M{x:.0} {y:.0}")),
            // An empty segment would rotate the arrowhead.
            Some(last) if (last.x - x).abs() < 0.5 && (last.y - y).abs() < 0.5 => continue,
            Some(last) if (last.x - x).abs() < 0.5 => put(&mut path, format_args!("V{y:.0}")),
            Some(last) => {
                let half = f64::midpoint(last.y, y);
                put(
                    &mut path,
                    format_args!("C{:.0} {half:.0} {x:.0} {half:.0} {x:.0} {y:.0}", last.x),
                );
            }
        }
        before = Some(*point);
    }
    path
}

fn draw_node(
    out: &mut String,
    look: &impl Look,
    cluster: &Cluster,
    node: &Node,
    middle: Point,
    size: Size,
) {
    let Point { x, y } = middle;
    let (width, height) = (size.width, size.height);
    let (left, top) = (x - width / 2.0, y - height / 2.0);
    let (right, bottom) = (x + width / 2.0, y + height / 2.0);
    let outline = look.attributes(Part::Box);
    let rounded = |radius: f64| {
        format!(
            "<rect{outline} x=\"{left:.0}\" y=\"{top:.0}\" width=\"{width:.0}\" height=\"{height:.0}\" rx=\"{radius:.0}\"/>"
        )
    };
    let shape = match node.shape {
        Shape::Start => {
            format!("<circle{outline} cx=\"{x:.0}\" cy=\"{y:.0}\" r=\"{:.0}\"/>", width / 2.0)
        }
        Shape::Agent => rounded(9.0),
        Shape::Command => rounded(0.0),
        Shape::Question => {
            let (inner, outer) = (left + 12.0, right - 12.0);
            let points = format!(
                "{left:.0},{y:.0} {inner:.0},{top:.0} {outer:.0},{top:.0} {right:.0},{y:.0} {outer:.0},{bottom:.0} {inner:.0},{bottom:.0}"
            );
            format!("<polygon{outline} points=\"{points}\"/>")
        }
        Shape::Nested => {
            let (one, other) = (left + 6.0, right - 6.0);
            let bars = format!(
                "<path{} d=\"M{one:.0} {top:.0}V{bottom:.0}M{other:.0} {top:.0}V{bottom:.0}\"/>",
                look.attributes(Part::Bars)
            );
            rounded(0.0) + &bars
        }
        Shape::Branch => {
            let points =
                format!("{left:.0},{y:.0} {x:.0},{top:.0} {right:.0},{y:.0} {x:.0},{bottom:.0}");
            format!("<polygon{outline} points=\"{points}\"/>")
        }
        Shape::End(_) => rounded(height / 2.0),
    };
    look.open_node(out, cluster, node);
    out.push_str(&shape);
    let note = look.note(cluster, node);
    let lines: Vec<&str> = node.lines.iter().map(String::as_str).chain(note.as_deref()).collect();
    let first = y - length(lines.len().saturating_sub(1)) * LINE / 2.0 + 4.0;
    for (at, line) in lines.into_iter().enumerate() {
        let part = match at {
            0 => Part::Name,
            _ if at < node.lines.len() => Part::Step,
            _ => Part::Note,
        };
        let attributes = look.attributes(part);
        let y = first + length(at) * LINE;
        put(
            out,
            format_args!("<text{attributes} x=\"{x:.0}\" y=\"{y:.0}\">{}</text>", escape_xml(line)),
        );
    }
    look.close_node(out, cluster, node, middle, size);
}

fn draw_label(out: &mut String, look: &impl Look, arrow: &Arrow, middle: Point, size: Size) {
    if arrow.lines.is_empty() {
        return;
    }
    let Point { x, y } = middle;
    let (left, top) = (x - size.width / 2.0, y - size.height / 2.0);
    let (width, height) = (size.width, size.height);
    // The line passes behind the text.
    put(
        out,
        format_args!(
            "<rect{} x=\"{left:.0}\" y=\"{top:.0}\" width=\"{width:.0}\" height=\"{height:.0}\"/>",
            look.attributes(Part::Behind)
        ),
    );
    let first = y - length(arrow.lines.len() - 1) * LABEL_LINE / 2.0 + 4.0;
    let attributes = look.attributes(Part::Label);
    for (at, line) in arrow.lines.iter().enumerate() {
        let y = first + length(at) * LABEL_LINE;
        put(
            out,
            format_args!("<text{attributes} x=\"{x:.0}\" y=\"{y:.0}\">{}</text>", escape_xml(line)),
        );
    }
    out.push('\n');
}

fn box_size(node: &Node, note: Option<&str>) -> Size {
    let lines = node.lines.iter().map(String::as_str).chain(note);
    let (widest, count) =
        lines.fold((0.0_f64, 0), |(widest, count), line| (widest.max(columns(line)), count + 1));
    let (width, height) = (widest * 7.2 + 24.0, length(count) * LINE + 14.0);
    match node.shape {
        Shape::Start => Size { width: 12.0, height: 12.0 },
        Shape::Agent | Shape::Command => Size { width, height },
        Shape::Nested | Shape::End(_) => Size { width: width + 14.0, height },
        Shape::Question => Size { width: width + 20.0, height },
        Shape::Branch => Size { width: width * 1.4, height: height * 1.7 },
    }
}

fn label_size(lines: &[String]) -> Size {
    if lines.is_empty() {
        return Size::default();
    }
    let widest = lines.iter().map(|line| columns(line)).fold(0.0, f64::max);
    Size { width: widest * 6.0 + 10.0, height: length(lines.len()) * LABEL_LINE + 4.0 }
}

/// The width of a text in columns; wide characters take two.
pub(super) fn columns(text: &str) -> f64 {
    length(UnicodeWidthStr::width(text))
}

/// Escapes a text for XML.
pub(super) fn escape_xml(text: &str) -> Cow<'_, str> {
    if text.contains(['&', '<', '>', '"']) {
        let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        Cow::Owned(text.replace('"', "&quot;"))
    } else {
        Cow::Borrowed(text)
    }
}

/// Appends formatted text.
pub(super) fn put(out: &mut String, what: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = out.write_fmt(what);
}
