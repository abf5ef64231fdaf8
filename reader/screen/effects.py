"""Effects: values that describe actions. Commands and tasks return them, loop.py and app.py perform
them.

A task is a generator. It yields questions, and the database thread sends their answers; and it
yields effects, which happen at once. Between two answers the screen may be drawn.

Nobody compares or prints effects. Methods for that would take longer to make, at the start, than
everything else here.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

if TYPE_CHECKING:
    from ..database import Database
    from ..suggestions.completion import Completions
    from .lanes import Lanes
    from .text import Line

T = TypeVar("T")
Question: TypeAlias = "Callable[[Database], T]"
Task: TypeAlias = Generator["Question[Any] | Effect", Any, T]
# Effects happen in their order. None: there is none.
Result: TypeAlias = "Effect | Sequence[Effect] | None"


class CommandError(Exception):
    """A command cannot be done; the message says why."""


class Mistake(NamedTuple):
    """A mistake in a typed text at [start, end). `unfinished`: more text may make it right."""

    start: int
    end: int
    message: str
    unfinished: bool = False


class Choice(NamedTuple):
    """A line of a menu; `value` is the result of choosing it, and not None."""

    label: str
    value: Any
    hint: str = ""


class Column(NamedTuple):
    """A column. key: sorts by it. show: a value as text; without it values are texts. Numbers are
    sorted with the largest first; rises: the smallest comes first, as it does of texts."""

    title: str
    key: str
    show: Callable[[Any], str] | None = None
    rises: bool = False


class Entry(NamedTuple):
    """A row: its values by column, of which None is not known; `id` tells which it is, also when
    the list is renewed. note: stands behind them, as far as there is room."""

    id: Hashable
    values: tuple[Any, ...]
    note: str = ""


class Action(NamedTuple):
    """A key that leaves the list. do: called with the row under the cursor; anywhere: also where
    there is none, with an empty one."""

    help: str
    do: Callable[[Entry], Result]
    anywhere: bool = False


class Listed(NamedTuple):
    """What a list shows. question: asks for its rows; first: does so at once, with less in them.
    subject: what the rows depend on; a list of the same subject is kept when it is left. nothing:
    why there may be no rows."""

    subject: Hashable
    question: Callable[[Database], list[Entry]]
    first: Callable[[Database], list[Entry]] | None = None
    nothing: str = ""


@dataclass(eq=False, repr=False)
class Say:
    """A message at the bottom of the screen, until the next key."""

    text: str
    style: str = "note"


@dataclass(eq=False, repr=False)
class RunTask:
    """A task begins. While it runs, other commands wait."""

    task: Task[None]


@dataclass(eq=False, repr=False)
class InBackground:
    """A question that nobody waits for. It takes back an earlier one of the same name. then: called
    with the answer; a task that it returns is dropped if another one runs."""

    name: str
    question: Question[Any]
    then: Callable[[Any], Result]


@dataclass(eq=False, repr=False)
class TakeBack:
    """Nobody wants to know the answer of the question of this name any more."""

    name: str


@dataclass(eq=False, repr=False)
class Ask:
    """A line to type. done: called with the line; left: called if the prompt is left without one;
    changed: called with each new text. history: the name of the file with earlier lines. complete:
    completions for a place in a text. check: the mistake in a text, which is not accepted then."""

    label: str
    done: Callable[[str], Result]
    text: str = ""
    history: str = ""
    left: Callable[[], Result] | None = None
    changed: Callable[[str], Result] | None = None
    complete: Callable[[str, int], Completions] | None = None
    check: Callable[[str], Mistake | None] | None = None


@dataclass(eq=False, repr=False)
class RefreshPrompt:
    """The completions and mistakes of the typed line may have changed."""


@dataclass(eq=False, repr=False)
class Choose:
    """A list to choose from. chosen: called with the value."""

    title: str
    choices: Sequence[Choice]
    chosen: Callable[[Any], Result]


@dataclass(eq=False, repr=False)
class ShowPage:
    """Lines to read, which take the whole screen."""

    title: str
    lines: Sequence[Line]


@dataclass(eq=False, repr=False)
class ShowList:
    """A list that takes the whole screen, and grows while the program runs. name: of lists of this
    kind, which are sorted as the last one was. sort: the column to begin with."""

    name: str
    title: str
    columns: Sequence[Column]
    actions: Mapping[str, Action]
    listed: Listed
    sort: int = 0


@dataclass(eq=False, repr=False)
class ShowLanes:
    """Threads and tasks along the time, on the whole screen."""

    lanes: Lanes


@dataclass(eq=False, repr=False)
class Copy:
    """Copies to the terminal's clipboard, or into a new file. what: names the text in the
    message."""

    text: str
    what: str
    file: str = ""


@dataclass(eq=False, repr=False)
class Execute:
    """Another program has the terminal until it ends."""

    command: Sequence[str]


@dataclass(eq=False, repr=False)
class Bell:
    """The terminal rings."""


@dataclass(eq=False, repr=False)
class Follow:
    """New events are shown as they come; until_hit: until the search finds something."""

    until_hit: bool = False


@dataclass(eq=False, repr=False)
class ReadAnew:
    """Everything that was read or drawn before is invalid."""


@dataclass(eq=False, repr=False)
class Open:
    """The reader goes on with another database; or the replay of a run, or the reader again, at an
    event of it."""

    path: str
    run: int | None = None
    at: int | None = None
    is_replay: bool = False


@dataclass(eq=False, repr=False)
class Quit:
    """The reader ends."""


Effect: TypeAlias = (
    Say | RunTask | InBackground | TakeBack | Ask | RefreshPrompt | Choose | ShowPage | ShowList | ShowLanes
    | Copy | Execute | Bell | Follow | ReadAnew | Open | Quit
)  # fmt: skip
