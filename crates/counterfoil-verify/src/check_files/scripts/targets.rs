//! The targets of makefiles that a check reaches, and whether make runs their recipes. If a file or
//! folder with the name of a target is there, and nothing that the target needs is newer, make runs
//! nothing for it and ends with 0. It does not look for one if the target is declared as `.PHONY`.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A target of a makefile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// Its name in the makefile.
    pub(crate) name: String,
    /// Whether make is told to make it. Otherwise another target needs it.
    pub(crate) is_goal: bool,
    /// Whether make runs its recipe whatever is there.
    pub(crate) always_runs: bool,
    pub(crate) has_recipe: bool,
    /// Whether its recipe makes a file or folder of its name, as far as its words show.
    pub(crate) makes_itself: bool,
    /// What has to be older than it; none if not all of that is known.
    pub(crate) needs: Option<Vec<PathBuf>>,
    /// Where else make looks for it, in this order.
    pub(crate) searched: Vec<PathBuf>,
    /// Whether make looks for it in folders that are not known here.
    pub(crate) is_searched_anywhere: bool,
}

impl Target {
    /// Whether something new in its place keeps its recipe from being run.
    fn is_replaceable(&self) -> bool {
        !self.always_runs && (self.is_goal || self.has_recipe && !self.makes_itself)
    }

    /// Whether make looks for it at a place that is not the one of its name.
    fn is_searched_at(&self, place: &Path) -> bool {
        self.searched.iter().any(|one| one == place)
            || self.is_searched_anywhere && place.ends_with(&self.name)
    }

    /// Whether its name may be the name of a file that the recipe makes.
    fn is_file_name(&self) -> bool {
        self.name.contains(['/', '.'])
    }
}

/// What is at a path now, also behind a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Present {
    pub(crate) is_folder: bool,
    pub(crate) modified: SystemTime,
}

/// Looks at a path relative to the top of the repository; none if there is nothing.
pub(crate) type LookNow<'a> = dyn FnMut(&Path) -> Option<Present> + 'a;

/// A target whose recipe make does not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Idle<'t> {
    /// The path of its name, relative to the top of the repository.
    pub(crate) place: &'t Path,
    pub(crate) name: &'t str,
    pub(crate) is_folder: bool,
    /// Whether an earlier run of the recipe may have made the folder.
    pub(crate) may_be_made: bool,
}

/// Targets by the paths of their names, relative to the top of the repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Targets(BTreeMap<PathBuf, Target>);

impl Targets {
    pub(super) fn add(&mut self, place: PathBuf, target: Target) {
        match self.0.entry(place) {
            Entry::Vacant(free) => {
                free.insert(target);
            }
            Entry::Occupied(mut known) => {
                let known = known.get_mut();
                known.is_goal |= target.is_goal;
                known.always_runs |= target.always_runs;
            }
        }
    }

