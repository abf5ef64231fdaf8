"""`python -m test` where sys.monitoring shows all tools but pytrace's; used by cpython.py.

test_monitoring begins and ends each of its tests with a look whether anybody listens, and would do
nothing else.
"""

import runpy
import sys
from typing import Any

monitoring: Any = sys.monitoring  # type: ignore[attr-defined, unused-ignore]  # 3.12 and later
ours = [tool for tool in range(6) if monitoring.get_tool(tool) == "pytrace"]
get_events, all_events = monitoring.get_events, monitoring._all_events


def get_events_of_others(tool: int) -> int:
    return 0 if tool in ours else get_events(tool)


def all_events_of_others() -> dict[str, int]:
    masks = {event: tools & ~sum(1 << tool for tool in ours) for event, tools in all_events().items()}
    return {event: mask for event, mask in masks.items() if mask}


monitoring.get_events = get_events_of_others
monitoring._all_events = all_events_of_others
runpy.run_module("test", run_name="__main__", alter_sys=True)
