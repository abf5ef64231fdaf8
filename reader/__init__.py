"""Reads what was recorded: `pytrace print`, `pytrace sql` and `pytrace info`.

`database` opens the file, with the tables that csrc/sqlite_trace.c adds; `query` and `follow` ask for
events in SQL, `filter` makes SQL of what people write, `render` writes events, `info` tells about
recordings, and `commands` is the way in. None of it ever writes to the database.
"""