    /// The place of a target that a path is at, or in: if nothing was there before, the path keeps the
    /// recipe of the target from being run.
    pub(crate) fn replaced_by<'p>(&self, path: &'p Path) -> Option<&'p Path> {
        path.ancestors().find(|place| {
            let is_folder = *place != path;
            let replaces =
                |target: &Target| target.is_replaceable() && (is_folder || !target.is_file_name());
            self.0.get(*place).is_some_and(replaces)
                || self.0.values().any(|it| it.is_searched_at(place) && replaces(it))
        })
    }

    /// The targets whose recipes make certainly does not run with what is there now, although a check
    /// counts on them. Files that were made, and are newer than what they are made of, do not count.
    pub(crate) fn idle(&self, look: &mut LookNow<'_>) -> Vec<Idle<'_>> {
        let mut known = BTreeMap::new();
        let mut idle = Vec::new();
        for (place, target) in &self.0 {
            if target.always_runs {
                continue;
            }
            let Some((found, Present { is_folder, .. })) = self.find(place, look) else {
                continue;
            };
            // Nothing that could change would ever make it run.
            let is_fixed = target.is_goal && target.needs.as_ref().is_some_and(Vec::is_empty);
            let is_replaced = target.has_recipe && is_folder && !target.makes_itself;
            if (is_fixed || is_replaced) && self.is_up_to_date(place, look, &mut known) {
                let name = &target.name;
                idle.push(Idle { place: found, name, is_folder, may_be_made: !is_fixed });
            }
        }
        idle
    }

    /// What is at a path, or where else make looks for it.
    fn find<'t>(&'t self, path: &'t Path, look: &mut LookNow<'_>) -> Option<(&'t Path, Present)> {
        if let Some(present) = look(path) {
            return Some((path, present));
        }
        let searched = &self.0.get(path)?.searched;
        searched.iter().find_map(|place| Some((place.as_path(), look(place)?)))
    }

    /// Whether make has certainly nothing to do for a path. `known` are the answers so far; while one
    /// is looked for, it is no.
    fn is_up_to_date(
        &self,
        path: &Path,
        look: &mut LookNow<'_>,
        known: &mut BTreeMap<PathBuf, bool>,
    ) -> bool {
        if let Some(answer) = known.get(path) {
            return *answer;
        }
        known.insert(path.to_owned(), false);
        let Some((_, Present { modified, .. })) = self.find(path, look) else { return false };
        let answer = match self.0.get(path) {
            None => true,
            Some(Target { always_runs: true, .. } | Target { needs: None, .. }) => false,
            Some(Target { needs: Some(needs), .. }) => needs.iter().all(|need| {
                self.find(need, look).is_some_and(|(_, it)| it.modified <= modified)
                    && self.is_up_to_date(need, look, known)
            }),
        };
        known.insert(path.to_owned(), answer);
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check_files::scripts;
    use crate::config::CheckCommand;
    use std::collections::BTreeSet;
    use std::time::Duration;

    /// The targets that a check reaches.
    fn targets(line: &str, makefile: &str) -> Targets {
        let command = CheckCommand::Shell(line.to_owned());
        let mut read = |path: &Path| {
            Ok(match path.to_str() {
                Some("Makefile" | "sub/Makefile") => Some(makefile.as_bytes().to_vec()),
                Some("phony.mk") => Some(b".PHONY: test\n".to_vec()),
                _ => None,
            })
        };
        scripts(&command, Path::new(""), &mut read).unwrap().targets
    }

    /// The names of the idle targets, with what is there, oldest first; folders end with a slash.
    fn idle(line: &str, makefile: &str, there: &[&str]) -> Vec<String> {
        let mut look = |path: &Path| {
            let path = path.to_str()?;
            let at = there.iter().position(|name| name.trim_end_matches('/') == path)?;
            let modified = SystemTime::UNIX_EPOCH + Duration::from_secs(at as u64);
            Some(Present { is_folder: there[at].ends_with('/'), modified })
        };
        let targets = targets(line, makefile);
        let idle = targets.idle(&mut look);
        idle.iter().map(|one| one.place.to_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn make_runs_no_recipe_for_what_is_there() {
        let plain = "test:\n\tpytest test\n";
        let two = "all: unit lint\nunit:\n\tpytest unit\nlint:\n\truff check\n";
        for (line, makefile, there, expected) in [
            ("make test", plain, &["test/"][..], &["test"][..]),
            ("make test", plain, &["test"], &["test"]),
            ("make -s test", plain, &["test/"], &["test"]),
            ("make", plain, &["test/"], &["test"]),
            ("make -j 4 test VERBOSE=1 2>/dev/null", plain, &["test/"], &["test"]),
            ("make -C sub test", plain, &["sub/test/", "sub/"], &["sub/test"]),
            ("make --directory=sub test", plain, &["sub/test/", "sub/"], &["sub/test"]),
            ("make", "test:\n\t$(MAKE) -C sub test\n", &["sub/test/"], &["sub/test"]),
            ("make all", two, &["unit/"], &["unit"]),
            ("make", two, &["unit/", "lint/"], &["lint", "unit"]),
            // Without a rule, it is a file that is there.
            ("make lint", plain, &["lint/"], &["lint"]),
            ("make test", "test: a.py\n\tpytest\n", &["a.py", "test/"], &["test"]),
            ("make test", "test: | a.py\n\tpytest\n", &["test/", "a.py"], &["test"]),
            (
                "make test",
                "test: sub\n\tpytest\nsub: a\n\ttrue\n",
                &["a", "sub/", "test/"],
                &["sub", "test"],
            ),
            (
                "make test",
                "X = unit\nX += lint\ntest: $(X)\nunit lint:\n\t./dev $@\n",
                &["lint/"],
                &["lint"],
            ),
            ("make test", "test: A = b\ntest:\n\tpytest\n", &["test/"], &["test"]),
            ("make test", "VPATH = x:y\ntest:\n\tpytest\n", &["y/test"], &["y/test"]),
            ("make test", "export VPATH := y\ntest:\n\tpytest\n", &["y/test"], &["y/test"]),
            ("make test", "vpath te% y\ntest:\n\tpytest\n", &["y/test"], &["y/test"]),
            ("make VPATH=y test", plain, &["y/test"], &["y/test"]),
        ] {
            assert_eq!(idle(line, makefile, there), expected, "{line}: {makefile:?} {there:?}");
        }
    }

    #[test]
    fn make_runs_what_it_cannot_take_for_done() {
        let plain = "test:\n\tpytest\n";
        for (line, makefile, there) in [
            ("make test", plain, &["tests/", "sub/test/"][..]),
            ("make -B test", plain, &["test/"]),
            ("make -sB test", plain, &["test/"]),
            ("make --always-make test", plain, &["test/"]),
            ("make -C sub test", plain, &["test/", "sub/"]),
            ("make -sC sub test", plain, &["test/", "sub/"]),
            ("make -fother.mk test", plain, &["test/"]),
            ("make -C $DIR test", plain, &["test/", "DIR/"]),
            ("make test", ".PHONY: lint test\ntest:\n\tpytest\n", &["test/"]),
            ("make test", ".PHONY: $(shell cat x)\ntest:\n\tpytest\n", &["test/"]),
            ("make test", "P = test\n.PHONY: $(P)\ntest:\n\tpytest\n", &["test/"]),
            ("make test", "include phony.mk\ntest:\n\tpytest\n", &["test/"]),
            ("make test", "include $(X)/phony.mk\ntest:\n\tpytest\n", &["test/"]),
            ("make test", "test::\n\tpytest\n", &["test/"]),
            ("make test", "test: FORCE\n\tpytest\nFORCE:\n", &["test/"]),
            (
                "make test",
                "test: build\n\tpytest\n.PHONY: build\nbuild:\n\tcc\n",
                &["build/", "test/"],
            ),
            ("make test", "test: a.py\n\tpytest\n", &["test/", "a.py"]),
            ("make test", "test: $(wildcard *.py)\n\tpytest\n", &["test/"]),
            ("make test", "MAKEFLAGS += -B\ntest:\n\tpytest\n", &["test/"]),
            // Made by the recipe.
            ("make app", "app: main.c\n\tcc -o app main.c\n", &["main.c", "app"]),
            ("make test", "test: venv\n\tpytest\nvenv:\n\tpython3 -m venv $@\n", &["venv/"]),
            ("make test", "test: | out\n\tpytest\nout:\n\t@mkdir -p out\n", &["out/"]),
            ("make all", "all: app\napp: main.c\n\tcc main.c\n", &["main.c", "app"]),
            // Another target than the one that is asked for.
            ("make app", "lint:\n\truff check\n%: %.c\n\tcc\n", &["lint/", "app"]),
            ("just test", plain, &["test/"]),
            ("make test", "vpath %.c y\ntest:\n\tpytest\n", &["y/test"]),
            ("make test", ".PHONY: test\nVPATH = y\ntest:\n\tpytest\n", &["y/test"]),
        ] {
            assert_eq!(idle(line, makefile, there), [""; 0], "{line}: {makefile:?} {there:?}");
        }
    }

    #[test]
    fn what_is_new_in_the_place_of_a_target_keeps_it_from_being_run() {
        let makefile = ".PHONY: lint\ntest: unit venv lint\n\tpytest\nunit:\n\tpytest unit\nvenv:\n\tpython3 -m venv venv\nlint:\n\truff\n";
        let targets = targets("make test", makefile);
        let replaced = [
            "test",
            "test/a.py",
            "test/deep/a.py",
            "unit/a.py",
            "unit",
            "lint/a.py",
            "venv/a.py",
            "a/test",
            "testing",
            "test.py",
        ];
        let found: BTreeSet<&str> = replaced
            .into_iter()
            .filter(|path| targets.replaced_by(Path::new(path)).is_some())
            .collect();
        let expected = ["test", "test/a.py", "test/deep/a.py", "unit", "unit/a.py"];
        assert_eq!(found, BTreeSet::from(expected));
        let place = targets.replaced_by(Path::new("test/deep/a.py"));
        assert_eq!(place, Some(Path::new("test")));
    }

    #[test]
    fn what_is_new_where_make_looks_for_a_target_keeps_it_from_being_run() {
        let known = targets("make test", "VPATH = x\ntest: a.py\n\tpytest\n");
        let unknown = targets("make test", "VPATH = $(shell ls)\ntest: a.py\n\tpytest\n");
        for (path, by_known, by_unknown) in [
            ("x/test", true, true),
            ("x/test/a.py", true, true),
            ("y/deep/test", false, true),
            ("x/testing", false, false),
            ("test", true, true),
        ] {
            let path = Path::new(path);
            assert_eq!(known.replaced_by(path).is_some(), by_known, "{path:?}");
            assert_eq!(unknown.replaced_by(path).is_some(), by_unknown, "{path:?}");
        }
    }
}
