"""What stands out in a recording: reads `pytrace print --format json` from standard input.

    pytrace print --format json | python examples/highlights.py

One JSON object a line is an event; docs/json.md tells its keys.
"""

import json
import sys
from collections import Counter
from typing import Any


def place(event: dict[str, Any]) -> str:
    return f"{event['module']}.{event['func']}"


def cut(text: str, width: int = 60) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."


def main() -> None:
    kinds: Counter[str] = Counter()
    calls: Counter[str] = Counter()
    slowest: dict[str, dict[str, Any]] = {}  # of each function
    raised: Counter[str] = Counter()
    origin: dict[str, dict[str, Any]] = {}  # of each exception
    for line in sys.stdin:
        event = json.loads(line)
        kinds[event["kind"]] += 1
        match event:
            case {"kind": "call"}:
                calls[place(event)] += 1
            case {"kind": "return" | "exception", "duration": int(duration)}:
                if duration > slowest.get(place(event), {"duration": -1})["duration"]:
                    slowest[place(event)] = event
            case {"kind": "raise", "args": [{"value": exception}]}:
                raised[exception] += 1
                origin.setdefault(exception, event)

    print("Events:", ", ".join(f"{count:,} {kind}" for kind, count in kinds.most_common()))
    print("\nCalled most often:")
    for name, count in calls.most_common(5):
        print(f"  {count:9,} x  {name}")
    print("\nSlowest functions, by their slowest call:")
    for event in sorted(slowest.values(), key=lambda event: -event["duration"])[:8]:
        result = event["args"][0]["value"] if event["args"] else ""
        print(f"  {event['duration'] / 1e6:8.1f} ms  {place(event)} -> {cut(result)}")
    print("\nExceptions, the rarest first, and where they started (caught or not):")
    for exception, count in sorted(raised.items(), key=lambda item: item[1])[:8]:
        event = origin[exception]
        print(f"  {count:9,} x  {cut(exception)}\n{'':15}in {place(event)}, line {event['line']}")


if __name__ == "__main__":
    main()
