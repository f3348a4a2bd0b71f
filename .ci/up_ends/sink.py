"""The client's program of .ci/up: asks the server's for octets, and prints what arrives.

python3 .ci/up_ends/sink.py tcp SECONDS POSSIBLE       TCP, after a second of warming up, beside the POSSIBLE Mbit/s
python3 .ci/up_ends/sink.py udpRATE SECONDS POSSIBLE   UDP of RATE Mbit/s, with losses and jitter
"""

import socket
import struct
import sys
import time

ADDRESS = ("198.51.100.2", 8000)


class Datagrams:
    """What is counted of datagrams."""

    def __init__(self) -> None:
        """Of no datagram yet."""
        self.begin = time.monotonic()
        self.got, self.octets, self.reordered, self.last = 0, 0, 0, 0
        self.jitter = 0.0
        self.before: float | None = None

    def add(self, data: bytes) -> None:
        """Counts a datagram that just arrived. Jitter is as RFC 3550 (section 6.4.1) has it."""
        number, sent = struct.unpack("!Id", data[:12])
        transit = time.monotonic() - self.begin - sent
        if self.before is not None:
            self.jitter += (abs(transit - self.before) - self.jitter) / 16
        self.before = transit
        self.got += 1
        self.octets += len(data)
        self.reordered += number < self.last
        self.last = max(self.last, number)


def tcp(seconds: float, possible: float) -> None:
    """Receives over TCP for a time, and prints the rate."""
    stream = socket.create_connection(ADDRESS, timeout=10)
    begin, count = time.monotonic(), 0
    measured_from = None
    while (now := time.monotonic()) < begin + seconds + 1:
        part = stream.recv(1 << 20)
        if now >= begin + 1:
            measured_from = measured_from or now
            count += len(part)
    if measured_from is None:
        sys.exit("TCP: nothing came after a second")
    rate = count * 8 / (time.monotonic() - measured_from) / 1e6
    print(f"TCP: {rate:.1f} Mbit/s of {possible:.0f} ({100 * rate / possible:.1f} %)")


def asked_for(sock: socket.socket, rate: int, seconds: int) -> bytes:
    """Asks the server until it sends; gives the first datagram."""
    for _ in range(5):
        sock.sendto(struct.pack("!II", rate, seconds), ADDRESS)
        try:
            return sock.recv(2000)
        except TimeoutError:
            pass
    sys.exit("UDP: nothing came")


def udp(rate: int, seconds: float) -> None:
    """Receives datagrams until none comes for two seconds, and prints what they were."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
    sock.settimeout(2)
    data = asked_for(sock, rate, int(seconds))
    seen = Datagrams()
    try:
        while True:
            seen.add(data)
            data = sock.recv(2000)
    except TimeoutError:
        pass
    carried = seen.octets * 8 / seconds / 1e6
    lost = 100 * (1 - seen.got / (seen.last + 1))
    told = f"{carried:.1f} Mbit/s, {lost:.2f} % lost, {seen.reordered} out of order"
    print(f"UDP of {rate} Mbit/s: {told}, jitter {seen.jitter * 1000:.2f} ms at the end")


def main() -> None:
    """Receives what is asked for."""
    kind, seconds, possible = sys.argv[1], float(sys.argv[2]), float(sys.argv[3])
    if kind == "tcp":
        tcp(seconds, possible)
    else:
        udp(int(kind[3:]), seconds)


if __name__ == "__main__":
    main()
