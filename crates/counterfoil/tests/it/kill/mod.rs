//! The real binary, struck at random moments in every way that a run meets (SIGKILL, SIGHUP, SIGTERM,
//! SIGINT, a closed terminal or pipe, no memory, a full disk, a clock that jumps), and resumed: every
//! step is completed exactly once, and no process is left.
//!
//! The tests compare the journal with what happened on the disk: each step writes a line when it
//! starts and one when it is done, with the id of its attempt. The journal must account for every
//! line. The full campaign is `COUNTERFOIL_KILLS=300 cargo nextest run -p counterfoil kill::`.

mod strikes;

use crate::shell_project::{ShellProject, run_arguments};
use counterfoil_testkit::{TIMEOUT, processes_in_attempts, send_signal, wait_until};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use strikes::{Stage, Strike, was_hit};

/// How long processes may go on after a strike.
const SECONDS: Duration = Duration::from_secs(15);

/// A step: it writes two lines, each with one call, some milliseconds apart. Every other step leaves
/// a daemon that would run for minutes.
const STEP: &str = r#"
echo "start $COUNTERFOIL_ATTEMPT" >> ledger
cat > /dev/null
case $(($$ % 2)) in 0) setsid sleep 300 > /dev/null 2>&1 & esac
sleep 0.0$((20 + $$ % 20))
echo "done $COUNTERFOIL_ATTEMPT" >> ledger
echo '{"ok": true}'
"#;

/// Random moments that can be repeated.
struct RandomMoments(u64);

impl RandomMoments {
    /// Takes the start value from `COUNTERFOIL_KILL_SEED` or the clock, and prints it.
    fn new(test: &str) -> Self {
        let given = std::env::var("COUNTERFOIL_KILL_SEED").ok().map(|seed| seed.parse().unwrap());
        let seed = given.unwrap_or_else(|| {
            u64::from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().subsec_nanos()) | 1
        });
        eprintln!("{test}: repeat with COUNTERFOIL_KILL_SEED={seed}");
        Self(seed)
    }

    /// A duration below `max`.
    fn moment(&mut self, max: Duration) -> Duration {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        let part = u32::try_from(self.0 >> 32).unwrap();
        max.mul_f64(f64::from(part) / f64::from(u32::MAX))
    }

    /// By how many seconds the time of day is wrong: hours or days, either way.
    fn jump(&mut self) -> i64 {
        let seconds = self.moment(Duration::from_hours(24 * 40)).as_secs();
        i64::try_from(seconds).unwrap() - 20 * 24 * 3600
    }
}

/// A workflow of thirty steps: eighteen agents and four commands in a row, eight agents in parallel,
/// and a question in between.
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

fn project_with(workflow: &str) -> ShellProject {
    let project = ShellProject::new();
    project.write("flow.yaml", workflow);
    project.write("step.sh", STEP);
    project
}

/// The id and outcome of the newest run, if there is one, and how long it took to ask.
fn newest_run(stage: &Stage) -> (Option<(String, String)>, Duration) {
    let project = stage.project();
    let asked = Instant::now();
    let output = stage.command(&["runs", "--format", "json"]).output();
    let pace = asked.elapsed();
    if output.code != Some(0) {
        // Struck before the journal was one.
        assert!(project.read_or_empty("ledger").is_empty(), "{output:?}");
        return (None, pace);
    }
    let runs = output.json();
    assert!(runs.as_array().unwrap().len() <= 1, "{runs}");
    let word = |name: &str| runs[0][name].as_str().map(str::to_owned);
    (word("run").zip(word("outcome")), pace)
}

