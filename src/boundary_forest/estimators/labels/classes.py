"""Classification: labels are classes, and the engine knows them by their codes.

Codes are appended to a table before the engine learns, because a query in another thread may meet
an example as soon as it is published. A class shows only once the engine has published one of its
examples, so that a call that learned nothing leaves no trace. Codes that no example was published
with are given again by the next call.

A class leaves the table when none of its examples is left after ``forget``, unless ``classes=``
named it. Then another table takes the place of this one, which stays with the queries that began
before and may have met the class.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from boundary_forest.estimators.errors import raise_naming
from boundary_forest.estimators.labels.class_codes import ClassCodes, as_labels
from boundary_forest.estimators.labels.policy import Endings, LabelColumns


class EngineClasses:
    """The classes that one engine knows; learning replaces the table by one that has more."""

    def __init__(self, table: ClassCodes) -> None:
        self.table = table
        self.successor: EngineClasses | None = None  # in use since classes were forgotten

    @property
    def newest(self) -> EngineClasses:
        """Those in use; the engine has had no others since they were put there."""
        classes = self
        while classes.successor is not None:
            classes = classes.successor
        return classes

    def table_of(self, codes: NDArray[np.float64]) -> ClassCodes:
        """Return the table that has the classes of an answer, all from before or after a change."""
        classes = self
        while classes.successor is not None and not classes.table.knows(codes):
            classes = classes.successor
        return classes.table


@dataclass(frozen=True)
class ClassLabels:
    """The policy of classification.

    Parameters
    ----------
    codes : EngineClasses
        Shared by all policies of one engine: whoever reads an answer and then the table finds
        every class of the answer in it.
    declared : tuple of int
        Codes, ascending, that show even if no example has them, because ``classes=`` named them.
    """

    codes: EngineClasses = field(default_factory=lambda: EngineClasses(ClassCodes.empty()))
    declared: tuple[int, ...] = ()

    parameter_names: ClassVar[tuple[str, ...]] = ()

    def __copy__(self) -> Self:
        """Return the policy of another engine: tables are values, and neither gets the other's."""
        return replace(self, codes=EngineClasses(self.codes.newest.table))

    @classmethod
    def from_parameters(cls, parameters: Mapping[str, Any]) -> Self:
        """Return a policy that knows no class."""
        return cls()

    @property
    def parameters(self) -> dict[str, Any]:
        """None."""
        return {}

    @property
    def rules(self) -> dict[str, Any]:
        """The engine's label_metric, estimator and epsilon."""
        return {"label_metric": "discrete", "estimator": "shepard_vote", "epsilon": 0.0}

    def classes(self, n_met: int) -> NDArray[Any]:
        """Return the classes to show, sorted, where the engine has met ``n_met``."""
        return self.shown_table(n_met).classes

    def shown_table(self, n_met: int) -> ClassCodes:
        """Return the table of these classes."""
        return self.codes.newest.table.first(self._n_shown(n_met))

    def _n_shown(self, n_met: int) -> int:
        """Classes with codes below it show: a new class gets it, so all others are declared."""
        return max(n_met, self.declared[-1] + 1) if self.declared else n_met

    def ranks(self, n_met: int | None = None) -> NDArray[np.uint32] | None:
        """Return where the class of each code stands among those shown, or among all named."""
        table = self.codes.newest.table if n_met is None else self.shown_table(n_met)
        return table.ranks

    def pruned(self, n_met: int, living: NDArray[np.uint32]) -> Self:
        """Return the policy that has no class but the declared and those with codes ``living``."""
        classes = self.codes.newest
        classes.table = self.shown_table(n_met)  # what a failed call left may get another class
        kept = classes.table.only(np.append(living, np.array(self.declared, np.uint32)))
        if len(kept.classes) == len(classes.table.classes):
            return self
        return replace(self, codes=EngineClasses(kept))

    def give_way(self, pruned: ClassLabels) -> None:
        """Let the policy without some classes follow, now that no example has them."""
        if pruned is not self:
            self.codes.newest.successor = pruned.codes

    def checked(self, y: Any, n_rows: int) -> NDArray[Any]:
        """Return labels that can be told apart, one for each row."""
        return as_labels(y)

    def encoded(
        self, y: NDArray[Any] | None, classes: NDArray[Any] | None, n_rows: int, n_met: int
    ) -> tuple[NDArray[np.float64], Self]:
        """Return the labels' codes; new classes get theirs in order of appearance."""
        assert y is not None
        table, policy = self.shown_table(n_met), self
        if classes is not None:
            try:
                table = table.encode(np.sort(classes))[1]
                table.encode(y)  # to be of another kind is the fault of classes
            except (TypeError, ValueError) as error:
                raise_naming("classes", error)
            named = table.encode(classes)[0].astype(int).tolist()
            policy = replace(self, declared=tuple(sorted({*self.declared, *named})))
        codes, table = table.encode(y)
        self.codes.newest.table = table
        return codes[:, None], policy

    def answers(self, labels: NDArray[np.float64]) -> NDArray[Any]:
        """Return the classes of label vectors."""
        return self.codes.table_of(labels[:, 0]).decode(labels[:, 0])

    def shown(self, labels: NDArray[np.float64]) -> list[Any]:
        """Return the classes of label vectors."""
        shown: list[Any] = self.answers(labels).tolist()
        return shown

    def weighed(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the weights: those of the vote."""
        return weights

    def concluded(self, endings: Endings) -> tuple[Any, float]:
        """Return the class with the largest share of the votes, the first among equals."""
        shares = endings.estimate[:, 1]
        codes = endings.estimate[shares == shares.max(), 0].astype(np.intp)
        table = self.codes.table_of(codes)
        best = table.ranks[codes].min()
        return table.classes[best : best + 1].tolist()[0], float(shares.max())

    def keys(self) -> NDArray[np.uint64]:
        """Return a key for each code, made of the class's value; 0 for a class forgotten."""
        table = self.codes.newest.table
        keys = np.zeros(table.n_codes, dtype=np.uint64)
        for code, label in zip(table.codes.tolist(), table.classes.tolist(), strict=True):
            digest = hashlib.blake2b(repr(label).encode("utf-8", "surrogatepass"), digest_size=8)
            keys[code] = int.from_bytes(digest.digest(), "little")
        return keys

    def saved(self, n_met: int) -> tuple[dict[str, Any], LabelColumns]:
        """Return the classes that show, their codes, and which of them were declared."""
        table = self.shown_table(n_met)
        return {"n_codes": table.n_codes}, {
            "classes": table.classes,
            "class_codes": table.codes.astype(np.int64),
            "class_declared": np.isin(table.codes, self.declared),
        }

    def loaded(
        self, document: Mapping[str, Any], column: Callable[[str], NDArray[Any]], label_length: int
    ) -> Self:
        """Return the policy with the classes of a file or a copy, each of which shows."""
        n_codes = document.get("n_codes")
        if type(n_codes) is not int:
            raise ValueError("n_codes must be an integer")
        table = ClassCodes(column("classes"), column("class_codes"), n_codes)
        is_declared = column("class_declared")
        if is_declared.dtype != np.bool_ or is_declared.shape != table.codes.shape:
            raise ValueError("class_declared must have true or false for each class")
        declared = tuple(np.sort(table.codes[is_declared]).tolist())
        return replace(self, codes=EngineClasses(table), declared=declared)

    def check_state(self, state: Mapping[str, Any]) -> None:
        """Refuse a table that could not have come about, and a state with other classes."""
        table = self.codes.table
        table.check()
        n_codes = self._n_shown(state["n_classes"])
        if table.n_codes != n_codes:
            raise ValueError(f"n_codes must be {n_codes}, as classes require, got {table.n_codes}")
        # Each was given to a declared class or to that of an example. (Queries take memory for all
        # codes, and a small file must not claim any number of forgotten classes.)
        most = state["seen"] + len(self.declared)
        if n_codes > most:
            raise ValueError(f"n_codes must be at most {most}, as classes require, got {n_codes}")
        for name in ("labels", "window_labels"):
            if not np.isin(state[name], table.codes).all():
                raise ValueError(f"{name} contains a class that is not in classes")
