"""Loads a server, and prints how many requests it answered a second.

`client.py PORT KIND CONNECTIONS SECONDS PROCESSOR...`: KIND is echo (a line), http (a connection
for each request), or keep-alive (many requests on a connection). Each connection asks again as soon
as it has its answer. The time begins when all have had one: the server may still be starting.
"""

import os
import selectors
import socket
import sys
from time import perf_counter

REQUEST = b"GET /orders/%d HTTP/1.1\r\nHost: localhost\r\nAccept: application/json\r\n\r\n"


class Connection:
    def __init__(self, port: int, kind: str, selector: selectors.EpollSelector) -> None:
        self.port, self.kind, self.selector = port, kind, selector
        self.count = 0
        self.connect()

    def connect(self) -> None:
        self.socket = socket.create_connection(("127.0.0.1", self.port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.selector.register(self.socket, selectors.EVENT_READ, self)

    def ask(self) -> None:
        self.answer = b""
        number = self.count % 1000
        self.socket.sendall(b"request %d\n" % number if self.kind == "echo" else REQUEST % number)

    def answered(self) -> bool:
        """Reads what there is: whether that was the end of an answer."""
        data = self.socket.recv(65536)
        self.answer += data
        if self.kind == "http":
            complete = not data
        elif not data:
            sys.exit("the server has closed the connection")
        else:
            complete = data.endswith(b"\n" if self.kind == "echo" else b"}\n")
        if not complete:
            return False
        if self.kind != "echo" and not self.answer.startswith(b"HTTP/1.1 200 "):
            sys.exit(f"answered: {self.answer!r}")
        self.count += 1
        if self.kind == "http":
            self.close()
            self.connect()
        return True

    def close(self) -> None:
        self.selector.unregister(self.socket)
        self.socket.close()


def main() -> None:
    port, kind, count, seconds = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
    os.sched_setaffinity(0, map(int, sys.argv[5:]))
    selector = selectors.EpollSelector()
    connections = [Connection(port, kind, selector) for _ in range(count)]

    def ask_until(enough: float) -> int:
        """Asks until then, has all answered that was asked, and says how many requests that
        were."""
        before = sum(connection.count for connection in connections)
        for connection in connections:
            connection.ask()
        waiting = count
        while waiting:
            for key, _ in selector.select():
                if key.data.answered():
                    if perf_counter() < enough:
                        key.data.ask()
                    else:
                        waiting -= 1
        return sum(connection.count for connection in connections) - before

    ask_until(0)
    start = perf_counter()
    answered = ask_until(start + seconds)
    print(answered, perf_counter() - start)


main()
