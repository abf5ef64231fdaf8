"""The `pytrace` command, and `python -m pytracer`: tells its words apart."""

import sys

from .config import WORDS, Mistake, say


def show(word: str, arguments: list[str]) -> int:
    """`pytrace read`, `print`, `sql` and `info`."""
    from .abandoned import save_abandoned
    from .reader import commands

    save_abandoned(wait=True)
    match word:
        case "read":
            return commands.read_main(arguments)
        case "print":
            return commands.print_main(arguments)
        case "sql":
            return commands.sql_main(arguments)
    return commands.info_main(arguments)


def main() -> int:
    """Returns the exit status; 2 after a mistake that the user can mend. Recording a program does not
    return: this process becomes the program."""
    if not sys.flags.safe_path:
        del sys.path[0]  # the current folder or our own: nothing of ours is to be loaded from there
    word, *rest = sys.argv[1:] or ["read"]
    try:
        if word in WORDS:
            return show(word, rest)
        from .launch import launch

        launch([word, *rest])
    except Mistake as mistake:
        say(str(mistake))
        return 2


if __name__ == "__main__":
    sys.exit(main())
