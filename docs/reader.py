"""Makes docs/reader.md: `python docs/reader.py > docs/reader.md`, with this tree's pytrace
installed.

The tables of keys, switches and commands are those of the reader itself.
"""

# ruff: noqa: E501  (prose, as wide as in the other documents)

from __future__ import annotations

from pytracer.reader.screen.commands.help import help_markdown
from pytracer.reader.screen.commands.table import HELP

PROSE = """\
# The reader

`pytrace` shows `./traces.sqlite`, `pytrace read DB` another database, while the program runs or
later. It opens a hundred million events at once, and has the keys of `less`. `docs/reader.py` makes
this page; `h` shows the same keys on the screen.

![The reader, over a recording of examples/shop.py](reader.svg)

```
pytrace                                       # ./traces.sqlite, its newest recording
pytrace read shop.sqlite --run 2              # another database, another recording; --run all: all of them
pytrace read --filter "func == 'pay%'"        # only some of the events; & changes it
```

Without a terminal (a pipe, a file, `TERM=dumb`) it is `pytrace print`. Exit status: 0; 2 if the
database cannot be read, which standard error explains; 128 and the number of a signal that ended
it.

## What people ask, and the keys that answer

| question | keys |
| --- | --- |
| What did my own code do? | none: the first screen |
| Why this exception, with which values? | `E` |
| What happened just before the crash? | `E`, and the lines above it; `k` scrolls back |
| Where does the time go? | `H` |
| Which one call of ten thousand was slow? | `l` |
| Which test was slow? | `H` `l` |
| How did this object come to be like this? | `o` |
| What is the program doing now, in all threads? | `V` |
| What did it do line by line? | `s`: [the replay](replay.md) |
| Which lines took the time? | `H` `H`, after `pytrace --lines`; in the shell `pytrace analyse` |
| What differs between two runs? | `:diff`; in the shell `pytrace diff` |
| Where did this value go? | `a` |
| What did this thread wait for, and who ended it? | `w`, after `pytrace --kernel` |
| Only the calls that meet a condition? | `&` |

## What is on the screen

The first screen is an outline: the program's calls down to the level that fits, each as one line
with its duration and outcome. `Enter` opens the call under the cursor, `.` and `,` show a level
more or less. It shows your own code (below). With `PYTRACE_VIEW=all` in the environment the reader
opens with all events of all code.

From the top:

- **The run as one line**: the number of events at each time of it (the height is a logarithm). Red
  are exceptions, bright red those that nobody caught, yellow are losses, highlighted are the hits
  of a search, blue is the part on the screen. A click goes there. Without colours marks say the
  same: `!`, `E`, `?`, `/`, `|`.
- **What it is**: the command, how it ended, the newest exception that nobody caught, and how many
  events were lost.
- **The calls above the first line**: the innermost functions that are open there. The number in
  front is the depth of the first of them. A click goes there.
- **The events**, a line each, in the order of time. Its columns are the time; the duration; the
  thread (for a task its name), if there are several threads or any task; the process, if there are
  several. The colour of a duration tells its unit: gray, cyan, brown, yellow for ns, µs, ms, s.
  Behind them stands what happened, as a tree:

  | line | |
  | --- | --- |
  | `-> app.pay(user='bob', amount=3)` | a call, with its arguments |
  | `<- pay: True` | its return, with the value |
  | `!! pay: SoldOut('pie')  line 12` | an exception is raised here, or arrives from a function that was called |
  | `<! pay: SoldOut('pie')` | it leaves the function |
  | `<~ numbers: 1` `~> numbers` | a generator or coroutine yields, and goes on; `~!` something is thrown into it |
  | `-- paid  amount=3` | `log("paid", amount=3)` |
  | `… 1,204 events lost …` | the buffer was full |
  | `.. 12: total=3, items=['tea']` | line 12 comes next; before it, these variables were set (`x=<deleted>`: deleted) |
  | `+> app.pay(user='bob') = True` | a call that is folded, with what came of it; long arguments stand behind that |
  | `+~> numbers <~ 2` | the same of a generator or coroutine that goes on; `+~!`: something is thrown into it |
  | `⋯ 11 library calls, 953 events, 1.3ms` | a stretch of library code, where only your own is shown |
  | `** [kernel] sched.sched_waking: pid=4711` | something happened at this moment: an event of the kernel |
  | `·· 12ms waiting for fd 5, woken by 4711 (worker, in app.put)` | the thread had no processor |

  An object that is known by its type and address is `Order@5300`: the end of both; the pane has
  them whole. One whose attributes are recorded (`--attributes`) is `Order(user='bob', total=3)`;
  the pane has each of them on a line. A line that is too long ends in `...`; `→` scrolls sideways,
  `-S` wraps behind the indentation. The screen scrolls to deep calls by itself; the columns stay
  where they are. If all
  hits of a search are further to the right, the line shows its beginning and the first hit.
- **Everything about one event** (`Tab`): what came of it, such as the exception; the arguments of
  its call, with type and full stored value; the source around the line, which is always on the
  pane's first page; the stack, the innermost call first, with those of your own code in bold; then
  times and ids. In a pane with little room, values that do not fit stand behind the source. A
  generator or coroutine that goes on has the arguments of its first call, if the recording tells
  which one that was: by its end, if it ends before it yields again; else if only one call of it was
  open. The source is the stored one, if lines were recorded, else that of the file now; a note says
  if the file has changed since. `}` and `{` make the pane larger and smaller; `|`
  puts it at the right, on a screen of 140 columns.
- **The status line**: database, recording, time and per cent of the cursor's event, `LIVE` while
  the program runs, events lost near here, the progress of what takes long, filter, search. At its
  right stand five keys to begin with, each until it has been used once.

**The mouse**: the wheel scrolls. A click puts the cursor on a line; on the cursor's line it folds
or unfolds the call. A click in the minimap, on a call above, or on the line with `E goes there`
goes there. To select text, most terminals want Shift to be held.

Characters that would act on the terminal (controls, escape sequences, marks that turn the direction
of text) are shown as escapes, such as `\\x1b`; they never reach it.

## Your own code

If a recording has code of your own, the reader shows that alone at first. Your own code is neither
of Python itself, nor in `site-packages`, nor frozen, nor made up (`<string>` of a library). The
events of a thread between two of yours are one line, a stretch:

```
-> __main__.main(total=1000)
  ⋯ imports 24 modules, 74.3ms
  -> __main__.order(n=0)
    ⋯ 2 library calls, 60 events, 161µs
  <- order: 'tea'
```

Library calls are those that your code makes; events are all in the stretch, up to the next one of
yours, or up to the end of the thread. `Enter` opens a stretch, and on its first line closes it.
Depth, indentation and levels count what is shown. `M` shows also the library functions that your
code calls directly; again: all code; again: your own.

Searches and jumps go through what is shown, and say if there is something in the rest. `%` or `D`
to an event in a stretch goes to the stretch, `U` to the nearest caller that is shown, `E`, `(` and
`)` open the stretch. Under a filter there are no stretches: your own events that meet it are shown.
Recordings of earlier versions do not know enough for this: all is shown.

`pytrace print --mine` has the same lines as text. As JSON and CSV it has the events of your own
code alone.

## Layers, and time off the processor

C functions, Cython, native functions and the kernel stand in the tree with the Python around them
([kernel.md](kernel.md) says how to record the kernel). `S` lists the layers of the recording, and
hides the chosen one, or shows it again; the status line names those that are hidden. Searches and
jumps pass over hidden layers. But a jump to an event of one, such as `D` or `w`, shows the layer
again. Levels and indentation count all calls, hidden ones too.

With `--kernel`, a line that begins with `··` is a time in which the thread had no processor:

```
-> app.get()
  -> [kernel] syscalls.futex(uaddr=0x55f75fdfde10, op=393, val=0)
  ·· 2.97ms waiting for a lock, woken by 446 (worker, in app.put)
  <- [kernel] futex: 0
```

The system call tells what it waited for. A thread that could have gone on has its processor `taken`
by another one. A wakeup from an interrupt, such as a timer's, names nobody. The function is the
innermost one of your own code, or else of Python. The line stands for the scheduler's events of the
thread, which `Enter` shows; under a filter they are lines of their own, as in `pytrace print`.

`w` goes to the event that woke the thread after its last wait up to the cursor; from a call, after
the last wait in it. That event is in the thread that did it, in its functions; `w` there goes on to
what that thread had waited for. So `w` again and again is the active path, backwards through
threads and processes; `Backspace` goes back. It ends where a timer or a device woke the thread, or
something that was not recorded.

## Searching and filtering

`/` takes a regular expression and goes to the next line that matches. It searches lines as they are
shown: not hidden columns, but folded calls, which it opens. It finds events alone, as they are when
nothing is folded: not the words of a stretch of library code, such as `imports`. While you type,
the first hit is shown. `n` and `N` go on, and begin again at the other end.

A hundred million events pass in five to ten seconds if the expression has a word in it that a name
or a value must contain. If it has none (`^.{80}$`), each line is made and tried, some hundred
thousand a second. The status line tells how far it is, and any key stops it. An expression that
would take for ever on one line is ended after a quarter of a second, with a message.

`&` takes a filter, in the language of [filters.md](filters.md). Tab completes functions, arguments,
values of fields; a mistake is marked while you type. A filter that finds nothing is answered with a
list of those near it that find something, and a bare word with the filters on a function, an
argument or a value that have it. The event under the cursor stays there when a filter is
set or taken away. `*` makes a filter out of it: this function, this value, this thread.

A filter keeps the tree. If it finds one end of a call and hides the other, the line shows both:
`+> app.pay(user='bob') = True`. `+` shows an event before and after each that it finds, and one
more each time; `_` one fewer. A jump to an event that the filter hides (`%`, `U`, `D` and others)
shows that event while the cursor is on it. Hidden events are gray, and begin with `·`. Calls and
levels fold as they do without a filter, and are open when a filter is set: levels count all calls,
and matches on deeper ones are not shown.

Typed lines, and which keys of those on the status line were used, are kept for the next time in
`$XDG_STATE_HOME/pytrace` (`~/.local/state/pytrace`), readable by you alone; `PYTRACE_HISTORY=off`
keeps nothing.

## Exceptions

`E` goes to where the newest exception began that nobody caught, and opens the pane with its values;
`E` again goes to the one before. Nobody caught an exception that left

- the program: it left the main module, or all that is recorded of the main thread, and the process
  failed: if it did not, code that is not recorded caught the exception;
- a thread: it left the thread's outermost function, and nothing of the thread comes after, but
  perhaps of a library that prints it; or it arrived in the code of `threading` or `multiprocessing`
  that prints it;
- a task: its last coroutine ended with it, even if somebody awaits the task, and catches it there;
- a test: it left a function `test...` in a module or class whose name has `test` in it, or arrived
  in the code of pytest or unittest that notes it. A fixture that fails counts, too.

An exception that leaves several of these is one stop. The newest hundred are marked in the line of
the whole run, and their lines are bold; those of exceptions that were caught are a darker red.
`SystemExit`, `GeneratorExit`, `StopIteration`, cancellation and skipped tests do not count: they
end something as it should end. `KeyboardInterrupt` counts; `E` shows where the program was.

`x` and `X` go to the next exception and to the one before, to where it starts, or to the first line
of its way that is shown: one that passes ten frames is one stop. They pass over exceptions that a
library's function raises and catches itself; with a number, as in `1x`, they go through all.

From any line of an exception's way (`!!`, `<!`, `~!`, or a call that it ended), `(` goes to where
it was raised, and `)` to the function that caught it. A recording does not identify exceptions: two
with the same type and arguments are one if they follow from each other. Such a way goes through
`raise error` in a handler, context managers, awaited tasks, and futures.

## Where the time goes

`H` lists the functions of what is shown now (recording and filter) with their calls, and the times
of the table `hot` in [schema.md](schema.md): own and total; average, median and longest of a call.
A column's letter sorts by it: `f` by name, `c o t a m l` by numbers, the same key again the
other way round; `←` and `→` sort by the column beside. `/`, `n` and `N` search names. Where only
your own code is shown, the list begins with that, too; `M` shows all functions, and again your own.
`Enter` goes to the slowest calls of a function, and opens their stretch; `&` makes a filter of it.
With `--kernel`, `off` is the part of the own time in which the thread had no processor (`p` sorts
by it); that of a system call that waits is nearly all.
The calls stand there at once, from the summaries of the segments. The times need all events, a
hundred million some ten seconds: they are counted in the background, and again while the program
runs. So the slowest test is `H` `l`.

Where lines were recorded (`pytrace --lines`), `H` in that list shows lines instead, and functions
again: how often each line ran, own and total time, the average of a run, and its source; they are
those of the table `line`. Keys are the same, and `/` searches the source, too. Of what a filter
finds, the runs count whose events it finds. `Enter` goes to the line's next run after the cursor,
behind the last one to the first; `&` makes a filter of its runs. `pytrace analyse` prints the same.

`l` goes to the call that took longest beyond what is usual, which is the median of its function;
`l` again to the second worst, `L` back. A call counts that took three times as long as usual, at
least. Left out are imports, and calls that are slow only because of one that they contain. The
first `l` goes through all events, with its progress in the status line; then the calls are known.
Durations ten times as long as usual are bold, a hundred times red, if
the recording is small (half a million events), or `l` has gone through it.

`50l` goes to the next call of 50 milliseconds or more, and so do `l` and `L` from then on, until
`:slow` alone ends that.

`V` shows the time from left to right, and below each other the threads and tasks, with the calls
around the cursor as bars, each below its caller; exceptions ended the red ones. At a call that
nothing called, such as the first line, it is the whole time until now: `V` alone shows what a
program is doing now, in all threads. Where only your own code is shown, so it is here: library
functions that it calls are names without a bar, behind `⋯`. A thread without own code shows its
innermost library function. Arrows go along the time, and to callers, callees and other lanes; `+`
and `-` change the scale; `Enter` goes to the call under the cursor. Only calls that are as long as
a cell of the screen are drawn, so that it is as quick in a large recording; those that are open at
the right edge always are, of very deep stacks the outermost and the innermost ones. Lanes with more
levels than there is room for show the innermost calls. While a program runs, the right edge moves
on with it if it shows `to now`; at another scale it stands, and shows how long before now. A
coroutine that waits at the right edge is not drawn. Dots in the bars are times off the processor
(`--kernel`), as long as a cell at least, if there are fewer than 20,000 switches on the screen.

## Objects

`o` shows the events in which the object under the cursor appears, under whatever name, also in
lists and the like: a menu, whose first line is a filter for them. Of very many it shows the first
one and those around the cursor. `o` on any other value goes to the return that produced it: the
latest one that handed the same value to the same caller. Where an exception passes (`!!`, `<!`),
the function's arguments are offered, too.

A recording shows an object by its type and address, and addresses are used again. So an object's
life goes from its birth, the call of its `__init__`, to the next birth at the same address in the
same process. `a` and `A` stay within it, too. A type without a recorded `__init__` has no births:
its objects at one address are one to `o`.

## Two recordings

`:diff 3` shows how this recording differs from recording 3 of the same database, as `pytrace diff`
does: functions that are called more or less often or have become slower, exceptions that are new or
gone, and the first call whose arguments or outcome differ, side by side. The older recording is A.
It goes through all events of both; any key stops it.

## While the program runs

The reader can be opened before the first event. `F` follows the end; any key that moves ends that.
Otherwise the screen stays where it is while new events come. If old events are removed to keep the
size, a line says how many. A message tells of a recording that begins in the same database, and of
the program's end. The reader holds no lock and no transaction: recording never waits for it.

## Keys

A number N typed before a key counts. Keys that `less` has do what they do there, but for `Enter`,
`r`, `t` and `T`; of its switches `-i`, `-S` and `-N` are the same.

"""

