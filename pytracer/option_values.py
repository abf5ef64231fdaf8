"""Reads the values of options from the user's texts. ValueError says what is expected.

The value of a setting (config.py) is a text in one normal form: a size is bytes in decimal, a
switch "0" or "1"; paths are absolute and joined by ":".
"""

import os

KIB = 1024
UNITS = {"": 1, "B": 1}
for _power, _letter in enumerate("KMGT", 1):
    UNITS |= {_letter: KIB**_power, _letter + "IB": KIB**_power, _letter + "B": 1000**_power}

MIN_OUTPUT = 10**6
MIN_BUFFER = 4 * 64 * KIB  # RING_MIN_CHUNKS of RING_MIN_CHUNK_SIZE
MAX_VALUE_LENGTH = 6000  # VALUE_LENGTH_MAX
MAX_ATTRIBUTES = 100  # TYPE_ATTRIBUTES_MAX


def show_size(size: int) -> str:
    """Bytes for a person: "64 MiB", "1.5 KiB", "17 bytes"."""
    for unit, letter in ((KIB**4, "T"), (KIB**3, "G"), (KIB**2, "M"), (KIB, "K")):
        if size >= unit:
            return f"{size / unit:.1f}".removesuffix(".0") + f" {letter}iB"
    return f"{size} bytes"


def read_size(text: str) -> int:
    """Bytes of "64MiB" and "512k" (powers of 1024), "200MB" (of 1000), "4096"."""
    number = text.strip().rstrip("BKMGTIbkmgti ")
    unit = text.strip()[len(number) :].strip().upper()
    try:
        if unit not in UNITS or not number.replace(".", "", 1).isdecimal():
            raise ValueError
        return int(float(number) * UNITS[unit]) if "." in number else int(number) * UNITS[unit]
    except ValueError:
        raise ValueError("a size is expected, such as 64MiB, 200MB or 1GiB") from None


def read_output_size(text: str) -> str:
    size = read_size(text)
    if size < MIN_OUTPUT:
        raise ValueError("the least is 1 MB: less has no room for a recording")
    if size >= 1 << 47:
        raise ValueError("that is more than a database can hold")
    return str(size)


def read_buffer_size(text: str) -> str:
    size = read_size(text)
    if size < MIN_BUFFER:
        raise ValueError(f"the least is {show_size(MIN_BUFFER)}: four parts of 64 KiB")
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if size > memory // 2:
        raise ValueError(
            f"that is more than half of this machine's memory ({show_size(memory)}); the default is 64MiB"
        )
    return str(size)


def read_count(text: str) -> str:
    if not text.strip().isdecimal():
        raise ValueError("a number is expected; 0 is no limit")
    if int(text) >= 1 << 62:
        raise ValueError("that is too large a number; 0 is no limit")
    return str(int(text))


def read_value_length(text: str) -> str:
    if not text.strip().isdecimal() or not 1 <= int(text) <= MAX_VALUE_LENGTH:
        raise ValueError(f"a number of characters is expected, from 1 to {MAX_VALUE_LENGTH}")
    return str(int(text))


def read_attributes(text: str) -> str:
    if not text:
        return ""  # config.settings decides
    if not text.strip().isdecimal() or int(text) > MAX_ATTRIBUTES:
        raise ValueError(f"a number of attributes is expected, from 0 (none) to {MAX_ATTRIBUTES}")
    return str(int(text))


def _read_whose(text: str, words: tuple[str, ...], expected: str) -> str:
    """One of the words; own: yes; "": no."""
    match text.strip().lower():
        case which if which in words:
            return which
        case "1" | "true" | "yes" | "on":
            return "own"
        case "" | "0" | "false" | "no" | "off":
            return ""
    raise ValueError(f"{expected} is expected")


def read_lines(text: str) -> str:
    return _read_whose(text, ("own", "all"), "own (your code) or all")


def read_c_calls(text: str) -> str:
    return _read_whose(text, ("own", "all", "exact"), "own (calls by your code), all or exact")


KERNEL_GROUPS = ("sched", "syscalls", "faults", "signals")
KERNEL_ALONE = "sched,syscalls,faults"


