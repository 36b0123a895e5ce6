//! The real binary, killed with SIGKILL at random moments and taken up again: every step is
//! completed exactly once.
//!
//! What counts is what is on the disk, not what the journal says of it: each step writes a line
//! when it starts and one when it is done, under the name of its attempt. The journal must then be
//! able to account for every line.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr)]

#[path = "faults/house.rs"]
#[allow(dead_code, reason = "shared with the tests of faults")]
mod house;

use house::{House, LONG, carrying, signal, starting, until};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A step: two lines on the disk, each written at once, some milliseconds apart. Every other one
/// leaves a daemon behind that would live for long.
const STEP: &str = r#"
echo "start $COUNTERFOIL_ATTEMPT" >> ledger
cat > /dev/null
case $(($$ % 2)) in 0) setsid sleep 300 > /dev/null 2>&1 & esac
sleep 0.0$((20 + $$ % 20))
echo "done $COUNTERFOIL_ATTEMPT" >> ledger
echo '{"ok": true}'
"#;

/// Moments that look random and can be had again.
struct Dice(u64);

impl Dice {
    /// From `COUNTERFOIL_KILL_SEED`, or from the clock; either way it is printed.
    fn new(whose: &str) -> Self {
        let given = std::env::var("COUNTERFOIL_KILL_SEED").ok().map(|seed| seed.parse().unwrap());
        let seed = given.unwrap_or_else(|| {
            u64::from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().subsec_nanos()) | 1
        });
        eprintln!("{whose}: COUNTERFOIL_KILL_SEED={seed} plays this again");
        Self(seed)
    }

    /// A moment before `most`.
    fn moment(&mut self, most: Duration) -> Duration {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        let part = u32::try_from(self.0 >> 32).unwrap();
        most.mul_f64(f64::from(part) / f64::from(u32::MAX))
    }
}

/// Thirty steps: eighteen agents in a row, four commands among them, eight agents side by side, and
/// a person in between.
fn thirty_steps() -> String {
    let mut row: Vec<String> = (1..=22).map(|n| format!("s{n:02}")).collect();
    row.insert(11, "approve".to_owned());
    row.insert(16, "fan".to_owned());
    let mut text = "workflow: thirty\nagents: { worker: { contract: acme/ok, prompt: prompts/work.md } }\n\
                    contracts: [contracts]\nvariables: { parts: { type: [string], initial: [a, b, c, d, e, f, g, h] } }\n\
                    start: s01\nstates:\n"
        .to_owned();
    for (at, name) in row.iter().enumerate() {
        let next = row.get(at + 1).map_or("end", String::as_str);
        let what = match name.as_str() {
            "approve" => "ask: { question: Go on?, choices: [yes, no] }".to_owned(),
            "fan" => {
                "each: { in: parts, as: part, key: part, parallel: 4, workspace: repository, agent: worker }"
                    .to_owned()
            }
            "s05" | "s10" | "s14" | "s19" => "command: [sh, step.sh]".to_owned(),
            _ => "agent: worker".to_owned(),
        };
        let _ = writeln!(text, "  {name}: {{ {what}, go: {next} }}");
    }
    text + "  end: { end: done }\n"
}

fn house_of(workflow: &str) -> House {
    let house = House::new();
    house.file("flow.yaml", workflow);
    house.file("step.sh", STEP);
    house
}

/// The newest run and how it stands, if there is one: as whoever comes by after a crash would look.
fn standing(house: &House) -> Option<(String, String)> {
    if !house.state().join("journal.db").exists() {
        return None;
    }
    let said = house.run(&["runs", "--format", "json"]);
    if said.code != Some(0) {
        // Killed before the journal was one.
        assert!(house.read("ledger").is_empty(), "{said:?}");
        return None;
    }
    let runs = said.report();
    assert!(runs.as_array().unwrap().len() <= 1, "{runs}");
    let word = |name: &str| runs[0][name].as_str().map(str::to_owned);
    Some((word("run")?, word("outcome")?))
}

