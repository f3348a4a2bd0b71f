"""The server's program of .ci/up.

Sends as long as the client wants: TCP at once, UDP of a rate (Mbit/s) to who asks for it.
"""

import contextlib
import socket
import socketserver
import struct
import threading
import time

ADDRESS = ("198.51.100.2", 8000)
# Octets of a datagram.
SIZE = 1200


class Stream(socketserver.BaseRequestHandler):
    """A TCP connection."""

    def handle(self) -> None:
        """Sends until the client closes."""
        block = bytes(1 << 18)
        with contextlib.suppress(OSError):
            while True:
                self.request.sendall(block)


class Datagrams(socketserver.BaseRequestHandler):
    """A request for datagrams: rate in Mbit/s, and seconds."""

    def handle(self) -> None:
        """Sends numbered datagrams, each with the time in seconds at which it is due."""
        asked: bytes
        sock: socket.socket
        asked, sock = self.request
        rate, seconds = struct.unpack("!II", asked[:8])
        gap, begin, number = SIZE * 8 / (rate * 1e6), time.monotonic(), 0
        while (now := time.monotonic() - begin) < seconds:
            while number * gap <= now:
                sock.sendto(struct.pack("!Id", number, number * gap) + bytes(SIZE - 12), self.client_address)
                number += 1
            time.sleep(0.0005)


class Tcp(socketserver.ThreadingTCPServer):
    """A thread for each connection."""

    allow_reuse_address = daemon_threads = True


class Udp(socketserver.ThreadingUDPServer):
    """A thread for each request."""

    daemon_threads = True


if __name__ == "__main__":
    threading.Thread(target=Tcp(ADDRESS, Stream).serve_forever).start()
    Udp(ADDRESS, Datagrams).serve_forever()
