//! Writes a diagram as an SVG element of a page, with the marks of a run.
//!
//! The element has classes only: no styles, no script. The stylesheet of the page colours it. The
//! attributes `fill` and `stroke` are a fallback that any rule of a stylesheet overrides: without
//! rules, the element has the colours of the page's text and background. The attributes of the font
//! belong to the layout.

use super::diagram::{Cluster, Diagram, Node, Shape, shorten, single_line};
use super::draw::{self, Look, Part, columns, escape_xml, put};
use super::layout::{Point, Size};
use super::marks::{Mark, MarkStatus, Marks};

/// The height of a badge.
const BADGE: f64 = 14.0;

/// The maximum number of visits that a badge shows; a wider one would hide too much.
const MAX_SHOWN_VISITS: u32 = 9999;

/// Writes a diagram. The prefix begins every identifier.
pub(super) fn write(diagram: &Diagram, marks: &Marks, prefix: &str) -> String {
    let prefix: String = prefix
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_') { c } else { '_' })
        .collect();
    // Identifiers of nodes contain no hyphen, so those of different prefixes differ.
    let look = Live { marks, head: format!("{prefix}-head"), prefix };
    let draw::Drawing { body, size: Size { width, height } } = draw::draw(diagram, &look);
    let prefix = &look.prefix;
    let title = escape_xml(&diagram.name);
    let about = escape_xml(&diagram.summary);
    let head = draw::arrowhead(&look);
    // What is inside of an image is not there for a screen reader, so links are not in one.
    let has_links = marks.states.values().any(|mark| mark.link().is_some());
    let role = if has_links { "group" } else { "img" };
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"cf-graph\" role=\"{role}\" aria-labelledby=\"{prefix}-title\" \
         width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         font-size=\"12\" text-anchor=\"middle\" fill=\"currentColor\">\n\
         <title id=\"{prefix}-title\">{title}</title>\n<desc>{about}</desc>\n{head}\n{body}</svg>\n"
    )
}

/// The look of the element: names of classes begin with `cf-`.
struct Live<'a> {
    marks: &'a Marks,
    prefix: String,
    head: String,
}

impl Live<'_> {
    /// The mark of a state; the start marker has none.
    fn mark(&self, cluster: &Cluster, node: &Node) -> Option<&Mark> {
        if node.shape == Shape::Start {
            return None;
        }
        self.marks.of(&cluster.machine, &node.state)
    }

    fn link(&self, cluster: &Cluster, node: &Node) -> Option<&str> {
        self.mark(cluster, node)?.link()
    }
}

impl Look for Live<'_> {
    fn attributes(&self, part: Part) -> &'static str {
        match part {
            Part::Frame => {
                " class=\"cf-frame\" fill=\"none\" stroke=\"currentColor\" stroke-dasharray=\"2 3\""
            }
            Part::Title => " class=\"cf-title\" font-size=\"15\" text-anchor=\"start\"",
            Part::Summary => " class=\"cf-summary\" text-anchor=\"start\"",
            Part::Line => " class=\"cf-line\" fill=\"none\" stroke=\"currentColor\"",
            Part::Trouble => {
                " class=\"cf-line cf-trouble\" fill=\"none\" stroke=\"currentColor\" stroke-dasharray=\"5 4\""
            }
            Part::Head => " class=\"cf-head\"",
            Part::Box => " class=\"cf-box\" fill=\"Canvas\" stroke=\"currentColor\"",
            Part::Bars => " class=\"cf-bars\" fill=\"none\" stroke=\"currentColor\"",
            Part::Name => " class=\"cf-name\"",
            Part::Step => " class=\"cf-step\"",
            Part::Note => " class=\"cf-note\"",
            Part::Behind => " class=\"cf-behind\" fill=\"Canvas\"",
            Part::Label => " class=\"cf-label\" font-size=\"11\"",
        }
    }

    fn head(&self) -> &str {
        &self.head
    }

    fn note(&self, cluster: &Cluster, node: &Node) -> Option<String> {
        let mark = self.mark(cluster, node)?;
        let note = mark.note.as_deref().map(shorten).filter(|note| !note.is_empty());
        // Colours alone tell nothing to who does not see them.
        let sign = mark.status.map(|status| sign(status).to_owned());
        let parts: Vec<String> = sign.into_iter().chain(note).collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }

    fn open_node(&self, out: &mut String, cluster: &Cluster, node: &Node) {
        let mark = self.mark(cluster, node);
        if let Some(href) = self.link(cluster, node) {
            // With an id, it keeps the focus when the drawing is replaced.
            let (prefix, id) = (&self.prefix, &node.id);
            put(out, format_args!("<a id=\"{prefix}-link-{id}\" class=\"cf-link\""));
            put(out, format_args!(" href=\"{}\">", escape_xml(href)));
        }
        put(out, format_args!("<g id=\"{}-{}\" class=\"cf-node", self.prefix, node.id));
        match node.shape {
            Shape::Start => out.push_str(" cf-start"),
            Shape::Agent => out.push_str(" cf-agent"),
            Shape::Command => out.push_str(" cf-command"),
            Shape::Question => out.push_str(" cf-question"),
            Shape::Nested => out.push_str(" cf-nested"),
            Shape::Branch => out.push_str(" cf-branch"),
            // The name of an outcome may be that of a status too.
            Shape::End(end) => put(out, format_args!(" cf-end cf-end-{}", end.name())),
        }
        if mark.is_some_and(|mark| mark.visits > 0) {
            out.push_str(" cf-visited");
        }
        if let Some(status) = mark.and_then(|mark| mark.status) {
            put(out, format_args!(" cf-{}", status.name()));
        }
        out.push_str("\">");
        if node.shape != Shape::Start {
            put(out, format_args!("<title>{}</title>", escape_xml(&caption(node, mark))));
        }
    }

    fn close_node(
        &self,
        out: &mut String,
        cluster: &Cluster,
        node: &Node,
        middle: Point,
        size: Size,
    ) {
        if let Some(mark) = self.mark(cluster, node).filter(|mark| mark.visits > 1) {
            draw_badge(out, mark.visits, corner(node.shape, middle, size));
        }
        out.push_str("</g>");
        if self.link(cluster, node).is_some() {
            out.push_str("</a>");
        }
        out.push('\n');
    }
}

