//! The command `counterfoil schema`.

mod data;
mod form;

use crate::cli::SchemaArgs;
use crate::exit::Exit;
use crate::output;
use crate::schema::{self, Kind};
use anyhow::{Context, Result};
use clap::ValueEnum;
use counterfoil_contract::text::display_path;
use counterfoil_workspace::atomic_write;
use std::borrow::Cow;

pub(crate) fn run(args: &SchemaArgs) -> Result<Exit> {
    let Some(folder) = &args.write else {
        match args.kind {
            Some(kind) => output::write_json_lines(&text(kind)?)?,
            None => output::write_stdout(&schema::list())?,
        }
        return Ok(Exit::Success);
    };
    std::fs::create_dir_all(folder)
        .with_context(|| format!("cannot create the folder {}", display_path(folder)))?;
    let is_meant = |kind: &&Kind| match args.kind {
        Some(named) => named == **kind,
        None => args.all || matches!(kind, Kind::File(_)),
    };
    for kind in Kind::value_variants().iter().filter(is_meant) {
        let path = folder.join(kind.file_name());
        let name = display_path(&path);
        atomic_write(&path, text(*kind)?.as_bytes())
            .with_context(|| format!("cannot write {name}"))?;
        output::write_stderr(&format!("wrote {name}\n"));
    }
    Ok(Exit::Success)
}

/// The schema of a kind as JSON.
fn text(kind: Kind) -> Result<Cow<'static, str>> {
    Ok(match kind {
        Kind::File(kind) => kind.text().into(),
        Kind::Data(data) => {
            let about = format!("{}. See docs/formats.md.", kind.about());
            let title = format!("Counterfoil {}", kind.name().replace('-', " "));
            let schema = form::document(data::schema(data), &title, &about);
            (serde_json::to_string_pretty(&schema)? + "\n").into()
        }
    })
}
