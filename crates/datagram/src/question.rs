//! DNS queries of programs over TCP. They go to the server's resolver over TCP too (RFC 7766), so that no answer is
//! truncated.

use core::net::SocketAddr;
use core::time::Duration;
use std::io;
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Time limit for one resolver.
const PATIENCE: Duration = Duration::from_secs(4);

/// The answer of the first resolver that answers, starting at index `first`.
pub async fn ask(nameservers: &Arc<[SocketAddr]>, first: usize, question: &[u8]) -> Option<Vec<u8>> {
    for index in 0..nameservers.len() {
        let resolver = nameservers.get(first.wrapping_add(index) % nameservers.len())?;
        if let Ok(Ok(answer)) = timeout(PATIENCE, ask_one(*resolver, question)).await {
            return Some(answer);
        }
    }
    None
}

async fn ask_one(resolver: SocketAddr, question: &[u8]) -> io::Result<Vec<u8>> {
    let length = u16::try_from(question.len()).map_err(io::Error::other)?;
    let mut stream = TcpStream::connect(resolver).await?;
    stream.write_all(&[&length.to_be_bytes(), question].concat()).await?;
    let mut answer = vec![0; stream.read_u16().await?.into()];
    stream.read_exact(&mut answer).await?;
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    #[tokio::test]
    async fn the_next_resolver_is_asked_if_one_does_not_answer_and_its_answer_is_whole() {
        let closed = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let refuses = closed.local_addr().expect("it is bound");
        drop(closed);
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let answers = listener.local_addr().expect("it is bound");
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.expect("somebody asks");
            let mut question = [0; 5];
            stream.read_exact(&mut question).await.expect("it is asked");
            assert_eq!(&question, b"\x00\x03who");
            stream.write_all(&[&u16::MAX.to_be_bytes()[..], &[7; 65_535]].concat()).await.expect("it listens");
        });
        let answer = ask(&Arc::from([refuses, answers]), 0, b"who").await;
        assert_eq!(answer, Some(vec![7; 65_535]));
    }
}
