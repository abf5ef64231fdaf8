"""Tests of CPython that see their recording, and why; see docs/limits.md. Read by cpython.py.

A row: the versions of Python, a pattern for MODULE:TEST as cpython.py prints them, the reason.
"""

KNOWN: list[tuple[set[tuple[int, int]], str, str]] = []
