"""MPTCP at both ends.

world.py serve           answers each connection's bytes with the same, on port 7 of all addresses; says "ready"
world.py keep ADDRESS    a connection on which a byte is exchanged each 50 ms; says "ready", then each line of its input is answered
                         with how many bytes came back
world.py churn ADDRESS RATE SECONDS    opens and closes connections; says how many
"""
import socket, sys, threading, time

def connect(address):
    s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
    s.settimeout(20)
    s.connect((address, 7))
    return s

def echo(s):
    try:
        while data := s.recv(65536):
            s.sendall(data)
    except OSError:
        pass
    s.close()

def serve():
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(('0.0.0.0', 7))
    listener.listen(4096)
    print('ready', flush=True)
    while True:
        threading.Thread(target=echo, args=(listener.accept()[0],), daemon=True).start()

def keep(address):
    s, count = connect(address), 0
    def talk():
        nonlocal count
        while True:
            s.sendall(b'x')
            count += len(s.recv(1))
            time.sleep(0.05)
    talker = threading.Thread(target=talk, daemon=True)
    talker.start()
    print('ready', flush=True)
    for _ in sys.stdin:
        print(count if talker.is_alive() else 'dead', flush=True)

def churn(address, rate, seconds):
    opened, begin = [0] * 8, time.monotonic()
    def work(at):
        while (now := time.monotonic() - begin) < seconds:
            if opened[at] < now * rate / 8:
                s = connect(address)
                s.sendall(b'x')
                s.recv(1)
                s.close()
                opened[at] += 1
            else:
                time.sleep(0.001)
    workers = [threading.Thread(target=work, args=(at,)) for at in range(8)]
    [worker.start() for worker in workers]
    [worker.join() for worker in workers]
    print(sum(opened), flush=True)

if sys.argv[1] == 'serve':
    serve()
elif sys.argv[1] == 'keep':
    keep(sys.argv[2])
else:
    churn(sys.argv[2], float(sys.argv[3]), float(sys.argv[4]))
