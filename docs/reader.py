"""Makes docs/reader.md: `python docs/reader.py > docs/reader.md`, with the pytrace of this tree installed.

The tables of keys, switches and commands are those of the reader itself.
"""

# ruff: noqa: E501  (prose, as wide as in the other documents)

from __future__ import annotations

from pytracer.reader.screen.help import help_markdown

PROSE = """\
# The reader

`pytrace` shows `./traces.sqlite`, `pytrace read DB` another database, while the program runs or later. It opens a hundred million events at once,
and has the keys of `less`. This page is made by `docs/reader.py`; `h` shows the same keys on the screen.

![The reader, over a recording of examples/shop.py](reader.svg)

```
pytrace                                       # ./traces.sqlite, its newest recording
pytrace read shop.sqlite --run 2              # another database, another recording; --run all: all of them
pytrace read --filter "func == 'pay%'"        # only some of the events; & changes it
```

Where there is no terminal (a pipe, a file, `TERM=dumb`) it is `pytrace print`. Exit status: 0; 2 where the database cannot be read, which standard
error explains; 128 and the number of a signal that ended it.

## What is on the screen

From the top:

- **The run as one line**: how many events there are at each time of it (the height is a logarithm), red where there are exceptions, yellow where events were lost,
  highlighted where you found something, blue where we are. A click goes there. Without colours marks say the same: `!`, `?`, `/`, `|`.
- **The calls above the first line**: which functions are open there, the innermost ones. The number in front is the depth of the first of them. A click goes there.
- **The events**, a line each, in the order of time: time, how long it took, thread (of what a task did, the task) where there are several or tasks, process where there are several, and as a tree what happened:

  | line | |
  | --- | --- |
  | `-> app.pay(user='bob', amount=3)` | a call, with its arguments |
  | `<- pay: True` | its return, with the value |
  | `!! pay: SoldOut('pie')  line 12` | an exception is raised here, or arrives from a function that was called |
  | `<! pay: SoldOut('pie')` | it leaves the function |
  | `<~ numbers: 1` `~> numbers` | a generator or coroutine yields, and goes on; `~!` something is thrown into it |
  | `-- paid  amount=3` | `log("paid", amount=3)` |
  | `… 1,204 events lost …` | the buffer was full |
  | `+> app.pay(user='bob') = True` | a call that is folded, with what came of it |

  A line that is too long ends in `...`; `→` scrolls sideways, `-S` wraps. Deep calls are scrolled to by themselves; the columns stay where they are.
- **Everything about one event** (`Tab`): all arguments with type and full stored value, the stack, the call's other end, and the source around the line, with a word if the
  file has changed since.
- **The status line**: database, recording, time and per cent of where the cursor is, `LIVE` while the program runs, events lost near here, what takes
  long and how far it is, filter, search.

**The mouse**: the wheel scrolls; a click puts the cursor on a line, and on the cursor's line folds or unfolds the call; a click in the minimap or on a call above goes there.
To select text, most terminals want Shift to be held.

Characters that would act on the terminal (controls, escape sequences, what turns the direction of text) are shown as escapes, such as `\\x1b`; they never reach it.

## Searching and filtering

`/` takes a regular expression and goes to the next line that matches, as it is shown: hidden columns are not searched, folded calls are, and are opened. While you
type, the first hit is shown. `n` and `N` go on, and begin again at the other end. A hundred million events pass in five to ten seconds where the expression has
a word in it that a name or a value must contain; where it has none (`^.{80}$`), each line is made and tried, some hundred thousand a second, and the status line
tells how far it is. Any key stops it. An expression that would take for ever on one line is ended after a quarter of a second, and says so.

`&` takes a filter, in the language of [filters.md](filters.md): Tab completes functions, arguments, values of fields; a mistake is marked while you type; one that finds nothing is answered with
a list of those near it that do. What is under the cursor stays there when a filter is set or taken away. `*` makes a filter out of it: this function, this value, this thread.

What was typed is kept for the next time in `$XDG_STATE_HOME/pytrace` (`~/.local/state/pytrace`), readable by you alone; `PYTRACE_HISTORY=off` keeps nothing.

## While the program runs

The reader can be opened before the first event. `F` follows the end; any key that moves ends that. Otherwise the screen stays where it is while new
events come; where old ones are removed to keep the size, a line says how many. A recording that begins in the same database is announced, and so is
how the program ends. The reader holds no lock and no transaction: recording never waits for it.

## Keys

A number N typed before a key counts. Keys that `less` has do what they do there, but for `Enter`, `r`, `t` and `T`; of its switches `-i`, `-S` and `-N`
are the same.

"""

BEHIND = """
## How it is made

`reader/screen/`: a key is looked up in `keys.py`, and is a method of `actions.py`. What has to ask the database is a **task**: a generator that yields questions and is sent
the answers (`browser.py`, `tasks.py`). A question is a plain function of the database (`moves.py`, `search.py`, `detail.py`, `timeline.py`), called in the one thread that reads it
(`worker.py`), and can be stopped in the middle of any query. So keys never wait longer than a moment: what takes more is stopped by the next key. Everything that is shown besides
the events is asked for in the background, and gives way.

The events in memory are a stretch of at most some thousand around the screen, read by pages that begin behind the last one's time and id, as `pytrace print` reads them.
While the program runs, the page on the screen is read anew after each commit of the dumper: so late events of other threads find their place, and removed ones go. A line is made of
one event and the switches alone (`lines.py`), never of the lines around it: the screen is the same whichever way one came to it. `layout.py` puts the parts together, and `paint.py` makes
them one canvas of urwid's.

What is folded is a condition of the query (`folds.py`), that segments are passed over by: a folded call of fifty million events costs no more than one of five.

`python -m benchmarks reader` measures it in a real pseudo-terminal; the [README](../README.md#performance) has the figures.
"""

if __name__ == "__main__":
    print(PROSE + help_markdown() + BEHIND, end="")
