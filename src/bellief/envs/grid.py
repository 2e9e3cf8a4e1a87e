"""What the grid worlds share: reading a map, moving on it with slips, naming and drawing its states."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int, UInt8

from bellief.errors import UserError, require

FLOOR, WALL, GOAL, LAVA, FLAG = ".", "#", "G", "L", "F"

ACTION_NAMES = ("up", "right", "down", "left")
# Row and column steps in the order of ACTION_NAMES, clockwise: the neighbours of a direction are perpendicular to it.
DIRECTIONS = ((-1, 0), (0, 1), (1, 0), (0, -1))

MOST_FLAGS = 8


@dataclass(frozen=True)
class GridLayout:
    """A rectangular map of characters. Every character but a wall is a cell; cells are numbered in reading order."""

    rows: tuple[str, ...]
    start_character: str

    @cached_property
    def cells(self) -> tuple[tuple[int, int], ...]:
        """Row and column of each cell."""
        return tuple(
            (row, column)
            for row, line in enumerate(self.rows)
            for column, character in enumerate(line)
            if character != WALL
        )

    @cached_property
    def characters(self) -> np.ndarray:
        """The character of each cell."""
        return np.array([self.rows[row][column] for row, column in self.cells])

    @cached_property
    def start(self) -> int:
        """The cell the agent starts from and is carried back to."""
        return int(np.flatnonzero(self.characters == self.start_character)[0])

    @cached_property
    def flags(self) -> tuple[int, ...]:
        """The cells with a flag, in reading order; bit `i` of a flag set stands for the i-th of them."""
        return tuple(int(cell) for cell in np.flatnonzero(self.characters == FLAG))

    @cached_property
    def steps(self) -> Int[np.ndarray, "cells 4"]:
        """Where each direction leads from each cell; a wall or the edge of the map leaves the agent in place."""
        number = {position: cell for cell, position in enumerate(self.cells)}
        return np.array(
            [
                [number.get((row + down, column + right), cell) for down, right in DIRECTIONS]
                for cell, (row, column) in enumerate(self.cells)
            ]
        )


def parse_layout(layout: str | Sequence[str], start_character: str, special: str) -> GridLayout:
    """Read a map, one line a row, from a text or from a sequence of rows.

    Known characters are `start_character` (exactly one), "G" (at least one), "." floor, "#" wall, and those in
    `special`. Some goal must be within reach of the start without entering lava.
    """
    if isinstance(layout, str):
        layout = [line.strip() for line in layout.splitlines() if line.strip()]
    if not isinstance(layout, Sequence) or not layout or not all(isinstance(row, str) for row in layout):
        raise UserError("The layout is no map: give it as a text of several lines or as a list of rows.")
    rows = tuple(layout)
    known = start_character + GOAL + FLOOR + WALL + special
    for number, row in enumerate(rows, start=1):
        if len(row) != len(rows[0]):
            raise UserError(
                f"Row {number} of the layout has {len(row)} characters and row 1 has {len(rows[0])}: "
                f"make all rows equally long."
            )
        for character in row:
            require(character in known, f"Row {number} of the layout holds '{character}': use only {' '.join(known)}.")
    text = "".join(rows)
    if text.count(start_character) != 1:
        raise UserError(
            f"The layout has {text.count(start_character)} starts: mark exactly one cell with '{start_character}'."
        )
    require(GOAL in text, f"The layout has no goal: mark at least one cell with '{GOAL}'.")
    if text.count(FLAG) > MOST_FLAGS:
        raise UserError(f"The layout has {text.count(FLAG)} flags: keep at most {MOST_FLAGS}, each doubles the states.")
    grid = GridLayout(rows, start_character)
    if not _goal_in_reach(grid):
        raise UserError("No goal of the layout can be reached from its start: open a way between them.")
    return grid


def _goal_in_reach(grid: GridLayout) -> bool:
    seen, frontier = {grid.start}, [grid.start]
    while frontier:
        cell = frontier.pop()
        if grid.characters[cell] == GOAL:
            return True
        if grid.characters[cell] != LAVA:
            new = {int(neighbour) for neighbour in grid.steps[cell]} - seen
            seen |= new
            frontier.extend(new)
    return False


def moves_with_slip(grid: GridLayout, slip: float) -> tuple[Float[np.ndarray, "3"], Int[np.ndarray, "cells 4 3"]]:
    """Probabilities of the three ways a move can go, and the cell each leads to.

    Outcome 0 goes as chosen; outcomes 1 and 2 turn to the left and to the right of it, with half of `slip` each.
    """
    turned = (np.arange(4)[:, None] + np.array([0, -1, 1])) % 4
    return np.array([1.0 - slip, slip / 2, slip / 2]), grid.steps[:, turned]


@dataclass(frozen=True)
class GridView:
    """Names and draws the states of a grid world, where state = cell * 2**flags + set of flags held."""

    layout: GridLayout

    def split(self, state: int) -> tuple[int, frozenset[int]]:
        """The cell and the flags held, numbered from 0."""
        cell, held = divmod(state, 2 ** len(self.layout.flags))
        return cell, frozenset(flag for flag in range(len(self.layout.flags)) if held >> flag & 1)

    def describe(self, state: int) -> str:
        """Row and column counted from 1, what the cell is, and the flags held."""
        cell, held = self.split(state)
        row, column = self.layout.cells[cell]
        kinds = {self.layout.start_character: " (start)", GOAL: " (goal)", LAVA: " (lava)"}
        place = f"row {row + 1}, column {column + 1}{kinds.get(str(self.layout.characters[cell]), '')}"
        return f"{place}, {_flags_in_words(held)}" if self.layout.flags else place

    def render_text(self, state: int) -> str:
        """The map with the agent's cell in brackets; a flag that is held is gone from its cell."""
        cell, held = self.split(state)
        taken = {self.layout.cells[self.layout.flags[flag]] for flag in held}
        lines = []
        for row, line in enumerate(self.layout.rows):
            shown = [FLOOR if (row, column) in taken else character for column, character in enumerate(line)]
            lines.append(
                "".join(
                    f"[{character}]" if (row, column) == self.layout.cells[cell] else f" {character} "
                    for column, character in enumerate(shown)
                )
            )
        if self.layout.flags:
            lines.append(f"holding {_flags_in_words(held)}")
        return "\n".join(lines)

    def render_image(self, state: int) -> UInt8[np.ndarray, "height width 3"]:
        """The picture of the map with the agent on it."""
        # Pillow is needed for pictures only, so it is loaded here.
        from bellief.envs.draw import draw_grid

        return draw_grid(self.layout, *self.split(state))


def _flags_in_words(held: frozenset[int]) -> str:
    numbers = [str(flag + 1) for flag in sorted(held)]
    if len(numbers) < 2:
        return f"flag {numbers[0]}" if numbers else "no flags"
    return f"flags {', '.join(numbers[:-1])} and {numbers[-1]}"
