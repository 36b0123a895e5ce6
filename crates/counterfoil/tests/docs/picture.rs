//! The pictures in `docs/pictures/` show what the program prints:
//!
//! - `run.svg`, in the README: a claim is refuted, corrected and verified, on a terminal of 80
//!   columns. The project is in `picture/`; its agents are scripted.
//! - `PACK.svg`: the graph of each pack.
//!
//! They have a background of their own, so that they can be read on light and on dark pages. Write
//! them again with `UPDATE=1 cargo test -p counterfoil --test docs picture`.

use crate::{PROGRAM, read, root, trial};
use anstyle_svg::{Palette, Term};
use counterfoil_testkit::{TestCommand, git_command};
use libtest_mimic::Trial;
use regex::Regex;
use std::num::NonZero;
use std::path::Path;

const PICTURE: &str = "docs/pictures/run.svg";
const PACKS: [&str; 5] =
    ["execution-loop", "review-fix", "feature-pipeline", "spec-pipeline", "gated-team"];
const COMMAND: &str = "counterfoil run fix.yaml --task 'Drop the marks' --agent script:script.yaml";
const COLUMNS: u16 = 80;
/// More than the command prints, so that nothing scrolls away.
const ROWS: u16 = 120;
/// The colours of the terminal, each with a contrast of at least 4.5 to the background.
const BACKGROUND: [u8; 3] = [0x16, 0x1b, 0x22];
const FOREGROUND: [u8; 3] = [0xe6, 0xed, 0xf3];
const COLOURS: [[u8; 3]; 16] = [
    [0x8b, 0x94, 0x9e],
    [0xff, 0x7b, 0x72],
    [0x56, 0xd3, 0x64],
    [0xe3, 0xb3, 0x41],
    [0x79, 0xc0, 0xff],
    [0xd2, 0xa8, 0xff],
    [0x76, 0xe3, 0xea],
    [0xc9, 0xd1, 0xd9],
    [0x8b, 0x94, 0x9e],
    [0xff, 0xa1, 0x98],
    [0x7e, 0xe7, 0x87],
    [0xf2, 0xcc, 0x60],
    [0xa5, 0xd6, 0xff],
    [0xe2, 0xc5, 0xff],
    [0xb3, 0xf0, 0xff],
    [0xff, 0xff, 0xff],
];

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("picture", "the_picture_shows_what_the_program_prints", the_picture_is_current),
        trial("picture", "the_graphs_of_the_packs_are_current", the_graphs_are_current),
        trial("picture", "every_colour_can_be_read", every_colour_can_be_read),
    ]
}

fn the_picture_is_current() {
    compare(PICTURE, &draw(&session(&screen())));
}

fn the_graphs_are_current() {
    for pack in PACKS {
        let mut command = TestCommand::new(PROGRAM);
        let output = command.args(["workflow", "graph", pack, "--format", "svg"]).output();
        assert_eq!(output.code, Some(0), "{pack}: {}", output.stderr);
        let picture = format!("docs/pictures/{pack}.svg");
        compare(&picture, &output.stdout);
        let shown = format!("](../pictures/{pack}.svg)");
        let page = format!("docs/packs/{pack}.md");
        assert!(read(&page).contains(&shown), "{page} does not show {picture}");
    }
}

/// Fails if a picture is not the one that was drawn now. With `UPDATE`, writes it first.
fn compare(picture: &str, drawn: &str) {
    let path = root().join(picture);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, drawn).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == drawn,
        "{picture} shows something else; write it again with UPDATE=1, and read the diff:\n{drawn}"
    );
}

