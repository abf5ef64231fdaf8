"""Arrays of numpy of all sorts, and packages that only look like numpy."""

from typing import Any

import pytest

from recording import Record, texts, write

TAKEN = "def taken(value):\n    pass\n"

ARRAYS = {
    # structured
    "np.zeros(3, dtype=[('a', 'i4'), ('b', 'f8')])": "array([...], dtype='T{i:a:=d:b:}', shape=(3,))",
    "np.zeros((), dtype=[('a', 'i4')])": "array(...)",
    "np.zeros(1, dtype=[('a', 'i4')])[0]": None,
    "np.zeros(2, dtype=[('a', 'M8[s]')])": "<numpy.ndarray at 0x…>",
    "np.zeros(2, dtype=[('a', 'i4', (2, 2)), ('n', [('x', 'O')])])": None,
    "np.recarray((2,), dtype=[('a', 'i4')])": None,
    "np.zeros(2, dtype='V5')": None,
    # times
    "np.array(['2020-01-01', 'NaT'], dtype='M8[ns]')": "<numpy.ndarray at 0x…>",
    "np.array([1, 2], dtype='m8[s]')": "<numpy.ndarray at 0x…>",
    "np.datetime64('2020-01-01')": "<numpy.datetime64 at 0x…>",
    "np.timedelta64(5, 's')": "<numpy.timedelta64 at 0x…>",
    # objects
    "np.array([1, 'a', None, [2]], dtype=object)": "array([1, 'a', None, [2]], dtype=object, shape=(4,))",
    "np.empty(2, dtype=object)": "array([None, None], dtype=object, shape=(2,))",
    "np.array(5, dtype=object)": "array(5)",
    "within": "array([array([[...]], dtype=object, shape=(1,))], dtype=object, shape=(1,))",
    # shapes
    "np.array(1.5)": "array(1.5)",
    "np.array('a')": "array('a')",
    "np.array([])": "array([], dtype=float64, shape=(0,))",
    "np.empty((2, 0, 3))": "array([], dtype=float64, shape=(2, 0, 3))",
    "np.zeros((1,) * 8)": "array([0.0], dtype=float64, shape=(1, 1, 1, 1, 1, 1, 1, 1))",
    "np.zeros((1,) * 9)": "<numpy.ndarray at 0x…>",
    "np.zeros((1,) * 32)": "<numpy.ndarray at 0x…>",
    "np.arange(24).reshape(2, 3, 4)[:, ::2, ::-3]":
        "array([3, 0, 11, 8, 15, 12, 23, 20], dtype=int64, shape=(2, 2, 2))",
    "np.asfortranarray([[1, 2], [3, 4]])": "array([1, 2, 3, 4], dtype=int64, shape=(2, 2))",
    "np.lib.stride_tricks.as_strided(np.arange(3), (2, 2), (8, 8))":
        "array([0, 1, 1, 2], dtype=int64, shape=(2, 2))",
    "np.broadcast_to(7, (2, 2))": "array([7, 7, 7, 7], dtype=int64, shape=(2, 2))",
    "unaligned": "array([1, 2], dtype=int32, shape=(2,))",
    "read_only": "array([1], dtype=int64, shape=(1,))",
    # orders and widths
    "np.array([1, -2], dtype='>i2')": "array([1, -2], dtype='>i2', shape=(2,))",
    "np.array([1.5, np.nan, -np.inf], dtype='>f4')": "array([1.5, nan, -inf], dtype='>f4', shape=(3,))",
    "np.array([0.1], dtype='>f2')": "array([0.0999755859375], dtype='>f2', shape=(1,))",
    "np.array([1 - 2j], dtype='>c8')": "array([(1-2j)], dtype='>c8', shape=(1,))",
    "np.array([True]).view('>?')": "array([True], dtype=bool, shape=(1,))",
    "np.array([2**64 - 1], dtype='>u8')": "array([18446744073709551615], dtype='>u8', shape=(1,))",
    "np.array([1.5], dtype='g')": "array([1.5], dtype=float128, shape=(1,))",
    "np.array([1j], dtype='G')": "array([...], dtype='Zg', shape=(1,))",
    "np.array(['', 'a\\0b'])": "array(['', 'a\\x00b'], dtype='<U3', shape=(2,))",
    "np.array([b'', b'\\0a'])": "array([b'', b'\\x00a'], dtype='S2', shape=(2,))",
    "np.str_('ab')": "str_('ab')",
    "np.bytes_(b'ab')": "bytes_(b'ab')",
    "np.bool_(True)": "np.bool(True)",
    "np.void(b'ab')": None,
    "np.ma.masked_array([1, 2], [True, False])":
        "MaskedArray([1, 2], dtype=int64, shape=(2,))",
    "np.matrix([[1, 2]])": "matrix([1, 2], dtype=int64, shape=(1, 2))",
    "memory_map": "memmap([...], dtype=uint8, shape=(16,))",
    "np.ndarray.__new__(Sub, (2,), 'i4', b'\\1\\0\\0\\0\\2\\0\\0\\0')":
        "Sub([1, 2], dtype=int32, shape=(2,))",
}  # fmt: skip


