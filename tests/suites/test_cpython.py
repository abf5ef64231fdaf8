"""The quickest of CPython's own tests end the same under pytrace as without; all of them: make
cpython."""

import pytest

from cpython import QUICK, available, compare

if modules := available(QUICK):  # some Pythons come without their tests

    @pytest.mark.slow
    def test_the_same_outcomes() -> None:
        summary, differences = compare(" ".join(modules))
        assert int(summary.split(": ")[1].split()[0]) > 900, summary
        assert not [str(difference) for difference in differences if not difference.known]
