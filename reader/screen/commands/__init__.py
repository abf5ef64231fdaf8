"""The commands, by keys and by names behind `:`. table.py has them all.

A command is a function of the session and of the number that was typed before its key (None: there
was none). It may change the session, and returns effects (effects.py): a message, a prompt, a task.
To add a command, write it in the file of its kind, and add a row with its keys, name and help to
the table at that file's end. `h`, completion and docs/reader.md (`python docs/reader.py`) have it
from there.
"""
