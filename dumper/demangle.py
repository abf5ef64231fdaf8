"""Names of C++ and Rust as people write them.

C++ has its own demangler in its own library, which is on every machine that runs C++. Rust's old
names are C++'s with a hash behind; its new ones (v0, RFC 2603) are read here.
"""

import ctypes
import re
from functools import cache
from typing import Any

NAME_MOST = 2000  # characters of a name that is demangled; longer ones are shown as they are
RESULT_MOST = 4000

_LEGACY_HASH = re.compile(r"::h[0-9a-f]{16}$")
_LEGACY_ESCAPES = {
    "$SP$": "@", "$BP$": "*", "$RF$": "&", "$LT$": "<", "$GT$": ">", "$LP$": "(", "$RP$": ")", "$C$": ",",
}  # fmt: skip
_LEGACY_UNICODE = re.compile(r"\$u([0-9a-f]{1,6})\$")


def demangled(name: str) -> str:
    """The name as it is, if it is not one of C++ or Rust, or cannot be read."""
    if len(name) > NAME_MOST:
        return name
    if name.startswith("_R"):
        return _rust(name.partition(".")[0]) or name
    if name.startswith("_Z"):
        plain = _cpp(name)
        if plain is None:
            return name
        return _legacy_rust(plain) if _LEGACY_HASH.search(plain) else plain
    return name


@cache
def _library() -> Any:
    """The C++ library, and free; None: there is none."""
    for name in ("libstdc++.so.6", "libc++abi.so.1"):
        try:
            demangle = ctypes.CDLL(name).__cxa_demangle
            free = ctypes.CDLL(None).free
        except (OSError, AttributeError):
            continue
        demangle.restype = ctypes.c_void_p
        demangle.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int)]
        free.restype, free.argtypes = None, [ctypes.c_void_p]
        return demangle, free
    return None


def _cpp(name: str) -> str | None:
    if _library() is None:
        return None
    demangle, free = _library()
    status = ctypes.c_int()
    result = demangle(name.encode(), None, None, ctypes.byref(status))
    if not result:
        return None
    try:
        text = ctypes.string_at(result)
    finally:
        free(result)
    return text.decode("utf-8", "replace")[:RESULT_MOST]


def _legacy_rust(name: str) -> str:
    """`_$LT$app..Order$u20$as$u20$core..fmt..Debug$GT$::fmt::h0123…` as people write it."""
    name = _LEGACY_HASH.sub("", name)
    for written, meant in _LEGACY_ESCAPES.items():
        name = name.replace(written, meant)
    name = _LEGACY_UNICODE.sub(
        lambda found: chr(int(found[1], 16) if int(found[1], 16) < 0x110000 else 63), name
    )
    return re.sub(r"(^|::)_(?=[<&*(\[])", r"\1", name).replace("..", "::")


# ---- Rust, v0 ------------------------------------------------------------------------------------


class _Unreadable(Exception):
    """It is no name of Rust, or one that is too deep."""


_BASIC = {
    "a": "i8", "b": "bool", "c": "char", "d": "f64", "e": "str", "f": "f32", "h": "u8", "i": "isize",
    "j": "usize", "l": "i32", "m": "u32", "n": "i128", "o": "u128", "p": "_", "s": "i16", "t": "u16",
    "u": "()", "v": "...", "x": "i64", "y": "u64", "z": "!",
}  # fmt: skip
_DEEPEST = 100
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def _rust(name: str) -> str | None:
    """https://rust-lang.github.io/rfcs/2603-rust-symbol-name-mangling-v0.html"""
    try:
        reader = _Rust(name[2:])
        return reader.path(True)[:RESULT_MOST]
    except (_Unreadable, IndexError, ValueError, RecursionError):
        return None


