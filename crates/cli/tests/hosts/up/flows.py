"""Many flows of datagrams at once. `echo PORT` answers; `send ADDRESS PORT FLOWS ROUNDS` lets each flow send once a round, and beside
them one flow send a datagram every 20 ms, as a call does. When it has printed what was answered it waits, with all sockets open."""
import json, resource, select, socket, struct, sys, time

# Datagrams a second of all flows but the call.
RATE = 4_000

def echo(port):
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    # SO_RCVBUFFORCE, which Python does not name.
    sock.setsockopt(socket.SOL_SOCKET, 33, 16 << 20)
    sock.bind(("", port))
    print("ready", flush=True)
    while True:
        data, source = sock.recvfrom(2000)
        sock.sendto(data, source)

class Flow:
    def __init__(self, poll, number, target):
        self.number, self.sent, self.answered, self.wrong = number, 0, 0, 0
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.setblocking(False)
        self.socket.connect(target)
        poll.register(self.socket, select.EPOLLIN)
    def send(self):
        self.sent += 1
        self.socket.send(struct.pack("!II", self.number, self.sent) + bytes(152))
    def read(self):
        try:
            while True:
                number, count = struct.unpack("!II", self.socket.recv(2000)[:8])
                fits = number == self.number and 0 < count <= self.sent
                self.answered, self.wrong = self.answered + fits, self.wrong + (not fits)
        except BlockingIOError:
            pass

def main(address, port, flows, rounds):
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    poll = select.epoll()
    all_flows = [Flow(poll, number, (address, port)) for number in range(flows + 1)]
    call, by_file = all_flows.pop(), {flow.socket.fileno(): flow for flow in all_flows}
    by_file[call.socket.fileno()] = call
    begin, turn, calls, last = time.monotonic(), 0, 0, None
    while last is None or time.monotonic() < last + 3:
        now = time.monotonic() - begin
        for _ in range(100):
            if turn < flows * rounds and turn <= now * RATE:
                all_flows[turn % flows].send()
                turn += 1
        if turn < flows * rounds and now >= calls * 0.02:
            call.send()
            calls += 1
        if turn == flows * rounds:
            last = last or time.monotonic()
        for file, _ in poll.poll(0.001, 1000):
            by_file[file].read()
    print(json.dumps({
        "sent": sum(flow.sent for flow in all_flows), "answered": sum(flow.answered for flow in all_flows),
        "least": min(flow.answered for flow in all_flows), "silent": sum(flow.answered == 0 for flow in all_flows),
        "wrong": sum(flow.wrong for flow in all_flows + [call]), "call_sent": call.sent, "call_answered": call.answered,
    }), flush=True)
    sys.stdin.read()

if sys.argv[1] == "echo":
    echo(int(sys.argv[2]))
else:
    main(sys.argv[2], *map(int, sys.argv[3:]))
