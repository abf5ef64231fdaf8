"""The program that the tests of the debug adapter record; each line that they name has a mark."""

from recording import Record, Recording

SOURCE = """\
import threading

class Order:
    def __init__(self, user, total):
        self.user = user
        self.total = total

def add(orders):
    result = 0
    for order in orders:
        result += order.total  # added
    return result

def fail(n):
    if n == 0:
        raise ValueError("zero")  # raised
    return fail(n - 1)  # deeper

def worker(name):
    seen = []
    for i in range(3):
        seen.append(i)  # seen
    return seen

def main():
    orders = [Order("bob", 3), Order("eve", 4), Order("joe", 5)]
    total = add(orders)  # main
    thread = threading.Thread(target=worker, args=("w",))
    thread.start()
    thread.join()
    try:
        fail(2)
    except ValueError as error:
        text = str(error)
    return text, {"total": total, "names": ["a", "b"]}  # end

main()  # call
"""


def line_of(mark: str) -> int:
    """The number of the line with a mark."""
    [number] = [n for n, line in enumerate(SOURCE.splitlines(), 1) if line.endswith(f"# {mark}")]
    return number


def recorded(record: Record, *options: str) -> Recording:
    return record(SOURCE, *(options or ("--lines",)))