class _Rust:
    def __init__(self, text: str) -> None:
        self.text, self.at, self.depth, self.made = text, 0, 0, 0
        self.lifetimes = 0

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def take(self, what: str = "") -> str:
        """The next character; with `what`, only if it is that one, else ""."""
        if what and self.peek() != what:
            return ""
        self.at += 1
        return self.text[self.at - 1]

    def number(self) -> int:
        """In base 62, closed by an underscore."""
        if self.take("_"):
            return 0
        value = 0
        while (digit := self.take()) != "_":
            value = value * 62 + _DIGITS.index(digit)
        return value + 1

    def optional(self, tag: str) -> int:
        return self.number() + 1 if self.take(tag) else 0

    def identifier(self) -> tuple[str, int]:
        disambiguator = self.optional("s")
        encoded = bool(self.take("u"))
        start = self.at
        while self.peek().isdecimal():
            self.at += 1
        size = int(self.text[start : self.at] or "x")
        self.take("_")
        name = self.text[self.at : self.at + size]
        if len(name) != size:
            raise _Unreadable
        self.at += size
        if encoded:
            head, _, tail = name.rpartition("_")
            name = f"{head}-{tail}".encode().decode("punycode") if head else tail.encode().decode("punycode")
        return name, disambiguator

    def again(self, read: str, *args: bool) -> str:
        """What stands at an earlier place."""
        start = self.at - 1
        place = self.number()
        if place >= start:
            raise _Unreadable
        after, self.at = self.at, place
        result: str = self.deeper(read, *args)
        self.at = after
        return result

    def deeper(self, read: str, *args: bool) -> str:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise _Unreadable
        result: str = getattr(self, read)(*args)
        self.made += len(result)
        if self.made > 100 * RESULT_MOST:
            raise _Unreadable
        self.depth -= 1
        return result

    def path(self, value: bool = False) -> str:
        """value: of a function, whose generic arguments are written behind `::`."""
        match self.take():
            case "C":
                return self.identifier()[0]
            case "M":
                self.impl()
                return f"<{self.deeper('type')}>"
            case "X":
                self.impl()
                return f"<{self.deeper('type')} as {self.deeper('path')}>"
            case "Y":
                return f"<{self.deeper('type')} as {self.deeper('path')}>"
            case "N":
                space = self.take()
                outer = self.deeper("path", value)
                name, number = self.identifier()
                if space.isupper():
                    kind = {"C": "closure", "S": "shim"}.get(space, space)
                    return f"{outer}::{{{kind}{':' + name if name else ''}#{number}}}"
                return f"{outer}::{name}" if name else outer
            case "I":
                outer = self.deeper("path", value)
                arguments = []
                while not self.take("E"):
                    arguments.append(self.deeper("argument"))
                return f"{outer}{'::' * value}<{', '.join(arguments)}>"
            case "B":
                return self.again("path", value)
        raise _Unreadable

    def impl(self) -> None:
        self.optional("s")
        self.deeper("path")

    def argument(self) -> str:
        if self.take("L"):
            return self.lifetime(self.number())
        if self.take("K"):
            return self.deeper("constant")
        return self.deeper("type")

    def lifetime(self, number: int) -> str:
        if number == 0:
            return "'_"
        depth = self.lifetimes - number
        if depth < 0:
            raise _Unreadable
        return f"'{chr(97 + depth)}" if depth < 26 else f"'_{depth}"

    def binder(self) -> tuple[str, int]:
        count = self.optional("G")
        if count > 1000:
            raise _Unreadable
        names = []
        for _ in range(count):
            self.lifetimes += 1
            names.append(self.lifetime(1))
        return (f"for<{', '.join(names)}> " if names else ""), count

    def type(self) -> str:
        tag = self.peek()
        if tag in _BASIC and tag:
            self.take()
            return _BASIC[tag]
        match tag:
            case "A":
                self.take()
                item = self.deeper("type")
                return f"[{item}; {self.deeper('constant')}]"
            case "S":
                self.take()
                return f"[{self.deeper('type')}]"
            case "T":
                self.take()
                items = []
                while not self.take("E"):
                    items.append(self.deeper("type"))
                return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"
            case "R" | "Q":
                self.take()
                life = self.lifetime(self.number()) + " " if self.take("L") else ""
                life = "" if life == "'_ " else life
                return f"&{life}{'mut ' * (tag == 'Q')}{self.deeper('type')}"
            case "P" | "O":
                self.take()
                return f"*{'const' if tag == 'P' else 'mut'} {self.deeper('type')}"
            case "F":
                self.take()
                return self.function()
            case "D":
                self.take()
                return self.dynamic()
            case "B":
                self.take()
                return self.again("type")
        return self.deeper("path")

    def function(self) -> str:
        bound, count = self.binder()
        unsafe = "unsafe " if self.take("U") else ""
        abi = ""
        if self.take("K"):
            abi = f'extern "{"C" if self.take("C") else self.identifier()[0].replace("_", "-")}" '
        arguments = []
        while not self.take("E"):
            arguments.append(self.deeper("type"))
        result = self.deeper("type")
        self.lifetimes -= count
        return f"{bound}{unsafe}{abi}fn({', '.join(arguments)}){'' if result == '()' else f' -> {result}'}"

    def dynamic(self) -> str:
        bound, count = self.binder()
        traits = []
        while not self.take("E"):
            trait = self.deeper("path")
            while self.take("p"):
                name, _ = self.identifier()
                pair = f"{name} = {self.deeper('type')}"
                trait = f"{trait[:-1]}, {pair}>" if trait.endswith(">") else f"{trait}<{pair}>"
            traits.append(trait)
        self.lifetimes -= count
        if not self.take("L"):
            raise _Unreadable
        life = self.number()
        return f"dyn {bound}{' + '.join(traits)}{f' + {self.lifetime(life)}' if life else ''}"

    def constant(self) -> str:
        if self.take("B"):
            return self.again("constant")
        kind = self.take()
        if kind == "p":
            return "_"
        negative = "-" if self.take("n") else ""
        end = self.text.index("_", self.at)
        digits = self.text[self.at : end]
        self.at = end + 1
        value = int(digits or "0", 16)
        if kind == "b":
            return "true" if value else "false"
        if kind == "c":
            return repr(chr(value))
        if kind not in "aiswxlhjtymno":
            raise _Unreadable
        return f"{negative}{value}"
