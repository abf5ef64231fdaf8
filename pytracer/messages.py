"""Messages to people on a terminal: no text can move the cursor or turn the direction around.

The user waits for the launcher, which imports this module. So it imports nothing slow.
"""

import os
import sys


def printable(text: str) -> str:
    """The text with everything that is not printable (controls, bidi, surrogates) as an escape."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def why(error: OSError) -> str:
    """What an error of the system means, and on a line of its own the way out, if it is known."""
    import errno

    advice = {
        errno.EMFILE: "close some files, or allow more: ulimit -n 1024",
        errno.ENFILE: "the whole machine has as many files open as it may: /proc/sys/fs/file-max",
        errno.EAGAIN: "let more processes run: ulimit -u, or pids.max of the container",
    }
    return "\n  ".join(filter(None, (error.strerror, advice.get(error.errno or 0))))


def say(text: str) -> None:
    """A message of pytrace's, of one line or several."""
    tell(f"pytrace: {text}")


def tell(text: str) -> None:
    """Lines to standard error, if there is one."""
    if sys.stderr is not None:
        sys.stderr.write("".join(f"{line}\n" for line in map(printable, text.split("\n"))))


def show(text: str) -> None:
    """Lines to standard output, if there is one and somebody reads it. Raises OSError."""
    if sys.stdout is not None:
        try:
            sys.stdout.write(text)
            sys.stdout.flush()
        except OSError as error:  # else buffered output fails again when Python ends
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            if not isinstance(error, BrokenPipeError):
                raise