/// The lines of the terminal after the command, with their colours.
fn screen() -> Vec<String> {
    // A path of this length, so that lines break at the same places everywhere.
    let folder = tempfile::Builder::new().prefix("docs-").tempdir_in("/tmp").unwrap();
    let project = folder.path().join("slugs");
    copy(&root().join("crates/counterfoil/tests/docs/picture"), &project);
    for arguments in [&["init", "-q"][..], &["add", "--all"], &["commit", "-q", "-m", "Start"]] {
        assert!(git_command(&project, arguments).status().unwrap().success());
    }
    let line = COMMAND.replacen("counterfoil", &format!("'{PROGRAM}'"), 1);
    let line = format!("stty cols {COLUMNS} rows {ROWS}; {line}");
    let mut command = TestCommand::new("script");
    command
        .args(["-qec", &line, "/dev/null"])
        .current_dir(&project)
        .env("HOME", folder.path())
        .env("TERM", "xterm-256color")
        .env_remove("XDG_DATA_HOME")
        .env_remove("COUNTERFOIL_STATE")
        .env_remove("NO_COLOR");
    let output = command.output();
    assert_eq!(output.code, Some(0), "{}", output.stdout);
    let size = |size| NonZero::new(size).unwrap();
    let mut terminal = vt100::Parser::new(size(ROWS), size(COLUMNS), 0);
    terminal.process(output.stdout.as_bytes());
    let path = project.display().to_string();
    let rows = (0..ROWS).map(|row| styled_row(terminal.screen(), row));
    rows.map(|row| without_chance(&row.replace(&path, "/home/kim/slugs"))).collect()
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}

/// A row as text with escape sequences for its colours.
fn styled_row(screen: &vt100::Screen, row: u16) -> String {
    let mut text = String::new();
    let mut style = anstyle::Style::new();
    for column in 0..COLUMNS {
        let Some(cell) = screen.cell(row, column) else { continue };
        let of_cell = style_of(cell);
        if of_cell != style {
            text.push_str(&format!("{style:#}{of_cell}"));
            style = of_cell;
        }
        match cell.contents() {
            "" if cell.is_wide_continuation() => {}
            "" => text.push(' '),
            shown => text.push_str(shown),
        }
    }
    format!("{text}{style:#}").trim_end().to_owned()
}

fn style_of(cell: &vt100::Cell) -> anstyle::Style {
    let color = match cell.fgcolor() {
        // Half the contrast would be too little.
        _ if cell.dim() => Some(anstyle::Ansi256Color(8).into()),
        vt100::Color::Default => None,
        vt100::Color::Idx(index) => Some(anstyle::Ansi256Color(index).into()),
        vt100::Color::Rgb(red, green, blue) => Some(anstyle::RgbColor(red, green, blue).into()),
    };
    let effects = [
        (cell.bold(), anstyle::Effects::BOLD),
        (cell.italic(), anstyle::Effects::ITALIC),
        (cell.underline(), anstyle::Effects::UNDERLINE),
    ];
    let effects = effects.into_iter().filter(|(has, _)| *has).map(|(_, effect)| effect);
    let effects = effects.fold(anstyle::Effects::new(), |all, effect| all | effect);
    anstyle::Style::new().fg_color(color).effects(effects)
}

/// The line with the same ids and times in every run.
fn without_chance(line: &str) -> String {
    let replacements = [
        (
            r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}",
            "01a1ed6f-0c5f-717a-9211-f762655dad78",
        ),
        (r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", "2026-11-18 06:54 UTC"),
        (r"\d+:\d\d:\d\d ", "0:00:00 "),
        (r"\d+(\.\d+)? m?s$", "176 ms"),
    ];
    replacements.iter().fold(line.to_owned(), |line, (pattern, with)| {
        Regex::new(pattern).unwrap().replace_all(&line, *with).into_owned()
    })
}

/// The command and what it prints.
fn session(screen: &[String]) -> String {
    format!("$ {COMMAND}\n{}\n", screen.join("\n").trim_end())
}

fn draw(text: &str) -> String {
    let rgb = |[red, green, blue]: [u8; 3]| anstyle::RgbColor(red, green, blue);
    Term::new()
        .palette(Palette(COLOURS.map(rgb)))
        .fg_color(rgb(FOREGROUND).into())
        .bg_color(rgb(BACKGROUND).into())
        .min_width_px(usize::from(COLUMNS) * 84 / 10)
        .render_svg(text)
}

/// The contrast of two colours, as the Web Content Accessibility Guidelines define it.
fn contrast(one: [u8; 3], other: [u8; 3]) -> f64 {
    let luminance = |color: [u8; 3]| {
        let linear = color.map(|part| {
            let part = f64::from(part) / 255.0;
            if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
        });
        0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    };
    let (one, other) = (luminance(one) + 0.05, luminance(other) + 0.05);
    one.max(other) / one.min(other)
}

fn every_colour_can_be_read() {
    for color in COLOURS.into_iter().chain([FOREGROUND]) {
        let contrast = contrast(color, BACKGROUND);
        assert!(contrast >= 4.5, "{color:x?}: {contrast:.2}");
    }
}
