"""The lines of the pane about an event: whatever was recorded, they fit."""

from hypothesis import given
from hypothesis import strategies as st
from pytracer.reader.native_source import Place
from pytracer.reader.screen.detail import Detail, Excerpt, detail_lines
from pytracer.reader.screen.lines import DisplayOptions
from pytracer.reader.screen.text import cells

from events import MAIN, Code, made

KINDS = (
    "call", "return", "exception", "yield", "resume", "throw", "raise", "log", "lost", "line",
    "event",
)  # fmt: skip
texts = st.text(max_size=30)


@given(
    st.sampled_from(KINDS),
    texts,
    st.lists(st.tuples(texts, texts, texts), max_size=3),
    st.integers(1, 60),
    st.integers(0, 16),
    st.builds(DisplayOptions, ascii=st.booleans(), sort=st.booleans()),
)
def test_every_pane_fits(
    kind: str,
    text: str,
    args: list[tuple[str, str, str]],
    width: int,
    height: int,
    display: DisplayOptions,
) -> None:
    code = Code(text, text, text, 7)
    row = made(
        kind, *args, code=code, source=MAIN._replace(thread=text), depth=30, duration=1_234_567, layer=text
    )
    other = made("return", *args, code=code)
    stack = [made("call", *args, code=code, depth=depth) for depth in (1, 2, 30)]
    source = Excerpt([(6, text), (7, text), (8, "")], text)
    texts = {(1, 0, args[0][0] if args else ""): text + "\n" + text}
    place = Place(text, 7)
    found = Detail(row, other, False, None, stack, frozenset([1]), texts, {}, text, source, place=place)
    lines = detail_lines(found, width, display, height)
    if height >= 9 and width >= 50:
        assert any(line.text.startswith("  > 7") for line in lines[:height])
    for line in lines:
        assert cells(line.text) <= width
        assert line.text.isprintable()
        assert line.text.isascii() or not display.ascii
        ends = [0, *[place for start, end, _ in line.spans for place in (start, end)], len(line.text)]
        assert ends == sorted(ends)
