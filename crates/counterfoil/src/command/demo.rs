//! `counterfoil demo`: a pack at work, offline, in a repository that is made for it. The run is a
//! real one; only the agents are played by a script.

mod contracts;
mod plan;
mod repository;

use crate::cli::{DemoArgs, Place, RunFormat};
use crate::exit::Exit;
use crate::source::{self, Source};
use crate::tell::demo::{self as words, Seen};
use crate::{input, lay, output};
use anyhow::{Context, Result, bail};
use counterfoil_agents::agent::Equipment;
use counterfoil_engine::{Cast, Launch};
use counterfoil_flow::Budget;
use plan::Plan;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub(crate) use plan::FILE;

/// What plays the agents, in a pack and in the state folder.
const SCRIPT: &str = "demo/script.yaml";
/// The largest file of a pack that is read from a folder; and how much all of them together.
const LARGEST: usize = 16 << 20;

pub(crate) fn run(args: &DemoArgs) -> Result<Exit> {
    if args.pack == "contracts" {
        if args.keep.is_some() || args.script.is_some() {
            bail!("the demo of contracts runs nothing; --keep and --script are for packs");
        }
        return contracts::run();
    }
    let stuff = Stuff::named(&args.pack)?;
    let plan = Plan::of(&stuff)?;
    let script = match &args.script {
        None => stuff.need(SCRIPT)?.to_owned(),
        Some(file) => {
            let (name, bytes) = input::read(file, LARGEST)?;
            if bytes.len() > LARGEST {
                bail!("{name} has more than {LARGEST} bytes");
            }
            bytes
        }
    };
    // Everything that can be wrong with the pack is found before a repository is made.
    let workflow = super::workflow::load(&stuff.source, &[])?;
    let inputs = super::run::inputs(plan.task.clone(), &plan.words(), &workflow)?;
    repository::expect_git()?;

    let repo = repository::folder(&stuff.name, args.keep.as_deref())?;
    repository::make(&repo, &stuff.below("demo/repo"), &stuff.below("demo/changes"))?;
    // In the state folder, which is no part of the work tree, it is the agents' only to play.
    let state = repo.join(".counterfoil");
    std::fs::create_dir_all(&state).with_context(|| format!("cannot make {}", state.display()))?;
    lay::out(&state, &[("script.yaml", &script)])?;
    let played = state.join("script.yaml");

    output::words(&words::opening(&workflow.name, &workflow.summary, &plan.about));
    let spec = format!("script:{}", played.display());
    let cast =
        Cast::from_specs(&workflow, &BTreeMap::new(), Some(&spec), &Equipment::default(), &[])?;
    let home = stuff.source.home().into_iter().collect();
    let launch =
        Launch { workflow, inputs, budget: Budget::default(), cast, repo: repo.clone(), home };
    let place = Place { repo: Some(repo.clone()), state: None };
    let report = super::run::begin(&state, launch, &place, RunFormat::Human)
        .with_context(|| format!("the demo in {} did not get far", repo.display()))?;

    let as_planned = report.outcome == plan.ends;
    output::words(&words::closing(&Seen {
        program: &program(),
        pack: &args.pack,
        repo: &repo,
        script: &played,
        run: &report.run,
        outcome: &report.outcome,
        planned: &plan.ends,
        look: &plan.look,
    }));
    Ok(if as_planned { Exit::Good } else { Exit::of(&report) })
}

/// What we were called as, if that is a path: whoever has not installed us can paste it.
fn program() -> String {
    let called = std::env::args().next().filter(|called| called.contains('/'));
    called.unwrap_or_else(|| "counterfoil".to_owned())
}

/// The files of a pack, wherever they stand.
struct Stuff {
    /// What it is called, as part of a folder's name.
    name: String,
    /// Its workflow.
    source: Source,
    /// Where it stands, in words.
    place: String,
    files: BTreeMap<String, Vec<u8>>,
}

impl Stuff {
    /// A pack by its name, or a folder with one that was ejected.
    fn named(word: &str) -> Result<Self> {
        if let Some(pack) = counterfoil_packs::pack(word) {
            let files = pack.files().into_iter();
            return Ok(Self {
                name: word.to_owned(),
                source: Source::named(Path::new(word))?,
                place: format!("the pack {word}"),
                files: files.map(|(path, bytes)| (path.to_owned(), bytes.to_vec())).collect(),
            });
        }
        let folder = PathBuf::from(word);
        if !folder.is_dir() {
            return Err(source::no_pack(
                word,
                "give a pack, `contracts`, or a folder with an ejected pack",
            ));
        }
        let full = folder.canonicalize().with_context(|| format!("cannot open {word}"))?;
        let name =
            full.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        Ok(Self {
            name: name
                .chars()
                .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
                .take(40)
                .collect(),
            source: Source::named(&folder.join("workflow.yaml"))?,
            place: format!("the folder {word}"),
            files: lay::read(&folder.join("demo"), "demo", LARGEST)?,
        })
    }

    /// A file that must be there.
    fn need(&self, path: &str) -> Result<&[u8]> {
        let found = self.files.get(path).map(Vec::as_slice);
        found.with_context(|| format!("{} has no demo: {path} is missing", self.place))
    }

    /// The files below a folder, by their paths in it.
    fn below(&self, folder: &str) -> Vec<lay::Laid<'_>> {
        let folder = format!("{folder}/");
        let inside = |(path, bytes)| Some((str::strip_prefix(path, &folder)?, bytes));
        self.files
            .iter()
            .map(|(path, bytes)| (path.as_str(), bytes.as_slice()))
            .filter_map(inside)
            .collect()
    }
}