def test_arrays_of_all_sorts(record: Record) -> None:
    before = """
import tempfile, warnings
import numpy as np
warnings.simplefilter("ignore")
class Sub(np.ndarray):
    pass
within = np.empty(1, dtype=object)
within[0] = np.array([None], dtype=object)
within[0][0] = [within]
unaligned = np.frombuffer(b"x" + np.array([1, 2], dtype="i4").tobytes(), dtype="i4", offset=1)
read_only = np.array([1])
read_only.flags.writeable = False
memory_map = np.memmap(tempfile.TemporaryFile(), dtype="u1", shape=16, mode="w+")
"""
    source = TAKEN + before + "".join(f"\ntaken({each})" for each in ARRAYS)
    recording = record(source, "--no-stdlib")
    found = dict(zip(ARRAYS, texts(recording.of("call", func="taken")), strict=True))
    assert {each: text for each, text in found.items() if ARRAYS[each]} == {
        each: text for each, text in ARRAYS.items() if text
    }


def test_a_mapped_file_that_became_shorter_is_no_danger(record: Record) -> None:
    """However far away the mapping is."""
    source = """
import mmap, tempfile
import numpy as np
with tempfile.TemporaryFile() as file:
    file.truncate(16 * mmap.PAGESIZE)
    array = np.memmap(file, dtype="u1", mode="r+")
    mapped = mmap.mmap(file.fileno(), 0)
    values = [array, array[3:], np.asarray(array).view("i4"), memoryview(array), np.frombuffer(mapped),
              np.asarray(memoryview(mapped)), memoryview(np.frombuffer(memoryview(mapped), dtype="u1")[5:]),
              array.reshape(16, -1).T.view(np.matrix)]
    file.truncate(0)
    for value in values:
        taken(value)
"""
    recording = record(TAKEN + source, "--no-stdlib")
    assert [text.partition(", ")[0] for text in texts(recording.of("call", func="taken"))] == [
        f"{name}([...]"
        for name in ["memmap", "memmap", "array", "memoryview", "array", "array", "memoryview", "matrix"]
    ]


# Each is the source of a package `numpy`, and how the value is shown that it has.
FAKES = {
    "in Python": (
        "class ndarray:\n    data = shape = strides = property(lambda self: 1 / 0)\n"
        "    def __buffer__(self, flags):\n        raise SystemExit\n"
        "number = bool_ = bool = ndarray\nvalue = ndarray()",
        "<numpy.ndarray at 0x…>",
    ),
    "derived from bytes": (
        "class ndarray(bytes):\n    def __buffer__(self, flags):\n        raise SystemExit\n"
        "value = ndarray(b'ab')",
        "ndarray(b'ab')",
    ),
    "derived from bytearray": (
        "class ndarray(bytearray):\n    def __buffer__(self, flags):\n        raise SystemExit\n"
        "value = ndarray(b'ab')",
        "ndarray(b'ab')",
    ),
    "array": ("from array import array as ndarray\nvalue = ndarray('i', [1, 2])", "array('i', [1, 2])"),
    "bytes": ("ndarray = number = bytes\nvalue = b'ab'", "b'ab'"),
    "memoryview": (
        "ndarray = memoryview\nvalue = memoryview(b'ab')",
        "memoryview([97, 98], dtype=uint8, shape=(2,))",
    ),
    "no type": ("class other: pass\nndarray = 5\nnumber = None\nvalue = other()", "<numpy.other at 0x…>"),
    "object": ("ndarray = object\nvalue = object()", "<object at 0x…>"),
    "no version": (
        "import itertools\nndarray = itertools.count\nvalue = ndarray(1)",
        "<itertools.count at 0x…>",
    ),
    "no attribute": ("def __getattr__(name):\n    raise SystemExit(name)\nvalue = 1.5", "1.5"),
    "a type of ctypes": (
        "import ctypes\nclass ndarray(ctypes.Structure):\n    _fields_ = [('a', ctypes.c_int)]\n"
        "value = ndarray(3)",
        "<numpy.ndarray at 0x…>",
    ),
    "an array of ctypes": (
        "import ctypes\nndarray = ctypes.c_int * 3\nndarray.__name__ = 'ndarray'\nvalue = ndarray(1, 2, 3)",
        None,
    ),
}


@pytest.mark.parametrize("name", FAKES)
def test_what_only_looks_like_numpy(name: str, record: Record, tmp_path: Any) -> None:
    package, expected = FAKES[name]
    write(tmp_path, "numpy/__init__.py", package + "\n__version__ = '0.0.1'\n")
    source = "import numpy\nvalue = numpy.value\ntaken(value)\ntaken([value])\n"
    recording = record(TAKEN + source, "--no-stdlib")
    plain, within = texts(recording.of("call", func="taken"))
    assert expected is None or plain == expected
    assert within == f"[{plain}]"
