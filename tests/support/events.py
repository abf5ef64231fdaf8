"""Events as the table `event` has them, for the tests of what is made of them."""

import json
from typing import NamedTuple

from pytracer.reader.rows import Row, Source


class Code(NamedTuple):
    module: str
    func: str
    file: str
    line: int


MAIN = Source(1, 100, 100, "MainThread")
PAY = Code("app", "Order.pay", "/home/me/app.py", 10)
CUSTOMER = Code("app", "Customer.name", "/home/me/app.py", 30)
NO_CODE = Code("", "", "", 0)
TIME = 1_700_000_000_123_456_789
RETURNED = ("return value", "True", "bool")
ERROR = ("exception", "ValueError('x')", "ValueError")


def made(
    kind: str,
    *args: tuple[str, str, str],
    code: Code = PAY,
    source: Source = MAIN,
    depth: int = 0,
    duration: int | None = None,
    line: int | None = None,
    id: int = 1,
    time: int = TIME,
    task: str = "",
    layer: str = "python",
    cpu: int | None = None,
) -> Row:
    """An event as the table `event` has it; args are name, value, type."""
    run, pid, tid, thread, _ = source
    names = [name.encode("utf-8", "surrogatepass") for name in (thread, *code[:3])]
    values = json.dumps([dict(zip(("name", "value", "type"), each, strict=True)) for each in args])
    line = code.line if line is None else line
    of_task = task.encode("utf-8", "surrogatepass")
    more = of_task, layer.encode(), cpu
    return (id, run, time, pid, tid, names[0], kind, *names[1:], line, depth, duration, values, *more)  # type: ignore[return-value]
