//! Writes a diagram in the dot language of Graphviz.

use super::diagram::{Arrow, ArrowKind, Cluster, Diagram, Node, Shape};
use crate::workflow::End;
use std::fmt::Write;

/// Writes a diagram.
pub(super) fn write(diagram: &Diagram) -> String {
    let mut out = format!("digraph {} {{\n", quoted([&diagram.name]));
    out.push_str("  compound=true\n  fontname=\"sans-serif\"\n");
    out.push_str(
        "  node [fontname=\"sans-serif\" fontsize=12]\n  edge [fontname=\"sans-serif\" fontsize=10]\n",
    );
    for (at, cluster) in diagram.clusters.iter().enumerate() {
        if at == 0 {
            write_cluster(&mut out, cluster, "  ");
        } else {
            // Graphviz draws a border around a subgraph only if its name begins with `cluster`.
            out.push_str(&format!("  subgraph \"cluster_{}\" {{\n    label=", cluster.id));
            out.push_str(&format!("{}\n    style=rounded\n", quoted([&cluster.name])));
            write_cluster(&mut out, cluster, "    ");
            out.push_str("  }\n");
        }
    }
    for call in &diagram.calls {
        let node = &diagram.clusters[call.cluster].nodes[call.node];
        let runs = &diagram.clusters[call.runs];
        // The target of an edge is a node; `lhead` ends the edge at the border of its cluster.
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

/// Writes the nodes and arrows of a cluster.
fn write_cluster(out: &mut String, cluster: &Cluster, indent: &str) {
    for node in &cluster.nodes {
        let _ = writeln!(
            out,
            "{indent}\"{}\" [label={} {}]",
            node.id,
            quoted(&node.lines),
            node_style(node)
        );
    }
    for Arrow { from, to, kind, lines } in &cluster.arrows {
        let mut attributes = Vec::new();
        if !lines.is_empty() {
            attributes.push(format!("label={}", quoted(lines)));
        }
        if *kind == ArrowKind::Failure {
            attributes.push("style=dashed".to_owned());
        }
        let attributes = if attributes.is_empty() {
            String::new()
        } else {
            format!(" [{}]", attributes.join(" "))
        };
        let _ = writeln!(
            out,
            "{indent}\"{}\" -> \"{}\"{attributes}",
            cluster.nodes[*from].id, cluster.nodes[*to].id
        );
    }
}

fn node_style(node: &Node) -> &'static str {
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

/// Lines as one quoted string. Graphviz decodes HTML entities in it, so `&` is escaped too.
fn quoted<'a>(lines: impl IntoIterator<Item = &'a String>) -> String {
    let lines: Vec<String> = lines
        .into_iter()
        .map(|line| line.replace('\\', "\\\\").replace('"', "\\\"").replace('&', "&amp;"))
        .collect();
    format!("\"{}\"", lines.join("\\n"))
}
