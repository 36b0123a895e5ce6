//! The command `counterfoil schema`.

use crate::cli::SchemaArgs;
use crate::exit::Exit;
use crate::output;
use crate::schema::Kind;
use anyhow::{Context, Result};
use counterfoil_contract::text::display_path;
use counterfoil_workspace::atomic_write;

pub(crate) fn run(args: &SchemaArgs) -> Result<Exit> {
    let Some(folder) = &args.write else {
        let kinds = args.kind.into_iter();
        kinds.map(Kind::text).try_for_each(output::write_stdout)?;
        return Ok(Exit::Success);
    };
    std::fs::create_dir_all(folder)
        .with_context(|| format!("cannot create the folder {}", display_path(folder)))?;
    let kinds = args.kind.map_or(Kind::ALL.to_vec(), |kind| vec![kind]);
    for kind in kinds {
        let path = folder.join(kind.file_name());
        let name = display_path(&path);
        atomic_write(&path, kind.text().as_bytes())
            .with_context(|| format!("cannot write {name}"))?;
        output::write_stderr(&format!("wrote {name}\n"));
    }
    Ok(Exit::Success)
}
