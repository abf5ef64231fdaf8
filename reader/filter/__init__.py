"""The filter language: compiles a text to a syntax tree, and the tree to SQL.

`tokens` and `constants` read the text, `parser` makes the `tree` of it, `sql` compiles the tree to
a condition on the table `event`, and `units` knows times and durations. Nothing here reads a
database.
"""
