"""A forest that takes raw rows, because it knows what their columns mean."""

from __future__ import annotations

import os
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from boundary_forest.estimators.classifier import BoundaryForestClassifier
from boundary_forest.estimators.explanation import Explanation
from boundary_forest.estimators.regressor import BoundaryForestRegressor
from boundary_forest.frames.columns import CLASSIFY, Columns, Problem
from boundary_forest.frames.values import as_table

_ESTIMATORS: dict[str, Any] = {
    CLASSIFY: BoundaryForestClassifier,
    "regress": BoundaryForestRegressor,
}


class FrameModel:
    """A forest with its columns: what ``boundary-forest stream`` and ``fit`` save.

    Rows are a frame of pandas, polars or pyarrow, or a list of dicts; columns that are not among
    the features are not looked at. :func:`boundary_forest.load` gives one back.

    Parameters
    ----------
    forest : BoundaryForestClassifier, BoundaryForestRegressor or DurableForest
        The forest, which the columns become part of: it takes them along when it is saved.
    columns : Columns
        What the columns of rows mean.

    Examples
    --------
    >>> from boundary_forest.frames import FrameModel
    >>> model = FrameModel.begun([{"size": 1, "is": "a"}, {"size": 9, "is": "b"}], target="is")
    >>> model.predict([{"size": 8}]).tolist()
    ['b']
    """

    def __init__(self, forest: Any, columns: Columns) -> None:
        self.forest = forest
        self.columns = columns
        getattr(forest, "model", forest)._frame = columns.to_json()

    @classmethod
    def of_forest(cls, forest: Any, attachments: dict[str, Any] | None = None) -> Self:
        """The forest of a file or a folder, with the columns that it was saved with.

        Parameters
        ----------
        forest : BoundaryForestClassifier, BoundaryForestRegressor or DurableForest
            With columns.
        attachments : dict or None
            The documents that it was saved with.
        """
        estimator = getattr(forest, "model", forest)
        frame = estimator._frame if attachments is None else attachments["frame"]
        columns = Columns.from_json(frame)
        if type(estimator) is not _ESTIMATORS[columns.task]:
            raise ValueError(f"a {type(estimator).__name__} does not {columns.task}")
        if getattr(estimator, "n_features_in_", columns.width) != columns.width:
            raise ValueError(
                f"its columns give {columns.width} numbers, and the forest has "
                f"{estimator.n_features_in_}"
            )
        return cls(forest, columns)

    @classmethod
    def begun(cls, rows: Any, target: str, **parameters: Any) -> Self:
        """A model whose columns are decided by these rows, which are then learned.

        Parameters
        ----------
        rows : frame
            The first rows, the target among their columns.
        target : str
            The column to be answered.
        **parameters
            Of the forest.
        """
        from boundary_forest.frames.choosing import Options, choose

        table = as_table(rows)
        columns = choose(table, Options(target=target))
        return cls(empty_forest(columns.task, **parameters), columns).partial_fit(table)

    @property
    def attachments(self) -> dict[str, Any]:
        """The documents that a file or a durable folder holds beside the forest."""
        return {"frame": self.columns.to_json()}

    def partial_fit(self, rows: Any) -> Self:
        """Go on learning; rows without a target are passed over.

        Parameters
        ----------
        rows : frame
            The target among its columns.

        Returns
        -------
        self : FrameModel
        """
        table = as_table(rows)
        labels = self.columns.labels(table)
        _refuse(labels.problems)
        X = self._positions(table)
        if labels.known.any():
            self.forest.partial_fit(X[labels.known], labels.y[labels.known])
        return self

    def predict(self, rows: Any) -> NDArray[Any]:
        """The answer to each row.

        Parameters
        ----------
        rows : frame
            The features among its columns.

        Returns
        -------
        answers : ndarray of shape (n_rows,)
        """
        return np.asarray(self.forest.predict(self._positions(as_table(rows))))

    def predict_proba(self, rows: Any) -> NDArray[np.float64]:
        """Each class's share of the votes, in the order of ``classes_``; classification only.

        Parameters
        ----------
        rows : frame
            The features among its columns.

        Returns
        -------
        shares : ndarray of shape (n_rows, n_classes)
        """
        return np.asarray(self.forest.predict_proba(self._positions(as_table(rows))))

    def explain(self, rows: Any) -> Explanation:
        """Why one row is answered as it is.

        Parameters
        ----------
        rows : frame
            Of one row.

        Returns
        -------
        explanation : Explanation
        """
        told: Explanation = self.forest.explain(self._positions(as_table(rows)))
        return told

    @property
    def classes_(self) -> NDArray[Any]:
        """The classes seen so far."""
        return np.asarray(self.forest.classes_)

    def stats(self) -> dict[str, Any]:
        """What the forest has learned, and what it cost."""
        return dict(self.forest.stats())

    def fingerprint(self) -> str:
        """The forest's."""
        return str(self.forest.fingerprint())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the forest and its columns to one file.

        Parameters
        ----------
        path : str or path-like
            The file.
        """
        self.forest.save(path)

    def _positions(self, table: Any) -> NDArray[Any]:
        there = set(table.column_names)
        absent = [f.name for f in self.columns.features if f.name not in there]
        if absent and self.columns.missing != "mean":
            raise ValueError(f"there is no column {absent[0]!r}; there are {table.column_names}")
        positions = self.columns.positions(table)
        _refuse(positions.problems)
        return positions.X


def empty_forest(task: str, **parameters: Any) -> Any:
    """A forest for the task that has learned nothing."""
    return _ESTIMATORS[task](**parameters)


def _refuse(problems: dict[int, Problem]) -> None:
    for row in sorted(problems)[:1]:
        raise ValueError(f"row {row}: {problems[row]}")