BEHIND = """
## How it is made

Everything is in `reader/screen/`.

- The **session** (`session.py`) is the state: what is open, where we are, what is shown and how. It
  knows no terminal.
- A **command** (`commands/`) is a function of the session and of the number before its key. It may
  change the session, and gives back **effects** (`effects.py`): values that say what else should
  happen, such as a message, a prompt, a task, another program.
- A **task** is an effect that has to ask the database: a generator that yields questions and is
  sent the answers. A **question** is a plain function of the database (`pages.py`, `navigation.py`,
  `exceptions.py`, `objects.py`, `search.py`, `detail.py`, `timeline.py`). The one
  thread that reads the database calls it (`worker.py`), and it can be stopped in the middle of any
  query. So no key waits longer than a moment: the next key stops what takes more.
- The **loop** (`loop.py`) takes keys and makes effects happen; the replay has the same. The **app**
  (`app.py`) says which commands the keys run. Nothing else knows the terminal. `background.py` asks
  for everything that nobody waits for, and gives way to commands.
- `layout.py` makes the screen of the session alone, and `paint.py` makes it one canvas of urwid's.

**A new command** is a function in the file of its kind, and a row of the table at that file's end:

```python
def halfway(session: Session, count: Count) -> RunTask:
    middle = len(session.browser.items) // 2
    return RunTask(session.browser.move_cursor(middle - session.browser.cursor))


MOVING = Group(
    "Moving",
    (
        Command("halfway", ("^",), "to the middle of what is in memory", halfway),
        ...,
    ),
)
```

Help, completion behind `:` and this page (`python docs/reader.py > docs/reader.md`) have it from
the table; a test of it stands in `tests/screen/test_keys.py`, which wants one for each command.

The events in memory are a stretch of at most some thousand around the screen (`window.py`). They
are read by pages that begin behind the last one's time and id, as `pytrace print` reads them. While
the program runs, the page on the screen is read anew after each commit of the dumper. So late
events of other threads find their place, and removed ones go. A line is made of one event and the
display options alone (`lines.py`), never of the lines around it: the screen is the same whichever
way one came to it.

A fold is a condition of the query (`view.py`), by which whole segments are passed over: a folded
call of fifty million events costs no more than one of five.

`python -m benchmarks reader` measures it in a real pseudo-terminal;
[results.md](../benchmarks/results.md) has the figures.
"""

if __name__ == "__main__":
    print(PROSE + help_markdown(HELP) + BEHIND, end="")
