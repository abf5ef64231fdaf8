"""What stands out in a recording: reads `pytrace print --format json` from standard input.

    pytrace print --format json | python examples/highlights.py

One JSON object a line is an event; DESCRIBED in the README under "JSON lines".
"""

import json
import sys
from collections import Counter
from typing import Any


def place(event: dict[str, Any]) -> str:
    return f"{event['module']}.{event['func']}"


def milliseconds(ns: int) -> str:
    return f"{ns / 1e6:9.3f} ms"


def cut(text: str, width: int = 60) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."


def main() -> None:
    kinds: Counter[str] = Counter()
    calls: Counter[str] = Counter()
    time_in: Counter[str] = Counter()
    slowest: dict[str, dict[str, Any]] = {}
    raised: Counter[tuple[str, str, int, str]] = Counter()
    for line in sys.stdin:
        event = json.loads(line)
        kinds[event["kind"]] += 1
        if event["kind"] == "call":
            calls[place(event)] += 1
        elif event["kind"] in ("return", "exception") and event["duration"] is not None:
            time_in[place(event)] += event["duration"]
            best = slowest.get(place(event))
            if best is None or best["duration"] < event["duration"]:
                slowest[place(event)] = event
        if event["kind"] == "raise":
            exception = event["args"][0]
            raised[place(event), event["file"], event["line"], exception["value"]] += 1

    print("Events:", ", ".join(f"{count:,} {kind}" for kind, count in kinds.most_common()))
    print("\nCalled most often:")
    for name, count in calls.most_common(5):
        print(f"  {count:9,} x {name}")
    print("\nSlowest calls (one of each function):")
    for event in sorted(slowest.values(), key=lambda event: -event["duration"])[:8]:
        outcome = event["args"][0]["value"] if event["args"] else ""
        print(f"  {milliseconds(event['duration'])}  {place(event)} -> {cut(outcome)}")
    print("\nExceptions raised, caught or not:")
    for (name, _, line, value), count in raised.most_common(8):
        print(f"  {count:9,} x {cut(value)}  in {name}, line {line}")


if __name__ == "__main__":
    main()
