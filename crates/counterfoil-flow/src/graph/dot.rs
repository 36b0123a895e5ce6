//! The picture in the language of Graphviz.

use super::picture::{Arrow, Frame, Kind, Node, Picture, Shape};
use crate::workflow::End;
use std::fmt::Write;

/// The picture as text for Graphviz.
pub(super) fn write(picture: &Picture) -> String {
    let mut out = format!("digraph {} {{\n", quoted([&picture.name]));
    out.push_str("  compound=true\n  fontname=\"sans-serif\"\n");
    out.push_str(
        "  node [fontname=\"sans-serif\" fontsize=12]\n  edge [fontname=\"sans-serif\" fontsize=10]\n",
    );
    for (at, frame) in picture.frames.iter().enumerate() {
        if at == 0 {
            frame_in(&mut out, frame, "  ");
        } else {
            // Graphviz draws a frame around a subgraph only if its name begins with `cluster`.
            out.push_str(&format!("  subgraph \"cluster_{}\" {{\n    label=", frame.id));
            out.push_str(&format!("{}\n    style=rounded\n", quoted([&frame.name])));
            frame_in(&mut out, frame, "    ");
            out.push_str("  }\n");
        }
    }
    for call in &picture.calls {
        let node = &picture.frames[call.frame].nodes[call.node];
        let runs = &picture.frames[call.runs];
        // An edge leads to a node; `lhead` ends it at the frame around.
        let Some(first) = runs.nodes.first() else { continue };
        let _ = writeln!(
            out,
            "  \"{}\" -> \"{}\" [label=\"{}\" style=bold lhead=\"cluster_{}\"]",
            node.id, first.id, call.label, runs.id
        );
    }
    out.push_str("}\n");
    out
}

fn frame_in(out: &mut String, frame: &Frame, indent: &str) {
    for node in &frame.nodes {
        let _ =
            writeln!(out, "{indent}\"{}\" [label={} {}]", node.id, quoted(&node.lines), look(node));
    }
    for Arrow { from, to, kind, lines } in &frame.arrows {
        let mut settings = Vec::new();
        if !lines.is_empty() {
            settings.push(format!("label={}", quoted(lines)));
        }
        if *kind == Kind::FailureKind {
            settings.push("style=dashed".to_owned());
        }
        let settings =
            if settings.is_empty() { String::new() } else { format!(" [{}]", settings.join(" ")) };
        let _ = writeln!(
            out,
            "{indent}\"{}\" -> \"{}\"{settings}",
            frame.nodes[*from].id, frame.nodes[*to].id
        );
    }
}

fn look(node: &Node) -> &'static str {
    match node.shape {
        Shape::Start => "shape=point width=0.15",
        Shape::Agent => "shape=box style=rounded",
        Shape::Command => "shape=box",
        Shape::Question => "shape=hexagon",
        Shape::Nested => "shape=box peripheries=2",
        Shape::Branch => "shape=diamond",
        Shape::End(End::Done) => "shape=oval style=filled fillcolor=\"#d3f2d8\"",
        Shape::End(End::Blocked) => "shape=oval style=filled fillcolor=\"#fdeec2\"",
        Shape::End(End::Failed) => "shape=oval style=filled fillcolor=\"#fbd9d7\"",
        Shape::End(End::Exhausted) => "shape=oval style=filled fillcolor=\"#e3e3e8\"",
    }
}

/// Lines as one quoted text. Graphviz reads codes of HTML in it too, so `&` is written as one.
fn quoted<'a>(lines: impl IntoIterator<Item = &'a String>) -> String {
    let lines: Vec<String> = lines
        .into_iter()
        .map(|line| line.replace('\\', "\\\\").replace('"', "\\\"").replace('&', "&amp;"))
        .collect();
    format!("\"{}\"", lines.join("\\n"))
}
