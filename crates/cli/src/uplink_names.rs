//! DNS queries over the uplinks only: the host's route to its resolver may lead through the tunnel that needs the
//! answer.

use anabranch_datagram::named_resolvers;
use anabranch_proxy::Target;
use socket2::{Domain, Socket, Type};
use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;
use tokio::net::UdpSocket;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// Timeout of an answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Time after which the next resolver or uplink is asked too.
const HEAD_START: Duration = Duration::from_millis(250);

/// The port of DNS (RFC 1035, section 4.2).
const PORT: u16 = 53;

/// Record types (RFC 1035, section 3.2.2; RFC 3596).
const A: u16 = 1;
const AAAA: u16 = 28;

/// The class IN.
const INTERNET: u16 = 1;

/// Resolver configurations; the second has the upstream resolvers of systemd-resolved.
const FILES: [&str; 2] = ["/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"];

/// Queries the host's resolvers over each of these interfaces, until the first answer with an address; empty if there is
/// none.
pub async fn addresses(target: &Target, interfaces: &[String]) -> Vec<SocketAddr> {
    if let Ok(address) = target.to_string().parse() {
        return vec![address];
    }
    let mut questions = questions(target, interfaces);
    while let Some(found) = questions.join_next().await {
        if let Ok(found) = found
            && !found.is_empty()
        {
            return found;
        }
    }
    Vec::new()
}

/// The addresses in all answers to such queries: one resolver may say something else than the others. Empty if the target is an
/// address.
pub async fn all_addresses(target: &Target, interfaces: &[String]) -> Vec<SocketAddr> {
    let (mut questions, mut all) = (questions(target, interfaces), Vec::new());
    while let Some(found) = questions.join_next().await {
        for address in found.unwrap_or_default() {
            if !all.contains(&address) {
                all.push(address);
            }
        }
    }
    all
}

/// The queries for a name; none for an address.
fn questions(target: &Target, interfaces: &[String]) -> JoinSet<Vec<SocketAddr>> {
    let (mut questions, text) = (JoinSet::new(), target.to_string());
    let name = text.rsplit_once(':').and_then(|(name, port)| Some((name, port.parse::<u16>().ok()?)));
    let Some((name, port)) = name.filter(|_| text.parse::<SocketAddr>().is_err()) else { return questions };
    let ways =
        resolvers().into_iter().flat_map(|resolver| interfaces.iter().map(move |interface| (resolver, interface)));
    for (turn, (resolver, interface)) in (0..).zip(ways) {
        let (interface, name) = (interface.clone(), name.to_owned());
        questions.spawn(async move {
            sleep(HEAD_START * turn).await;
            let of = |kind| ask(resolver, &interface, &name, kind);
            let (found, further) = tokio::join!(of(A), of(AAAA));
            found.into_iter().chain(further).flatten().map(|address| SocketAddr::new(address, port)).collect::<Vec<_>>()
        });
    }
    questions
}

/// The host's resolvers on other hosts.
pub fn resolvers() -> Vec<IpAddr> {
    let read = |file: &&str| elsewhere(&std::fs::read_to_string(file).unwrap_or_default());
    FILES.iter().map(read).find(|found| !found.is_empty()).unwrap_or_default()
}

/// Resolvers of a file (resolv.conf(5)) that are not on this host.
fn elsewhere(text: &str) -> Vec<IpAddr> {
    named_resolvers(text).filter(|address| !address.is_loopback()).collect()
}

async fn ask(resolver: IpAddr, interface: &str, name: &str, kind: u16) -> io::Result<Vec<IpAddr>> {
    let socket = Socket::new(Domain::for_address(SocketAddr::new(resolver, PORT)), Type::DGRAM, None)?;
    socket.bind_device(Some(interface.as_bytes()))?;
    socket.set_nonblocking(true)?;
    socket.connect(&SocketAddr::new(resolver, PORT).into())?;
    let socket = UdpSocket::from_std(socket.into())?;
    // An off-path attacker must guess this and the port.
    let id = RandomState::new().hash_one(name) as u16;
    let question = question(id, name, kind).ok_or(io::ErrorKind::InvalidInput)?;
    socket.send(&question).await?;
    let mut answer = vec![0; 1_500];
    let answered = async {
        loop {
            let length = socket.recv(&mut answer).await?;
            if let Some(found) = records(answer.get(..length).unwrap_or_default(), &question, kind) {
                return Ok(found);
            }
        }
    };
    timeout(PATIENCE, answered).await?
}

