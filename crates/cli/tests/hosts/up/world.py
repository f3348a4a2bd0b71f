"""What answers in the world: `target` has a page, echoes of TCP and UDP, and a resolver; `echo` only the echoes; `liar` has a resolver that knows `server.test` at another address."""
import http.server, socket, socketserver, struct, sys, threading

class Echo(socketserver.BaseRequestHandler):
    def handle(self):
        while data := self.request.recv(65536):
            self.request.sendall(data)

class UdpEcho(socketserver.BaseRequestHandler):
    def handle(self):
        data, sock = self.request
        sock.sendto(data, self.client_address)

SERVER = "10.1.0.9" if sys.argv[1] == "liar" else "203.0.113.1"

def answer(data, room):
    """`server.test` has the server's address, every other name the target's, and a name that begins with a number a text so long that the answer has as many bytes."""
    end = data.index(0, 12) + 5
    question, kind = data[12:end], data[end - 3]
    # EDNS (RFC 6891): how much the answer may have.
    if data[10:12] != b"\0\0" and room == 512:
        room = max(512, struct.unpack("!H", data[end + 3:end + 5])[0])
    answers = []
    if kind == 1:
        answers = [socket.inet_aton(SERVER if question.startswith(b"\6server\4test") else "198.51.100.2")]
    elif kind == 16:
        rest = int(question[1:1 + question[0]]) - 12 - len(question)
        while rest > 40:
            length = min(rest - 13, 255)
            answers.append(bytes([length]) + b"." * length)
            rest -= length + 13
    found = b"".join(b"\xc0\x0c\0" + bytes([kind]) + b"\0\x01\0\0\0\x3c" + struct.pack("!H", len(one)) + one for one in answers)
    cut = 12 + len(question) + len(found) > room
    head = data[:2] + (b"\x83\x80" if cut else b"\x81\x80") + b"\0\x01" + struct.pack("!H", 0 if cut else len(answers)) + b"\0\0\0\0"
    return head + question + (b"" if cut else found)

class Resolver(socketserver.BaseRequestHandler):
    def handle(self):
        data, sock = self.request
        sock.sendto(answer(data, 512), self.client_address)

class TcpResolver(socketserver.StreamRequestHandler):
    def handle(self):
        while length := self.rfile.read(2):
            said = answer(self.rfile.read(struct.unpack("!H", length)[0]), 65535)
            self.wfile.write(struct.pack("!H", len(said)) + said)

class Page(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        # The path is a number of bytes, or nothing: then it is said who asks.
        asked = self.path.strip("/")
        body = bytes(int(asked)) if asked.isdigit() else self.client_address[0].removeprefix("::ffff:").encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *words):
        pass

def dual(kind):
    class Dual(kind):
        address_family = socket.AF_INET6
        allow_reuse_address = True
        daemon_threads = True
        request_queue_size = 128
        def server_bind(self):
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            super().server_bind()
    return Dual

servers = [dual(socketserver.ThreadingTCPServer)(("::", 7), Echo)]
servers += [dual(socketserver.ThreadingUDPServer)(("::", 7), UdpEcho)]
if sys.argv[1] == "target":
    servers += [dual(http.server.ThreadingHTTPServer)(("::", 80), Page)]
if sys.argv[1] in ["target", "liar"]:
    servers += [dual(socketserver.ThreadingUDPServer)(("::", 53), Resolver)]
    servers += [dual(socketserver.ThreadingTCPServer)(("::", 53), TcpResolver)]
for server in servers:
    threading.Thread(target=server.serve_forever).start()
print("ready", flush=True)
