"""urwid, for all modules that draw with it: `from .toolkit import urwid`.

urwid has an event loop for each of six libraries, and imports every one of them that is installed.
Each takes as long as the rest of the reader's start together; asyncio, which always is there, a
sixth of it. The reader uses none of them.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType

_LIBRARIES = ("gi", "tornado", "trio", "twisted", "zmq")


class _Late(ModuleType):
    """Stands in for a module, and imports it once it is asked for something."""

    def __getattr__(self, name: str) -> object:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(importlib.import_module(self.__name__), name)


# None: there is no such module
_instead = {"asyncio": _Late("asyncio"), **dict.fromkeys(_LIBRARIES)}
_hidden = {name: module for name, module in _instead.items() if name not in sys.modules}
sys.modules.update(_hidden)  # type: ignore[arg-type]
try:
    import urwid
    from urwid.command_map import Command, CommandMap
finally:
    for _name, _module in _hidden.items():
        if sys.modules.get(_name) is _module:
            sys.modules.pop(_name, None)

__all__ = ["Command", "CommandMap", "urwid"]
