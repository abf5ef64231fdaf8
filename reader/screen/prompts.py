"""What takes the keys instead of commands: a line that is typed, a menu, a page of help."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import urwid

from .browser import Task

if TYPE_CHECKING:
    from ..filter_tree import Filter
    from ..names import Names
    from .app import App
    from .menu import Choice, Menu
    from .pager import Pager
    from .prompt import Prompt


class Prompts:
    """At most one of them is open. What is called with an answer may give a task, which is run."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._prompt: Prompt | None = None
        self._page: Menu | Pager | None = None
        self._done: Callable[[Any], Any] = lambda answer: None
        self._names: Names | None = None

    @property
    def is_open(self) -> bool:
        return self._prompt is not None or self._page is not None

    def key(self, key: str) -> None:
        """A key for what is open."""
        if self._page is not None:
            self._page.keypress((self._app.layout.width, self._app.layout.height), key)
            self._turn()
        elif self._prompt is not None:
            prompt = self._prompt
            prompt.keypress((self._app.layout.width,), key)
            if prompt.result is not None and self._prompt is prompt:
                self._prompt = None
                self._answer(prompt.result if isinstance(prompt.result, str) else None)

    def mouse(self, event: str, button: int, column: int, row: int) -> None:
        """The wheel and clicks."""
        layout = self._app.layout
        if self._prompt is not None and self._page is None:
            row -= layout.height - self._prompt.rows((layout.width,))
            if row >= 0:
                self._prompt.mouse((layout.width,), event, button, column, row)
        elif event == "mouse press" and button in (4, 5) and self._page is not None:
            self.key("up" if button == 4 else "down")
        elif self._page is not None and hasattr(self._page, "mouse"):
            self._page.mouse(event, button, row)
            self._turn()

    def _turn(self) -> None:
        page = self._page
        if page is not None and page.done:
            self._page = None
            if page.result is not None:
                self._answer(page.result)

    def _answer(self, answer: Any) -> None:
        made = self._done(answer)
        if made is not None:
            self._app.tasks.run(made)

    # ---- drawing ----

    def page(self, width: int, height: int) -> urwid.Canvas | None:
        """What takes the whole screen."""
        return None if self._page is None else self._page.render((width, height), True)

    def below(self, width: int, height: int) -> urwid.Canvas | None:
        """What takes the rows at the bottom."""
        if self._prompt is None or self._page is not None:
            return None
        self._prompt.candidate_rows = max(min(8, height - 8), 0)
        return self._prompt.render((width,), True)

    # ---- opening ----

    def line(
        self,
        label: str,
        done: Callable[[Any], Any],
        *,
        text: str = "",
        history: str = "",
        changed: Callable[[str], None] | None = None,
        complete: Any = None,
        check: Any = None,
        even_if_left: bool = False,
    ) -> None:
        """A line to type. done: is called with it; even_if_left: with None, too, where it is left."""
        from .history import History
        from .prompt import Prompt

        kept = History(history) if history else None

        def finished(typed: str | None) -> Any:
            if kept and typed:
                kept.add(typed)
            return done(typed) if typed is not None or even_if_left else None

        self._prompt = Prompt(
            label, text, history=kept.lines() if kept else (), complete=complete, check=check,
            changed=changed, ascii=self._app.look.ascii,
        )  # fmt: skip
        self._done = finished

    def filter(self, text: str) -> None:
        """A filter, with completion and its mistakes shown while it is typed."""
        from ..names import Names
        from .asking import FilterAsking

        app = self._app
        asking = FilterAsking(self._names)
        runs = app.runs_shown()
        self.line(
            "filter: ", app.actions.set_filter, text=text, history="filter", complete=asking.complete,
            check=asking.check,
        )  # fmt: skip
        prompt = self._prompt

        def loaded(names: Names) -> None:
            self._names = asking.names = names
            if prompt is not None:
                prompt.refresh()

        app.tasks.ask("names", lambda database: Names.load(database, [run.id for run in runs]), loaded)

    def corrections(self, tree: Filter) -> Task[None]:
        """A filter finds nothing: those near it that do, to choose from."""
        from .asking import suggest
        from .menu import Choice

        app = self._app
        runs = app.runs_shown()
        found = yield lambda database: suggest(database, tree, runs)
        if not found:
            app.say("no event meets the filter; Backspace goes back", "error")
            return
        choices = [
            Choice(each.text, each.text, f"{each.events:,}{'' if each.all else ' or more'} events")
            for each in found
        ]
        self.choose(
            "no event meets the filter; these find some (Esc: leave it so)", choices, app.actions.set_filter
        )

    def command(self) -> None:
        """A command's name."""
        from .asking import complete_command
        from .command_line import run_line

        self.line(":", partial(run_line, self._app.actions), history="command", complete=complete_command)

    def choose(self, title: str, choices: Sequence[Choice], chosen: Callable[[Any], Any]) -> None:
        """A list to choose from. chosen: is called with the value."""
        from .menu import Menu

        self._page, self._done = Menu(title, choices, self._app.look.ascii), chosen

    def help(self) -> None:
        """The table of keys."""
        from .help import help_lines
        from .pager import Pager

        self._page = Pager("keys", help_lines(self._app.look))
