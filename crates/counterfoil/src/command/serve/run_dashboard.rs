//! The dashboard of a run that this process drives: the option `--ui` of `run`, `resume` and `demo`.
//!
//! The process does not announce itself as a dashboard: it drives a run, so whatever it starts must go
//! on to count as started by a run.

use super::control::{AwaitedRun, LocalControl};
use super::token::Published;
use super::{Links, Listening, Service, Signals, bind, config_folder, open};
use crate::cli::RunUiArgs;
use crate::{input, output, person};
use anyhow::Result;
use counterfoil_engine::RunObserver;
use counterfoil_flow::{Event, RunState};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// How long the server may take to end its connections.
const END_TIME: Duration = Duration::from_secs(1);
/// How often it is looked whether the questions of a run are answered.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// A dashboard beside a run. It ends when it is dropped.
pub(crate) struct RunDashboard {
    /// `None` once it has ended.
    serving: Option<(Runtime, JoinHandle<()>)>,
    page: Arc<RunPage>,
    /// The run whose answers this process waits for.
    awaited: AwaitedRun,
    /// Ends the server.
    stop: watch::Sender<bool>,
    /// Whether a signal asked this process to end.
    is_interrupted: watch::Receiver<bool>,
    /// Removed with the server.
    _published: Option<Published>,
}

/// Why a dashboard stays open no longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitEnd {
    /// The user ended it, or nobody is there who could.
    Ended,
    /// What was waited for has happened.
    Ready,
}

impl RunDashboard {
    /// Starts a dashboard for the runs of a state folder, if it is asked for. Call it before there is a
    /// run: a port that is in use is an error.
    pub(crate) fn start(
        args: &RunUiArgs,
        command: &str,
        state: &Path,
        repo: Option<&Path>,
    ) -> Result<Option<Self>> {
        if !args.ui {
            return Ok(None);
        }
        // A server acts for anyone who asks it.
        person::require_outside_of_attempts(&format!("{command} --ui"))?;
        let awaited = AwaitedRun::default();
        let control = LocalControl {
            may_start: false,
            may_resume: false,
            repo: repo.map(Path::to_owned),
            awaited: awaited.clone(),
        };
        let service = Service {
            states: vec![state.to_owned()],
            address: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), args.port.unwrap_or(0)),
            names: Vec::new(),
            token_file: None,
            control: Some(control),
            opens_browser: !args.no_open,
            config_folder: config_folder(repo),
        };
        let opens_browser = service.opens_browser;
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let Listening { server, links, published } = runtime.block_on(bind(service))?;
        // A signal that arrives from here on ends the dashboard after the run. The run itself handles
        // it on its own.
        let mut signals = {
            let _in_runtime = runtime.enter();
            Signals::new()?
        };
        let (sender, is_interrupted) = watch::channel(false);
        runtime.spawn(async move {
            signals.next().await;
            let _ = sender.send(true);
        });
        let (stop, mut stopping) = watch::channel(false);
        let task = runtime.spawn(async move {
            let stop = async move { drop(stopping.wait_for(|is_stopping| *is_stopping).await) };
            server.serve(stop).await;
        });
        let page = Arc::new(RunPage { links, opens_browser, is_shown: AtomicBool::new(false) });
        let serving = Some((runtime, task));
        Ok(Some(Self { serving, page, awaited, stop, is_interrupted, _published: published }))
    }

    /// Shows the page of the run as soon as there is one.
    pub(crate) fn observer(&self) -> Arc<dyn RunObserver> {
        self.page.clone()
    }

    /// Stays open after a run until the user ends it. Where nobody can press Ctrl-C, it does not stay,
    /// nor after a signal that stopped the run.
    pub(crate) fn stay(&self, run: &str) -> Result<WaitEnd> {
        self.awaited.set(None);
        self.stay_until(run, || Ok(false))
    }

    /// Stays open after a run that waits, until it `is_answered`, in the same cases. The caller goes on
    /// with it then. Clients that answer are told so, also until it has begun to.
    pub(crate) fn wait_for(
        &self,
        run: &str,
        is_answered: impl FnMut() -> Result<bool>,
    ) -> Result<WaitEnd> {
        self.awaited.set(Some(run));
        let end = self.stay_until(run, is_answered);
        if !matches!(end, Ok(WaitEnd::Ready)) {
            self.awaited.set(None);
        }
        end
    }

    fn stay_until(&self, run: &str, mut is_ready: impl FnMut() -> Result<bool>) -> Result<WaitEnd> {
        let at_terminal = input::is_terminal() && output::stderr_is_terminal();
        let mut is_interrupted = self.is_interrupted.clone();
        let Some((runtime, _)) = &self.serving else { return Ok(WaitEnd::Ended) };
        if !at_terminal || *is_interrupted.borrow() {
            return Ok(WaitEnd::Ended);
        }
        let link = self.page.links.link(Some(run))?;
        output::write_stderr(&format!(
            "\nThe dashboard stays open at {link}\nPress Ctrl-C to stop it.\n"
        ));
        runtime.block_on(async {
            loop {
                tokio::select! {
                    () = async { drop(is_interrupted.wait_for(|is| *is).await) } => {
                        return Ok(WaitEnd::Ended);
                    }
                    () = tokio::time::sleep(POLL_INTERVAL) => {}
                }
                if is_ready()? {
                    return Ok(WaitEnd::Ready);
                }
            }
        })
    }
}

impl Drop for RunDashboard {
    fn drop(&mut self) {
        let Some((runtime, task)) = self.serving.take() else { return };
        let _ = self.stop.send(true);
        // Pages that are open keep their connections.
        let _ = runtime.block_on(async { tokio::time::timeout(END_TIME, task).await });
        runtime.shutdown_timeout(END_TIME);
    }
}

/// The page of the run. It is shown once, at the first event of the run: before its first attempt, so
/// that the browser is not taken for a process of an agent.
struct RunPage {
    links: Links,
    opens_browser: bool,
    is_shown: AtomicBool,
}

impl RunObserver for RunPage {
    fn on_event(&self, _: &Event, _: i64, run_state: &RunState) {
        if self.is_shown.swap(true, Ordering::Relaxed) {
            return;
        }
        match self.links.link(Some(&run_state.run)) {
            Ok(link) => {
                output::write_stderr(&format!(
                    "dashboard: {link} (the link works once, for ten minutes)\n"
                ));
                if self.opens_browser {
                    open(&link);
                }
            }
            Err(error) => {
                output::write_message("warning", &format!("there is no link: {error:#}"));
            }
        }
    }

    fn on_activity(&self, _: &str, _: &str) {}
}
