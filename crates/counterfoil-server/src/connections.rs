//! Accepts connections, and ends them when the server stops.
//!
//! A client that sends half of a request, or reads no answer, needs no token for that. It neither
//! keeps a connection for ever nor the server from stopping.

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::future::Future;
use std::io::ErrorKind;
use std::pin::pin;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// How long nothing is accepted after the system could not, as when too many files are open.
const PAUSE: Duration = Duration::from_secs(1);

/// How long connections may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// From the end of an answer, or the beginning of the connection, to the end of the next head.
    pub(crate) head: Duration,
    /// From the time when the server stops to the end of the answers that it was sending.
    pub(crate) end: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { head: Duration::from_secs(30), end: Duration::from_secs(2) }
    }
}

/// Answers requests until `stop` is ready, and ends what was begun.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    limits: Limits,
    stop: impl Future<Output = ()>,
) {
    let (stopping, is_stopping) = watch::channel(false);
    let mut connections = JoinSet::new();
    let mut stop = pin!(stop);
    loop {
        let accepted = tokio::select! {
            () = &mut stop => break,
            Some(_) = connections.join_next() => continue,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                let answered = answer(stream, router.clone(), limits.head, is_stopping.clone());
                connections.spawn(answered);
            }
            Err(error) if is_of_one_client(error.kind()) => {}
            Err(error) => {
                tracing::error!(%error, "no connection can be accepted");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
    drop(listener);
    stopping.send_replace(true);
    let ended = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(limits.end, ended).await.is_err() {
        tracing::debug!(connections = connections.len(), "connections are cut");
    }
    // Those that are left end when the set is dropped.
}

fn is_of_one_client(kind: ErrorKind) -> bool {
    use ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(kind, ConnectionAborted | ConnectionRefused | ConnectionReset)
}

/// Answers the requests of a connection, one after the other.
async fn answer(
    stream: TcpStream,
    router: Router,
    head: Duration,
    mut is_stopping: watch::Receiver<bool>,
) {
    // The messages of streams are short, and are not to wait for more.
    let _ = stream.set_nodelay(true);
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(head)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = async { drop(is_stopping.wait_for(|is| *is).await) } => {
            connection.as_mut().graceful_shutdown();
            connection.as_mut().await
        }
    };
    if let Err(error) = ended {
        tracing::trace!(%error, "a connection ended early");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::routing::get;
    use std::io;
    use std::net::SocketAddr;
    use std::time::Instant;
    use tokio::sync::oneshot;
    use tokio::task::JoinHandle;

    /// A server with short limits, what stops it, and its end.
    async fn start(limits: Limits) -> (SocketAddr, oneshot::Sender<()>, JoinHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let router = Router::new().route("/", get(|| async { "x".repeat(64 << 20) }));
        let serving = serve(listener, router, limits, async move {
            let _ = stopped.await;
        });
        (address, stop, tokio::spawn(serving))
    }

    async fn send(address: SocketAddr, text: &str) -> TcpStream {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.writable().await.unwrap();
        assert_eq!(stream.try_write(text.as_bytes()).unwrap(), text.len());
        stream
    }

    const SHORT: Duration = Duration::from_millis(200);
    const LONG: Duration = Duration::from_mins(10);

    #[tokio::test]
    async fn a_connection_ends_whose_client_does_not_finish_a_head() {
        let (address, _stop, _end) = start(Limits { head: SHORT, end: LONG }).await;
        for half in ["", "GET / HTTP/1.1\r\nhost: a\r\n"] {
            let stream = send(address, half).await;
            let began = Instant::now();
            let mut answer = [0; 1000];
            loop {
                stream.readable().await.unwrap();
                match stream.try_read(&mut answer) {
                    Ok(0) => break,
                    Ok(_) => {}
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(_) => break,
                }
            }
            assert!(began.elapsed() < Duration::from_secs(20), "{half:?}");
        }
    }

    #[tokio::test]
    async fn what_clients_do_not_finish_does_not_keep_the_server_from_ending() {
        let (address, stop, end) = start(Limits { head: LONG, end: SHORT }).await;
        let _silent = send(address, "").await;
        let _half = send(address, "GET / HTTP/1.1\r\nhost: a\r\n").await;
        // It reads nothing of an answer that no buffer of the system holds.
        let _stalled = send(address, "GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
        tokio::time::sleep(SHORT).await;
        stop.send(()).unwrap();
        tokio::time::timeout(Duration::from_secs(20), end).await.unwrap().unwrap();
    }
}
