"""pytrace in a program: `from pytracer import notrace, trace, log`.

Imported in every recorded process, before the program: what is heavy is imported when it is asked for.
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
