"""urwid, for all modules that draw with it: `from .toolkit import urwid`.

urwid has an event loop for each of five libraries, and imports every one of them that is installed.
Each takes as long as the rest of the reader's start together. The reader uses none of them.
"""

from __future__ import annotations

import sys

_LIBRARIES = ("gi", "tornado", "trio", "twisted", "zmq")

_hidden = [name for name in _LIBRARIES if name not in sys.modules]
sys.modules.update(dict.fromkeys(_hidden))  # type: ignore[arg-type]  # None: there is no such module
try:
    import urwid
    from urwid.command_map import Command, CommandMap
finally:
    for _name in _hidden:
        del sys.modules[_name]

__all__ = ["Command", "CommandMap", "urwid"]
