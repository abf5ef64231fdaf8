"""Another name for pytracer: `from pytrace import notrace, trace, log`, and kernel."""

from pytracer import log, notrace, trace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pytracer import kernel

__all__ = ["kernel", "log", "notrace", "trace"]


def __getattr__(name: str) -> object:
    if name == "kernel":  # large, and seldom wanted
        from pytracer import kernel

        return kernel
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
