"""The program of which databases of earlier versions are recordings; see test_earlier.py."""

import asyncio
import os
import threading


class Order:
    def __init__(self, user: str, total: int) -> None:
        self.user, self.total = user, total

    def pay(self, amount: int) -> str:
        if amount < self.total:
            raise ValueError("too little")
        return f"paid by {self.user}"


def numbers(count: int):
    yield from range(count)


async def serve(name: str) -> str:
    await asyncio.sleep(0)
    return name


async def both() -> list[str]:
    return await asyncio.gather(serve("a"), serve("b"))


def main() -> None:
    order = Order("bob", 3)
    try:
        order.pay(2)
    except ValueError:
        order.pay(3)
    sum(numbers(3))
    thread = threading.Thread(target=numbers, args=(1,), name="worker")
    thread.start()
    thread.join()
    asyncio.run(both())
    if not (pid := os.fork()):
        order.pay(4)
        os._exit(3)
    os.waitpid(pid, 0)


main()
