"""Arrays and other buffers: their elements, type and shape, read without asking an attribute."""

from recording import Record, texts

TAKEN = "def taken(value):\n    pass\n"


def shown(record: Record, source: str, *options: str) -> list[str]:
    recording = record(TAKEN + source, "--no-stdlib", *options)
    return texts(recording.of("call", func="taken"))


def of(record: Record, before: str, expressions: list[str]) -> dict[str, str]:
    found = shown(record, before + "".join(f"\ntaken({each})" for each in expressions))
    return dict(zip(expressions, found, strict=True))


PLAIN = {
    "memoryview(b'abcd').cast('h')": "memoryview([25185, 25699], dtype=int16, shape=(2,))",
    "memoryview(b'abcd').cast('B', (2, 2))": "memoryview([97, 98, 99, 100], dtype=uint8, shape=(2, 2))",
    "memoryview(b'')": "memoryview([], dtype=uint8, shape=(0,))",
    "memoryview(array('f', [0.1]))": "memoryview([0.1], dtype=float32, shape=(1,))",
    "memoryview(array('i', range(5)))[1:][::2]": "memoryview([1, 3], dtype=int32, shape=(2,))",
    "memoryview(mapped)": "memoryview([...], dtype=uint8, shape=(16,))",
    "mapped": "mmap([...], dtype=uint8, shape=(16,))",
    "released": "<memoryview at 0x…>",
    "closed": "<mmap.mmap at 0x…>",
    "array('q', [-2**63])": "array('q', [-9223372036854775808])",
}


def test_plain_buffers(record: Record) -> None:
    before = """
import mmap
from array import array
mapped, closed, released = mmap.mmap(-1, 16), mmap.mmap(-1, 16), memoryview(b"x")
closed.close()
released.release()
"""
    assert of(record, before, list(PLAIN)) == PLAIN


def test_the_typecode_is_the_one_it_was_made_with(record: Record) -> None:
    """The formats of u and w are the same."""
    source = """
import warnings
from array import array, typecodes
warnings.simplefilter("ignore")
for code in "uw":
    taken(array(code, "äb") if code in typecodes else 0)
print([array(code, "äb") if code in typecodes else 0 for code in "uw"])
"""
    recording = record(TAKEN + source, "--no-stdlib")
    assert f"[{', '.join(texts(recording.of('call', func='taken')))}]\n" == recording.stdout


def test_a_mapped_file_that_became_shorter_is_no_danger(record: Record) -> None:
    source = """
import mmap, tempfile
with tempfile.TemporaryFile() as file:
    file.truncate(16 * mmap.PAGESIZE)
    mapped = mmap.mmap(file.fileno(), 0)
    file.truncate(0)
    taken(mapped)
    taken(memoryview(mapped))
"""
    assert [text.partition("(")[0] for text in shown(record, source)] == ["mmap", "memoryview"]


def test_a_buffer_is_let_go_at_once(record: Record) -> None:
    source = """
import mmap, sys
from array import array
values = array("i", [1]), mmap.mmap(-1, 16)
before = [sys.getrefcount(value) for value in values]
for _ in range(100):
    for value in values:
        taken(value)
del value
print([sys.getrefcount(value) for value in values] == before)
values[0].append(2)
values[1].close()
"""
    assert record(TAKEN + source).stdout == "True\n"


NUMPY = {
    "np.float64(1.5)": "np.float64(1.5)",
    "np.float32(0.1)": "np.float32(0.1)",
    "np.float16(0.5)": "np.float16(0.5)",
    "np.longdouble(1.5)": "np.longdouble(1.5)",
    "np.int8(-3)": "np.int8(-3)",
    "np.uint64(2**64 - 1)": "np.uint64(18446744073709551615)",
    "np.complex64(1 + 2j)": "np.complex64((1+2j))",
    "np.complex128(1 + 2j)": "np.complex128((1+2j))",
    "np.timedelta64(5, 's')": "<numpy.timedelta64 at 0x…>",
    "np.array(5)": "array(5)",
    "np.arange(99).reshape(9, 11)": "array([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ...], dtype=int64, shape=(9, 11))",
    "np.arange(10)[::-3]": "array([9, 6, 3, 0], dtype=int64, shape=(4,))",
    "np.arange(6).reshape(2, 3).T": "array([0, 3, 1, 4, 2, 5], dtype=int64, shape=(3, 2))",
    "np.zeros((0, 3))": "array([], dtype=float64, shape=(0, 3))",
    "np.zeros((1,) * 9)": "<numpy.ndarray at 0x…>",
    "np.broadcast_to(np.array([7]), (3, 1))": "array([7, 7, 7], dtype=int64, shape=(3, 1))",
    "np.array([1, -2], dtype='>i4')": "array([1, -2], dtype='>i4', shape=(2,))",
    "np.array([1.5], dtype='>f8')": "array([1.5], dtype='>f8', shape=(1,))",
    "np.array([1 + 2j], dtype='>c16')": "array([(1+2j)], dtype='>c16', shape=(1,))",
    "np.array(['a', 'äbc'])": "array(['a', 'äbc'], dtype='<U3', shape=(2,))",
    "np.array(['äb'], dtype='>U3')": "array(['äb'], dtype='>U3', shape=(1,))",
    "np.array([b'a', b'bcd'])": "array([b'a', b'bcd'], dtype='S3', shape=(2,))",
    "np.array([True, False])": "array([True, False], dtype=bool, shape=(2,))",
    "np.array([1, None, [2]], dtype=object)": "array([1, None, [2]], dtype=object, shape=(3,))",
    "np.array([(1, 2.5)], dtype=[('a', 'i4'), ('b', 'f8')])":
        "array([...], dtype='T{i:a:=d:b:}', shape=(1,))",
    "np.array(['2020-01-01'], dtype='M8[D]')": "<numpy.ndarray at 0x…>",
    "np.arange(3).view(Sub)": "Sub([0, 1, 2], dtype=int64, shape=(3,))",
    "memoryview(np.array([1 + 2j]))": "memoryview([(1+2j)], dtype=complex128, shape=(1,))",
}  # fmt: skip


def test_numpy(record: Record) -> None:
    before = """
import numpy as np
class Sub(np.ndarray):
    def trap(self, *args, **kwargs):
        raise SystemError
    for name in "getattribute getattr repr str len iter getitem hash eq bool buffer array".split():
        locals()[f"__{name}__"] = trap
    shape = dtype = data = strides = property(trap)
"""
    assert of(record, before, list(NUMPY)) == NUMPY


def test_an_array_is_let_go_at_once(record: Record) -> None:
    source = """
import sys
import numpy as np
array = np.arange(5)
before = sys.getrefcount(array)
for _ in range(100):
    taken(array)
print(sys.getrefcount(array) == before)
"""
    assert record(TAKEN + source, "--no-stdlib").stdout == "True\n"


def test_a_type_is_known_however_early_it_was_seen(record: Record) -> None:
    """Functions take it before its module has its name."""
    source = """
import sys, types
module = sys.modules["re"] = types.ModuleType("re")
import _sre
made = _sre.compile("a", 32, [1], 0, {}, ())
taken(made)
module.Pattern = type(made)
taken(made)
"""
    before, now = shown(record, source)
    assert (before, now) == ("<re.Pattern at 0x…>", "re.compile('a')")