/// What a status is in the box of a state.
fn sign(status: MarkStatus) -> &'static str {
    match status {
        MarkStatus::Current => "● now",
        MarkStatus::Waiting => "? waiting",
        MarkStatus::Interrupted => "‖ interrupted",
        MarkStatus::Answered => "→ answered",
        MarkStatus::Done => "✓ done",
        MarkStatus::Failed => "✗ failed",
        MarkStatus::Refuted => "✗ refuted",
        MarkStatus::Cancelled => "– cancelled",
    }
}

/// What a pointer on the node shows: its full name and its mark in words.
fn caption(node: &Node, mark: Option<&Mark>) -> String {
    let mut parts = vec![single_line(&node.state)];
    if let Some(mark) = mark {
        parts.extend(mark.status.map(|status| status.name().to_owned()));
        parts.extend(match mark.visits {
            0 => None,
            1 => Some("1 visit".to_owned()),
            many => Some(format!("{many} visits")),
        });
        parts.extend(mark.note.as_deref().map(single_line).filter(|note| !note.is_empty()));
    }
    parts.join(", ")
}

/// The place of a badge: a corner that few lines pass. Lines touch a node above and below, and
/// lines from a node to itself are to the right of it.
fn corner(shape: Shape, middle: Point, size: Size) -> Point {
    let (aside, above) = match shape {
        // On the edge of a diamond.
        Shape::Branch => (size.width * 0.3, size.height * 0.3),
        _ => (size.width / 2.0 - 6.0, size.height / 2.0 - 1.0),
    };
    Point { x: middle.x - aside, y: middle.y - above }
}

fn draw_badge(out: &mut String, visits: u32, middle: Point) {
    let text = if visits > MAX_SHOWN_VISITS {
        format!("×{MAX_SHOWN_VISITS}+")
    } else {
        format!("×{visits}")
    };
    let Point { x, y } = middle;
    let width = columns(&text) * 6.0 + 10.0;
    let (left, top) = (x - width / 2.0, y - BADGE / 2.0);
    let radius = BADGE / 2.0;
    let line = y + 4.0;
    put(
        out,
        format_args!(
            "<g class=\"cf-badge\"><rect class=\"cf-badge-box\" x=\"{left:.0}\" y=\"{top:.0}\" width=\"{width:.0}\" height=\"{BADGE:.0}\" rx=\"{radius:.0}\" fill=\"Canvas\" stroke=\"currentColor\"/>\
             <text class=\"cf-badge-text\" x=\"{x:.0}\" y=\"{line:.0}\" font-size=\"10\">{text}</text></g>"
        ),
    );
}
