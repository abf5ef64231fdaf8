"""pytrace in a program: `from pytracer import notrace, trace, log`.

Every recorded process imports it before the program, so heavy modules are imported on demand.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .decorators import log, notrace, trace

__all__ = ["log", "notrace", "trace"]


def __getattr__(name: str) -> object:
    if name in __all__:
        from . import decorators

        return globals().setdefault(name, getattr(decorators, name))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def start_here() -> None:
    """Called by pytrace.pth if this Python is to be recorded; see start.py. Raises ImportError if
    the program itself cannot be recorded."""
    import os

    try:
        from .start import start
    except ImportError:
        if os.environ["PYTRACE_RING"].startswith("program:"):
            raise
        return  # a subinterpreter: only the main one is recorded
    start()
