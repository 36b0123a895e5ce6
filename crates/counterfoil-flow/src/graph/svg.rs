//! Writes a diagram as an SVG image.

use super::diagram::{Cluster, Diagram, Node, Shape};
use super::draw::{self, Look, Part, escape_xml, put};
use super::layout::{Point, Size};

const STYLE: &str = "text{font-family:-apple-system,'Segoe UI',Helvetica,Arial,sans-serif;font-size:12px;fill:#1c1c22;\
    text-anchor:middle}text.name{font-weight:600}text.label{font-size:11px;fill:#44444d}\
    text.title{font-size:15px;font-weight:600;text-anchor:start}text.summary{text-anchor:start;fill:#66666f}\
    .box{fill:#fff;stroke:#3d4a5c;stroke-width:1.3}.agent .box{fill:#e8f0fe}.question .box{fill:#fff3d6}\
    .nested .box{fill:#f3ebfd}.done .box{fill:#d3f2d8}.blocked .box{fill:#fdeec2}.failed .box{fill:#fbd9d7}\
    .exhausted .box{fill:#e3e3e8}.start .box{fill:#1c1c22}.line{fill:none;stroke:#5b6675;stroke-width:1.2}\
    .trouble{stroke-dasharray:5 4}.behind{fill:#fff}.frame{fill:none;stroke:#a9b1bd;stroke-dasharray:2 3}";

/// Writes a diagram.
pub(super) fn write(diagram: &Diagram) -> String {
    let draw::Drawing { body, size: Size { width, height } } = draw::draw(diagram, &Image);
    let title = escape_xml(&diagram.name);
    let about = escape_xml(&diagram.summary);
    let head = draw::arrowhead(&Image);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\">\n\
         <title>{title}</title>\n<desc>{about}</desc>\n<style>{STYLE}</style>\n\
         {head}\n<rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>\n{body}</svg>\n"
    )
}

/// The look of the self-contained image, whose classes [`STYLE`] colours.
struct Image;

impl Look for Image {
    fn attributes(&self, part: Part) -> &'static str {
        match part {
            Part::Frame => " class=\"frame\"",
            Part::Title => " class=\"title\"",
            Part::Summary => " class=\"summary\"",
            Part::Line | Part::Bars => " class=\"line\"",
            Part::Trouble => " class=\"line trouble\"",
            Part::Head => " fill=\"#5b6675\"",
            Part::Box => " class=\"box\"",
            Part::Name => " class=\"name\"",
            Part::Step | Part::Note => "",
            Part::Behind => " class=\"behind\"",
            Part::Label => " class=\"label\"",
        }
    }

    fn head(&self) -> &'static str {
        "head"
    }

    fn note(&self, _: &Cluster, _: &Node) -> Option<String> {
        None
    }

    fn open_node(&self, out: &mut String, _: &Cluster, node: &Node) {
        let class = match node.shape {
            Shape::Start => "start",
            Shape::Agent => "agent",
            Shape::Command => "command",
            Shape::Question => "question",
            Shape::Nested => "nested",
            Shape::Branch => "branch",
            Shape::End(end) => end.name(),
        };
        put(out, format_args!("<g id=\"{}\" class=\"{class}\">", node.id));
    }

    fn close_node(&self, out: &mut String, _: &Cluster, _: &Node, _: Point, _: Size) {
        out.push_str("</g>\n");
    }
}
