//! Writes a diagram as an SVG image.

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

const STYLE: &str = "text{font-family:-apple-system,'Segoe UI',Helvetica,Arial,sans-serif;font-size:12px;fill:#1c1c22;\
    text-anchor:middle}text.name{font-weight:600}text.label{font-size:11px;fill:#44444d}\
    text.title{font-size:15px;font-weight:600;text-anchor:start}text.summary{text-anchor:start;fill:#66666f}\
    .box{fill:#fff;stroke:#3d4a5c;stroke-width:1.3}.agent .box{fill:#e8f0fe}.question .box{fill:#fff3d6}\
    .nested .box{fill:#f3ebfd}.done .box{fill:#d3f2d8}.blocked .box{fill:#fdeec2}.failed .box{fill:#fbd9d7}\
    .exhausted .box{fill:#e3e3e8}.start .box{fill:#1c1c22}.line{fill:none;stroke:#5b6675;stroke-width:1.2}\
    .trouble{stroke-dasharray:5 4}.behind{fill:#fff}.frame{fill:none;stroke:#a9b1bd;stroke-dasharray:2 3}";

/// Writes a diagram.
pub(super) fn write(diagram: &Diagram) -> String {
    let mut body = String::new();
    let mut whole = Size { width: 0.0, height: MARGIN };
    for (at, cluster) in diagram.clusters.iter().enumerate() {
        let boxes: Vec<Size> = cluster.nodes.iter().map(box_size).collect();
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
            put(
                &mut body,
                format_args!(
                    "<rect class=\"frame\" x=\"{x:.0}\" y=\"{y:.0}\" width=\"{width}\" height=\"{height}\" rx=\"8\"/>\n"
                ),
            );
        }
        let (left, top) = (x + inner, y + if at == 0 { 4.0 } else { 24.0 });
        for (class, text, y) in [("title", &heading.0, top), ("summary", &heading.1, top + 18.0)] {
            if !text.is_empty() {
                put(
                    &mut body,
                    format_args!(
                        "<text class=\"{class}\" x=\"{left:.0}\" y=\"{y:.0}\">{}</text>\n",
                        escape_xml(text)
                    ),
                );
            }
        }
        // Centre the content if the title makes the cluster wider.
        let content_left = left + (width - inner * 2.0 - layout.size.width) / 2.0;
        draw(
            &mut body,
            cluster,
            &boxes,
            &labels,
            &layout,
            Point { x: content_left, y: y + TITLE + LINE },
        );
        whole.width = whole.width.max(width + MARGIN * 2.0);
        whole.height += height + MARGIN;
    }
    let (width, height) = (whole.width.ceil(), whole.height.ceil());
    let title = escape_xml(&diagram.name);
    let about = escape_xml(&diagram.summary);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\">\n\
         <title>{title}</title>\n<desc>{about}</desc>\n<style>{STYLE}</style>\n\
         <defs><marker id=\"head\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"8\" markerHeight=\"8\" orient=\"auto\">\
         <path d=\"M0 0L8 4L0 8z\" fill=\"#5b6675\"/></marker></defs>\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>\n{body}</svg>\n"
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

