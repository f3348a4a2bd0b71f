"""An end of a connection of the kernel's MPTCP, within a namespace of `anabranch emulate`.

The client connects from the address of a path. The end that receives writes what it has received, every half second from the first byte on.
"""

import json, os, socket, sys, threading, time

MPTCP = 262
PORT = 7
STEP = 0.5


def receive(stream, seconds, file):
    begin, count, marks = None, 0, []
    while True:
        part = stream.recv(1 << 16)
        now = time.monotonic()
        if begin is None:
            begin, wall = now, time.time()
        count += len(part)
        while now - begin >= STEP * (len(marks) + 1):
            marks.append(count)
        if not part or now - begin >= seconds:
            break
    with open(file, "w") as out:
        json.dump({"begun": wall, "marks": marks}, out)


def send(stream):
    block = bytes(1 << 16)
    try:
        while True:
            stream.sendall(block)
    except OSError:
        pass


def end_after(seconds):
    """The end of a program that sends, or that waits for a path which carries nothing; that of the other end follows."""
    timer = threading.Timer(seconds, lambda: os._exit(0))
    timer.daemon = True
    timer.start()


def main():
    role, direction, buffer, seconds, address, file = sys.argv[1:7]
    seconds = float(seconds)
    stream = socket.socket(socket.AF_INET, socket.SOCK_STREAM, MPTCP)
    receives = (role == "client") == (direction == "download")
    if receives and buffer != "automatic":
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, int(buffer))
    if role == "server":
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        stream.bind(("0.0.0.0", PORT))
        stream.listen(16)
        # Joins need a listener as long as the connection lives.
        listener = stream
        stream, _ = listener.accept()
    else:
        end_after(seconds + (10 if receives else 2))
        stream.bind((address, 0))
        stream.connect(("10.0.0.2", PORT))
        stream.sendall(b"x")
    if role == "server":
        stream.recv(1)
        # A connection allows joins when the server's data has arrived.
        stream.sendall(b"x")
    else:
        stream.recv(1)
    if receives:
        receive(stream, seconds, file)
    else:
        send(stream)


main()
