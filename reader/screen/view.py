"""What is shown of a database: a run, a filter, and which calls are folded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..model import Run
from ..query import EVERY, Query
from .folds import Folds

if TYPE_CHECKING:
    from ..filter_tree import Filter


@dataclass(frozen=True)
class View:
    """run: None for all of them. A view is never changed; moving back brings an older one."""

    run: int | None
    filter: Filter | None = None
    folds: Folds = field(default_factory=Folds)

    @property
    def folding(self) -> Folds:
        """What is folded: a filter chooses among all events, and shows each by itself."""
        return self.folds if self.filter is None else Folds()

    def events(self, runs: Sequence[Run]) -> Query:
        """The events of run and filter, as if nothing were folded."""
        query = EVERY if self.run is None else Query("run = ?", (self.run,))
        if self.filter is None:
            return query
        from ..filter_sql import compile

        asked = compile(self.filter, [run for run in runs if self.run in (None, run.id)])
        return query.also(asked.where, *asked.parameters)

    def lines(self, runs: Sequence[Run]) -> Query:
        """The events of which lines are made."""
        query = self.events(runs)
        where, parameters = self.folding.constraint()
        if where:
            query = query.also(where, *parameters)
        predicate = self.folding.predicate()
        return query.also("event MATCH ?", predicate) if predicate else query