fn draw(
    out: &mut String,
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
        let class = if arrow.kind == ArrowKind::Failure { "line trouble" } else { "line" };
        let head = if line.arrives { " marker-end=\"url(#head)\"" } else { "" };
        put(out, format_args!("<path class=\"{class}\" d=\"{path}\"{head}/>\n"));
    }
    for ((node, middle), size) in cluster.nodes.iter().zip(&layout.nodes).zip(boxes) {
        draw_node(out, node, shifted(middle), *size);
    }
    for ((arrow, line), size) in cluster.arrows.iter().zip(&layout.lines).zip(labels) {
        draw_label(out, arrow, shifted(&line.label), *size);
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

fn draw_node(out: &mut String, node: &Node, middle: Point, size: Size) {
    let Point { x, y } = middle;
    let (width, height) = (size.width, size.height);
    let (left, top) = (x - width / 2.0, y - height / 2.0);
    let (right, bottom) = (x + width / 2.0, y + height / 2.0);
    let rounded = |radius: f64| {
        format!(
            "<rect class=\"box\" x=\"{left:.0}\" y=\"{top:.0}\" width=\"{width:.0}\" height=\"{height:.0}\" rx=\"{radius:.0}\"/>"
        )
    };
    let (class, shape) = match node.shape {
        Shape::Start => (
            "start",
            format!("<circle class=\"box\" cx=\"{x:.0}\" cy=\"{y:.0}\" r=\"{:.0}\"/>", width / 2.0),
        ),
        Shape::Agent => ("agent", rounded(9.0)),
        Shape::Command => ("command", rounded(0.0)),
        Shape::Question => {
            let (inner, outer) = (left + 12.0, right - 12.0);
            let points = format!(
                "{left:.0},{y:.0} {inner:.0},{top:.0} {outer:.0},{top:.0} {right:.0},{y:.0} {outer:.0},{bottom:.0} {inner:.0},{bottom:.0}"
            );
            ("question", format!("<polygon class=\"box\" points=\"{points}\"/>"))
        }
        Shape::Nested => {
            let (one, other) = (left + 6.0, right - 6.0);
            let bars = format!(
                "<path class=\"line\" d=\"M{one:.0} {top:.0}V{bottom:.0}M{other:.0} {top:.0}V{bottom:.0}\"/>"
            );
            ("nested", rounded(0.0) + &bars)
        }
        Shape::Branch => {
            let points =
                format!("{left:.0},{y:.0} {x:.0},{top:.0} {right:.0},{y:.0} {x:.0},{bottom:.0}");
            ("branch", format!("<polygon class=\"box\" points=\"{points}\"/>"))
        }
        Shape::End(end) => (end.name(), rounded(height / 2.0)),
    };
    put(out, format_args!("<g id=\"{}\" class=\"{class}\">{shape}", node.id));
    let first = y - length(node.lines.len().saturating_sub(1)) * LINE / 2.0 + 4.0;
    for (at, line) in node.lines.iter().enumerate() {
        let class = if at == 0 { " class=\"name\"" } else { "" };
        let y = first + length(at) * LINE;
        put(
            out,
            format_args!("<text{class} x=\"{x:.0}\" y=\"{y:.0}\">{}</text>", escape_xml(line)),
        );
    }
    out.push_str("</g>\n");
}

fn draw_label(out: &mut String, arrow: &Arrow, middle: Point, size: Size) {
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
            "<rect class=\"behind\" x=\"{left:.0}\" y=\"{top:.0}\" width=\"{width:.0}\" height=\"{height:.0}\"/>"
        ),
    );
    let first = y - length(arrow.lines.len() - 1) * LABEL_LINE / 2.0 + 4.0;
    for (at, line) in arrow.lines.iter().enumerate() {
        let y = first + length(at) * LABEL_LINE;
        put(
            out,
            format_args!(
                "<text class=\"label\" x=\"{x:.0}\" y=\"{y:.0}\">{}</text>",
                escape_xml(line)
            ),
        );
    }
    out.push('\n');
}

fn box_size(node: &Node) -> Size {
    let widest = node.lines.iter().map(|line| columns(line)).fold(0.0, f64::max) * 7.2;
    let (width, height) = (widest + 24.0, length(node.lines.len()) * LINE + 14.0);
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
fn columns(text: &str) -> f64 {
    length(UnicodeWidthStr::width(text))
}

/// Escapes a text for XML.
fn escape_xml(text: &str) -> Cow<'_, str> {
    if text.contains(['&', '<', '>', '"']) {
        let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        Cow::Owned(text.replace('"', "&quot;"))
    } else {
        Cow::Borrowed(text)
    }
}

/// Appends formatted text.
fn put(out: &mut String, what: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = out.write_fmt(what);
}
