"""The screen of `pytrace replay`: a program as it was at a moment, and keys that go to others.

`scene` asks for all that is shown of a moment, `walk` is the state between two keys, and the files
behind table.py are its commands: functions of the walk that return effects, as in the reader.
`layout`, `source_pane`, `variables_pane` and `stack_pane` draw; `app` looks the keys up. The loop,
the dialogs, the lists and the cutting of hostile text are those of the reader (reader.screen).
"""
