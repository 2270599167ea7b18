"""Class labels and their codes: what may be a label, and which number stands for it.

Classes are coded in order of appearance, so that a new one changes no label already stored. A code
is never given to another class, so those of forgotten classes are missing from the table. Classes
are shown sorted, whatever their kind: a kind that does not sort is refused.
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import column_or_1d

from boundary_forest.estimators.engine_constants import NO_RANK
from boundary_forest.estimators.errors import plain

# In this order, because a Python bool is an int too.
_KINDS: dict[str, Any] = {
    "text": str,
    "bytes": bytes,
    "booleans": bool | np.bool_,
    "numbers": int | float | np.integer | np.floating,
}


class ClassCodes:
    """The classes of one engine, sorted, and their codes; a table is never changed.

    Parameters
    ----------
    classes : ndarray of shape (n_classes,)
        Sorted.
    codes : ndarray of shape (n_classes,)
        The label that the engine has for each.
    n_codes : int
        The next new class gets this code; all codes are below it.
    """

    def __init__(self, classes: NDArray[Any], codes: NDArray[np.int64], n_codes: int) -> None:
        self.classes = classes
        self.codes = codes
        self.n_codes = n_codes

    @classmethod
    def empty(cls) -> Self:
        """No class yet, of no kind."""
        return cls(np.empty(0, dtype=object), np.empty(0, dtype=np.int64), 0)

    @cached_property
    def ranks(self) -> NDArray[np.uint32]:
        """Where the class of each code stands among the classes; NO_RANK without a class."""
        ranks = np.full(self.n_codes, NO_RANK, dtype=np.uint32)
        ranks[self.codes] = np.arange(len(self.codes))
        return ranks

    def check(self) -> None:
        """Refuse a table, from a file or a pickle, that could not have come about."""
        as_labels(self.classes)
        _check_one_kind(self.classes)
        if len(self.classes) > 1 and not (self.classes[:-1] < self.classes[1:]).all():
            raise ValueError("classes are not sorted and unique")
        if self.codes.dtype != np.int64 or self.codes.shape != (len(self.classes),):
            raise ValueError(
                f"class_codes must be a vector of int64, one for each of {len(self.classes)} "
                f"classes, got {self.codes.dtype} of shape {self.codes.shape}"
            )
        if len(np.unique(self.codes)) != len(self.codes):
            raise ValueError("class_codes must be different for each class")
        if len(self.codes) and not 0 <= self.codes.min() <= self.codes.max() < self.n_codes:
            raise ValueError(f"class_codes must be at least 0 and below n_codes = {self.n_codes}")

    def first(self, n: int) -> ClassCodes:
        """Return the table of the classes with the first n codes, after which codes go on."""
        if n >= self.n_codes:
            return self
        if n == 0:  # of no kind again
            return ClassCodes.empty()
        return self._chosen(self.codes < n, n)

    def only(self, codes: NDArray[Any]) -> ClassCodes:
        """Return the table without the classes of other codes, which no class gets again."""
        table = self._chosen(np.isin(self.codes, codes), self.n_codes)
        if table.classes.dtype.kind == "U":  # as wide as the longest that is left
            table.classes = np.array(table.classes.tolist(), dtype=np.str_)
        return table

    def _chosen(self, kept: NDArray[np.bool_], n_codes: int) -> ClassCodes:
        return ClassCodes(self.classes[kept], self.codes[kept], n_codes)

    def with_classes(self, values: NDArray[Any]) -> ClassCodes:
        """The same and those of ``values`` that are new, coded in the order they come in."""
        _check_one_kind(self.classes[:1], values)  # those of a table are of one kind
        at, is_known = _places(self.classes, values)
        if is_known.all():
            return self
        new = values[~is_known]
        order, n, n_codes = _sorting(new), len(self.classes), self.n_codes + len(new)
        # Sorting all classes for each new one would take a stream of n classes n**2 log n.
        merged = np.insert(np.arange(n), at[~is_known][order], n + order)
        classes = _side_by_side(self.classes, new)[merged]
        codes = np.concatenate([self.codes, np.arange(self.n_codes, n_codes)])[merged]
        _check_ascending(classes, np.flatnonzero(merged >= n))
        return ClassCodes(classes, codes, n_codes)

    def encode(self, labels: NDArray[Any]) -> tuple[NDArray[np.float64], ClassCodes]:
        """The labels' codes, and the table that has all of them."""
        if len(self.classes) > 0 and labels.dtype.kind == self.classes.dtype.kind != "O":
            at = self.classes.searchsorted(labels)
            if len(labels) == 1:  # a row that comes alone; arrays of one take several times as long
                place = at.item()
                known = place < len(self.classes) and self.classes[place] == labels[0]
            else:
                at[at == len(self.classes)] = 0
                known = (self.classes[at] == labels).all()
            if known:  # as nearly always: no class is new
                return self.codes[at].astype(np.float64), self
        values, first, inverse = _unique(labels)
        table = self.with_classes(values[np.argsort(first)])
        codes = table.codes[_places(table.classes, values)[0]]
        return codes[inverse].astype(np.float64), table

    def knows(self, codes: NDArray[np.float64]) -> bool:
        """Whether each of these codes stands for a class."""
        wanted = codes.astype(np.intp)
        if len(wanted) == 0:
            return True
        return bool(wanted.max() < self.n_codes and (self.ranks[wanted] != NO_RANK).all())

    def decode(self, codes: NDArray[np.float64]) -> NDArray[Any]:
        """The classes that these codes stand for."""
        classes: NDArray[Any] = self.classes[self.ranks[codes.astype(np.intp)]]
        return classes


