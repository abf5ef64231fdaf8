"""The interface for programs: notrace, trace and log. pytracer/__init__.py imports it on demand."""

import functools
import inspect
import os
import threading
from collections.abc import Callable
from types import CodeType, FunctionType, MethodType, TracebackType
from typing import Any, Self, TypeVar, cast

from . import _hook, start
from ._hook import log

__all__ = ["log", "notrace", "trace"]

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


# ---- notrace -------------------------------------------------------------------------------------


def own_code(function: FunctionType) -> CodeType:
    """The function's code object. A function that a decorator made (it has __wrapped__) shares its
    code with all others of that decorator, and gets a copy of its own."""
    if hasattr(function, "__wrapped__"):
        function.__code__ = function.__code__.replace()
    return function.__code__


def mark(target: object, seen: set[int]) -> bool:
    """Marks all code of a function, or of an object that holds functions. False: there is none."""
    if id(target) in seen:
        return True
    seen.add(id(target))
    match target:
        case CodeType():
            _hook.notrace(target)
            return True
        case FunctionType():
            _hook.notrace(own_code(target))
            mark(vars(target).get("__wrapped__"), seen)
            return True
        case MethodType() | staticmethod() | classmethod():
            return mark(target.__func__, seen)
        case property():
            return any([mark(target.fget, seen), mark(target.fset, seen), mark(target.fdel, seen)])
        case functools.partial() | functools.partialmethod() | functools.cached_property():
            return mark(target.func, seen)
        case type():
            for member in list(vars(target).values()):
                mark(member, seen)
            return True
    wrapped = getattr(target, "__wrapped__", None)  # functools.lru_cache and the like
    return wrapped is not None and mark(wrapped, seen)


def notrace(target: T) -> T:
    """Keeps a function, and everything that it calls, out of recordings. Returns the same object.

    The target can also be a generator, coroutine, method, static or class method, property, or a
    class with everything that it defines. Raises TypeError if there is no Python code to mark.
    """
    if not mark(target, set()):
        raise TypeError(f"notrace: a function or class is expected, not {type(target).__name__}")
    return target


# ---- trace ---------------------------------------------------------------------------------------


class Recording:
    """The recording of this process, if trace() made one. The run lasts until the process ends, and
    records while any block is open."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a signal handler may have a block, too
        self._changing = False
        self._records = False
        self._open = 0  # blocks
        self._options: dict[str, object] = {}
        self._settings: dict[str, str] | None = None  # None: not begun
        self._ring = ""

    def enter(self, options: dict[str, object]) -> None:
        with self._lock:
            if self._settings is None and not self._changing and _hook.recording():
                return  # under the `pytrace` command
            if self._settings is not None and options and options != self._options:
                raise ValueError("trace: a process makes one recording; its first block has its options")
            self._open += 1
            try:
                self._change(options)
            except BaseException:
                self._open -= 1
                raise

    def leave(self) -> None:
        with self._lock:
            if self._open:  # else the `pytrace` command records
                self._open -= 1
                self._change({})

    def _change(self, options: dict[str, object]) -> None:
        """Begins or ends to record, depending on the open blocks. A signal handler may open or
        close a block meanwhile, but changes only their number."""
        if self._changing:
            return
        self._changing = True
        try:
            while self._records != bool(self._open):
                self._records = not self._records
                if self._records:
                    self._start(options)
                else:
                    os.environ.pop(start.VARIABLE, None)
                    _hook.stop()
        finally:
            self._changing = False

    def _start(self, options: dict[str, object]) -> None:
        try:
            if self._settings is None:
                self._settings = self._begin(options)
                self._options = options
            else:
                start.begin(self._settings, gate=False)
        except BaseException:
            self._records = False
            raise
        if start.records_children(self._settings):
            os.environ[start.VARIABLE] = self._ring

    def _begin(self, options: dict[str, object]) -> dict[str, str]:
        from . import config, launch
        from .options import UsageError

        try:
            launch.check_python()
            given = config.from_mapping(options, "trace()")
            self._ring = launch.prepare(config.settings(given), launch.this_command())
        except UsageError as error:
            raise ValueError(f"pytrace: {error}") from None
        settings, message = start.record(self._ring, gate=False)
        if message:
            raise RuntimeError(message)
        return settings

    def after_fork(self) -> None:
        """In the child: another thread of the parent may have held the lock."""
        self._lock = threading.RLock()
        self._changing = False


recording = Recording()
os.register_at_fork(after_in_child=recording.after_fork)


class trace:
    """Records a part of a program that was started without the `pytrace` command.

    As a context manager or a decorator, of functions, generators and coroutines::

        with trace(output="orders.sqlite", no_stdlib=True):
            work()

    All threads are recorded while any block is open. The options are those of the command line
    (`pytrace --help`), as keywords; later blocks continue the recording of the first. The recording
    can be read at once; the summary is printed when the process ends. Under `pytrace`, trace() does
    nothing.

    Raises ValueError for options that make no sense or an impossible output, RuntimeError if the
    database cannot be recorded to.
    """

    def __init__(self, **options: object) -> None:
        self._options = options

    def __enter__(self) -> Self:
        recording.enter(self._options)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, where: TracebackType | None
    ) -> None:
        recording.leave()

    def __call__(self, function: F) -> F:
        wrapper: Callable[..., Any]
        if inspect.isasyncgenfunction(function):
            raise TypeError("trace: an asynchronous generator cannot be decorated; use `with trace():` in it")
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def wrapper(*args: Any, **kwargs: Any) -> Any:
                with self:
                    return await function(*args, **kwargs)

        elif inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def wrapper(*args: Any, **kwargs: Any) -> Any:
                with self:
                    return (yield from function(*args, **kwargs))

        else:

            @functools.wraps(function)
            def wrapper(*args: Any, **kwargs: Any) -> Any:
                with self:
                    return function(*args, **kwargs)

        return cast(F, wrapper)
