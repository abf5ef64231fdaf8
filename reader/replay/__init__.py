"""`pytrace replay`: a walk through what a program did, forwards and backwards.

`moment` is a place to stop at, `history` the ways between them, `state` what was true there. They
ask the database, and keep nothing. `breakpoints` and `expressions` are what a person types; the
screen and the debug adapter (dap) show it.
"""