/// A query (RFC 1035, section 4.1); none for an invalid name.
fn question(id: u16, name: &str, kind: u16) -> Option<Vec<u8>> {
    let mut message = id.to_be_bytes().to_vec();
    // Recursion desired; one question and nothing else.
    message.extend([1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    for label in name.trim_end_matches('.').split('.') {
        let length = u8::try_from(label.len()).ok().filter(|length| (1..64).contains(length))?;
        message.push(length);
        message.extend(label.as_bytes());
    }
    message.push(0);
    message.extend(kind.to_be_bytes());
    message.extend(INTERNET.to_be_bytes());
    Some(message)
}

/// Addresses in an answer; none if it does not match the query.
fn records(answer: &[u8], question: &[u8], kind: u16) -> Option<Vec<IpAddr>> {
    let word = |at: usize| Some(u16::from_be_bytes(answer.get(at..at + 2)?.try_into().ok()?));
    let is_answer = answer.get(..2) == question.get(..2) && answer.get(2)? & 0x80 != 0;
    if !is_answer || answer.get(12..question.len()) != question.get(12..) {
        return None;
    }
    let mut at = question.len();
    let mut found = Vec::new();
    for _ in 0..word(6)? {
        let Some(name) = end_of_name(answer, at) else { break };
        let (Some(its_kind), Some(length)) = (word(name), word(name + 8)) else { break };
        let data = name + 10..name + 10 + usize::from(length);
        let data_of = answer.get(data.clone());
        match (its_kind, data_of) {
            (A, Some(bytes)) if kind == A => {
                found.extend(<[u8; 4]>::try_from(bytes).map(Ipv4Addr::from).map(IpAddr::from))
            }
            (AAAA, Some(bytes)) if kind == AAAA => {
                found.extend(<[u8; 16]>::try_from(bytes).map(Ipv6Addr::from).map(IpAddr::from));
            }
            // A CNAME, whose own records follow.
            _ => {}
        }
        at = data.end;
    }
    Some(found)
}

/// Offset after a name; a pointer ends it (RFC 1035, section 4.1.4).
fn end_of_name(message: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match *message.get(at)? {
            0 => return Some(at + 1),
            length if length >= 0xc0 => return Some(at + 2),
            length => at += usize::from(length) + 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_what_the_rfc_says() {
        let bytes = question(0x1234, "vps.example.", A).expect("a name");
        assert_eq!(bytes, b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x03vps\x07example\x00\x00\x01\x00\x01");
        assert_eq!(question(1, "two..dots", A), None);
        assert_eq!(question(1, &"x".repeat(64), A), None);
    }

    /// A CNAME with two addresses.
    fn answer(question: &[u8]) -> Vec<u8> {
        let mut message = question.to_vec();
        message[2] |= 0x80;
        message[7] = 3;
        message.extend(b"\xc0\x0c\x00\x05\x00\x01\x00\x00\x00\x3c\x00\x05\x02ab\xc0\x10");
        message.extend(b"\x02ab\xc0\x10\x00\x01\x00\x01\x00\x00\x00\x3c\x00\x04\xc0\x00\x02\x01");
        message.extend(b"\x02ab\xc0\x10\x00\x01\x00\x01\x00\x00\x00\x3c\x00\x04\xc0\x00\x02\x02");
        message
    }

    #[test]
    fn addresses_behind_an_alias_are_found() {
        let question = question(7, "vps.example", A).expect("a name");
        let found = records(&answer(&question), &question, A).expect("an answer");
        assert_eq!(found, [IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2])]);
    }

    #[test]
    fn what_answers_something_else_is_no_answer_and_what_is_cut_gives_what_is_whole() {
        let ours = question(7, "vps.example", A).expect("a name");
        let whole = answer(&ours);
        for other in [question(8, "vps.example", A), question(7, "vpn.example", A), question(7, "vps.example", AAAA)] {
            assert_eq!(records(&whole, &other.expect("a name"), A), None);
        }
        assert_eq!(records(&ours, &ours, A), None, "a question is no answer");
        for length in 0..whole.len() {
            let found = records(&whole[..length], &ours, A).unwrap_or_default();
            assert!(found.len() <= 1, "{length}");
        }
    }

    #[test]
    fn resolvers_on_this_host_are_left_out() {
        let text = "# comment\nsearch example\nnameserver 127.0.0.53\nnameserver 192.168.1.1\nnameserver fe80::zz\n";
        assert_eq!(elsewhere(text), [IpAddr::from([192, 168, 1, 1])]);
    }
}