def as_labels(y: Any) -> NDArray[Any]:
    """One label a row, of a kind that can be told apart: text, integers, booleans, objects."""
    if type(y) is np.ndarray and y.ndim == 1 and y.dtype.kind in "biuU" and len(y) > 0:
        return y  # nothing is left to check
    if isinstance(y, list | tuple):
        y = as_given(y)
    if hasattr(y, "to_numpy"):  # of pandas' own integers scikit-learn would make floats
        y = y.to_numpy()
    shape: tuple[int, ...] = getattr(y, "shape", ())
    if isinstance(y, list | tuple):
        lengths = [len(row) for row in y if isinstance(row, list | tuple | np.ndarray)]
        shape = (len(y), max(lengths, default=1))
    if len(shape) == 2 and shape[1] > 1:
        raise ValueError(
            f"y should be a 1d array, got an array of shape {shape} instead, but a row has one "
            "class: for several labels per row use MultiOutputClassifier or ClassifierChain of "
            "sklearn.multioutput, or BoundaryForest, which learns label vectors"
        )
    labels: NDArray[Any] = column_or_1d(y, warn=True)
    if len(labels) == 0:
        raise ValueError("y must contain at least one label")
    kind = labels.dtype.kind
    if kind in "TS":  # numpy's variable-width text, and its bytes
        labels, kind = labels.astype(object), "O"
    if kind not in "biufUO":
        raise TypeError(
            "labels must be text, integers, booleans or sortable objects, got dtype "
            f"{labels.dtype}: convert them first, for example with astype(str)"
        )
    if kind == "O":
        _check_objects(labels)
    elif kind == "f":
        if not np.isfinite(labels).all():
            raise ValueError(
                "labels must not be NaN or infinite: drop those rows, or give them a class"
            )
        _check_whole(labels[labels != np.floor(labels)])
    return labels


