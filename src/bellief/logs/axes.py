"""States or actions: whether they are numbers or labels, how many there are, and which index each one has."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool, Int

from bellief.errors import UserError
from bellief.logs.labels import LONGEST_LABEL, Labels, label_text, natural_order, shown

Sizes = int | Sequence[str] | None

# Indices beyond this would ask for tables that no machine holds; it is almost always an identifier that was not
# turned into an index.
LARGEST_INDEX = 1_000_000

# Stands for an empty cell in a column of whole numbers.
GAP = -(2**62)

_WHOLE = re.compile(r"0|[1-9][0-9]{0,6}", re.ASCII)


class Doubt(Exception):
    """The fast reader cannot decide: the rows have to be read one by one. Never shown to users."""


class Axis:
    """States or actions of a log that is being read.

    Without `labels` the first row decides: a number there means that all are numbers.
    """

    def __init__(self, kind: str, announced: Sizes, labels: bool | None, source: str = ""):
        self.kind, self.source = kind, source
        self.size = int(announced) if isinstance(announced, int | np.integer) else None
        self.named: dict[str, int] | None = {} if labels else None
        self.decided = self.told = labels is not None
        self.fixed = False
        self.largest, self.largest_at = -1, ("", 0)
        if isinstance(announced, str):
            raise UserError(f"{kind}s must be a number or a list of labels, not the text '{shown(announced)}'.")
        if isinstance(announced, Sequence):
            names = [label_text(label) or "" for label in announced]
            if "" in names or len(set(names)) < len(names) or not names:
                raise UserError(f"The labels of {kind}s must be texts or whole numbers, all different.")
            self.named = {label: number for number, label in enumerate(names)}
            self.decided = self.told = self.fixed = True
        elif self.size is not None and self.size < 1:
            raise UserError(f"{kind}s must be at least 1, not {self.size}.")

    def codes(self, values: np.ndarray, idle: Bool[np.ndarray, "n"] | None = None) -> Int[np.ndarray, "n"]:
        """Indices of cells of one type: whole numbers, floats or texts. `idle` marks those that may be empty.

        Indices of labels are in the order of appearance until `finish`. Anything out of the ordinary raises `Doubt`.
        """
        idle = np.zeros(len(values), dtype=bool) if idle is None else idle
        if values.dtype.kind == "O":
            return self._text_codes(values, idle)
        if values.dtype.kind == "f":
            values = np.where(np.isnan(values) & idle, GAP, values)
            if not np.array_equal(values, np.floor(values)) or not (np.abs(values) <= 2.0**62).all():
                raise Doubt
            values = values.astype(np.int64)
        if self.named is not None:
            if not self.told:
                raise Doubt
            distinct, place = np.unique(values, return_inverse=True)
            texts = np.array([None if number == GAP else str(number) for number in distinct.tolist()], dtype=object)
            return self._label_codes(texts[place], idle)
        return self._number_codes(values, idle)

    def _number_codes(self, numbers: Int[np.ndarray, "n"], idle: Bool[np.ndarray, "n"]) -> Int[np.ndarray, "n"]:
        self.decided = True
        numbers = np.where((numbers == GAP) & idle, -1, numbers)
        high = LARGEST_INDEX if self.size is None else min(LARGEST_INDEX, self.size - 1)
        if (len(numbers) and ((numbers < 0) & ~(idle & (numbers == -1))).any()) or numbers.max(initial=-1) > high:
            raise Doubt
        self.largest = max(self.largest, int(numbers.max(initial=-1)))
        return numbers

    def _text_codes(self, texts: np.ndarray, idle: Bool[np.ndarray, "n"]) -> Int[np.ndarray, "n"]:
        distinct = dict.fromkeys(texts.tolist())
        # Quotes inside a cell and unusual blanks are read differently by different readers of CSV.
        if any(text is None or '"' in text or text != text.strip() for text in distinct):
            raise Doubt
        whole = all(_WHOLE.fullmatch(text) for text in distinct if text)
        if not self.decided:
            if not whole and any(_number_like(text) for text in distinct if text):
                raise Doubt
            self.named, self.decided = (None if whole else {}), True
        if self.named is None:
            if not whole:
                raise Doubt
            numbers = {text: int(text) if text else GAP for text in distinct}
            return self._number_codes(np.array([numbers[text] for text in texts.tolist()], dtype=np.int64), idle)
        if not self.told and any(_number_like(text) for text in distinct if text):
            raise Doubt
        return self._label_codes(np.array([text or None for text in texts.tolist()], dtype=object), idle)

    def _label_codes(self, texts: np.ndarray, idle: Bool[np.ndarray, "n"]) -> Int[np.ndarray, "n"]:
        known = self.named
        assert known is not None
        for text in dict.fromkeys(texts[~idle].tolist()):
            if text is None or (self.fixed and text not in known):
                raise Doubt
        if not self.fixed:
            for text in dict.fromkeys(texts.tolist()):
                if text is not None:
                    if len(text) > LONGEST_LABEL:
                        raise Doubt
                    known.setdefault(text, len(known))
            self.check_number()
        return np.array([-1 if text is None else known.get(text, -1) for text in texts.tolist()], dtype=np.int64)

    def decide_as(self, other: "Axis") -> None:
        """Numbers or labels, as in another part of the same log."""
        self.decided, self.named = other.decided, None if other.named is None else dict(other.named)

    def check_number(self) -> None:
        """There may not be more labels than there may be indices."""
        if self.named is not None and len(self.named) > LARGEST_INDEX:
            raise UserError(
                f"{self.source}there are more than {LARGEST_INDEX} different {self.kind}s; group them into fewer."
            )

    def finish(self) -> tuple[int, Labels, Int[np.ndarray, "n"] | None]:
        """How many there are, their labels in order, and (for labels) the new number of each old one."""
        if self.named is None:
            return (self.largest + 1 if self.size is None else int(self.size)), None, None
        labels = list(self.named) if self.fixed else natural_order(list(self.named))
        if self.size is not None and self.size != len(labels):
            raise UserError(
                f"{self.source}the data name {len(labels)} {self.kind}s and {self.size} were announced; announce the "
                "labels themselves, or leave the number out."
            )
        place = {label: number for number, label in enumerate(labels)}
        return len(labels), tuple(labels), np.array([place[label] for label in self.named], dtype=np.int64)


def _number_like(text: Any) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