/// What goes on with a run that stands so.
fn next_life(standing: Option<&(String, String)>) -> Vec<String> {
    let words: &[&str] = match standing {
        None => return starting("flow.yaml", "command:sh step.sh").to_vec(),
        Some((run, outcome)) if outcome == "waiting" => {
            &["answer", run, "approve", "yes", "--resume", "--format", "json"]
        }
        Some((run, _)) => &["resume", run, "--format", "json"],
    };
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// A line of the ledger: which attempt of which step.
fn attempt_of<'l>(line: &'l str, run: &str) -> (&'l str, u64) {
    let (step, n) =
        line.strip_prefix(run).unwrap().trim_start_matches('/').rsplit_once('#').unwrap();
    (step, n.parse().unwrap())
}

/// Holds what is on the disk against the journal: each step was accepted once, and nothing of it
/// ran after that.
fn account_for(house: &House, run: &str, steps: usize) {
    let report = house.show();
    assert_eq!(report["outcome"], "done", "{report:#}");
    let mut journal: BTreeMap<String, Vec<(u64, String)>> = BTreeMap::new();
    for list in ["attempts", "commands"] {
        for attempt in report[list].as_array().unwrap() {
            let path: Vec<&str> = attempt["path"]
                .as_array()
                .unwrap()
                .iter()
                .map(|part| part.as_str().unwrap())
                .collect();
            let outcome =
                attempt["outcome"].as_str().expect("an attempt that never ended").to_owned();
            journal
                .entry(path.join("/"))
                .or_default()
                .push((attempt["n"].as_u64().unwrap(), outcome));
        }
    }
    assert_eq!(journal.len(), steps, "{:?}", journal.keys());
    for (step, attempts) in &journal {
        let numbers: Vec<u64> = attempts.iter().map(|(n, _)| *n).collect();
        assert_eq!(numbers, (1..=attempts.len() as u64).collect::<Vec<_>>(), "{step}");
        let (last, lost) = attempts.split_last().unwrap();
        assert_eq!(last.1, "accepted", "{step}: {attempts:?}");
        assert!(lost.iter().all(|(_, outcome)| outcome == "cancelled"), "{step}: {attempts:?}");
    }

    let ledger = house.read("ledger");
    let mut seen = BTreeSet::new();
    let mut over: BTreeMap<&str, u64> = BTreeMap::new();
    for line in ledger.lines() {
        assert!(seen.insert(line), "twice on the disk: {line}");
        let (what, attempt) = line.split_once(' ').unwrap();
        let (step, n) = attempt_of(attempt, run);
        let attempts = &journal[step];
        assert!(n <= attempts.len() as u64, "the journal knows nothing of {attempt}");
        assert!(
            !over.contains_key(step),
            "{attempt} {what} after attempt {} was accepted",
            over[step]
        );
        if what == "done" && n == attempts.len() as u64 {
            over.insert(step, n);
        }
    }
    assert_eq!(over.len(), steps, "accepted, but not done on the disk");
    let left = carrying(run);
    assert!(left.is_empty(), "left behind: {left:?}");
    assert_eq!(house.count("run-ended"), 1);
}

#[test]
fn two_hundred_kills_and_every_step_is_completed_exactly_once() {
    const KILLS: usize = 200;
    let began = Instant::now();
    let mut dice = Dice::new("two hundred kills");
    let (mut kills, mut lost, mut ended) = (0, 0, 0);
    while kills < KILLS {
        let house = house_of(&thirty_steps());
        let run = loop {
            let standing = standing(&house);
            if let Some((run, outcome)) = &standing
                && outcome == "done"
            {
                break run.clone();
            }
            let life = house.start(&next_life(standing.as_ref()));
            if kills == KILLS {
                let said = life.end();
                assert!(matches!(said.code, Some(0 | 4)), "{said:?}");
                continue;
            }
            std::thread::sleep(dice.moment(Duration::from_millis(400)));
            kills += usize::from(life.kill());
        };
        account_for(&house, &run, 30);
        lost += house.count("attempt-lost");
        ended += 1;
    }
    eprintln!("{kills} kills in {ended} runs, {lost} attempts lost, {:?}", began.elapsed());
    assert!(lost > 0, "no kill ever hit an attempt");
}

