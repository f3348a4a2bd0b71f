"""An end of a connection of the kernel's MPTCP, within a namespace of `anabranch emulate`.

The client connects from the address of a path. The end that receives writes what it has received, every half second
from the first byte on.
"""

import contextlib
import json
import os
import socket
import sys
import threading
import time

MPTCP = 262
PORT = 7
STEP = 0.5


def receive(stream: socket.socket, seconds: float, file: str) -> None:
    """Receives for a time, and writes when that began (s of the clock) and the octets by the end of each step."""
    part = stream.recv(1 << 16)
    begin, wall = time.monotonic(), time.time()
    now, count = begin, len(part)
    marks: list[int] = []
    while part and now - begin < seconds:
        part = stream.recv(1 << 16)
        now = time.monotonic()
        count += len(part)
        while now - begin >= STEP * (len(marks) + 1):
            marks.append(count)
    with open(file, "w") as out:
        json.dump({"begun": wall, "marks": marks}, out)


def send(stream: socket.socket) -> None:
    """Sends until the connection ends."""
    block = bytes(1 << 16)
    with contextlib.suppress(OSError):
        while True:
            stream.sendall(block)


def end_after(seconds: float) -> None:
    """Ends a program that sends, or that waits for a path which carries nothing; that of the other end follows."""
    timer = threading.Timer(seconds, lambda: os._exit(0))
    timer.daemon = True
    timer.start()


def accepted(listener: socket.socket) -> socket.socket:
    """The server's end of the connection. A connection allows joins when the server's data has arrived."""
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("0.0.0.0", PORT))
    listener.listen(16)
    stream, _ = listener.accept()
    stream.recv(1)
    stream.sendall(b"x")
    return stream


def connect(stream: socket.socket, address: str) -> None:
    """Connects the client's end, from the address of a path."""
    stream.bind((address, 0))
    stream.connect(("10.0.0.2", PORT))
    stream.sendall(b"x")
    stream.recv(1)


def main() -> None:
    """Connects or accepts, then receives or sends."""
    role, direction, buffer, duration, address, file = sys.argv[1:7]
    seconds = float(duration)
    first = socket.socket(socket.AF_INET, socket.SOCK_STREAM, MPTCP)
    receives = (role == "client") == (direction == "download")
    if receives and buffer != "automatic":
        first.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, int(buffer))
    if role == "server":
        # Joins need a listener as long as the connection lives: `first` is kept.
        stream = accepted(first)
    else:
        end_after(seconds + (10 if receives else 2))
        stream = first
        connect(stream, address)
    if receives:
        receive(stream, seconds, file)
    else:
        send(stream)


if __name__ == "__main__":
    main()
