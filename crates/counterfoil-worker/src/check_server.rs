//! Runs checks that an agent asks for while it works. The tool that it calls is a child of the agent
//! program, so it reaches us by a socket in the attempt's private folder. One check runs at a time,
//! as our own child; it ends with its caller and with the attempt.

use crate::attempt::AttemptContext;
use crate::checks::{self, CheckPlace, CheckProgress};
use counterfoil_agents::check_service::{
    CheckAnswer, CheckCall, CheckService, MAX_CALL_BYTES, receive, send,
};
use counterfoil_flow::PlannedChecks;
use counterfoil_process::StopRequest;
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;
use tokio::sync::{mpsc::UnboundedSender, watch};

/// The longest path of a socket that every system accepts.
const MAX_SOCKET_PATH: usize = 100;
/// How often the listener looks for a caller, and for the end of one.
const POLL: Duration = Duration::from_millis(20);
/// How long a caller may take to send its call or to read the answer.
const IO_TIMEOUT: Duration = Duration::from_secs(10);
/// Marks the processes of these checks apart from those of the agent, which would end with them.
pub const MARKER_SUFFIX: &str = "/run_check";

/// A check to run, and where its answer goes.
struct Request {
    name: String,
    stop: watch::Receiver<StopRequest>,
    answer: mpsc::Sender<CheckAnswer>,
}

/// Serves the checks of one attempt.
pub(crate) struct CheckServer {
    service: CheckService,
    closed: Arc<AtomicBool>,
    task: tokio::task::JoinHandle<()>,
    /// A folder of its own for the socket, if the attempt's folder has a long path.
    folder: Option<PathBuf>,
}

impl CheckServer {
    /// Starts to serve these checks.
    pub(crate) fn start(
        scratch: &Path,
        planned: PlannedChecks,
        mut place: CheckPlace,
        context: Arc<dyn AttemptContext>,
    ) -> io::Result<Self> {
        let (socket, folder) = socket_path(scratch)?;
        let listener = UnixListener::bind(&socket)?;
        listener.set_nonblocking(true)?;
        place.marker.push_str(MARKER_SUFFIX);
        let service = CheckService {
            socket,
            names: planned.checks.keys().cloned().collect(),
            timeout_ms: planned.checks.values().map(|check| check.timeout_ms).max().unwrap_or(0),
        };
        let closed = Arc::new(AtomicBool::new(false));
        let (requests, mut received) = tokio::sync::mpsc::unbounded_channel::<Request>();
        let is_closed = closed.clone();
        std::thread::Builder::new()
            .name("run_check".to_owned())
            .spawn(move || listen(&listener, &requests, &is_closed))?;
        let task = tokio::spawn(async move {
            while let Some(request) = received.recv().await {
                let answer = run(&request, &planned, &place, &*context).await;
                let _ = request.answer.send(answer);
            }
        });
        Ok(Self { service, closed, task, folder })
    }

    /// Where the checks can be called.
    pub(crate) fn service(&self) -> CheckService {
        self.service.clone()
    }

    /// Ends a check that is running, and takes no further calls.
    pub(crate) async fn close(mut self) {
        self.closed.store(true, Ordering::SeqCst);
        // The task ends when the listener has ended.
        let _ = (&mut self.task).await;
    }
}

impl Drop for CheckServer {
    fn drop(&mut self) {
        // The attempt may be given up without being closed.
        self.closed.store(true, Ordering::SeqCst);
        let _ = std::fs::remove_file(&self.service.socket);
        let _ = self.folder.take().map(std::fs::remove_dir);
    }
}

/// A path for the socket in a folder that only we can enter.
fn socket_path(scratch: &Path) -> io::Result<(PathBuf, Option<PathBuf>)> {
    let make =
        |folder: &Path| std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    let socket = scratch.join("checks.sock");
    if socket.as_os_str().len() <= MAX_SOCKET_PATH {
        make(scratch)?;
        let _ = std::fs::remove_file(&socket);
        return Ok((socket, None));
    }
    let unique = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |since| since.as_nanos());
    let folder = std::env::temp_dir().join(format!("counterfoil-{}-{unique}", std::process::id()));
    // It must not exist: somebody else may have made it.
    std::fs::DirBuilder::new().mode(0o700).create(&folder)?;
    Ok((folder.join("checks.sock"), Some(folder)))
}

async fn run(
    request: &Request,
    planned: &PlannedChecks,
    place: &CheckPlace,
    context: &dyn AttemptContext,
) -> CheckAnswer {
    let names = std::slice::from_ref(&request.name);
    if !planned.checks.contains_key(&request.name) {
        let known: Vec<&str> = planned.checks.keys().map(String::as_str).collect();
        return CheckAnswer::Refused(format!(
            "there is no check '{}'; available: {}",
            request.name,
            known.join(", ")
        ));
    }
    let heartbeat = |name: &str, line: &str| context.heartbeat(&format!("check {name}: {line}"));
    let progress = CheckProgress { heartbeat: &heartbeat, notice: &|line| context.notice(line) };
    let ran =
        checks::run_all(names, Some(planned.clone()), place, request.stop.clone(), &progress).await;
    match ran {
        Ok(Some(mut reports)) => match reports.remove(&request.name) {
            Some(report) => CheckAnswer::Report(Box::new(report)),
            None => CheckAnswer::Refused("the check gave no report".to_owned()),
        },
        Ok(None) => CheckAnswer::Refused("the check was stopped before it ended".to_owned()),
        Err(why) => CheckAnswer::Refused(why),
    }
}

/// Takes one call after the other until the server is closed.
fn listen(listener: &UnixListener, requests: &UnboundedSender<Request>, closed: &AtomicBool) {
    while !closed.load(Ordering::SeqCst) {
        match listener.accept() {
            Ok((stream, _)) => {
                if let Err(error) = serve(&stream, requests, closed) {
                    tracing::debug!(%error, "a call of run_check was not answered");
                }
            }
            Err(_) => std::thread::sleep(POLL),
        }
    }
}

fn serve(
    stream: &UnixStream,
    requests: &UnboundedSender<Request>,
    closed: &AtomicBool,
) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(IO_TIMEOUT))?;
    stream.set_write_timeout(Some(IO_TIMEOUT))?;
    let call: CheckCall = match receive(stream, MAX_CALL_BYTES) {
        Ok(call) => call,
        Err(error) => return send(stream, &CheckAnswer::Refused(error.to_string())),
    };
    let (stop, stopped) = watch::channel(StopRequest::None);
    let (answer, answered) = mpsc::channel();
    let request = Request { name: call.check, stop: stopped, answer };
    if requests.send(request).is_err() {
        return send(stream, &CheckAnswer::Refused("the attempt has ended".to_owned()));
    }
    stream.set_nonblocking(true)?;
    let answer = loop {
        match answered.recv_timeout(POLL) {
            Ok(answer) => break answer,
            Err(RecvTimeoutError::Disconnected) => {
                break CheckAnswer::Refused("the attempt has ended".to_owned());
            }
            Err(RecvTimeoutError::Timeout) => {
                if closed.load(Ordering::SeqCst) || has_left(stream) {
                    stop.send_replace(StopRequest::Immediate);
                }
            }
        }
    };
    stream.set_nonblocking(false)?;
    send(stream, &answer)
}

/// Whether the caller closed the connection.
fn has_left(mut stream: &UnixStream) -> bool {
    match stream.read(&mut [0; 64]) {
        Ok(0) => true,
        Ok(_) => false,
        Err(error) => !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
    }
}
