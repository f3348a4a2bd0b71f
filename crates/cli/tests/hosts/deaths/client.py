"""Opens connections at each line of its input, by SOCKS5 (RFC 1928) or straight; prints seconds to the first byte, and errors."""
import json, socket, struct, sys, threading, time

by_proxy, count, length = sys.argv[1] == "proxy", int(sys.argv[2]), int(sys.argv[3])
target = ("192.0.2.80", 80)
expected = bytes((at * 2_654_435_761 & 0xFFFFFFFF) >> 24 for at in range(length))

def exactly(s, count):
    got = b""
    while len(got) < count and (part := s.recv(count - len(got))):
        got += part
    return got

def fetch():
    began = time.monotonic()
    with socket.create_connection(("127.0.0.1", 1080) if by_proxy else target, timeout=70) as s:
        if by_proxy:
            s.sendall(b"\5\1\0")
            exactly(s, 2)
            s.sendall(b"\5\1\0\1" + socket.inet_aton(target[0]) + struct.pack("!H", target[1]))
            if (reply := exactly(s, 10))[1:2] != b"\0":
                raise OSError(f"SOCKS5 reply {reply}")
        s.sendall(struct.pack("!I", length))
        got = s.recv(1)
        seconds = time.monotonic() - began
        got += exactly(s, length + 1)
    if got != expected:
        raise OSError(f"{len(got)} bytes of {length}, or others")
    return seconds

def worker(left, times, errors):
    while True:
        try:
            left.pop()
        except IndexError:
            return
        try:
            times.append(fetch())
        except OSError as error:
            errors.append(repr(error))

print("ready", flush=True)
while sys.stdin.readline():
    left, times, errors = [0] * count, [], []
    threads = [threading.Thread(target=worker, args=(left, times, errors)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps([sorted(times), errors]), flush=True)
