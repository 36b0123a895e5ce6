//! Drives a run with progress output and signals, and reports how it ended.

use crate::cli::{RunFormat, StateLocation};
use crate::command::serve::RunDashboard;
use crate::exit::Exit;
use crate::notify::Notifier;
use crate::progress::{self, ProgressSink};
#[cfg(feature = "opentelemetry")]
use crate::telemetry::Telemetry;
use crate::{output, redaction, render, shell, state_folder};
use anyhow::Result;
use counterfoil_engine::{Engine, Observers, RunObserver, RunReport};
use counterfoil_process::StopRequest;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch as channel;

/// How long the process may take to end after the second signal.
const LONGEST_STOP: Duration = Duration::from_secs(10);
/// The rows of a story.
const STORY_LINES: usize = 10;

/// How and to whom a run is reported.
pub(crate) struct Reporting<'a> {
    pub(crate) location: &'a StateLocation,
    pub(crate) format: RunFormat,
    /// The program that is told of questions, stalls and the end.
    pub(crate) notify: Option<&'a str>,
    /// Whether only the lines that matter are printed, when it is over.
    pub(crate) story: bool,
    /// The dashboard that shows the run while it is driven.
    pub(crate) dashboard: Option<&'a RunDashboard>,
    /// The program that printed commands name, quoted for a shell.
    pub(crate) program: &'a str,
}

impl Reporting<'_> {
    /// The option with which a command that continues the run notifies as this one does. A command with
    /// a secret is not repeated: a shell may have put it there, and what is printed may be kept in a
    /// public log.
    pub(crate) fn notify_flag(&self) -> String {
        match self.notify {
            Some(command) if redaction::text(command) == command => {
                format!(" --notify {}", shell::quote(command))
            }
            Some(_) => " --notify CMD".to_owned(),
            None => String::new(),
        }
    }
}

/// What is said if the collector of spans cannot be reached.
#[cfg(feature = "opentelemetry")]
fn spans_are_lost(problem: &str) -> String {
    format!(
        "warning: the spans of this run were not sent to the OpenTelemetry collector: {problem}"
    )
}

/// Drives a run with progress output and signal handling, then prints the report. `resumed` is a run
/// that another process began.
pub(super) fn drive_and_report<F, R>(
    engine: &Engine,
    resumed: Option<&str>,
    reporting: &Reporting<'_>,
    drive: F,
) -> Result<RunReport>
where
    F: FnOnce(Arc<dyn RunObserver>, channel::Receiver<StopRequest>) -> R,
    R: Future<Output = Result<RunReport, counterfoil_engine::Error>>,
{
    counterfoil_process::start_watchdog();
    let for_jobs = matches!(reporting.format, RunFormat::Junit | RunFormat::Github);
    if for_jobs || reporting.notify.is_some() {
        // The patterns of the project count as they are before an agent can change them.
        redaction::prepare();
    }
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let progress: Arc<dyn ProgressSink> =
        if reporting.format == RunFormat::Human && !reporting.story {
            progress::to_stderr()
        } else {
            progress::warnings_only()
        };
    if let Some(run) = resumed {
        engine.each_event_of(run, &["frame-opened", "moved", "attempt-started"], |event, _| {
            progress.on_past_event(&event);
        })?;
    }
    // The dashboard is the first to be told: its line comes before the live status lines.
    let mut observers: Vec<Arc<dyn RunObserver>> =
        reporting.dashboard.map(RunDashboard::observer).into_iter().collect();
    observers.push(progress.observer());
    let notifier = reporting.notify.map(Notifier::new);
    observers.extend(notifier.clone().map(|notifier| notifier as Arc<dyn RunObserver>));
    #[cfg(feature = "opentelemetry")]
    let telemetry = Telemetry::start().unwrap_or_else(|problem| {
        progress.line(&spans_are_lost(&problem));
        None
    });
    #[cfg(feature = "opentelemetry")]
    observers.extend(telemetry.clone().map(|telemetry| telemetry as Arc<dyn RunObserver>));
    let (sender, stop) = channel::channel(StopRequest::None);
    let report = runtime.block_on(async {
        let notices = progress.clone();
        let signals = tokio::spawn(async move {
            if let Err(error) = forward_signals(&sender, &*notices).await {
                notices.line(&format!("cannot handle signals: {error}"));
                // The sender must outlive the run.
                std::future::pending::<()>().await;
            }
        });
        let report = drive(Arc::new(Observers(observers)), stop).await;
        signals.abort();
        report
    });
    // Do not wait for blocking reads of files that other processes hold open.
    runtime.shutdown_timeout(Duration::from_secs(1));
    #[cfg(feature = "opentelemetry")]
    if let Some(problem) = telemetry.and_then(|telemetry| telemetry.finish()) {
        progress.line(&spans_are_lost(&problem));
    }
    progress.close();
    let unended = counterfoil_process::could_not_be_ended();
    if !unended.is_empty() {
        output::write_stderr(&render::unended_processes(&unended));
    }
    if let Some(notifier) = notifier {
        let problem = match &report {
            Ok(report) => notifier.end(&report.outcome, &report.reason),
            Err(error) => notifier.end("error", &error.to_string()),
        };
        if let Some(problem) = problem {
            output::write_message("warning", &problem);
        }
    }
    let report = report?;
    if !crate::command::ask::holds_back(reporting, &report) {
        print_report(engine, reporting, &report)?;
    }
    Ok(report)
}

