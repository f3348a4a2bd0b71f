"""What stands in the world: says "ready" when all of it listens.

TCP 8000  HTTP: /N gives N bytes, 0, 1, 2, ... 250, 0, ...
TCP 8001  reads to the end, then answers with how many bytes came and their SHA-256
TCP 8002  reads a byte and resets
TCP 8003  sends back what comes
UDP 8003  sends back what comes
53        UDP and TCP on 127.0.0.1, UDP on 203.0.113.1 too: says that every name has 203.0.113.1 and no other address
"""
import asyncio, hashlib, http.server, socket, struct, threading

class Server(http.server.ThreadingHTTPServer):
    address_family = socket.AF_INET6
    request_queue_size = 4096

class Pattern(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        length = int(self.path[1:])
        self.send_response(200)
        self.send_header('Content-Length', str(length))
        self.end_headers()
        pattern = bytes(range(251)) * (length // 251 + 1)
        self.wfile.write(pattern[:length])
    def log_message(self, *words):
        pass

async def whole(reader, writer):
    digest, length = hashlib.sha256(), 0
    while data := await reader.read(65536):
        digest.update(data)
        length += len(data)
    writer.write(f'{length} {digest.hexdigest()}'.encode())
    await writer.drain()
    writer.close()

async def reset(reader, writer):
    await reader.read(1)
    writer.get_extra_info('socket').setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
    writer.transport.abort()

async def echo(reader, writer):
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()

class Echo(asyncio.DatagramProtocol):
    def connection_made(self, transport):
        self.transport = transport
    def datagram_received(self, data, address):
        self.transport.sendto(data, address)

class Names(Echo):
    def datagram_received(self, data, address):
        self.transport.sendto(found(data), address)

async def names(reader, writer):
    while length := await reader.read(2):
        said = found(await reader.readexactly(int.from_bytes(length, 'big')))
        writer.write(len(said).to_bytes(2, 'big') + said)

def found(data):
    question = data[12:data.index(0, 12) + 5]
    wanted = question[-4:] == bytes([0, 1, 0, 1])
    answer = bytes([192, 12, 0, 1, 0, 1, 0, 0, 0, 9, 0, 4, 203, 0, 113, 1]) if wanted else b''
    head = data[:2] + bytes([0x81, 0x80, 0, 1, 0, int(wanted), 0, 0, 0, 0])
    return head + question + answer

async def main():
    web = Server(('::', 8000), Pattern)
    threading.Thread(target=web.serve_forever, daemon=True).start()
    for port, work in [(8001, whole), (8002, reset), (8003, echo)]:
        await asyncio.start_server(work, None, port, backlog=4096)
    await asyncio.start_server(names, '127.0.0.1', 53)
    loop = asyncio.get_running_loop()
    for address in ['203.0.113.1', '2001:db8::1']:
        await loop.create_datagram_endpoint(Echo, (address, 8003))
    for address in ['127.0.0.1', '203.0.113.1']:
        await loop.create_datagram_endpoint(Names, (address, 53))
    print('ready', flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
