//! Compares what decides about tests from outside of them: settings of a test runner, switches in
//! code, and the modules that a Rust file declares.

use super::super::changes::SelectionChange;
use super::super::parse::Deadline;
use super::super::selection;
use super::super::source::Switch;
use super::Comparison;
use super::collected::module_files;
use counterfoil_contract::text::display_path;
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

/// The switches before and after the step, with their files.
#[derive(Default)]
pub(super) struct Switches {
    before: Vec<Switch>,
    after: Vec<(PathBuf, Switch)>,
}

impl Comparison {
    /// Compares the settings of a test runner.
    pub(super) fn settings(
        &mut self,
        path: &Path,
        before: &[u8],
        after: &[u8],
        deadline: Deadline,
    ) {
        let old = selection::read(path, before, deadline);
        let new = selection::read(path, after, deadline);
        match (old, new) {
            (Ok(old), Ok(mut new)) => {
                selection::keep_known(path, before, &mut new);
                self.compare_switches(path, old, new);
            }
            // Without what was before, it cannot be told what the step changed.
            (_, Err(problem)) | (Err(problem), _) => {
                self.delta.is_incomplete = true;
                self.delta.notes.push(format!(
                    "{}: it cannot be told which tests it selects: {problem}",
                    display_path(path)
                ));
            }
        }
    }

    pub(super) fn compare_switches(&mut self, path: &Path, old: Vec<Switch>, new: Vec<Switch>) {
        if old.is_empty() && new.is_empty() {
            return;
        }
        let folder = path.parent().unwrap_or(path).to_owned();
        let switches = self.switches.entry(folder).or_default();
        switches.before.extend(old);
        switches.after.extend(new.into_iter().map(|switch| (path.to_owned(), switch)));
    }

    /// Reports switches that are new in their folder.
    pub(super) fn report_switches(&mut self) {
        for Switches { before, after } in std::mem::take(&mut self.switches).into_values() {
            let mut known: HashMap<String, usize> = HashMap::new();
            let mut selected: HashMap<String, BTreeSet<String>> = HashMap::new();
            for switch in before {
                selected.extend(switch.selects);
                *known.entry(switch.key).or_default() += 1;
            }
            for (file, switch) in after {
                let selects_more = switch.selects.as_ref().is_some_and(|(name, now)| {
                    selected.get(name).map_or(switch.is_usual, |before| before.is_subset(now))
                });
                let folder = file.parent().unwrap_or(Path::new(""));
                let is_created = |name: &PathBuf| self.created.contains(&folder.join(name));
                // Where the settings were there before, tests may have run without the manifest.
                let is_new = switch.about.iter().any(is_created)
                    || self.created.contains(&file)
                        && switch.manifest.as_ref().is_some_and(is_created);
                if selects_more || is_new {
                    continue;
                }
                match known.get_mut(&switch.key) {
                    Some(times @ 1..) => *times -= 1,
                    _ => self.delta.selection.push(SelectionChange {
                        file,
                        line: switch.line,
                        what: switch.what,
                    }),
                }
            }
        }
        for (file, module) in std::mem::take(&mut self.lost_modules) {
            let places = module_files(&file, &module);
            if !places.iter().any(|place| self.deleted.contains(place)) {
                let name = &module.name;
                let what =
                    format!("no longer declares the module `{name}`, so its tests do not run");
                let line = module.line;
                self.delta.selection.push(SelectionChange { file, line, what });
            }
        }
    }
}
