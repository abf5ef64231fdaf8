"""The places of the panes (source, variables, stack), for screens of any size: beside each other
where there is room, else above each other; what has no room is hidden."""

from __future__ import annotations

PANES = ("source", "variables", "stack")
_WIDE = 80  # columns: the variables are beside the source
_LEAST = 3  # rows of a pane, with its title
_NARROWEST = 16  # columns of a pane
_SHARES = {"variables": 4, "stack": 2}  # tenths of the place
_TENTHS = 10


class Layout:
    """Rows and columns of each pane; a pane of no rows is hidden."""

    def __init__(self) -> None:
        self.width, self.height = 80, 24
        self._shares = dict(_SHARES)
        self.rows = dict.fromkeys(PANES, 0)
        self.columns = dict.fromkeys(PANES, 0)
        self.beside = False

    @property
    def is_too_small(self) -> bool:
        return self.width < 10 or self.height < 3

    @property
    def shown(self) -> list[str]:
        """The panes that there is room for."""
        return [pane for pane in PANES if self.rows[pane]]

    @property
    def most_message_rows(self) -> int:
        """The most rows of a message."""
        return 0 if self.height < 5 else 1 if self.height < 12 else 4

    def fit(self, width: int, height: int) -> None:
        """The screen has this size."""
        self.width, self.height = width, height
        left = max(height - 1 - (1 if height >= 5 else 0), 1)  # the status, and messages
        self.beside = width >= _WIDE
        stack = left * self._shares["stack"] // _TENTHS
        stack = max(stack, _LEAST) if left >= 4 * _LEAST else 0
        left -= stack
        columns = max(width * self._shares["variables"] // _TENTHS, _NARROWEST)
        if self.beside:
            self.rows = {"source": left, "variables": left, "stack": stack}
            self.columns = {"source": width - columns - 1, "variables": columns, "stack": width}
            return
        variables = max(left * self._shares["variables"] // _TENTHS, _LEAST) if left >= 2 * _LEAST else 0
        self.rows = {"source": left - variables, "variables": variables, "stack": stack}
        self.columns = dict.fromkeys(PANES, width)

    def at(self, column: int, row: int) -> tuple[str, int] | None:
        """The pane at a place of the screen, and which of its rows that is, without its title."""
        top = 0
        for pane in self.shown:
            is_right = pane == "variables" and self.beside
            if is_right:
                top = 0
            if top <= row < top + self.rows[pane] and (
                pane == "stack" or not self.beside or is_right == (column > self.columns["source"])
            ):
                return pane, row - top - 1
            top += self.rows[pane]
        return None

    def resize(self, pane: str, tenths: int) -> None:
        """A pane becomes larger; the source, as the others become smaller."""
        if pane == "source":
            pane, tenths = "variables", -tenths
        self._shares[pane] = max(min(self._shares[pane] + tenths, _TENTHS - 2), 1)
        self.fit(self.width, self.height)
