//! The dashboard of Counterfoil and its HTTP API.
//!
//! A [`Server`] shows the runs of one or several state folders. It reads their journals and drives no
//! run: any process may do that. [`access`] decides who may ask, [`pages`] makes the pages that
//! people see, [`live`] keeps open pages current, and [`api`] answers programs. Only the API changes
//! anything.

mod access;
mod activity;
mod api;
mod assets;
mod checking;
mod commands;
mod connections;
mod contracts;
mod control;
mod counted;
mod diffs;
mod event_page;
mod excerpt;
mod folders;
mod format;
mod growing;
mod idempotency;
mod listing;
mod live;
mod pages;
mod problem;
mod progress;
mod query;
mod revalidation;
mod routes;
mod shown_runs;
mod site;
mod summaries;
mod tool_calls;

pub use access::Token;
pub use contracts::ContractSource;
pub use control::{ControlError, ResumeRequest, RunControl, StartRequest};
pub use folders::StateFolder;

use access::{Hosts, Sessions};
use activity::Activity;
use checking::Checks;
use connections::Limits;
use contracts::KnownContracts;
use counted::CountedRuns;
use counterfoil_engine::VerifiedTexts;
use diffs::Diffs;
use folders::Folders;
use idempotency::Repeats;
use live::LivePages;
use progress::KnownProgress;
use revalidation::Revalidations;
use shown_runs::ShownRuns;
use site::Site;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use summaries::Summaries;
use tokio::net::TcpListener;
use tool_calls::ToolCallLogs;

/// The options of a server.
pub struct ServerOptions {
    /// The state folders whose runs are shown.
    pub folders: Vec<StateFolder>,
    /// The address to listen at. With port 0 the system chooses one.
    pub address: SocketAddr,
    /// The names besides those of this machine by which it may be called.
    pub hosts: Vec<String>,
    /// The secret of programs that call it.
    pub token: Token,
    /// What changes runs. Without it the server only shows them.
    pub control: Option<Arc<dyn RunControl>>,
    /// The contracts against which texts can be checked, besides those of runs.
    pub contracts: Option<Arc<ContractSource>>,
}

/// Makes links that sign browsers in.
pub struct SignInLinks {
    site: Arc<Site>,
}

impl SignInLinks {
    /// The path of a page that signs a browser in, and then goes on to a run or to the list of runs.
    /// It works once, for ten minutes.
    ///
    /// # Errors
    ///
    /// The system has no random numbers.
    pub fn path(&self, run: Option<&str>) -> io::Result<String> {
        let code = self.site.sessions.new_code(Instant::now()).map_err(io::Error::other)?;
        let run = run.map(|run| format!("&run={run}")).unwrap_or_default();
        Ok(format!("/sign-in?code={code}{run}"))
    }
}

/// A server that listens.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    site: Arc<Site>,
    live: Arc<LivePages>,
}

impl Server {
    /// Begins to listen.
    ///
    /// # Errors
    ///
    /// The address cannot be used.
    pub async fn bind(options: ServerOptions) -> io::Result<Self> {
        let ServerOptions { folders, address, hosts, token, control, contracts } = options;
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let own = address.ip();
        let own = (!own.is_unspecified()).then(|| match own {
            std::net::IpAddr::V4(ip) => format!("{ip}:{}", address.port()),
            std::net::IpAddr::V6(ip) => format!("[{ip}]:{}", address.port()),
        });
        let names = hosts.iter().map(String::as_str).chain(own.as_deref());
        let site = Site {
            port: address.port(),
            hosts: Hosts::new(address.port(), names),
            token,
            sessions: Sessions::default(),
            folders: Folders::new(folders),
            summaries: Summaries::default(),
            activity: Activity::default(),
            inbox: ShownRuns::default(),
            progress: KnownProgress::default(),
            repeats: Repeats::default(),
            is_stopping: AtomicBool::new(false),
            counted: CountedRuns::default(),
            contracts: KnownContracts::new(contracts),
            verified: VerifiedTexts::default(),
            validated: Revalidations::default(),
            checks: Checks::default(),
            diffs: Diffs::default(),
            tool_calls: ToolCallLogs::default(),
            control,
        };
        let site = Arc::new(site);
        let live = LivePages::new(Arc::clone(&site));
        Ok(Self { listener, address, site, live })
    }

    /// The address at which it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Makes links that sign browsers in, also while the server answers requests.
    pub fn sign_in_links(&self) -> SignInLinks {
        SignInLinks { site: Arc::clone(&self.site) }
    }

    /// Answers requests until `stop` is ready. Answers that it is sending then may take two seconds
    /// more.
    pub async fn serve(self, stop: impl Future<Output = ()>) {
        let Self { listener, site, live, .. } = self;
        let (stopping, followed) = (Arc::clone(&site), Arc::clone(&live));
        let stop = async move {
            stop.await;
            // Streams would keep their connections open.
            stopping.is_stopping.store(true, Ordering::Relaxed);
            followed.close();
        };
        connections::serve(listener, routes::routes(site, live), Limits::default(), stop).await;
    }
}
