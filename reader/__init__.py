"""Reads what was recorded: `pytrace print` and `pytrace info`.

`database` opens the file, `events` yields what happened in the order of time (`decode` turns a
segment's bytes into events), `render` writes them, `info` tells about recordings, and `commands`
is the way in. None of it ever writes to the database.
"""
