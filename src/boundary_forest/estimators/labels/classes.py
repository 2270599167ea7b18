"""Classification: labels are classes, and the engine knows them by their codes.

Codes are appended to a table before the engine learns, because a query in another thread may meet
an example as soon as it is published. They are never withdrawn: a class shows only once the engine
has published one of its examples, so that a call that learned nothing leaves no trace. Codes that
no example was published with are given again by the next call.
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


@dataclass(frozen=True)
class ClassLabels:
    """The policy of classification.

    Parameters
    ----------
    codes : EngineClasses
        Shared by all policies of one engine: whoever reads an answer and then the table finds
        every class of the answer in it.
    n_declared : int
        Codes below it show even if no example has them, because ``classes=`` named them.
    """

    codes: EngineClasses = field(default_factory=lambda: EngineClasses(ClassCodes.empty()))
    n_declared: int = 0

    parameter_names: ClassVar[tuple[str, ...]] = ()

    def __copy__(self) -> Self:
        """Return the policy of another engine: tables are values, and neither gets the other's."""
        return replace(self, codes=EngineClasses(self.codes.table))

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
        return self.codes.table.first(max(n_met, self.n_declared))

    def ranks(self, n_met: int | None = None) -> NDArray[np.uint32] | None:
        """Return where the class of each code stands among those shown, or among all named."""
        table = self.codes.table if n_met is None else self.shown_table(n_met)
        return table.ranks

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
            policy = replace(self, n_declared=len(table.classes))
        codes, table = table.encode(y)
        self.codes.table = table
        return codes[:, None], policy

    def answers(self, labels: NDArray[np.float64]) -> NDArray[Any]:
        """Return the classes of label vectors."""
        return self.codes.table.decode(labels[:, 0])

    def shown(self, labels: NDArray[np.float64]) -> list[Any]:
        """Return the classes of label vectors."""
        shown: list[Any] = self.answers(labels).tolist()
        return shown

    def weighed(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the weights: those of the vote."""
        return weights

    def concluded(self, endings: Endings) -> tuple[Any, float]:
        """Return the class with the largest share of the votes, the first among equals."""
        table, shares = self.codes.table, endings.estimate[:, 1]
        codes = endings.estimate[shares == shares.max(), 0].astype(np.intp)
        best = table.ranks[codes].min()
        return table.classes[best : best + 1].tolist()[0], float(shares.max())

    def keys(self) -> NDArray[np.uint64]:
        """Return a key for each code, made of the class's value."""
        table = self.codes.table
        keys = np.zeros(len(table.codes), dtype=np.uint64)
        for code, label in zip(table.codes.tolist(), table.classes.tolist(), strict=True):
            digest = hashlib.blake2b(repr(label).encode("utf-8", "surrogatepass"), digest_size=8)
            keys[code] = int.from_bytes(digest.digest(), "little")
        return keys

    def saved(self, n_met: int) -> tuple[dict[str, Any], LabelColumns]:
        """Return the classes that show, and their codes."""
        table = self.shown_table(n_met)
        return {}, {"classes": table.classes, "class_codes": table.codes.astype(np.int64)}

    def loaded(
        self, document: Mapping[str, Any], column: Callable[[str], NDArray[Any]], label_length: int
    ) -> Self:
        """Return the policy with the classes of a file or a copy, each of which shows."""
        table = ClassCodes(column("classes"), column("class_codes"))
        return replace(self, codes=EngineClasses(table), n_declared=len(table.classes))

    def check_state(self, state: Mapping[str, Any]) -> None:
        """Refuse a table that could not have come about, and a state with more classes."""
        self.codes.table.check()
        if state["n_classes"] > len(self.codes.table.classes):
            raise ValueError("labels contains more classes than the array of classes")
