"""Makes events as fast as it can, until a file is there: `flatout.py FILE`. leave_on.py records it.

Every so often `mark` is called with a number, one higher each time; the last one is printed at the
end.
"""

import os
import sys

BETWEEN = 20_000  # orders between two marks


class Order:
    def __init__(self, user: str, amount: int) -> None:
        self.user, self.amount = user, amount

    def price(self, discount: float) -> float:
        return self.amount * (1 - discount)


def pay(order: Order, way: str) -> str:
    return f"{order.user} pays {order.price(0.1)} by {way}"


def mark(number: int) -> int:
    return number


def main(stop: str) -> None:
    number = 0
    while not os.path.exists(stop):
        for i in range(BETWEEN):
            pay(Order(f"user {i % 977}", i), "card")
        number += 1
        mark(number)
    print(number)


main(sys.argv[1])