def as_given(y: list[Any] | tuple[Any, ...]) -> Any:
    """Return labels as objects if numpy would make other ones of them, else the list itself.

    numpy drops zeros at the ends of text and bytes, makes floats of integers beside floats, which
    rounds beyond 2**53, and text of whatever stands beside text.
    """
    try:
        array = np.asarray(y)
    except ValueError:  # lists of several lengths
        return y
    labels = [plain(label) for label in y]
    if array.ndim != 1 or array.dtype.kind not in "USf" or array.tolist() == labels:
        return y
    objects = np.empty(len(labels), dtype=object)
    objects[:] = labels
    return objects


def _check_objects(labels: NDArray[Any]) -> None:
    for label in labels:
        # pandas' NA is neither equal to itself nor not.
        if label is None or type(label).__name__ == "NAType" or bool(np.any(label != label)):
            raise ValueError(
                "labels must not be None or NaN: drop those rows, or give them a class"
            )
        if isinstance(label, complex | list | set | frozenset | dict | np.ndarray):
            raise TypeError(
                f"labels must be text, integers, booleans or sortable objects, got {label!r}"
            )
    _check_whole([x for x in labels if isinstance(x, float | np.floating) and x != np.floor(x)])


def _check_whole(fractions: Any) -> None:
    if len(fractions):
        raise ValueError(
            "Unknown label type: continuous. Labels must be classes, but y contains "
            f"{plain(fractions[0])!r}: use BoundaryForestRegressor, or convert the values to "
            "classes"
        )


def kind_of_label(label: Any) -> str:
    """Labels of different kinds do not mix, even where numpy would rewrite one as the other."""
    for kind, types in _KINDS.items():
        if isinstance(label, types):
            return kind
    return type(label).__name__


def _check_one_kind(*labels: NDArray[Any]) -> None:
    kinds: dict[str, Any] = {}
    for some in labels:
        for label in some if some.dtype.kind == "O" else some[:1]:
            kinds.setdefault(kind_of_label(label), label)
    if len(kinds) > 1:
        found = " and ".join(f"{kind} such as {plain(label)!r}" for kind, label in kinds.items())
        raise TypeError(
            f"labels must be all text, all numbers or all booleans, got {found}: convert them "
            "first, for example with astype(str)"
        )


def _unique(labels: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    _check_one_kind(labels)
    try:
        values, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    except TypeError as error:
        raise TypeError(f"labels must be sortable: {error}") from error
    return values, first, inverse


def _places(classes: NDArray[Any], values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return where each value stands or would stand among the classes, and whether it is one."""
    if classes.dtype.kind != values.dtype.kind:  # one type for both may round integers
        classes, values = classes.astype(object), values.astype(object)
    try:
        at = np.searchsorted(classes, values)
    except TypeError as error:
        raise TypeError(f"labels must be sortable: {error}") from error
    is_known = at < len(classes)
    is_known[is_known] = classes[at[is_known]] == values[is_known]
    return at, is_known


def _sorting(classes: NDArray[Any]) -> NDArray[np.intp]:
    try:
        order = np.argsort(classes)
    except TypeError as error:
        raise TypeError(f"labels must be sortable: {error}") from error
    _check_ascending(classes[order], np.arange(len(order)))
    return order


def _check_ascending(classes: NDArray[Any], places: NDArray[np.intp]) -> None:
    """Refuse objects at these places that are not between the ones before and after them."""
    if classes.dtype.kind != "O":
        return
    for i in places:
        if not all(a < b for a, b in pairwise(classes[max(i - 1, 0) : i + 2])):
            raise TypeError(
                "labels must be sortable: some labels are neither smaller nor larger than others"
            )


def _side_by_side(old: NDArray[Any], new: NDArray[Any]) -> NDArray[Any]:
    """Both in one array that holds every label exactly; text widens, and is never cut short."""
    if len(old) == 0:
        return new
    both = np.concatenate([old, new])
    if old.dtype.kind == new.dtype.kind:
        return both
    exact = old.tolist() + new.tolist()
    if both.tolist() == exact:
        return both
    objects = np.empty(len(exact), dtype=object)  # such as int64 beside uint64, beyond 2**53
    objects[:] = exact
    return objects
