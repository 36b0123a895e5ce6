//! The commands `counterfoil ui` and `counterfoil serve`, and the dashboard beside a run.

mod control;
mod run_dashboard;
pub(super) mod token;

pub(crate) use run_dashboard::{RunDashboard, WaitEnd};

use crate::cli::{ServeArgs, StateLocation, UiArgs};
use crate::exit::Exit;
use crate::{input, output, person, project, state_folder};
use anyhow::{Context as _, Result, bail};
use control::{AwaitedRun, LocalControl};
use counterfoil_contract::text::display_path;
use counterfoil_server::{
    ContractSource, RunControl, Server, ServerOptions, SignInLinks, StateFolder,
};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use token::Published;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

/// How long the process waits for work that goes on after the server has ended.
const END_TIME: Duration = Duration::from_secs(1);

/// What all dashboards have in common.
struct Service {
    states: Vec<PathBuf>,
    address: SocketAddr,
    names: Vec<String>,
    token_file: Option<PathBuf>,
    control: Option<LocalControl>,
    opens_browser: bool,
    /// The folder of the project's configuration, whose contracts are known.
    config_folder: Option<PathBuf>,
}

pub(crate) fn ui(args: &UiArgs) -> Result<Exit> {
    person::require_outside_of_attempts("ui")?;
    let state = state_folder::of(&args.location)?;
    run(Service {
        states: vec![state],
        address: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), args.port),
        names: Vec::new(),
        token_file: None,
        control: Some(LocalControl {
            may_start: false,
            may_resume: true,
            repo: args.location.repo.clone(),
            awaited: AwaitedRun::default(),
        }),
        opens_browser: !args.no_open,
        config_folder: config_folder(args.location.repo.as_deref()),
    })
}

pub(crate) fn serve(args: &ServeArgs) -> Result<Exit> {
    person::require_outside_of_attempts("serve")?;
    if !args.host.is_loopback() && args.token_file.is_none() {
        bail!(
            "{} can be reached from other machines: give the token that clients have to send with \
             --token-file FILE",
            args.host
        );
    }
    let states = if args.state.is_empty() {
        let location = StateLocation { repo: args.repo.clone(), state: None };
        vec![state_folder::of(&location)?]
    } else {
        args.state.clone()
    };
    for missing in args.state.iter().filter(|state| !state.is_dir()) {
        let name = display_path(missing);
        let note = format!("there is no folder {name} yet; its runs are shown when there is one");
        output::write_message("note", &note);
    }
    let control = LocalControl {
        may_start: args.allow_start,
        may_resume: true,
        repo: args.repo.clone(),
        awaited: AwaitedRun::default(),
    };
    run(Service {
        states,
        address: SocketAddr::new(args.host, args.port),
        names: args.name.clone(),
        token_file: args.token_file.clone(),
        control: (!args.read_only).then_some(control),
        opens_browser: false,
        config_folder: config_folder(args.repo.as_deref()),
    })
}

fn run(service: Service) -> Result<Exit> {
    counterfoil_process::announce_dashboard();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let listened = runtime.block_on(listen(service));
    // Clients that are gone do not wait for what is still done for them.
    runtime.shutdown_timeout(match listened {
        Ok(End::AtOnce) => Duration::ZERO,
        _ => END_TIME,
    });
    listened.map(|_| Exit::Success)
}

/// How the server was ended.
#[derive(Clone, Copy)]
enum End {
    /// By one signal: answers were finished.
    InOrder,
    /// By a second one.
    AtOnce,
}

async fn listen(service: Service) -> Result<End> {
    // A signal that arrives from here on ends the server in good order.
    let mut signals = Signals::new()?;
    let opens_browser = service.opens_browser;
    let Listening { server, links, published } = bind(service).await?;
    let link = links.link(None)?;
    let mut text =
        format!("The dashboard is at\n\n  {link}\n\nThe link works once, for ten minutes. ");
    text += match &published {
        Some(_) => "Programs on this machine find the token in a file of your own.\n",
        None => "",
    };
    text += "Press Ctrl-C to stop; runs go on.\n";
    output::write_stderr(&text);
    if opens_browser {
        open(&link);
    }
    let (stop, stopped) = oneshot::channel();
    let end = tokio::select! {
        () = server.serve(async { drop(stopped.await) }) => End::InOrder,
        () = async {
            signals.next().await;
            let _ = stop.send(());
            signals.next().await;
        } => End::AtOnce,
    };
    drop(published);
    Ok(end)
}

