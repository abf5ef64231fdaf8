"""How hypothesis runs here, as a busy machine may take its time for an example; that assertions of the
helper modules, too, say what they have compared; and that Ctrl-C means what it means, even where the tests
run in the background of a shell script, which ignores it for all that they start."""

import signal
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")

HELPERS = (path.stem for path in Path(__file__).parent.glob("*/*.py"))
pytest.register_assert_rewrite(*(name for name in HELPERS if name != "conftest"))

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGQUIT) is signal.SIG_IGN:
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
