//! The channel by which a tool of an agent has the engine run a check of the project. The engine
//! listens on a socket in a private folder while the attempt lasts; each connection is one call and
//! its answer, a line of JSON each.

use counterfoil_flow::CheckReport;
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The longest call.
pub const MAX_CALL_BYTES: u64 = 4 << 10;
/// The longest answer.
const MAX_ANSWER_BYTES: u64 = 1 << 20;
/// How much longer than a check a call may take: other calls may come first.
const SLACK: Duration = Duration::from_mins(2);

/// Where checks can be run, and which.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckService {
    /// The socket.
    pub socket: PathBuf,
    /// The names of the checks.
    pub names: Vec<String>,
    /// The longest timeout of a check, in milliseconds.
    pub timeout_ms: u64,
}

/// A call: the check to run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckCall {
    /// The name of the check.
    pub check: String,
}

/// The answer to a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CheckAnswer {
    /// What came of the check.
    Report(Box<CheckReport>),
    /// Why it was not run.
    Refused(String),
}

impl CheckService {
    /// How long a call of the tool may take.
    pub fn call_timeout(&self) -> Duration {
        Duration::from_millis(self.timeout_ms).saturating_add(SLACK)
    }

    /// Has a check run, and waits for the answer. It blocks.
    ///
    /// # Errors
    ///
    /// The engine cannot be reached, or does not answer.
    pub fn call(&self, check: &str) -> io::Result<CheckAnswer> {
        let stream = connect(&self.socket)?;
        stream.set_write_timeout(Some(SLACK))?;
        stream.set_read_timeout(Some(self.call_timeout()))?;
        send(&stream, &CheckCall { check: check.to_owned() })?;
        receive(&stream, MAX_ANSWER_BYTES)
    }
}

fn connect(socket: &Path) -> io::Result<UnixStream> {
    UnixStream::connect(socket)
}

/// Writes a message as one line.
///
/// # Errors
///
/// The message cannot be written.
pub fn send<T: Serialize>(mut stream: &UnixStream, message: &T) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    stream.write_all(&line)?;
    stream.flush()
}

/// Reads a message of at most `max` bytes from one line.
///
/// # Errors
///
/// The message is too long, incomplete or of another form.
pub fn receive<T: for<'de> Deserialize<'de>>(stream: &UnixStream, max: u64) -> io::Result<T> {
    let mut line = Vec::new();
    BufReader::new(stream.take(max)).read_until(b'\n', &mut line)?;
    if line.last() != Some(&b'\n') {
        return Err(io::Error::new(
            io::ErrorKind::UnexpectedEof,
            "the message is too long or incomplete",
        ));
    }
    Ok(serde_json::from_slice(&line)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn a_call_and_its_answer_are_one_line_each() {
        let folder = tempfile::tempdir().unwrap();
        let service = CheckService {
            socket: folder.path().join("s"),
            names: vec!["test".to_owned()],
            timeout_ms: 1000,
        };
        assert!(service.call("test").is_err());
        let listener = UnixListener::bind(&service.socket).unwrap();
        let serving = std::thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            let call: CheckCall = receive(&stream, MAX_CALL_BYTES).unwrap();
            send(&stream, &CheckAnswer::Refused(format!("no {}", call.check))).unwrap();
            // What is longer than a call may be is not read to its end.
            let (stream, _) = listener.accept().unwrap();
            assert!(receive::<CheckCall>(&stream, MAX_CALL_BYTES).is_err());
        });
        assert_eq!(service.call("test").unwrap(), CheckAnswer::Refused("no test".to_owned()));
        assert!(service.call(&"x".repeat(10_000)).is_err());
        serving.join().unwrap();
    }
}
