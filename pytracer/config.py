"""The settings of a recording, from all their sources.

An option comes from the command line, else from the environment (PYTRACE_NAME), else from
`[tool.pytrace]` in ./pyproject.toml, else its default. Every value is a text in one normal form
(option_values.py). In this form it travels to the program and the dumper, in the ring's settings.

The user waits for the launcher, which imports this module. So slow modules are imported inside of
functions.
"""

import os

from .cli import FILE, OPTIONS, SECTION
from .messages import say
from .options import UsageError, nearest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def as_text(value: object) -> str:
    """A value of TOML, or of a keyword of trace(), as on the command line."""
    if isinstance(value, (list, tuple)):
        return ":".join(as_text(item) for item in value)
    if isinstance(value, bool):
        return str(int(value))
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)


def from_mapping(given: "Mapping[str, object]", where: str) -> dict[str, str]:
    """Settings by the names of options (with "-" or "_")."""
    by_name = {option.name: option for option in OPTIONS}
    settings = {}
    for key, value in given.items():
        option = by_name.get(key.replace("-", "_"))
        if option is None:
            raise UsageError(f"{where}: there is no option {key!r}{nearest(key, [o.key for o in OPTIONS])}")
        settings[option.name] = option.convert(as_text(value), f"{where}: {key} = {value!r}")
    return settings


def is_trusted(path: str) -> bool:
    """False: somebody has put this file into a folder that is not theirs, such as /tmp."""
    trusted = {os.geteuid(), 0, os.stat(os.path.dirname(path) or ".").st_uid}
    return os.lstat(path).st_uid in trusted and os.stat(path).st_uid in trusted


def from_file(path: str = FILE) -> dict[str, str]:
    """Settings of [tool.pytrace]; none if there is no such file or section, or if it is not
    trusted."""
    try:
        if not os.path.isfile(path):  # no pipe or device, which may never end
            return {}
        with open(path, "rb") as file:
            content = file.read()
        trusted = is_trusted(path)
    except OSError as error:
        say(f"{path} cannot be read, so that a [{SECTION}] in it is left aside: {error.strerror}")
        return {}
    if SECTION.encode() not in content:
        return {}
    if not trusted:
        say(f"{path} was put here by another user: its [{SECTION}] is left aside")
        return {}
    import tomllib

    try:
        tool = tomllib.loads(content.decode()).get("tool")
    except ValueError as error:
        raise UsageError(f"{path}: {error}") from None
    section = tool.get("pytrace", {}) if isinstance(tool, dict) else {}
    if not isinstance(section, dict):
        raise UsageError(f"{path}: {SECTION} is no table; write [{SECTION}]")
    return from_mapping(section, f"{path}: [{SECTION}]")


def from_environment(environment: "Mapping[str, str]") -> dict[str, str]:
    settings = {}
    for option in OPTIONS:
        for variable in option.variables:
            if variable in environment:
                value = environment[variable]
                settings[option.name] = option.convert(value, f"{variable}={value}")
                break
    return settings


def settings(given: dict[str, str]) -> dict[str, str]:
    """All settings, by name: given ones (normal forms) over environment over file over defaults."""
    layers = from_file() | from_environment(os.environ) | given
    if layers.get("kernel"):
        layers.setdefault("cpu", "1")
    for option in OPTIONS:
        if option.name not in layers:
            layers[option.name] = option.convert(option.default or "", option.flag)
    if not layers["attributes"]:  # what a line does is mostly done to objects
        layers["attributes"] = "8" if layers["lines"] else "0"
    return layers
