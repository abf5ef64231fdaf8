"""Generated programs, each run once under the oracle and once under pytrace: the same events.

PYTRACE_TEST_EXAMPLES=500 draws more batches of programs than a usual run does, other ones each
time.
"""

import os
from itertools import zip_longest
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, Verbosity, given, settings
from hypothesis import strategies as st

from comparing import assert_nested, assert_same, expect, observe, write_programs
from programs import programs

# Hypothesis warns of large programs.
pytestmark = pytest.mark.filterwarnings("ignore::hypothesis.errors.HypothesisWarning")

EXAMPLES = int(os.environ.get("PYTRACE_TEST_EXAMPLES", "0"))


@settings(
    max_examples=EXAMPLES or 6,
    derandomize=not EXAMPLES,
    phases=[Phase.generate],
    database=None,
    verbosity=Verbosity.quiet,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(sources=st.lists(programs(), min_size=6, max_size=16))
def test_the_same_events_as_the_oracle(sources: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    folder, driver = write_programs(tmp_path_factory.mktemp("batch"), sources)
    expected = expect(folder, driver, len(sources))
    assert_nested(expected)
    assert_same(sources, expected, observe(folder, driver, len(sources), "--modules", str(folder)), folder)


@pytest.mark.slow
@settings(
    max_examples=EXAMPLES // 4 or 2,
    derandomize=not EXAMPLES,
    phases=[Phase.generate],
    database=None,
    verbosity=Verbosity.quiet,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(sources=st.lists(programs(), min_size=8, max_size=12))
def test_the_same_amid_everything_else(sources: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    """With the standard library recorded too, whose calls count in the depth."""
    folder, driver = write_programs(tmp_path_factory.mktemp("batch"), sources)
    expected = expect(folder, driver, len(sources))
    observed = observe(folder, driver, len(sources))
    assert_nested(observed)
    for event in expected + observed:
        event["depth"] = 0
    assert_same(sources, expected, observed, folder)


def test_the_oracle_lists_what_a_person_would(tmp_path: Path) -> None:
    """A program short enough to be checked by eye."""
    source = """\
        def add(a, /, *rest, scale=1, **more):
            return a + sum(rest) * scale

        def count(n):
            try:
                yield n
            except ValueError:
                yield None

        add(1, 2, 3, scale=2, x=4)
        g = count(3)
        next(g)
        g.throw(ValueError("no"))
        next(g, 0)
        try:
            add("")
        except TypeError:
            pass
        """
    folder, driver = write_programs(tmp_path, [source])
    lines = [
        f"{event['depth']} {event['kind']} {event['func']}:{event['line']} "
        + " ".join(f"{arg['name']}={arg['value']}" for arg in event["args"])
        for event in expect(folder, driver, 1)
    ]
    problem = "exception=TypeError('can only concatenate str (not \"int\") to str')"
    for line, expected in zip_longest(
        lines,
        [
            "0 call <module>:1 ",
            "1 call add:1 a=1 rest=(2, 3) scale=2 more={'x': 4}",
            "1 return add:1 return value=11",
            "1 call count:4 n=3",
            "1 yield count:4 yield value=3",
            "1 throw count:4 exception=ValueError('no')",
            "1 raise count:6 exception=ValueError('no')",
            "1 yield count:4 yield value=None",
            "1 resume count:4 ",
            "1 return count:4 return value=None",
            "1 call add:1 a='' rest=() scale=1 more={}",
            f"1 raise add:2 {problem}",
            f"1 exception add:1 {problem}",
            f"0 raise <module>:16 {problem}",
            "0 return <module>:1 return value=None",
        ],
    ):
        assert line == expected
