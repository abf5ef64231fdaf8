"""The reader: a recording on the screen, and keys to move in it.

loop.py takes the keys, app.py looks their commands up in the tables of commands/, and the loop
makes the effects happen that a command returns (effects.py). The session (session.py) is the state
of the reader. Its browser (browser.py) is the place among the events, with the events in memory
(window.py). Commands ask the database by functions (pages.py, navigation.py, search.py, detail.py,
timeline.py), which the one database thread calls (worker.py). background.py keeps up with a
recording that grows (live.py has its questions). dialogs.py opens prompts, menus and help. lines.py
makes lines of events, layout.py puts the parts of the screen together, paint.py draws them.
"""