/// The command that continues with the newest run, or starts one.
fn next_command(newest: Option<&(String, String)>) -> Vec<String> {
    let words: &[&str] = match newest {
        None => {
            // What the clock says does not count.
            let mut words = run_arguments("flow.yaml", "command:sh step.sh").to_vec();
            words.extend(["--max-time", "20m"].map(str::to_owned));
            return words;
        }
        Some((run, outcome)) if outcome == "waiting" => {
            &["answer", run, "approve", "yes", "--resume", "--format", "json"]
        }
        Some((run, _)) => &["resume", run, "--format", "json"],
    };
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// The step and the number of the attempt in a line of the ledger.
fn parse_attempt<'l>(line: &'l str, run: &str) -> (&'l str, u64) {
    let (step, n) =
        line.strip_prefix(run).unwrap().trim_start_matches('/').rsplit_once('#').unwrap();
    (step, n.parse().unwrap())
}

/// Asserts that the disk and the journal agree: each step was accepted once, and none of it ran
/// after that.
fn assert_each_step_done_once(project: &ShellProject, run: &str, steps: usize) {
    let report = project.show_last();
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

    let ledger = project.read_or_empty("ledger");
    let mut seen = BTreeSet::new();
    let mut over: BTreeMap<&str, u64> = BTreeMap::new();
    for line in ledger.lines() {
        assert!(seen.insert(line), "twice on the disk: {line}");
        let (what, attempt) = line.split_once(' ').unwrap();
        let (step, n) = parse_attempt(attempt, run);
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
    let left = processes_in_attempts(run);
    assert!(left.is_empty(), "left behind: {left:?}");
    assert_eq!(project.count_events("run-ended"), 1);
}

/// How often a run is struck: `COUNTERFOIL_KILLS`, or a few times.
fn strike_count() -> usize {
    const SHORT: usize = 30;
    std::env::var("COUNTERFOIL_KILLS").map_or(SHORT, |count| count.parse().unwrap())
}

/// Processes of a project: those of a run's attempts, and those that name a file of the project.
fn processes_of(project: &ShellProject, run: Option<&str>) -> Vec<String> {
    let mut found = run.map(processes_in_attempts).unwrap_or_default();
    let root = project.root().display().to_string();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        if line.contains(&root) {
            found.push(format!("{} {line}", entry.file_name().display()));
        }
    }
    found
}

/// Waits until no process of a project is left. Nobody resumes the run meanwhile.
fn assert_nothing_left(project: &ShellProject, run: Option<&str>, strike: Strike) {
    let start = Instant::now();
    let mut left = processes_of(project, run);
    while !left.is_empty() && start.elapsed() < SECONDS {
        std::thread::sleep(Duration::from_millis(5));
        left = processes_of(project, run);
    }
    assert!(left.is_empty(), "left behind after {strike:?}: {left:#?}");
}

#[test]
fn whatever_strikes_a_run_each_step_is_done_once_and_nothing_is_left() {
    let max_strikes = strike_count();
    let start = Instant::now();
    let mut random = RandomMoments::new("strikes at random moments");
    let mut strikes: BTreeMap<Strike, usize> = BTreeMap::new();
    let (mut hits, mut lost, mut runs, mut turns) = (0, 0, 0, 0);
    let mut missing = BTreeSet::new();
    while hits < max_strikes {
        let stage = Stage::new(project_with(&thirty_steps()));
        let project = stage.project();
        let run = loop {
            let (newest, pace) = newest_run(&stage);
            if let Some((run, outcome)) = &newest
                && outcome == "done"
            {
                break run.clone();
            }
            let arguments = next_command(newest.as_ref());
            if hits == max_strikes {
                let output = project.start_command(&mut stage.command(&arguments)).wait();
                assert!(matches!(output.code, Some(0 | 4)), "{output:?}");
                continue;
            }
            turns += 1;
            assert!(turns < max_strikes * 10 + 100, "the runs do not get on: {strikes:?}");
            let strike = Strike::ALL[turns % Strike::ALL.len()];
            if !stage.offers(strike) {
                missing.insert(strike);
                continue;
            }
            // A program needs a while to start, and longer on a busy machine.
            let after = random.moment((pace * 6).max(Duration::from_millis(400)));
            let ended = stage.strike(strike, &arguments, after, random.jump());
            let run = newest.map(|(run, _)| run);
            assert_nothing_left(project, run.as_deref(), strike);
            if was_hit(ended) {
                hits += 1;
                *strikes.entry(strike).or_default() += 1;
            }
        };
        assert_each_step_done_once(project, &run, 30);
        lost += project.count_events("attempt-lost");
        runs += 1;
    }
    eprintln!(
        "{hits} hits in {runs} runs, {lost} attempts lost, {:?}: {strikes:?}",
        start.elapsed()
    );
    for strike in &missing {
        eprintln!("SKIPPED: this machine does not offer {strike:?}");
    }
    let whole = std::env::var_os("COUNTERFOIL_KILLS").is_some();
    assert!(!whole || missing.is_empty(), "this machine does not offer {missing:?}");
    assert!(lost > 0, "no strike ever hit an attempt");
}

