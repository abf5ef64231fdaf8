"""The reader as a program: takes keys, runs their commands, asks the database thread, draws.

One command runs at a time. Where it has to ask the database it is a task (browser.py): keys that come
meanwhile wait for it, but once it takes longer than a moment any key stops it, and the status line says how
far it is. Everything else (new events, the calls above the first line, the minimap) is asked for in the
background and gives way to commands.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import urwid

from ..database import Database, DatabaseError
from ..model import Row, Run, Source
from . import keys, live, paint
from .actions import Actions, Mistake
from .browser import Browser, Task
from .layout import Layout
from .lines import Liner, Look
from .model import Item, Line
from .places import Marks
from .status import status_line, whereabouts
from .view import View
from .worker import Job, Worker

if TYPE_CHECKING:
    from ..filter_tree import Filter
    from .detail import Detail
    from .live import Pulse
    from .menu import Choice
    from .names import NamesKnown
    from .prompt import Prompt
    from .search import Pattern
    from .timeline import Cell, Timeline

_PATIENCE = 0.15  # s; a command that takes longer is stopped by any key, and shown
_LOOK = 0.1  # s between two looks for new events while a program runs ...
_IDLE_LOOK = 1.0  # ... and when none does
_INCREMENTAL = 0.5  # s that a search may take while it is typed
_ENCODED_MAX = 4096


class App:
    """What is open, and what is going on. `start` is what the first look at the database brought."""

    def __init__(self, path: str, worker: Worker, start: live.Start, *, ascii: bool, colours: bool) -> None:
        self.path, self.worker = path, worker
        self.runs: list[Run] = start.runs
        self.sources: list[Source] = start.sources
        self.functions: dict[tuple[int, bytes, bytes, bytes, int], bool] = {}
        self.look = Look(ascii=ascii)
        self.browser = Browser(View(start.run, start.filter), self.runs, self._liner())
        self.pulse: Pulse | None = None
        self.timeline: Timeline | None = None
        self.cells: list[Cell] = []
        self.marks = Marks()
        self.layout = Layout(plain=not colours)
        self.colours = colours
        self.message: Line | None = None
        self.count = ""  # digits typed so far
        self.prefix = ""  # a key that waits for another one
        self.slow: int | None = None  # ns
        self.last_value: tuple[str, str] | None = None
        self.repeated = False
        # search
        self.pattern: Pattern | None = None
        self.ignore_case: bool | None = None
        self.search_backwards = False
        self.highlight = True
        self.hit_times: set[int] = set()  # of hits that were found, for the minimap
        # following
        self.following = False
        self.until_hit = False
        self._until_state: Any = None
        # panes
        self.stack: list[Row] = []
        self._stack_of: int | None = None
        self.detail: Detail | None = None
        self.detail_top = 0
        self._detail_of: tuple[int, bool] | None = None
        self.names: NamesKnown | None = None
        # what the screen is used for instead of commands
        self.prompt: Prompt | None = None
        self._prompt_done: Callable[[str | None], Any] = lambda text: None
        self._prompt_changed: Callable[[str], Any] | None = None
        self.modal: Any = None  # a menu or a page of text
        self._modal_done: Callable[[Any], Any] = lambda value: None
        # what is going on
        self.actions = Actions(self)
        self._task: Task[Any] | None = None
        self._job: Job[Any] | None = None
        self._since = 0.0
        self._background: dict[str, Job[Any]] = {}
        self._keys: deque[str | tuple[Any, ...]] = deque()
        self._owed = False  # keys were handled, and the screen is not yet what they made of it
        self._idle_fd = int(os.environ.get("PYTRACE_IDLE_FD") or -1)
        self._status = 0
        self._looked = 0.0
        self._watch = live.Watch()  # the database thread's
        self._columns_of = len(self.sources)
        self._last_command = ""
        self.reopen: str | None = None  # another database, once this one is left

    # ---- running ----

    def run(self) -> int:
        """Shows the screen until the reader is left. Returns the exit status."""
        self._screen = screen = urwid.display.raw.Screen()
        screen.set_terminal_properties(colors=16 if self.colours else 1)
        self._surface = paint.Surface(self._compose, self._below)
        self._loop = loop = urwid.MainLoop(
            self._surface,
            paint.palette(),
            screen,
            event_loop=urwid.SelectEventLoop(),
            input_filter=self._input,
        )
        screen.tty_signal_keys(intr="undefined", quit="undefined")
        loop.event_loop.watch_file(self._wake_read, self._woken)
        loop.event_loop.enter_idle(self._idle)
        for number, status in ((signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)):
            signal.signal(number, partial(self._signalled, status))
        loop.set_alarm_in(0, self._tick)
        self._fit(*screen.get_cols_rows())
        self._run_task(self.browser.settle())
        try:
            loop.run()
        except (RuntimeError, OSError) as error:  # the terminal is gone
            if isinstance(error, RuntimeError) and "stdin" not in str(error):
                raise
            self._status = 129
        return self._status

    def listen(self, read: int) -> None:
        """The file descriptor that says that the database thread has answers."""
        self._wake_read = read

    def _signalled(self, status: int, number: int, frame: object) -> None:
        self._status = status
        raise urwid.ExitMainLoop

    def quit(self) -> None:
        raise urwid.ExitMainLoop

    def _woken(self) -> None:
        os.read(self._wake_read, 1 << 16)
        self.worker.deliver()

    # ---- keys ----

    def _input(self, pressed: list[Any], raw: list[int]) -> list[Any]:
        for key in pressed:
            if key == "window resize":
                self._screen_resized()
            else:
                self._keys.append(key)
        self._owed = True
        self._pump()
        return []

    def _pump(self) -> None:
        """Handles the keys that came, as far as nothing stands before them."""
        while self._keys:
            if self._task is not None:
                if time.monotonic() - self._since < _PATIENCE:
                    return  # it will be done in a moment
                self.interrupt()
                self._keys.popleft()
                continue
            self._key(self._keys.popleft())
        self._draw()

    def _key(self, key: str | tuple[Any, ...]) -> None:
        self.message = None
        try:
            if isinstance(key, tuple):
                self._mouse(*key)
            elif self.modal is not None:
                self._modal_key(key)
            elif self.prompt is not None:
                self._prompt_key(key)
            else:
                self._command_key(key)
        except urwid.ExitMainLoop:
            raise
        except Exception as error:
            self._say_error(error)

    def _command_key(self, key: str) -> None:
        if self.prefix:
            self._prefixed(self.prefix, key)
        elif key.isdigit() and len(key) == 1 and (self.count or key != "0"):
            self.count = (self.count + key)[:12]
        elif key in ("esc", "ctrl c", "ctrl g") and (self.count or self.following or key != "ctrl g"):
            self.count = ""
            self.stop_following()
        elif key in keys.PREFIXES:
            self.prefix = key
        else:
            command = keys.BY_KEY.get(key)
            count, self.count = int(self.count) if self.count else None, ""
            if command is None:
                self.say(f"{keys.shown(key)} has no meaning here: h shows the keys")
                return
            self._command(command.name, count)

    def _prefixed(self, prefix: str, key: str) -> None:
        self.prefix = ""
        if key in ("esc", "ctrl c", "ctrl g"):
            return
        if prefix == "Z":
            if key == "Z":
                self.quit()
            return
        method = {"m": self.actions.mark, "'": self.actions.to_mark, "-": self.actions.switch}[prefix]
        self._do(method, key)

    def _command(self, name: str, count: int | None) -> None:
        self.repeated = name == self._last_command
        self._last_command = name
        if name not in ("follow", "follow-until", "detail", "detail-down", "detail-up", "where", "highlight"):
            self.stop_following()
        self._do(getattr(self.actions, name.replace("-", "_")), count)

    def _do(self, action: Callable[..., Any], *arguments: Any) -> None:
        made = action(*arguments)
        if made is not None:
            self._run_task(made)

    # ---- tasks ----

    def _run_task(self, task: Task[Any]) -> None:
        self._task, self._since = task, time.monotonic()
        self._step(None, None)

    def _step(self, answer: Any, error: BaseException | None) -> None:
        assert self._task is not None
        try:
            question = self._task.throw(error) if error else self._task.send(answer)
        except StopIteration:
            self._ended()
        except urwid.ExitMainLoop:
            raise
        except Exception as problem:
            self.browser.clamp()
            self._ended()
            self._say_error(problem)
        else:
            self._job = self.worker.ask(question, self._answered)
            if time.monotonic() - self._since > _PATIENCE:
                self._draw()

    def _answered(self, job: Job[Any]) -> None:
        self._step(job.answer, job.error)
        self._pump()

    def _ended(self) -> None:
        self._task = self._job = None

    def interrupt(self) -> None:
        """Stops the command that is running."""
        if self._task is None:
            return
        if self._job is not None:
            self.worker.stop(self._job)
        self._task.close()
        self._ended()
        self.browser.clamp()
        if not self.browser.items:
            self._run_task(self.browser.first())
        self.say("stopped")

    def _ask(self, name: str, question: Callable[[Database], Any], then: Callable[[Any], None]) -> None:
        """Asks in the background; a question of the same name that is on its way is taken back."""
        before = self._background.pop(name, None)
        if before is not None:
            self.worker.stop(before)

        def answered(job: Job[Any]) -> None:
            if self._background.get(name) is job:
                del self._background[name]
            if job.error is not None:
                if not isinstance(job.error, DatabaseError):
                    raise job.error
                self._say_error(job.error)
            else:
                then(job.answer)
            self._draw()

        self._background[name] = self.worker.ask(question, answered, background=True)

    # ---- what is said ----

    def say(self, text: str, style: str = "note") -> None:
        """A message at the bottom, until the next key."""
        from ..render import printable

        text = printable(text)
        self.message = Line(text, ((0, len(text), style),))

    def _say_error(self, error: BaseException) -> None:
        from ..filter_tree import FilterError

        if isinstance(error, FilterError):
            self.say(str(error).split("\n")[0], "error")
        elif isinstance(error, (Mistake, DatabaseError, ValueError, LookupError, OSError)) or (
            type(error).__module__.startswith("pytracer.")
        ):
            self.say(str(error), "error")
        else:
            raise error

    def whereabouts(self) -> str:
        return whereabouts(self)

    # ---- drawing ----

    def _draw(self) -> None:
        self._surface._invalidate()

    def _screen_resized(self) -> None:
        self._fit(*self._screen.get_cols_rows())
        if self._task is None:
            self._run_task(self.browser.settle())

    def _fit(self, width: int, height: int) -> None:
        self.browser.width, self.browser.height = self.layout.sized(width, height)

    def _compose(self, width: int, height: int, below: int) -> urwid.Canvas:
        if self.modal is not None and not self.layout.is_too_small:
            canvas: urwid.Canvas = self.modal.render((width, height), True)
            return canvas
        self._want()
        rows = self.layout.compose(self, height - below)
        rows.fill(height - below)
        return rows.canvas()

    def _below(self, width: int, height: int) -> urwid.Canvas | None:
        if (width, height) != (self.layout.width, self.layout.height):
            self._fit(width, height)
        if self.prompt is None or self.modal is not None or self.layout.is_too_small:
            return None
        canvas: urwid.Canvas = self.prompt.render((width,), True)
        return canvas

    def _idle(self) -> None:
        if self._owed and self._task is None and not self._keys and not self._background_owed():
            self._owed = False
            if self._idle_fd >= 0:
                os.write(self._idle_fd, b".")

    def _background_owed(self) -> bool:
        return bool(self._background.keys() - {"pulse"})

    def status(self) -> Line:
        return status_line(self)

    def message_line(self) -> Line:
        """What was said last, or what is being typed."""
        if self.message is not None:
            return self.message
        return Line(self.count + self.prefix) if self.count or self.prefix else Line("")

    def nothing(self) -> list[Line]:
        """What stands where there are no events."""
        if self.browser.view.filter is not None:
            return [Line("-- no event meets the filter --")]
        if not self.runs:
            return [Line("-- nothing has been recorded yet: pytrace script.py; it is shown as soon as it comes --")]
        if self.run_live():
            return [Line("-- the program has begun; there are no events yet --")]
        return [Line("-- nothing was recorded in this run --"), *self.browser.footer]

    @property
    def busy(self) -> float:
        """Seconds since the command that runs began; 0: none runs."""
        return time.monotonic() - self._since if self._task is not None else 0.0

    def hits(self, line: Line) -> list[tuple[int, int]]:
        if self.pattern is None or not self.highlight:
            return []
        try:
            return self.pattern.hits(line.text)
        except Exception:  # too slow for one line: it is not highlighted
            return []

    # ---- what is there besides the events ----

    def run_shown(self) -> Run | None:
        """The run of the cursor's event, or the one that is shown."""
        item = self.browser.current
        number = item.row[1] if item else self.browser.view.run
        return next((run for run in self.runs if run.id == number), None)

    def run_live(self) -> bool:
        run = next((run for run in self.runs if run.id == self.browser.view.run), self.runs[-1] if self.runs else None)
        return run is not None and run.finished is None

    def _want(self) -> None:
        """Asks for what the screen shows besides the events, where it is not the right one yet."""
        if self._task is not None:
            return
        browser = self.browser
        shown = browser.shown()
        top = shown[0].row[0] if shown else None
        if self.layout.stack_rows and top != self._stack_of:
            self._stack_of = top
            if top is None:
                self.stack = []
            else:
                self._ask("stack", lambda database: live.stack(database, top), self._take_stack)
        current = browser.current
        wanted = (current.row[0], current.closed) if current else None
        if self.layout.panes["detail"] and wanted != self._detail_of:
            self._detail_of, self.detail_top = wanted, 0
            if current is None:
                self.detail = None
            else:
                from .detail import detail

                self._ask("detail", lambda database: detail(database, current), self._take_detail)

    def _take_stack(self, rows: list[Row]) -> None:
        self.stack = rows

    def _take_detail(self, detail: Detail) -> None:
        self.detail = detail

    # ---- looks at the database, again and again ----

    def _tick(self, *_: object) -> None:
        now = time.monotonic()
        wait = _LOOK if self.run_live() or not self.runs else _IDLE_LOOK
        if now - self._looked >= wait and "pulse" not in self._background:
            self._looked = now
            run = self.browser.view.run
            self._ask("pulse", lambda database: self._watch.pulse(database, run), self._take_pulse)
        if self._task is not None and self.busy > _PATIENCE:
            self._draw()
        self._loop.set_alarm_in(_LOOK, self._tick)

    def _take_pulse(self, pulse: Pulse) -> None:
        before, self.pulse = self.pulse, pulse
        if before is not None and pulse == before:
            return
        if before is not None:
            self._announce(before, pulse)
        if pulse.newest is not None and self.browser.view.run is None and not self.runs:
            self._first_run()
        if pulse.newest is None:
            return
        self._ask_course()
        if before is not None:
            self._renew()

    def _ask_course(self, anew: bool = False) -> None:
        run, width = self.browser.view.run, self.layout.width
        self._ask("course", lambda database: self._watch.course(database, run, width, anew), self._take_course)

    def _first_run(self) -> None:
        """The first recording has begun in a database that was empty."""
        assert self.pulse is not None
        self.browser.view = View(self.pulse.newest, self.browser.view.filter)
        self.browser.forget()
        self._run_task(self.browser.first())

    def _announce(self, before: Pulse, pulse: Pulse) -> None:
        if before.newest is not None and pulse.newest is not None and pulse.newest > before.newest:
            self.say(f"recording {pulse.newest} has begun: {pulse.command}  (:run {pulse.newest} shows it)")
        elif before.gone != pulse.gone and pulse.gone:
            self.say("the database has been removed; what was read of it stays here", "error")
        elif pulse.run == before.run and before.finished is None and pulse.finished is not None:
            self.say(live.ending(pulse.finished, pulse.exit_status))

    def _take_course(self, course: live.Course) -> None:
        self.runs[:], self.sources = course.runs, course.sources
        self.browser.runs = self.runs
        self.functions.update(course.functions)
        self.timeline, self.cells = course.timeline, course.cells
        run = next((run for run in self.runs if run.id == self.browser.view.run), None)
        self.browser.header, self.browser.footer = live.header(run), live.footer(run, course.damages)
        if course.functions or len(self.sources) != self._columns_of:
            self._columns_of = len(self.sources)
            self.change_look(self.look)
        if self._task is None:
            self.browser.clamp()

    def _renew(self) -> None:
        """Reads anew what is on the screen, or follows."""
        if self._task is not None:
            return
        if self.following:
            if self.until_hit:
                self._look_for_hit()
            self._ask("renew", self.browser.newest(), self._take_newest)
        else:
            self._ask("renew", self.browser.renewed(), self._take_renewed)

    def _take_renewed(self, answer: Any) -> None:
        if self._task is None:
            self.browser.renew(answer)

    def _take_newest(self, answer: Any) -> None:
        if self._task is None and self.following:
            self.browser.take_newest(answer)

    # ---- following ----

    def follow(self, until_hit: bool = False) -> None:
        """Shows what comes, until a key ends it."""
        self.following, self.until_hit, self._until_state = True, until_hit, None
        if not self.run_live():
            self.say("the program has ended: nothing more will come")
        elif until_hit:
            self._look_for_hit()

    def stop_following(self) -> None:
        self.following = self.until_hit = False

    def _look_for_hit(self) -> None:
        from .search import find_new

        pattern, query, show, state = self.pattern, self.browser.events(), self._text_of(), self._until_state
        if pattern is not None and "hit" not in self._background:
            self._ask("hit", lambda database: find_new(database, query, pattern, show, state), self._take_hit)

    def _take_hit(self, answer: tuple[Row | None, Any]) -> None:
        row, self._until_state = answer
        if row is not None and self.until_hit and self._task is None:
            self.stop_following()
            self._screen.write("\a")
            self.say("found")
            self._run_task(self.browser.go(row))

    # ---- lines ----

    def _liner(self) -> Callable[[Item], Line]:
        return Liner(self.look, self.sources, self.runs, self._has_arguments)

    def _has_arguments(self, row: Row) -> bool:
        return self.functions.get((row[1], row[7], row[8], row[9], row[10]), False)

    def change_look(self, look: Look) -> None:
        """Lines look different from now on."""
        self.look = look
        self.browser.look_different(self._liner())

    def is_shown(self, column: str) -> bool:
        """Whether threads or processes have a column, by switch or since there are several."""
        switched = getattr(self.look, column)
        return live.several(self.sources, column) if switched is None else bool(switched)

    def _text_of(self) -> Callable[[Row], str]:
        line = self._liner()  # one of its own, since the database thread calls it
        return lambda row: line(Item(row)).text

    def arguments(self, row: Row) -> list[tuple[str, str]]:
        """Names and values of an event."""
        from ..render import arguments

        return arguments(row)

    # ---- searching ----

    def ask_search(self, backwards: bool, count: int) -> None:
        """A prompt for a regular expression; the first hit is shown while it is typed."""
        origin = self.browser.place()

        def done(text: str | None) -> None:
            self._background_stop("typing")
            if text is None:
                self.pattern = before
                self._run_task(self.browser.return_to(origin))
            else:
                self._run_task(self._search(text, backwards, count, origin))

        before = self.pattern
        self.ask_line(
            "?" if backwards else "/", done, history="search", changed=partial(self._typing, origin, backwards), always=True
        )

    def _typing(self, origin: Any, backwards: bool, text: str) -> None:
        from .search import BadPattern, Pattern, find

        self._background_stop("typing")
        if not text:
            return
        try:
            self.pattern = pattern = Pattern(text, self.ignore_case)
        except BadPattern:
            return
        query, show, start = self.browser.events(), self._text_of(), origin.position
        if start and not backwards:
            start = (start[0], start[1] - 1)

        def question(database: Database) -> Row | None:
            return find(database, query, pattern, show, start, backwards, seconds=_INCREMENTAL)

        def then(row: Row | None) -> None:
            if row is not None and self.prompt is not None and self._task is None:
                self._run_task(self.browser.show((row[2], row[0])))

        self._ask("typing", question, then)

    def _search(self, text: str, backwards: bool, count: int, origin: Any) -> Task[None]:
        from .search import Pattern

        if text:
            self.pattern = Pattern(text, self.ignore_case)
        elif self.pattern is None:
            raise Mistake("there is no search to repeat")
        self.search_backwards, self.highlight = backwards, True
        yield from self.browser.return_to(origin)
        yield from self.find_next(backwards, count)

    def find_next(self, backwards: bool, count: int) -> Task[None]:
        """To the next hit; behind the last one it begins again at the other end."""
        if self.pattern is None:
            raise Mistake("search for something first: / and a regular expression")
        from .search import find

        query, show, pattern = self.browser.events(), self._text_of(), self.pattern
        place = self.browser.current
        start = place.position if place else None
        wrapped = ""
        for _ in range(min(count, 10_000)):
            find_from = partial(find, query=query, pattern=pattern, show=show, backwards=backwards)
            row = yield partial(find_from, start=start)
            if row is None and start is not None:
                wrapped = "search began again at the " + ("end" if backwards else "start")
                row = yield partial(find_from, start=None)
            if row is None:
                self.say(f"not found: {pattern.text}", "error")
                return
            start = (row[2], row[0])
        yield from self.browser.go(row)
        self.hit_times.add(row[2])
        if wrapped:
            self.say(wrapped)

    def next_case(self) -> None:
        """Smart case, never, always ignoring case."""
        order: list[bool | None] = [None, False, True]
        self.ignore_case = order[(order.index(self.ignore_case) + 1) % 3]
        what = {None: "ignore case where no capital is typed", False: "heed case", True: "ignore case"}
        self.say(f"searches {what[self.ignore_case]}")
        if self.pattern is not None:
            from .search import Pattern

            self.pattern = Pattern(self.pattern.text, self.ignore_case)

    # ---- prompts ----

    def ask_line(
        self,
        label: str,
        done: Callable[..., Any],
        *,
        text: str = "",
        history: str = "",
        changed: Callable[[str], Any] | None = None,
        complete: Any = None,
        check: Any = None,
        always: bool = False,
    ) -> None:
        """A line to type. done: is called with it, and may be a task; always: with None, too, if it is left."""
        from .history import History
        from .prompt import Prompt

        kept = History(history) if history else None
        self.prompt = Prompt(
            label, text, history=kept.lines() if kept else (), complete=complete, check=check, changed=changed,
            ascii=self.look.ascii,
        )  # fmt: skip

        def finished(typed: str | None) -> Any:
            if kept and typed:
                kept.add(typed)
            if typed is not None or always:
                return done(typed)
            return None

        self._prompt_done = finished

    def _prompt_key(self, key: str) -> None:
        from .prompt import Cancelled

        assert self.prompt is not None
        prompt = self.prompt
        prompt.keypress((max(self.browser.width, 2),), key)
        result = prompt.result
        if result is None:
            return
        self.prompt = None
        made = self._prompt_done(None if isinstance(result, Cancelled) else result)
        if made is not None:
            self._run_task(made)

    def ask_filter(self, text: str) -> None:
        """A prompt for a filter, with completion."""
        from .asking import FilterAsking

        asking = FilterAsking(self.names)
        runs = [run.id for run in self.runs if self.browser.view.run in (None, run.id)]

        def loaded(names: Any) -> None:
            self.names = names
            asking.names = names

        from ..names import Names

        self._ask("names", lambda database: Names.load(database, runs), loaded)
        self.ask_line(
            "filter: ", self.actions.set_filter, text=text, history="filter", complete=asking.complete, check=asking.check
        )

    def nothing_found(self, tree: Filter) -> Task[None]:
        """The filter finds nothing: offers those that do."""
        from .asking import suggest
        from .menu import Choice

        runs = [run for run in self.runs if self.browser.view.run in (None, run.id)]
        found = yield lambda database: suggest(database, tree, runs)
        if not found:
            self.say("no event meets the filter; Backspace goes back", "error")
            return
        choices = [
            Choice(each.text, each.text, f"{each.events:,}{'' if each.all else ' or more'} events") for each in found
        ]
        self.choose("no event meets the filter; these find some", choices, self.actions.set_filter)

    def ask_command(self) -> None:
        """A prompt for a command's name."""
        from .asking import complete_command

        self.ask_line(":", self.actions.run_line, history="command", complete=complete_command)

    def choose(self, title: str, choices: Sequence[Choice], chosen: Callable[[Any], Any]) -> None:
        """A list to choose from. chosen: is called with the value, and may be a task."""
        from .menu import Menu

        self.modal = Menu(title, choices)
        self._modal_done = lambda value: chosen(value) if value is not None else None

    def show_help(self) -> None:
        """The table of keys, as a page."""
        from .help import help_lines
        from .pager import Pager

        self.modal = Pager("keys", help_lines())
        self._modal_done = lambda value: None

    def _modal_key(self, key: Any) -> None:
        self.modal.keypress((self.layout.width, self.layout.height), key)
        if self.modal.done:
            modal, self.modal = self.modal, None
            made = self._modal_done(modal.result)
            if made is not None:
                self._run_task(made)

    # ---- mouse ----

    def _mouse(self, event: str, button: int, column: int, row: int) -> None:
        if self.modal is not None or self.prompt is not None:
            if self.modal is not None and event == "mouse press" and button in (4, 5):
                self._modal_key("up" if button == 4 else "down")
            return
        if event != "mouse press":
            return
        if button in (4, 5):
            lines = -3 if button == 4 else 3
            if self.layout.at(row) == "detail":
                self.detail_top = max(self.detail_top + lines, 0)
            else:
                self.stop_following()
                self._run_task(self.browser.scroll(lines))
        elif button == 1:
            self._click(column, row)

    def _click(self, column: int, row: int) -> None:
        what = self.layout.at(row)
        if what == "minimap" and self.timeline is not None:
            from .minimap import time_of_cell

            self.stop_following()
            self.browser.trail.push(self.browser.place())
            at = time_of_cell(self.timeline, column, self.layout.width)
            self._run_task(self.browser.show((at, 0), 0))
        elif isinstance(what, int):
            if what == self.browser.cursor and self.browser.current and self.browser.current.row[6] == "call":
                self._command("fold", None)
            else:
                self.stop_following()
                self.browser.cursor = what
                self.browser.clamp()
        elif isinstance(what, tuple):
            self.stop_following()
            self._run_task(self.browser.go(what))

    # ---- panes ----

    def toggle_detail(self) -> None:
        self.layout.toggle("detail")
        self._detail_of = None
        self._fit(self.layout.width, self.layout.height)
        self._run_task(self.browser.settle())

    def toggle_pane(self, name: str) -> None:
        """minimap or stack"""
        shown = self.layout.toggle(name)
        self._fit(self.layout.width, self.layout.height)
        self._stack_of = None
        self.say(f"{name}: {'on' if shown else 'off'}")

    def view_changed(self) -> None:
        """Another run or filter is shown."""
        run = self.browser.view.run
        self.timeline = None if self.timeline and self.timeline.run != run else self.timeline
        self._stack_of = self._detail_of = None
        self.pulse = None

    def clear(self) -> None:
        """Everything is to be read and drawn anew."""
        self._screen.clear()
        self.timeline, self.cells, self.stack, self.detail = None, [], [], None
        self._stack_of = self._detail_of = None
        self.pulse = None
        self._looked = 0.0
        self.change_look(self.look)
        self._ask_course(anew=True)

    def _background_stop(self, name: str) -> None:
        job = self._background.pop(name, None)
        if job is not None:
            self.worker.stop(job)

    # ---- out of the screen ----

    def call(self, command: list[str]) -> None:
        """Runs another program on the terminal, and comes back."""
        self._screen.stop()
        try:
            status = subprocess.call(command)
            problem = f"{command[0]} ended with status {status}" if status else ""
        except OSError as error:
            problem = f"{command[0]} cannot be started: {error.strerror}; $VISUAL or $EDITOR says which editor"
        self._screen.start()
        self._screen.clear()
        if problem:
            self.say(problem, "error")

    def copy(self, text: str, what: str, file: str) -> None:
        """To the terminal's clipboard, or into a new file."""
        from .clipboard import osc52, save

        if file:
            try:
                save(text, os.path.expanduser(file))
            except FileExistsError:
                raise Mistake(f"{file} is there already") from None
            self.say(f"{what} is in {file}")
            return
        self._screen.write(osc52(text).decode("ascii"))
        self._screen.flush()
        self.say(f"{what} copied, if the terminal lets programs do that; :copy FILE writes it to a file")

    def open(self, path: str) -> None:
        """Another database instead of this one."""
        self.reopen = path
        raise urwid.ExitMainLoop
