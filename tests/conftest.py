"""How hypothesis runs here: a busy machine may take its time for an example."""

from hypothesis import settings

settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")
