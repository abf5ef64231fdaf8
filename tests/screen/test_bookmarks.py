"""Back and forward through places, and marks."""

import pytest
from pytracer.reader.screen.bookmarks import Marks, Place, Trail


def place(number: int) -> Place:
    return Place("view", (number, number), 3)


def test_back_and_forward() -> None:
    trail = Trail()
    assert trail.back(place(0)) is None
    assert trail.forward(place(0)) is None
    assert trail.latest is None
    trail.push(place(1))
    trail.push(place(2))
    assert trail.latest == place(2)
    assert trail.back(place(3)) == place(2)
    assert trail.latest == place(1)
    assert trail.back(place(2)) == place(1)
    assert trail.back(place(1)) is None
    assert trail.forward(place(1)) == place(2)
    assert trail.forward(place(2)) == place(3)
    assert trail.forward(place(3)) is None


def test_moved_meanwhile() -> None:
    """Forward leads to where the way back began, back to where the way forward did."""
    trail = Trail()
    trail.push(place(1))
    assert trail.back(place(2)) == place(1)
    assert trail.forward(place(7)) == place(2)
    assert trail.back(place(2)) == place(7)


def test_a_jump_ends_the_way_forward() -> None:
    trail = Trail()
    trail.push(place(1))
    trail.back(place(2))
    trail.push(place(1))
    assert trail.forward(place(5)) is None
    assert trail.back(place(5)) == place(1)


def test_jumps_that_go_nowhere_are_no_steps() -> None:
    trail = Trail()
    trail.push(place(1))
    trail.push(place(2))
    trail.push(place(2))
    assert trail.back(place(2)) == place(1)
    assert trail.back(place(1)) is None
    assert trail.forward(place(1)) == place(2)


def test_views_are_told_apart() -> None:
    trail = Trail()
    trail.push(Place("all", None, 0))
    assert trail.back(Place("filtered", None, 0)) == Place("all", None, 0)


def test_a_trail_has_an_end() -> None:
    trail = Trail()
    for number in range(1000):
        trail.push(place(number))
    here, steps = place(1000), []
    while (before := trail.back(here)) is not None:
        here = before
        steps.append(here)
    assert steps == [place(number) for number in range(999, 799, -1)]


def test_marks() -> None:
    marks = Marks()
    assert marks.get("a") is None
    marks.set("a", place(1))
    marks.set("A", place(2))
    marks.set("a", place(3))
    assert (marks.get("a"), marks.get("A"), marks.get("b")) == (place(3), place(2), None)
    for wrong in ("", "'", "1", "ab", " ", "^"):
        with pytest.raises(ValueError, match="letter"):
            marks.set(wrong, place(1))
