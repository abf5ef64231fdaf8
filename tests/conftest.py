"""How hypothesis runs here, as a busy machine may take its time for an example; and that assertions of the
helper modules, too, say what they have compared."""

from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")

HELPERS = (path.stem for path in Path(__file__).parent.glob("*/*.py"))
pytest.register_assert_rewrite(*(name for name in HELPERS if name != "conftest"))
