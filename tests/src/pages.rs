//! The pages that the agent serves, as those read them who ask for them.

use core::time::Duration;
use std::io::{Read, Write};
use std::net::TcpStream;

use crate::program::Agent;

/// Returns where the agent serves its pages, once it does.
///
/// # Panics
///
/// If it does not in time.
#[must_use]
pub fn address(agent: &Agent) -> String {
    let words = "serving /metrics and /healthz on ";
    agent.wait_log(words);
    let log = agent.log();
    let address = log.split(words).nth(1).and_then(|rest| rest.lines().next());
    address.expect("it was just logged").trim().to_owned()
}

/// Returns the status and the body of what `address` answers.
///
/// # Panics
///
/// If there is no answer in HTTP.
#[must_use]
pub fn get(address: &str, page: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).expect("someone listens");
    stream.set_read_timeout(Some(LIMIT)).expect("a timeout");
    write!(stream, "GET {page} HTTP/1.0\r\nHost: {address}\r\n\r\n").expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer in UTF-8");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    let status = head.split(' ').nth(1).and_then(|word| word.parse().ok());
    (status.unwrap_or_else(|| panic!("no status in {head}")), body.to_owned())
}

/// A page that takes longer does not come.
const LIMIT: Duration = Duration::from_secs(10);