/// A server that listens, and how it is found.
struct Listening {
    server: Server,
    links: Links,
    /// The file with its token. It is removed when this is dropped.
    published: Option<Published>,
}

/// The links to a server.
struct Links {
    address: SocketAddr,
    sign_in: SignInLinks,
}

impl Links {
    /// A link that signs a browser in and leads to a run, or to the list of runs. It works once.
    fn link(&self, run: Option<&str>) -> Result<String> {
        Ok(format!("http://{}{}", named(self.address), self.sign_in.path(run)?))
    }
}

/// Begins to listen, and publishes the token.
async fn bind(service: Service) -> Result<Listening> {
    let keys = state_folder::keys_folder();
    let mut folders = Vec::new();
    for path in &service.states {
        // An error if runs were recorded there and are lost.
        state_folder::has_runs(path)?;
        // Pages show command lines with it, which are typed in other folders.
        let path = std::path::absolute(path)?;
        folders.push(StateFolder { name: name(&path), path, keys: keys.clone() });
    }
    let token = token::read_or_make(service.token_file.as_deref())?;
    let control = service.control.map(|control| Arc::new(control) as Arc<dyn RunControl>);
    let options = ServerOptions {
        folders,
        address: service.address,
        hosts: service.names,
        token: token.clone(),
        control,
        contracts: Some(contracts(service.config_folder)),
    };
    let server = Server::bind(options).await.with_context(|| {
        format!("the server cannot listen at {}; choose another port with --port", service.address)
    })?;
    let address = server.address();
    let published = match &service.token_file {
        Some(_) => None,
        None => token::publish(address, &token)?,
    };
    let links = Links { address, sign_in: server.sign_in_links() };
    Ok(Listening { server, links, published })
}

/// The folder with the configuration of a repository, if there is one.
fn config_folder(repo: Option<&Path>) -> Option<PathBuf> {
    project::config_folder(&input::repository(repo).ok()?)
}

/// The built-in contracts and those of a project. They are read when they are asked for: files may
/// change. Without those of the project, if they cannot be read.
fn contracts(config_folder: Option<PathBuf>) -> Arc<ContractSource> {
    Arc::new(move || {
        let of_project = config_folder.as_deref().map(project::registry).and_then(Result::ok);
        let registry = of_project.unwrap_or_else(counterfoil_packs::registry);
        registry.all().map(|entry| entry.definition().clone()).collect()
    })
}

/// The address by which this machine reaches a server. One that listens at all addresses is named by
/// one of them.
fn named(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// The signals that ask the process to end.
struct Signals(Vec<Signal>);

impl Signals {
    fn new() -> Result<Self> {
        let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        Ok(Self(kinds.into_iter().map(signal).collect::<io::Result<_>>()?))
    }

    /// Waits for the next one.
    async fn next(&mut self) {
        let waits = self.0.iter_mut().map(|signal| Box::pin(signal.recv()));
        futures_util::future::select_all(waits).await;
    }
}

/// The name of a state folder, by its absolute path: that of the repository, without the hash behind it.
fn name(path: &Path) -> String {
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    // One in a work tree has the name of the tree.
    let in_tree = path.parent().filter(|_| name(path) == project::STATE_FOLDER);
    let name = name(in_tree.unwrap_or(path));
    match name.rsplit_once('-') {
        Some((name, hash)) if hash.len() == 12 && !name.is_empty() => name.to_owned(),
        _ => name,
    }
}

/// Opens a page in the user's browser. If that fails, the address was printed.
fn open(link: &str) {
    let programs =
        if cfg!(target_os = "macos") { ["open", "open"] } else { ["xdg-open", "wslview"] };
    let named = std::env::var_os("BROWSER").filter(|name| !name.is_empty());
    let named = named.into_iter().chain(programs.map(Into::into));
    for program in named {
        let mut command = Command::new(program);
        command.arg(link).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // Ctrl-C in this terminal must not end the browser.
        command.process_group(0);
        if let Ok(mut child) = command.spawn() {
            std::thread::spawn(move || child.wait());
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_folder_has_the_name_of_its_repository() {
        for (path, expected) in [
            ("/s/shop-0123456789ab", "shop"),
            ("/s/my-shop-0123456789ab", "my-shop"),
            ("/s/runs", "runs"),
            ("/s/-0123456789ab", "-0123456789ab"),
            ("/home/me/shop/.counterfoil", "shop"),
        ] {
            assert_eq!(name(Path::new(path)), expected);
        }
    }
}
