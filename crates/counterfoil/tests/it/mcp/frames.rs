//! Malformed messages: the server continues wherever the protocol allows.

use crate::mcp::client::Session;
use counterfoil_contract::Status;
use counterfoil_contract::render::vendor::Target;
use serde_json::{Value, json};
use std::io::Write;

const QA: &str = "execution-loop/qa";

fn session() -> Session {
    Session::of(QA, Target::Claude)
}

fn code(answer: &Value) -> i64 {
    answer["error"]["code"].as_i64().unwrap_or_else(|| panic!("{answer}"))
}

#[test]
fn lines_that_are_no_messages_are_answered_and_the_next_is_heard() {
    let session = session();
    let mut client = session.greet();
    for (line, id, number) in [
        (&b"hello"[..], Value::Null, -32700),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\xfe\"}", Value::Null, -32700),
        (b"{\"jsonrpc\":\"1.0\",\"id\":77,\"method\":\"ping\"}", json!(77), -32600),
        (b"[]", Value::Null, -32600),
        (b"null", Value::Null, -32600),
        (b"{\"jsonrpc\":\"2.0\",\"id\":\"a\"}", json!("a"), -32600),
        (b"{\"jsonrpc\":\"2.0\",\"id\":78,\"method\":\"no/such\"}", json!(78), -32601),
        (b"{\"jsonrpc\":\"2.0\",\"id\":79,\"method\":\"tools/call\"}", json!(79), -32602),
        (b"{\"jsonrpc\":\"2.0\",\"id\":80,\"method\":\"tools/call\",\"params\":{\"name\":\"submit_result\",\"arguments\":[1]}}", json!(80), -32602),
        (b"{\"jsonrpc\":\"2.0\",\"id\":81,\"method\":\"tools/call\",\"params\":{\"name\":\"submit\"}}", json!(81), -32602),
    ] {
        client.write(line);
        let answer = client.read();
        let line = String::from_utf8_lossy(line);
        assert_eq!((&answer["id"], code(&answer)), (&id, number), "{line}: {answer}");
        assert!(client.is_there(), "{line}");
    }
    assert!(session.kept().is_empty());
}

#[test]
fn an_unknown_tool_is_answered_with_those_there_are() {
    let mut client = session().greet();
    let answer = client.request("tools/call", &json!({"name": "submit", "arguments": {}}));
    let message = answer["error"]["message"].as_str().unwrap();
    assert_eq!(message, "there is no tool 'submit'; available: submit_result");
}

#[test]
fn what_nobody_waits_for_is_passed_over() {
    let mut client = session().greet();
    for line in [
        &b""[..],
        b"   ",
        b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/of/our/own\",\"params\":{\"a\":1}}",
        b"{\"jsonrpc\":\"1.0\",\"method\":\"notifications/initialized\"}",
        b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":99}}",
        b"{\"jsonrpc\":\"2.0\",\"id\":99,\"result\":{}}",
        b"{\"jsonrpc\":\"2.0\",\"id\":99,\"error\":{\"code\":1,\"message\":\"x\"}}",
    ] {
        client.write(line);
        // The next answer is that to the next question.
        assert!(client.is_there(), "{}", String::from_utf8_lossy(line));
    }
}

#[test]
fn a_line_of_20_megabytes_is_answered_by_its_id() {
    let mut client = session().greet();
    client.write_part(
        br#"{"method":"tools/call","params":{"name":"submit_result","arguments":{"summary":""#,
    );
    client.write_part(&vec![b'x'; 20 << 20]);
    client.write(br#""}},"jsonrpc":"2.0","id":"long"}"#);
    let answer = client.read();
    assert_eq!((&answer["id"], code(&answer)), (&json!("long"), -32600));
    assert!(answer["error"]["message"].as_str().unwrap().contains("larger than 16777216 bytes"));
    assert!(client.is_there());
}

#[test]
fn depth_without_end_is_answered() {
    let mut client = session().greet();
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let line = format!(
        r#"{{"jsonrpc":"2.0","id":70,"method":"tools/call","params":{{"name":"submit_result","arguments":{{"a":{deep}}}}}}}"#
    );
    client.write(line.as_bytes());
    let answer = client.read();
    assert_eq!((&answer["id"], code(&answer)), (&json!(70), -32600));
    assert!(client.is_there());
}

#[test]
fn whoever_forgets_to_say_hello_can_still_say_it() {
    let session = session();
    let mut client = session.start();
    assert!(client.is_there(), "a ping may come first");
    let early = client.request("tools/call", &json!({"name": "submit_result", "arguments": {}}));
    assert_eq!(code(&early), -32602);
    for line in [
        &b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}"[..],
        b"{\"jsonrpc\":\"2.0\",\"id\":5,\"result\":{}}",
        b"not json",
    ] {
        client.write(line);
    }
    assert_eq!(code(&client.read()), -32700);
    assert!(session.kept().is_empty());
    assert!(client.initialize()["instructions"].is_string());
    assert!(client.is_there());
}

#[test]
fn a_version_that_nobody_knows_is_answered_with_one_that_is() {
    let session = session();
    let mut client = session.start();
    let hello = json!({"protocolVersion": "1999-01-01", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let answer = client.request("initialize", &hello);
    assert!(answer["result"]["protocolVersion"].as_str().unwrap() > "2024", "{answer}");
    assert!(client.is_there());
}

#[test]
fn the_end_of_the_input_is_the_end() {
    let (rest, status) = session().start().end();
    assert!(rest.is_empty());
    assert!(status.success(), "before hello");
    let (rest, status) = session().greet().end();
    assert!(rest.is_empty());
    assert!(status.success(), "behind it");
}

#[test]
fn the_end_in_the_middle_of_a_frame_is_the_end_too() {
    let session = session();
    let mut client = session.greet();
    client.write_part(
        br#"{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"submit_result","argum"#,
    );
    let (rest, status) = client.end();
    assert!(rest.is_empty(), "{rest:?}");
    assert!(status.success());
    assert!(session.kept().is_empty());
}

#[test]
fn what_was_asked_before_the_end_is_answered_and_kept() {
    let session = session();
    let mut client = session.greet();
    let params = json!({"name": "submit_result", "arguments": {"dod_achieved": true, "checks": [{"criterion": "tests", "passed": true}]}});
    client.write(
        json!({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": params})
            .to_string()
            .as_bytes(),
    );
    let (rest, status) = client.end();
    assert!(status.success());
    assert_eq!(rest.len(), 1);
    assert_eq!(rest[0]["result"]["isError"], false);
    assert_eq!(session.kept()[0].status, Status::Accepted);
}

#[test]
fn a_client_that_reads_no_more_is_not_served_for_ever() {
    let (mut child, mut input) = session().greet().stop_reading();
    // The pipe is closed at the other end; the input is open, and stays so.
    let ping = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
    input.write_all(ping).unwrap();
    assert!(child.wait().unwrap().success());
    drop(input);
}
