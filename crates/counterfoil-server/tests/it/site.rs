//! A server with state folders of its own, and what stands in for the command line.

use crate::client::Request;
use counterfoil_server::{
    ControlError, ResumeRequest, RunControl, Server, ServerOptions, StartRequest, StateFolder,
    Token,
};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;
use tempfile::TempDir;
use tokio::sync::oneshot;

/// The token of every server of these tests.
pub(crate) const TOKEN: &str = "f00dfeed-token-of-the-tests-f00dfeed";

/// Every route with every method that leads somewhere, and some that do not.
pub(crate) const TARGETS: [(&str, &str); 50] = [
    ("GET", "/"),
    ("HEAD", "/"),
    ("POST", "/"),
    ("GET", "/inbox"),
    ("GET", "/claims"),
    ("GET", "/claims?field=files"),
    ("GET", "/health"),
    ("GET", "/health/attempts"),
    ("GET", "/playground"),
    ("GET", "/live/health"),
    ("GET", "/live/claims"),
    ("GET", "/runs/a"),
    ("GET", "/runs/a/claims"),
    ("GET", "/runs/a/events"),
    ("GET", "/runs/a/events/rows?from=1"),
    ("POST", "/runs/a/events/rows?from=1"),
    ("GET", "/runs/a/attempts/Work%231"),
    ("GET", "/nowhere"),
    ("GET", "/live"),
    ("GET", "/live/"),
    ("GET", "/live/runs/a"),
    ("POST", "/live/runs/a"),
    ("GET", "/api/v1/openapi.json"),
    ("GET", "/api/v1/runs"),
    ("POST", "/api/v1/runs"),
    ("GET", "/api/v1/runs/a"),
    ("DELETE", "/api/v1/runs/a"),
    ("OPTIONS", "/api/v1/runs/a"),
    ("GET", "/api/v1/runs/a/bundle"),
    ("GET", "/api/v1/sign-in-links"),
    ("POST", "/api/v1/sign-in-links"),
    ("GET", "/api/v1/runs/a/events"),
    ("GET", "/api/v1/runs/a/claims"),
    ("GET", "/api/v1/runs/a/questions"),
    ("POST", "/api/v1/runs/a/questions/ok/answer"),
    ("POST", "/api/v1/runs/a/cancel"),
    ("POST", "/api/v1/runs/a/resume"),
    ("GET", "/api/v1/runs/a/attempts/Work%231"),
    ("GET", "/api/v1/runs/a/attempts/Work%231/replies/1/text"),
    ("GET", "/api/v1/runs/a/attempts/Work%231/replies/1/prompt"),
    ("GET", "/api/v1/runs/a/attempts/Work%231/replies/1/transcript"),
    ("GET", "/api/v1/runs/a/attempts/Work%231/diff"),
    ("GET", "/fragments/runs/a/attempts/Work%231/diff"),
    ("GET", "/api/v1/claims"),
    ("GET", "/api/v1/health"),
    ("GET", "/api/v1/contracts"),
    ("GET", "/api/v1/contracts/x"),
    ("POST", "/api/v1/check"),
    ("GET", "/api/v1/nowhere"),
    ("GET", "/api"),
];
/// The routes that need no session.
pub(crate) const OPEN_TARGETS: [(&str, &str); 4] = [
    ("GET", "/sign-in"),
    ("GET", "/sign-in?code=wrong"),
    ("GET", "/assets/x/app.css"),
    ("GET", "/assets/x/nothing.css"),
];