/// Prints the report of a run that ended or waits, in its format.
pub(crate) fn print_report(
    engine: &Engine,
    reporting: &Reporting<'_>,
    report: &RunReport,
) -> Result<()> {
    let claims = engine.ledger(&report.run)?.entries();
    match reporting.format {
        RunFormat::Human => {
            let ending = render::Ending {
                program: reporting.program,
                report,
                entries: &claims,
                state: Some(engine.journal().folder()),
                flags: &render::location_flags(&state_folder::lasting(
                    reporting.location,
                    engine.journal().folder(),
                )),
                style: output::stderr_line_style(),
                more: "",
                notify: &reporting.notify_flag(),
            };
            if crate::command::ask::asks(reporting, report) {
                // The questions follow.
            } else if reporting.story {
                output::write_stderr(&story(engine, &ending)?);
            } else {
                output::write_stderr(&format!("\n{}", ending.render()));
            }
        }
        RunFormat::Json => output::write_json(report)?,
        RunFormat::Junit => output::write_xml(&render::junit::run(report, &claims)?)?,
        RunFormat::Github => output::write_stdout(&render::github::run(report, &claims))?,
    }
    Ok(())
}

/// The lines of a run that matter, and its end.
fn story(engine: &Engine, ending: &render::Ending<'_>) -> Result<String> {
    let run = &ending.report.run;
    let run_state = engine.run_state(run)?;
    let workflow = engine.workflow(&run_state).ok();
    let mut overview = render::Overview::new(workflow, ending.style);
    engine.each_event(run, 1, |event, at| overview.on_event(&event, at, &run_state))?;
    Ok(overview.story(ending, STORY_LINES))
}

/// Forwards signals to the driver: the first stops gracefully, the second immediately. If the terminal
/// is closed or nobody reads the output any more, nobody watches the agents: that stops it as well.
async fn forward_signals(
    sender: &channel::Sender<StopRequest>,
    notices: &dyn ProgressSink,
) -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut interrupt, mut terminate) =
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let mut hangup = signal(SignalKind::hangup())?;
    for stop in [StopRequest::Graceful, StopRequest::Immediate] {
        // A closed terminal is told more than once.
        let is_first = stop == StopRequest::Graceful;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv(), if is_first => {}
            () = output::closed(), if is_first => {}
        }
        notices.line(match stop {
            StopRequest::Graceful => {
                "stopping: waiting for agents to end; interrupt again to stop immediately"
            }
            _ => "stopping immediately",
        });
        let _ = sender.send(stop);
    }
    // Whatever it is doing, the second signal ends it. The journal has all that was done.
    tokio::time::sleep(LONGEST_STOP).await;
    notices.line("stopped in the middle of an operation; `counterfoil resume` goes on");
    notices.close();
    std::process::exit(Exit::Cancelled.code().into());
}
