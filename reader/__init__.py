"""Reads recordings: `pytrace`, `pytrace print`, `pytrace sql` and `pytrace info`.

`database` opens the file, with the tables that csrc/query/sqlite_trace.c adds; `query` and `follow`
ask for events in SQL; the folder `filter` compiles filters to SQL; `suggestions` completes and
corrects filters; `screen` is the reader on a terminal; `render` writes events; `info` reports on
recordings; `commands` is the entry point. No module ever writes to the database.
"""