def read_kernel(text: str) -> str:
    """Groups and events, with commas between them."""
    match text.strip().lower():
        case "1" | "true" | "yes" | "on":
            return KERNEL_ALONE
        case "" | "0" | "false" | "no" | "off":
            return ""
    words = [word.strip() for word in text.split(",") if word.strip()]
    for word in words:
        system, colon, event = word.partition(":")
        if word not in KERNEL_GROUPS and not (system and colon and event and ":" not in event):
            raise ValueError(
                f"{', '.join(KERNEL_GROUPS)} or system:event is expected, with commas between them,"
                f" not {word!r}"
            )
    return ",".join(dict.fromkeys(words))


def are_kernel_events(word: str) -> bool:
    """Whether this can be nothing else: a file's name has neither commas nor colons."""
    try:
        return bool(read_kernel(word)) and ("," in word or ":" in word)
    except ValueError:
        return False


def read_pids(text: str) -> list[int]:
    words = text.split(",")
    if not all(word.isascii() and word.isdigit() and 0 < int(word) < 1 << 22 for word in words):
        raise ValueError("the number of a process is expected, or several with commas between them")
    return list(map(int, words))


def are_shared_objects(word: str) -> bool:
    """Whether these paths, joined by colons, are files that no Python runs. A folder may be the
    program."""
    paths = [path for path in word.split(":") if path]
    for path in paths:
        try:
            with open(os.path.expanduser(path), "rb") as file:
                if file.read(4) != b"\x7fELF":
                    return False
        except (OSError, ValueError):
            return False
    return bool(paths)


def read_native(text: str) -> str:
    """ "": off; "all", or paths."""
    match text.strip().lower():
        case "all" | "1" | "true" | "yes" | "on":
            return "all"
        case "" | "0" | "false" | "no" | "off":
            return ""
    return read_paths(text)


def read_switch(text: str) -> str:
    match text.strip().lower():
        case "1" | "true" | "yes" | "on":
            return "1"
        case "" | "0" | "false" | "no" | "off":
            return "0"
    raise ValueError("1 or 0 is expected")


def absolute(path: str) -> str:
    try:
        return os.path.abspath(path)
    except FileNotFoundError:
        raise ValueError("the current folder has been removed; give the whole path") from None


def read_output(text: str) -> str:
    if not text:
        raise ValueError("a file name is expected")
    return absolute(text)


def read_paths(text: str) -> str:
    paths = [absolute(os.path.expanduser(path)) for path in text.split(":") if path]
    for path in paths:
        try:
            os.stat(path)
        except FileNotFoundError:
            raise ValueError(
                f"there is no {path}; folders and files are expected, joined by a colon"
            ) from None
        except OSError as error:
            raise ValueError(f"{path} cannot be used: {error.strerror}") from None
    # also the real name: a module knows only the name by which it was found
    both = dict.fromkeys(name for path in paths for name in (path, os.path.realpath(path)))
    return ":".join(both)


def read_pattern(text: str) -> str:
    from ._hook import check_pattern

    try:
        problem = check_pattern(text) if text else None
    except UnicodeEncodeError:
        problem = "it is not in UTF-8"
    if problem:
        raise ValueError(f"a POSIX extended regular expression is expected: {problem}")
    return text


def read_text(text: str) -> str:
    return text


def read_event_count(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise ValueError("a number of events is expected")
    return int(text)


def read_row_count(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise ValueError("a number of lines is expected")
    return int(text)


def read_event(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) >= 1 << 63:
        raise ValueError("the id of an event is expected, as --format json shows it")
    return int(text)


def read_runs(text: str) -> tuple[int, ...]:
    """The numbers of one or two runs."""
    words = text.split(",")
    if len(words) > 2 or not all(word.isascii() and word.isdigit() and int(word) for word in words):
        raise ValueError("the number of a run is expected, or two of them with a comma between: 1,2")
    return tuple(map(int, words))


def read_run(text: str) -> int | None:
    """The number of a run; 0: the newest; None: all."""
    if text in ("newest", "all"):
        return 0 if text == "newest" else None
    if not text.isascii() or not text.isdigit() or int(text) == 0:
        raise ValueError("the number of a run is expected, or: all")
    return int(text)
