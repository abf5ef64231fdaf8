"""The reader: a recording on the screen, and keys to move in it.

keys.py has the table of keys. app.py takes a key, finds the command and draws; actions.py says what each
command does to the browser (browser.py), which holds what is shown and where we are. What a command asks
of the database are functions (moves.py, search.py, detail.py, timeline.py) that the one database thread
(worker.py) calls. lines.py makes lines of events, paint.py puts them on the screen.
"""
