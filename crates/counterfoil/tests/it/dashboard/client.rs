//! A server under test, and a client that speaks just enough HTTP.

use counterfoil_testkit::{
    CommandOutput, RunningCommand, TIMEOUT, TestCommand, TestProject, wait_until,
};
use serde_json::Value;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;

/// What a server prints behind its link when it serves.
pub(crate) const READY: &str = "link works once";

/// A server that runs. It is killed when the value is dropped.
pub(crate) struct TestServer {
    command: RunningCommand,
    /// Its address and port.
    pub(crate) address: String,
    /// The path of the link that it printed.
    pub(crate) link: String,
}

/// An answer of a server.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// The status line and the headers, in lower case.
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    /// The body as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The value of a header, in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }
}

/// A request to a server that is begun: its answer can be read from the stream.
fn open(address: &str, method: &str, path: &str, headers: &[&str], body: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    let has_host = headers.iter().any(|header| header.starts_with("Host:"));
    let host = if has_host { String::new() } else { format!("Host: {address}\r\n") };
    let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\n{host}{headers}Content-Length: {length}\r\n\
         Connection: close\r\n\r\n"
    );
    stream.write_all((head + body).as_bytes()).unwrap();
    stream
}

/// Sends a request with these headers to a server, and reads the whole answer.
#[track_caller]
pub(crate) fn send(
    address: &str,
    method: &str,
    path: &str,
    headers: &[&str],
    body: &str,
) -> Answer {
    let mut bytes = Vec::new();
    open(address, method, path, headers, body).read_to_end(&mut bytes).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Answer { status, head: head.to_lowercase(), body: body.to_owned() }
}

impl TestServer {
    /// Starts a command that serves, and waits until it does.
    #[track_caller]
    pub(crate) fn start(project: &TestProject, arguments: &[&str]) -> Self {
        Self::start_command(project, &mut project.command(arguments))
    }

    /// Like [`Self::start`], with a command of the test's choice.
    #[track_caller]
    pub(crate) fn start_command(project: &TestProject, command: &mut TestCommand) -> Self {
        let mut command = project.start_command(command);
        let printed = wait_until(TIMEOUT, "the server listens", || {
            let printed = command.stderr_so_far();
            assert!(command.is_running(), "the server has ended: {printed}");
            printed.contains(READY).then_some(printed)
        });
        // In a log, the message is a string of JSON.
        let (_, link) = printed.split_once("http://").unwrap();
        let end = link.find(|char: char| char.is_whitespace() || char == '\\').unwrap();
        let (address, path) = link[..end].split_once('/').unwrap();
        Self { command, address: address.to_owned(), link: format!("/{path}") }
    }

    /// The port at which it listens.
    pub(crate) fn port(&self) -> &str {
        self.address.rsplit_once(':').unwrap().1
    }

    /// The file in which it publishes its token.
    pub(crate) fn token_file(&self, project: &TestProject) -> PathBuf {
        let name = format!("127.0.0.1-{}.json", self.port());
        project.data().join("counterfoil/servers").join(name)
    }

    /// The token that it published.
    #[track_caller]
    pub(crate) fn token(&self, project: &TestProject) -> String {
        let path = self.token_file(project);
        let text = std::fs::read_to_string(&path)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let published: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(published["pid"], self.command.pid());
        published["token"].as_str().unwrap().to_owned()
    }

    /// A request that is begun: its answer can be read from the stream.
    pub(crate) fn open(&self, method: &str, path: &str, headers: &[&str], body: &str) -> TcpStream {
        open(&self.address, method, path, headers, body)
    }

    /// Sends a request with these headers, and reads the whole answer.
    #[track_caller]
    pub(crate) fn send(&self, method: &str, path: &str, headers: &[&str], body: &str) -> Answer {
        send(&self.address, method, path, headers, body)
    }

    /// Reads a page or a resource with the published token.
    #[track_caller]
    pub(crate) fn get(&self, project: &TestProject, path: &str) -> Answer {
        let token = format!("Authorization: Bearer {}", self.token(project));
        self.send("GET", path, &[&token, "Accept: text/html, application/json"], "")
    }

    /// Sends JSON to the API with the published token.
    #[track_caller]
    pub(crate) fn post(
        &self,
        project: &TestProject,
        path: &str,
        headers: &[&str],
        body: &Value,
    ) -> Answer {
        let token = format!("Authorization: Bearer {}", self.token(project));
        let own = [token.as_str(), "Content-Type: application/json"];
        let headers = [&own[..], headers].concat();
        self.send("POST", path, &headers, &body.to_string())
    }

    /// Sends a signal, and waits until the server has ended.
    pub(crate) fn end(self, signal: &str) -> CommandOutput {
        self.command.signal(signal);
        self.wait()
    }

    /// Waits until the command has ended by itself.
    pub(crate) fn wait(self) -> CommandOutput {
        self.command.wait()
    }
}
