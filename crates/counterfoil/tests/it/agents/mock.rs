//! The tests of the mock server itself, which is written in Python.

use counterfoil_testkit::mock_server_command;
use std::process::Stdio;

#[test]
fn the_mock_passes_its_own_tests() {
    let mut command = mock_server_command();
    let output = command.args(["-m", "unittest"]).stdin(Stdio::null()).output().expect("python3");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
