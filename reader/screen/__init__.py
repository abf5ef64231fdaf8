"""The reader: a recording on the screen, and keys to move in it.

keys.py has the table of keys. app.py takes a key, finds the command and draws; actions.py says what each
command does to the browser (browser.py), which holds what is shown and where we are. What a command asks
of the database are functions (moves.py, search.py, detail.py, timeline.py) that the one database thread
(worker.py) calls. following.py keeps up with a recording that grows (live.py has its questions), prompts.py
opens what is typed into. lines.py makes lines of events, layout.py puts the parts of the screen together,
paint.py draws them.
"""