#[test]
fn a_kill_while_an_answer_is_given_neither_loses_nor_doubles_it() {
    const QUESTIONS: usize = 6;
    /// Many times what is needed.
    const MAX_TURNS: usize = 400;
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
    let project = project_with(&(text + "  end: { end: done }\n"));
    let mut random = RandomMoments::new("kills while answering");
    assert_eq!(project.run_workflow("flow.yaml", "command:sh step.sh").code, Some(4));
    let (mut kills, mut share) = (0, 1);
    let mut turn = || {
        let asked = Instant::now();
        let report = project.show_last();
        let pace = asked.elapsed();
        let run = report["run"].as_str().unwrap().to_owned();
        if report["outcome"] == "done" {
            return Some(run);
        }
        let command = match report["questions"][0]["id"].as_str() {
            Some(question) => project.start(&["answer", &run, question, "yes", "--resume"]),
            None => project.start(&["resume", &run]),
        };
        // Early moments first, where the answer itself is written; later ones get on.
        std::thread::sleep(random.moment(pace * share / 8 + Duration::from_millis(8)));
        kills += usize::from(command.kill());
        share = if share > 64 { 1 } else { share * 2 };
        None
    };
    let run = (0..MAX_TURNS).find_map(|_| turn()).expect("all is answered");
    assert_each_step_done_once(&project, &run, QUESTIONS);
    assert_eq!(project.count_events("answered"), QUESTIONS);
    eprintln!("{kills} kills");
    assert!(kills > QUESTIONS, "only {kills} kills");
}

#[test]
fn an_agent_whose_group_is_killed_is_the_agents_failure_and_not_ours() {
    let project = ShellProject::new();
    project.write(
        "flow.yaml",
        "workflow: shot\nagents: { worker: { contract: acme/ok, prompt: prompts/work.md } }\ncontracts: [contracts]\n\
         limits: { shots: { max: 5, then: end } }\nstart: before\nstates:\n\
         \x20 before: { command: [sh, -c, 'echo ran >> before'], go: work }\n\
         \x20 work: { agent: worker, on: { agent: { go: work, counts: shots } }, go: end }\n\
         \x20 end: { end: done }\n",
    );
    // It is shot twice, with all it started; the third one is let live.
    project.write(
        "agent.sh",
        "echo $$ >> pids\n[ $(wc -l < pids) -gt 2 ] && exec echo '{\"ok\": true}'\nsleep 300 & sleep 300\n",
    );
    let live = project.start(&run_arguments("flow.yaml", "command:sh agent.sh"));
    for n in 1..=2 {
        let pid = wait_until(TIMEOUT, "the agent has started", || {
            project.read_or_empty("pids").lines().nth(n - 1).map(str::to_owned)
        });
        send_signal("KILL", &format!("-{pid}"));
    }
    let output = live.wait();
    output.expect(0, &["killed by signal 9"]);
    let report: Value = output.json();
    let outcomes: Vec<&str> = report["attempts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["outcome"].as_str().unwrap())
        .collect();
    assert_eq!(outcomes, ["agent", "agent", "accepted"]);
    assert_eq!(project.read_or_empty("before"), "ran\n");
    assert!(processes_in_attempts(report["run"].as_str().unwrap()).is_empty());
}
