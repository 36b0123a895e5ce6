//! Follows a run of a server until it ends or waits: for `show --follow` and `answer --resume`.

use super::client::{Client, Lost, MAX_BODY, segment};
use super::messages::{Message, Messages};
use super::run::{self, Line, Standing};
use crate::exit::Exit;
use crate::{output, render};
use anyhow::{Context as _, Result, bail};
use counterfoil_contract::diagnostic::Style;
use counterfoil_engine::ledger::Entry;
use counterfoil_engine::{RunReplica, RunReport};
use std::time::{Duration, Instant};

/// How long it takes until a lost connection is tried again.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// How often in a row it is tried again.
const MAX_RETRIES: u32 = 10;
/// How long a process that the server started may take until it drives its run.
const START_TIME: Duration = Duration::from_secs(30);
/// How often it is looked whether it does.
const START_INTERVAL: Duration = Duration::from_millis(200);

/// Which events of a run are printed while it is followed, and where.
pub(super) struct Printing {
    /// The number of the last event that is not printed.
    pub(super) after: u64,
    pub(super) write: fn(&str) -> Result<()>,
    pub(super) style: Style,
}

/// A run that has ended or waits.
pub(super) struct Stopped {
    pub(super) report: RunReport,
    pub(super) entries: Vec<Entry>,
}

/// What is known of a run while it is followed.
struct Followed<'a> {
    printing: &'a Printing,
    replica: RunReplica,
    formatter: render::EventFormatter,
    /// The number of the last event.
    seq: u64,
}

impl Followed<'_> {
    /// Prints events. Those that were printed before are left out.
    fn add(&mut self, lines: Vec<Line>) -> Result<()> {
        let mut text = String::new();
        for line in lines {
            let seq = run::seq(&line)?;
            if seq <= self.seq {
                continue;
            }
            if seq != self.seq + 1 {
                bail!("the server left out events of the run");
            }
            let (event, at) = run::event(line)?;
            self.seq = seq;
            self.replica.apply(&event, at);
            let lines = self.formatter.event_lines(&event, at, self.replica.run_state());
            if let Some(lines) = lines.filter(|_| seq > self.printing.after) {
                text.push_str(&lines);
                text.push('\n');
            }
        }
        if text.is_empty() { Ok(()) } else { (self.printing.write)(&text) }
    }
}

/// Prints the events of a run, and those to come, until it ends or waits.
pub(super) fn follow(client: &Client, run: &str, flags: &str) -> Result<Exit> {
    let style = output::stdout_line_style();
    let printing = Printing { after: 0, write: output::write_stdout, style };
    let Stopped { report, entries } = until_stopped(client, run, &printing)?;
    let ending = render::Ending {
        program: render::PROGRAM,
        report: &report,
        entries: &entries,
        state: None,
        flags,
        style,
        more: "",
        notify: "",
    };
    output::write_stdout(&format!("\n{}", ending.render()))?;
    Ok(Exit::Success)
}

/// Waits until a process has taken up a run that had `events` events and that nobody drove. It may
/// also have done so, and stopped again.
pub(super) fn until_taken_up(client: &Client, run: &str, events: u64) -> Result<()> {
    let began = Instant::now();
    loop {
        let standing = run::standing(client, run)?;
        if standing.driven || standing.seq > events || !standing.can_go_on() {
            return Ok(());
        }
        if began.elapsed() > START_TIME {
            bail!(
                "no process has continued run {run} for {} s; look at it where it is",
                START_TIME.as_secs()
            );
        }
        std::thread::sleep(START_INTERVAL);
    }
}

/// Prints the events of a run until it ends or waits, and returns it.
pub(super) fn until_stopped(client: &Client, run: &str, printing: &Printing) -> Result<Stopped> {
    let mut followed = Followed {
        printing,
        replica: RunReplica::default(),
        formatter: render::EventFormatter::new(render::OutputMode::Live, printing.style),
        seq: 0,
    };
    let mut failures = 0;
    let standing = loop {
        let before = followed.seq;
        match watch(client, run, &mut followed) {
            Ok(Some(standing)) => break standing,
            Ok(None) => failures = 0,
            Err(error) if error.is::<Lost>() => {
                failures = if followed.seq > before { 1 } else { failures + 1 };
                if failures > MAX_RETRIES {
                    return Err(error);
                }
                std::thread::sleep(RETRY_INTERVAL);
            }
            Err(error) => return Err(error),
        }
    };
    if followed.replica.run_state().run != standing.run {
        bail!("the server sent the events of another run");
    }
    let report = run::report(&followed.replica, &standing);
    Ok(Stopped { report, entries: followed.replica.claims() })
}

/// Prints events until the run ends or waits. `None` if nothing has happened for a while: the process
/// that drove the run may have died, about which there is no event.
fn watch(client: &Client, run: &str, followed: &mut Followed<'_>) -> Result<Option<Standing>> {
    // Asked before the events are read: what happens afterwards is read the next time.
    let standing = run::standing(client, run)?;
    if !standing.driven {
        run::each_page(client, run, followed.seq, |page| followed.add(page))?;
        return Ok(Some(standing));
    }
    let stream = client.stream(&format!("/runs/{}/events", segment(run)), followed.seq)?;
    let mut messages = Messages::new(stream, MAX_BODY);
    loop {
        let message = messages.next_message().map_err(|error| {
            anyhow::Error::new(Lost(format!("the connection to the server was lost: {error}")))
        })?;
        match message {
            Some(Message::Event(name, data)) if name == "event" => {
                let line = serde_json::from_str(&data)
                    .context("the server sent an event that cannot be read")?;
                followed.add(vec![line])?;
            }
            Some(Message::Event(name, _)) if name == "end" => {
                return run::standing(client, run).map(Some);
            }
            Some(Message::Event(name, data)) if name == "problem" => {
                let problem: super::Problem = serde_json::from_str(&data)
                    .context("the server reported a problem that cannot be read")?;
                return Err(problem.into());
            }
            Some(Message::Event(..)) => {}
            Some(Message::Comment) => return Ok(None),
            None => {
                let why = "the server ended the connection; is it still running?";
                return Err(anyhow::Error::new(Lost(why.to_owned())));
            }
        }
    }
}
