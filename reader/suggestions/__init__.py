"""Suggestions for a filter: while somebody types it, and when it has found nothing.

`completion` offers words for a place in a filter. If a filter finds nothing, `corrections` finds
similar ones that find something, by the `replacements` of its comparisons. Both choose from the
`names` of a recording; each kind of name is a `vocabulary`. `counting` queries the database. The
filter language (../filter) knows nothing of this folder.
"""
