//! Writes a diagram as a Mermaid flowchart.

use super::diagram::{Arrow, ArrowKind, Cluster, Diagram, Node, Shape};
use std::fmt::Write;

/// Writes a diagram.
pub(super) fn write(diagram: &Diagram) -> String {
    let mut out = String::from("flowchart TD\n");
    for (at, cluster) in diagram.clusters.iter().enumerate() {
        if at == 0 {
            write_cluster(&mut out, cluster, "  ");
        } else {
            out.push_str(&format!(
                "  subgraph {}[\"{}\"]\n    direction TB\n",
                cluster.id,
                escape(&cluster.name)
            ));
            write_cluster(&mut out, cluster, "    ");
            out.push_str("  end\n");
        }
    }
    for call in &diagram.calls {
        let node = &diagram.clusters[call.cluster].nodes[call.node];
        let runs = &diagram.clusters[call.runs];
        out.push_str(&format!("  {} ==>|\"{}\"| {}\n", node.id, call.label, runs.id));
    }
    for (class, style) in [
        ("done", "fill:#d3f2d8,stroke:#2a7a3b,color:#123a1b"),
        ("blocked", "fill:#fdeec2,stroke:#9a7300,color:#4a3800"),
        ("failed", "fill:#fbd9d7,stroke:#b3261e,color:#5c130f"),
        ("exhausted", "fill:#e3e3e8,stroke:#66666f,color:#2e2e33"),
    ] {
        if diagram
            .clusters
            .iter()
            .flat_map(|cluster| &cluster.nodes)
            .any(|node| end_class(node) == Some(class))
        {
            out.push_str(&format!("  classDef {class} {style}\n"));
        }
    }
    out
}

fn end_class(node: &Node) -> Option<&'static str> {
    if let Shape::End(end) = node.shape { Some(end.name()) } else { None }
}

/// Writes the nodes and arrows of a cluster.
fn write_cluster(out: &mut String, cluster: &Cluster, indent: &str) {
    for node in &cluster.nodes {
        let lines: Vec<String> = node.lines.iter().map(|line| escape(line)).collect();
        let (open, close) = match node.shape {
            Shape::Start => ("((\"", "\"))"),
            Shape::Agent => ("(\"", "\")"),
            Shape::Command => ("[\"", "\"]"),
            Shape::Question => ("{{\"", "\"}}"),
            Shape::Nested => ("[[\"", "\"]]"),
            Shape::Branch => ("{\"", "\"}"),
            Shape::End(_) => ("([\"", "\"])"),
        };
        let inside = if node.shape == Shape::Start { " ".to_owned() } else { lines.join("<br/>") };
        let class = end_class(node).map(|class| format!(":::{class}")).unwrap_or_default();
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{indent}{}{open}{inside}{close}{class}", node.id);
    }
    for Arrow { from, to, kind, lines } in &cluster.arrows {
        let line = match kind {
            ArrowKind::Next | ArrowKind::UsedUp => "-->",
            ArrowKind::Failure => "-.->",
        };
        let lines: Vec<String> = lines.iter().map(|line| escape(line)).collect();
        let label =
            if lines.is_empty() { String::new() } else { format!("|\"{}\"|", lines.join("<br/>")) };
        let _ = writeln!(
            out,
            "{indent}{} {line}{label} {}",
            cluster.nodes[*from].id, cluster.nodes[*to].id
        );
    }
}

/// Escapes characters that are special in Mermaid's strings, HTML or Markdown.
fn escape(line: &str) -> String {
    let letters: Vec<char> = line.chars().collect();
    let is_alphanumeric = |at: usize| letters.get(at).is_some_and(|c| c.is_alphanumeric());
    // At the start of a line, `-`, `+` and `1.` would start a list.
    let number = letters.iter().take_while(|c| c.is_ascii_digit()).count();
    let mut out = String::with_capacity(line.len());
    for (at, letter) in letters.iter().enumerate() {
        let needs_escape = match letter {
            '"' | '#' | '<' | '>' | '&' | '`' | '*' | '~' | '$' | '\\' => true,
            '_' => !(at > 0 && is_alphanumeric(at - 1) && is_alphanumeric(at + 1)),
            '-' | '+' => at == 0,
            '.' | ')' => number > 0 && at == number,
            _ => false,
        };
        match letter {
            '"' => out.push_str("#quot;"),
            '<' => out.push_str("#lt;"),
            '>' => out.push_str("#gt;"),
            '&' => out.push_str("#amp;"),
            letter if needs_escape => out.push_str(&format!("#{};", u32::from(*letter))),
            letter => out.push(*letter),
        }
    }
    out
}
