"""Another name for pytracer: `from pytrace import notrace, trace, log`."""

from pytracer import log, notrace, trace

__all__ = ["log", "notrace", "trace"]
