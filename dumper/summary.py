"""The line that the program prints at its end: the recording's size, its file, and its losses."""

import os

from .store import Totals

DEFAULT_NAME = "traces.sqlite"


def summary(totals: Totals | None, path: str, directory: str, notes: list[str], goes_on: bool = False) -> str:
    """totals: None if they could not be read. path, directory: absolute. notes: problems. goes_on:
    the program has ended, but processes that it started have not."""
    below = os.path.join(directory, "")
    name = path[len(below) :] if path.startswith(below) else path
    if totals is None:
        return f"pytrace: nothing could be saved in {name}: " + "; ".join(notes)
    file = f"{name} ({readable_size(totals.size)})"
    missing = []
    if totals.lost:
        missing.append(f"{counted(totals.lost, 'event')} lost (buffer full; --buffer-size helps)")
    if totals.evicted:
        oldest = counted(totals.evicted, "event")
        missing.append(f"the oldest {oldest} removed to keep the size (--max-size, --max-traces)")
    if totals.refused:
        missing.append(f"{counted(totals.refused, 'chunk')} unreadable")
    if totals.turned_away:
        many = counted(totals.turned_away, "process", "processes")
        missing.append(f"{many} not recorded (one recording has room for 16,384)")
    missing += notes
    events, processes = counted(totals.events, "event"), counted(totals.processes, "process", "processes")
    problems = "; ".join(missing) if missing else "none lost"
    if goes_on:
        problems += "; others that it started still run"
    how = f"Open it with: {command_to_read(name)}"
    return f"pytrace: {events} of {processes} in {file}, {problems}. {how}"


def command_to_read(name: str) -> str:
    """The command that opens the database, to be typed in the folder of the program's start."""
    if name == DEFAULT_NAME:
        return "pytrace"
    from shlex import quote

    return f"pytrace read {quote(name)}"


def counted(number: int, one: str, many: str = "") -> str:
    """`1 event`, `1,234 events`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def readable_size(size: int) -> str:
    """Bytes in units of 1000, as file managers show them."""
    if size < 1000:
        return f"{size} B"
    amount = size / 1000
    units = iter(("kB", "MB", "GB"))
    unit = next(units)
    while amount >= 999.95 and unit != "GB":
        amount /= 1000
        unit = next(units)
    return f"{amount:.1f} {unit}"
