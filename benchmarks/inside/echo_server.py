"""An asyncio server that answers each line with the same line: `echo_server.py FD`, a listening
socket."""

import asyncio
import socket
import sys


def answer(line: bytes) -> bytes:
    return line


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while line := await reader.readline():
        writer.write(answer(line))
        await writer.drain()
    writer.close()


async def main() -> None:
    server = await asyncio.start_server(serve, sock=socket.socket(fileno=int(sys.argv[1])))
    await server.serve_forever()


asyncio.run(main())
