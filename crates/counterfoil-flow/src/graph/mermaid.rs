//! The picture as a Mermaid flowchart.

use super::picture::{Arrow, Frame, Kind, Node, Picture, Shape};
use std::fmt::Write;

/// The picture as text for Mermaid.
pub(super) fn write(picture: &Picture) -> String {
    let mut out = String::from("flowchart TD\n");
    for (at, frame) in picture.frames.iter().enumerate() {
        if at == 0 {
            frame_in(&mut out, frame, "  ");
        } else {
            out.push_str(&format!(
                "  subgraph {}[\"{}\"]\n    direction TB\n",
                frame.id,
                text(&frame.name)
            ));
            frame_in(&mut out, frame, "    ");
            out.push_str("  end\n");
        }
    }
    for call in &picture.calls {
        let node = &picture.frames[call.frame].nodes[call.node];
        let runs = &picture.frames[call.runs];
        out.push_str(&format!("  {} ==>|\"{}\"| {}\n", node.id, call.label, runs.id));
    }
    for (class, style) in [
        ("done", "fill:#d3f2d8,stroke:#2a7a3b,color:#123a1b"),
        ("blocked", "fill:#fdeec2,stroke:#9a7300,color:#4a3800"),
        ("failed", "fill:#fbd9d7,stroke:#b3261e,color:#5c130f"),
        ("exhausted", "fill:#e3e3e8,stroke:#66666f,color:#2e2e33"),
    ] {
        if picture
            .frames
            .iter()
            .flat_map(|frame| &frame.nodes)
            .any(|node| class_of(node) == Some(class))
        {
            out.push_str(&format!("  classDef {class} {style}\n"));
        }
    }
    out
}

fn class_of(node: &Node) -> Option<&'static str> {
    if let Shape::End(end) = node.shape { Some(end.name()) } else { None }
}

fn frame_in(out: &mut String, frame: &Frame, indent: &str) {
    for node in &frame.nodes {
        let lines: Vec<String> = node.lines.iter().map(|line| text(line)).collect();
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
        let class = class_of(node).map(|class| format!(":::{class}")).unwrap_or_default();
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{indent}{}{open}{inside}{close}{class}", node.id);
    }
    for Arrow { from, to, kind, lines } in &frame.arrows {
        let line = match kind {
            Kind::Next | Kind::UsedUp => "-->",
            Kind::FailureKind => "-.->",
        };
        let lines: Vec<String> = lines.iter().map(|line| text(line)).collect();
        let label =
            if lines.is_empty() { String::new() } else { format!("|\"{}\"|", lines.join("<br/>")) };
        let _ = writeln!(
            out,
            "{indent}{} {line}{label} {}",
            frame.nodes[*from].id, frame.nodes[*to].id
        );
    }
}

/// A text as Mermaid shows it as it stands: what its quotes, its HTML or its Markdown would take is
/// written as a code.
fn text(line: &str) -> String {
    let letters: Vec<char> = line.chars().collect();
    let beside = |at: usize| letters.get(at).is_some_and(|c| c.is_alphanumeric());
    // At the start of a line, `-`, `+` and `1.` would begin a list.
    let number = letters.iter().take_while(|c| c.is_ascii_digit()).count();
    let mut out = String::with_capacity(line.len());
    for (at, letter) in letters.iter().enumerate() {
        let as_code = match letter {
            '"' | '#' | '<' | '>' | '&' | '`' | '*' | '~' | '$' | '\\' => true,
            '_' => !(at > 0 && beside(at - 1) && beside(at + 1)),
            '-' | '+' => at == 0,
            '.' | ')' => number > 0 && at == number,
            _ => false,
        };
        match letter {
            '"' => out.push_str("#quot;"),
            '<' => out.push_str("#lt;"),
            '>' => out.push_str("#gt;"),
            '&' => out.push_str("#amp;"),
            letter if as_code => out.push_str(&format!("#{};", u32::from(*letter))),
            letter => out.push(*letter),
        }
    }
    out
}
