"""The `pytrace` command, and `python -m pytracer`: chooses the command by its words."""

import sys

from .cli import WORDS
from .messages import say
from .options import UsageError


def main() -> int:
    """Returns the exit status; 2 after a mistake that the user can mend. Recording a program does
    not return: this process becomes the program."""
    if not sys.flags.safe_path:
        del sys.path[0]  # load no module from the current folder or our own
    word, *rest = sys.argv[1:] or ["read"]
    if word == "kernel":
        from .kernel_command import main as kernel

        return kernel(rest)
    if word in WORDS:
        from .reader import subcommands
        from .recovery import recover

        for ring in recover(wait=True):
            from .unsaved import not_yet

            say(not_yet(ring))
        return subcommands.main(word, rest)
    from .launch import launch

    try:
        launch([word, *rest])
    except UsageError as error:
        say(str(error))
        return 2


if __name__ == "__main__":
    sys.exit(main())