#[test]
fn a_kill_while_an_answer_is_given_neither_loses_nor_doubles_it() {
    const QUESTIONS: usize = 6;
    let mut text =
        "workflow: asking\nagents: { worker: { contract: acme/ok, prompt: prompts/work.md } }\n\
                    contracts: [contracts]\nstart: q1\nstates:\n"
            .to_owned();
    for n in 1..=QUESTIONS {
        let _ = writeln!(
            text,
            "  q{n}: {{ ask: {{ question: Go on?, choices: [yes, no] }}, go: s{n} }}"
        );
        let next = if n == QUESTIONS { "end".to_owned() } else { format!("q{}", n + 1) };
        let _ = writeln!(text, "  s{n}: {{ agent: worker, go: {next} }}");
    }
    let house = house_of(&(text + "  end: { end: done }\n"));
    let mut dice = Dice::new("kills while answering");
    assert_eq!(house.work("flow.yaml", "command:sh step.sh").code, Some(4));
    let (mut kills, mut most) = (0, 8);
    let run = until(LONG, "all is answered", || {
        let report = house.show();
        let run = report["run"].as_str().unwrap().to_owned();
        if report["outcome"] == "done" {
            return Some(run);
        }
        let life = match report["questions"][0]["id"].as_str() {
            Some(question) => house.start(&["answer", &run, question, "yes", "--resume"]),
            None => house.start(&["resume", &run]),
        };
        // Early moments first, where the answer itself is written; later ones get on.
        std::thread::sleep(dice.moment(Duration::from_millis(most)));
        kills += usize::from(life.kill());
        most = if most > 300 { 8 } else { most + most / 2 };
        None
    });
    account_for(&house, &run, QUESTIONS);
    assert_eq!(house.count("answered"), QUESTIONS);
    eprintln!("{kills} kills");
    assert!(kills > QUESTIONS, "only {kills} kills");
}

#[test]
fn an_agent_whose_group_is_killed_is_the_agents_failure_and_not_ours() {
    let house = House::new();
    house.file(
        "flow.yaml",
        "workflow: shot\nagents: { worker: { contract: acme/ok, prompt: prompts/work.md } }\ncontracts: [contracts]\n\
         limits: { shots: { max: 5, then: end } }\nstart: before\nstates:\n\
         \x20 before: { command: [sh, -c, 'echo ran >> before'], go: work }\n\
         \x20 work: { agent: worker, on: { agent: { go: work, counts: shots } }, go: end }\n\
         \x20 end: { end: done }\n",
    );
    // It is shot twice, with all it started; the third one is let live.
    house.file(
        "agent.sh",
        "echo $$ >> pids\n[ $(wc -l < pids) -gt 2 ] && exec echo '{\"ok\": true}'\nsleep 300 & sleep 300\n",
    );
    let live = house.start(&starting("flow.yaml", "command:sh agent.sh"));
    for n in 1..=2 {
        let pid = until(LONG, "the agent has started", || {
            house.read("pids").lines().nth(n - 1).map(str::to_owned)
        });
        signal("KILL", &format!("-{pid}"));
    }
    let said = live.end();
    said.expect(0, &["killed by signal 9"]);
    let report: Value = said.report();
    let outcomes: Vec<&str> = report["attempts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["outcome"].as_str().unwrap())
        .collect();
    assert_eq!(outcomes, ["agent", "agent", "accepted"]);
    assert_eq!(house.read("before"), "ran\n");
    assert!(carrying(report["run"].as_str().unwrap()).is_empty());
}
