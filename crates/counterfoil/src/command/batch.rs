//! `counterfoil check --batch`: one text a line, one result a line, in order.

use crate::cli::CheckArgs;
use crate::exit::Exit;
use crate::{input, output};
use anyhow::{Context, Result, bail};
use counterfoil_contract::{Coerce, Contract, Framing, Policy, Registry, RepairPolicy, Report};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::HashMap;
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::path::Path;
use std::sync::Arc;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    #[serde(default)]
    id: Value,
    contract: Option<String>,
    schema: Option<Value>,
    text: String,
    framing: Option<Framing>,
    repair: Option<RepairPolicy>,
    coerce: Option<bool>,
    strict: Option<bool>,
}

#[derive(Serialize)]
struct Checked<'r> {
    id: &'r Value,
    #[serde(flatten)]
    report: &'r Report,
}

#[derive(Serialize)]
struct Failed<'r> {
    id: Value,
    status: &'static str,
    line: usize,
    message: &'r str,
}

/// Contracts already compiled, by what was asked for.
struct Contracts {
    registry: Registry,
    schemas: HashMap<String, Arc<Contract>>,
}

/// Schemas kept compiled; a batch with more different ones compiles some again.
const MOST_KEPT: usize = 256;

pub(crate) fn run(args: &CheckArgs, path: &Path) -> Result<Exit> {
    let mut contracts =
        Contracts { registry: input::registry(&args.contracts)?, schemas: HashMap::new() };
    let mut reader: Box<dyn BufRead> = if path.as_os_str() == "-" {
        Box::new(BufReader::new(std::io::stdin()))
    } else {
        if path.is_dir() {
            bail!("{} is a folder; name a file with one JSON object a line", path.display());
        }
        Box::new(BufReader::new(
            std::fs::File::open(path).with_context(|| format!("cannot open {}", path.display()))?,
        ))
    };
    let mut out = BufWriter::new(std::io::stdout().lock());
    let mut all_accepted = true;
    // A JSON string can need six bytes for one of the text, and the line holds a little more.
    let longest =
        args.limits(&Policy::default()).max_bytes.saturating_mul(6).saturating_add(1 << 20);
    for number in 1.. {
        let mut bytes = Vec::new();
        let read = reader
            .by_ref()
            .take(longest as u64 + 1)
            .read_until(b'\n', &mut bytes)
            .context("cannot read the batch")?;
        if read == 0 {
            break;
        }
        if bytes.trim_ascii().is_empty() {
            continue;
        }
        let result = if bytes.len() > longest {
            skip_line(&mut *reader)?;
            Err((Value::Null, format!("the line is longer than {longest} bytes")))
        } else {
            line(&bytes, args, &mut contracts)
        };
        let text = match &result {
            Ok((id, report)) => {
                all_accepted &= report.is_accepted();
                serde_json::to_string(&Checked { id, report })?
            }
            Err((id, message)) => {
                all_accepted = false;
                serde_json::to_string(&Failed {
                    id: id.clone(),
                    status: "error",
                    line: number,
                    message,
                })?
            }
        };
        if writeln!(out, "{text}").is_err() {
            break; // The reader went away.
        }
    }
    output::quiet(out.flush())?;
    Ok(all_accepted.into())
}

fn skip_line(reader: &mut dyn BufRead) -> Result<()> {
    loop {
        let (used, done) = {
            let buffer = reader.fill_buf().context("cannot read the batch")?;
            match buffer.iter().position(|byte| *byte == b'\n') {
                Some(at) => (at + 1, true),
                None => (buffer.len(), buffer.is_empty()),
            }
        };
        reader.consume(used);
        if done {
            return Ok(());
        }
    }
}

fn line(
    bytes: &[u8],
    args: &CheckArgs,
    contracts: &mut Contracts,
) -> Result<(Value, Report), (Value, String)> {
    let line: Line = serde_json::from_slice(bytes).map_err(|error| {
        // The id is worth having even if the rest is wrong.
        let id = serde_json::from_slice::<Value>(bytes)
            .ok()
            .and_then(|value| value.get("id").cloned())
            .unwrap_or_default();
        (id, format!("the line is not a text to check: {error}"))
    })?;
    let id = line.id.clone();
    let fail = |message: String| (id.clone(), message);
    let strict = line.strict.unwrap_or(false);
    let contract = match (&line.contract, &line.schema) {
        (Some(name), None) => {
            if line.framing.is_some() || line.repair.is_some() || line.coerce.is_some() {
                return Err(fail(
                    "a contract has its own framing and policy; framing, repair and coerce go with a schema"
                        .into(),
                ));
            }
            contracts.registry.get(name).map_err(|error| fail(error.to_string()))?
        }
        (None, Some(schema)) => contracts.by_schema(&line, schema).map_err(fail)?,
        _ => return Err(fail("a line names a contract or a schema, and not both".into())),
    };
    let mut policy = args.limits(contract.policy());
    if strict {
        policy = policy.strictly();
    }
    let report = contract.check_with(&line.text, &policy);
    Ok((line.id, report))
}

impl Contracts {
    fn by_schema(&mut self, line: &Line, schema: &Value) -> Result<Arc<Contract>, String> {
        let policy = Policy {
            repair: line.repair.unwrap_or_default(),
            coerce: if line.coerce.unwrap_or(false) { Coerce::All } else { Coerce::None },
            ..Policy::default()
        };
        let framing = line.framing.unwrap_or(Framing::AnyJson);
        let key = format!("{framing:?} {:?} {:?} {schema}", policy.repair, policy.coerce);
        if let Some(contract) = self.schemas.get(&key) {
            return Ok(Arc::clone(contract));
        }
        let contract = Arc::new(
            Contract::from_schema(schema, framing, policy).map_err(|error| error.to_string())?,
        );
        if self.schemas.len() >= MOST_KEPT {
            self.schemas.clear();
        }
        self.schemas.insert(key, Arc::clone(&contract));
        Ok(contract)
    }
}