/// A server that listens until this is dropped.
pub(crate) struct Site {
    pub(crate) address: SocketAddr,
    pub(crate) control: Arc<FakeControl>,
    links: Mutex<Vec<String>>,
    folder: TempDir,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Site {
    /// A server for one state folder.
    pub(crate) fn start() -> Self {
        Self::with(&["state"], true)
    }

    /// A server for state folders with these names.
    pub(crate) fn with(folders: &[&str], has_control: bool) -> Self {
        Self::that_may(folders, has_control, true)
    }

    /// A server beside a run, which answers and cancels but resumes no run.
    pub(crate) fn beside_a_run() -> Self {
        Self::that_may(&["state"], true, false)
    }

    fn that_may(folders: &[&str], has_control: bool, may_resume: bool) -> Self {
        let folder = counterfoil_testkit::memory_dir();
        let control = Arc::new(FakeControl { may_resume, ..FakeControl::default() });
        let state = |name: &&str| StateFolder {
            name: (*name).to_owned(),
            path: folder.path().join(name),
            keys: None,
        };
        let options = ServerOptions {
            folders: folders.iter().map(state).collect(),
            address: (Ipv4Addr::LOCALHOST, 0).into(),
            hosts: vec!["build.example".to_owned()],
            token: Token::from_text(TOKEN),
            control: has_control.then(|| Arc::clone(&control) as Arc<dyn RunControl>),
            contracts: None,
        };
        let (sender, started) = mpsc::channel();
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async move {
                let server = Server::bind(options).await.unwrap();
                let sign_in = server.sign_in_links();
                let links = vec![sign_in.path(None).unwrap(), sign_in.path(None).unwrap()];
                sender.send((server.address(), links)).unwrap();
                let stopped = async move {
                    let _ = stopped.await;
                };
                server.serve(stopped).await;
            });
        });
        let (address, links) = started.recv().unwrap();
        let (links, stop, thread) = (Mutex::new(links), Some(stop), Some(thread));
        Self { address, control, links, folder, stop, thread }
    }

    /// A state folder of the server. It need not exist.
    pub(crate) fn state(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The folder that has the state folders.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A request without the token.
    pub(crate) fn anonymous(&self, method: &str, target: &str) -> Request {
        Request::new(self.address, method, target)
    }

    /// A request with the token.
    pub(crate) fn ask(&self, method: &str, target: &str) -> Request {
        self.anonymous(method, target).header("authorization", &format!("Bearer {TOKEN}"))
    }

    pub(crate) fn get(&self, target: &str) -> Request {
        self.ask("GET", target)
    }

    pub(crate) fn post(&self, target: &str, body: &Value) -> Request {
        self.ask("POST", target).json(body)
    }

    /// The messages of a stream.
    pub(crate) fn events_of(&self, run: &str) -> Request {
        self.get(&format!("/api/v1/runs/{run}/events")).header("accept", "text/event-stream")
    }

    /// The HTML of a page.
    #[track_caller]
    pub(crate) fn page(&self, target: &str) -> String {
        let answer = self.get(target).send().expect(200);
        assert_eq!(answer.header("content-type"), Some("text/html; charset=utf-8"));
        answer.text()
    }

    /// The value of an answer of the API.
    #[track_caller]
    pub(crate) fn api(&self, target: &str) -> Value {
        let answer = self.get(&format!("/api/v1{target}")).send().expect(200);
        assert_eq!(answer.header("content-type"), Some("application/json"));
        answer.json()
    }

    /// A path that signs a browser in.
    pub(crate) fn link(&self) -> String {
        self.links.lock().unwrap().pop().unwrap()
    }

    /// Signs in, and returns the cookie as a browser sends it.
    pub(crate) fn sign_in(&self) -> String {
        let answer = self.anonymous("GET", &self.link()).send().expect(200);
        let cookie = answer.header("set-cookie").unwrap();
        cookie.split(';').next().unwrap().to_owned()
    }

    /// Stops the server. The handle is that of its thread.
    pub(crate) fn stop(&mut self) -> JoinHandle<()> {
        drop(self.stop.take());
        self.thread.take().unwrap()
    }
}

/// A part of a path.
pub(crate) fn encode(part: &str) -> String {
    utf8_percent_encode(part, NON_ALPHANUMERIC).to_string()
}

/// Records what it is asked to do, and does nothing.
#[derive(Default)]
pub(crate) struct FakeControl {
    may_resume: bool,
    /// The run whose answers it waits for.
    awaited: Mutex<Option<String>>,
    calls: Mutex<Vec<String>>,
}

impl FakeControl {
    pub(crate) fn wait_for(&self, run: &str) {
        *self.awaited.lock().unwrap() = Some(run.to_owned());
    }

    pub(crate) fn calls(&self) -> Vec<String> {
        self.calls.lock().unwrap().clone()
    }

    fn add(&self, call: String) {
        self.calls.lock().unwrap().push(call);
    }
}

fn name(state: &Path) -> String {
    state.file_name().unwrap().to_string_lossy().into_owned()
}

impl RunControl for FakeControl {
    fn may_resume(&self) -> bool {
        self.may_resume
    }

    fn waits_for(&self, run: &str) -> bool {
        self.awaited.lock().unwrap().as_deref() == Some(run)
    }

    fn answer(
        &self,
        state: &Path,
        run: &str,
        question: &str,
        answer: &str,
    ) -> Result<(), ControlError> {
        self.add(format!("answer {} {run} {question} {answer}", name(state)));
        Ok(())
    }

    fn cancel(&self, state: &Path, run: &str) -> Result<String, ControlError> {
        self.add(format!("cancel {} {run}", name(state)));
        Ok("cancelled".to_owned())
    }

    fn resume(
        &self,
        state: &Path,
        run: &str,
        request: &ResumeRequest,
    ) -> Result<String, ControlError> {
        self.add(format!("resume {} {run} {}", name(state), request.because));
        Ok("resumed".to_owned())
    }

    fn start(&self, state: &Path, request: &StartRequest) -> Result<String, ControlError> {
        self.add(format!("start {} {}", name(state), request.workflow));
        match request.workflow.as_str() {
            "forbidden" => Err(ControlError::NotAllowed("no runs are started here".to_owned())),
            "broken" => Err(ControlError::Failed("there is no such program".to_owned())),
            _ => Ok("started".to_owned()),
        }
    }
}
