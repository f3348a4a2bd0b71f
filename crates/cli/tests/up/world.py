"""What answers in the world: `target` has a page, echoes of TCP and UDP, and a resolver; `echo` only the echoes."""
import http.server, socket, socketserver, struct, sys, threading

class Echo(socketserver.BaseRequestHandler):
    def handle(self):
        while data := self.request.recv(65536):
            self.request.sendall(data)

class UdpEcho(socketserver.BaseRequestHandler):
    def handle(self):
        data, sock = self.request
        sock.sendto(data, self.client_address)

class Resolver(socketserver.BaseRequestHandler):
    """Every name has the target's address."""
    def handle(self):
        data, sock = self.request
        answer = data[:2] + b"\x81\x80" + data[4:6] + b"\x00\x01\x00\x00\x00\x00" + data[12:]
        answer += b"\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x3c\x00\x04" + socket.inet_aton("198.51.100.2")
        sock.sendto(answer, self.client_address)

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
    servers += [dual(socketserver.ThreadingUDPServer)(("::", 53), Resolver)]
for server in servers:
    threading.Thread(target=server.serve_forever).start()
print("ready", flush=True)
