"""A forest that takes raw rows, because it knows what their columns mean."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from boundary_forest.estimators.adaptive import most_important
from boundary_forest.estimators.classifier import BoundaryForestClassifier
from boundary_forest.estimators.explanation import Explanation
from boundary_forest.estimators.regressor import BoundaryForestRegressor
from boundary_forest.files.restoring import FRAME
from boundary_forest.frames.arrow_columns import as_table
from boundary_forest.frames.column_errors import Problem, no_column
from boundary_forest.frames.column_options import ColumnOptions
from boundary_forest.frames.columns import CLASSIFY, Columns

_ESTIMATORS: dict[str, Any] = {
    CLASSIFY: BoundaryForestClassifier,
    "regress": BoundaryForestRegressor,
}


class FrameModel:
    """A forest with its columns: what ``boundary-forest stream`` and ``fit`` save.

    Rows are a frame of pandas, polars or pyarrow, or a list of dicts; columns that are not
    features are ignored. :func:`boundary_forest.load` gives one back.

    Parameters
    ----------
    forest : BoundaryForestClassifier, BoundaryForestRegressor or DurableForest
        The forest.
    columns : Columns
        What the columns of rows mean.

    Examples
    --------
    >>> from boundary_forest.frames import FrameModel
    >>> rows = [{"size": 1, "is": "a"}, {"size": 9, "is": "b"}]
    >>> model = FrameModel.from_rows(rows, target="is")
    >>> model.predict([{"size": 8}]).tolist()
    ['b']
    """

    def __init__(self, forest: Any, columns: Columns) -> None:
        self.forest = forest
        self.columns = columns

    @classmethod
    def of_forest(cls, forest: Any, attachments: Mapping[str, Any]) -> Self:
        """Return the model of a file or a folder, with the columns that it was saved with.

        Parameters
        ----------
        forest : BoundaryForestClassifier, BoundaryForestRegressor or DurableForest
            The forest.
        attachments : dict of JSON values
            What the file or folder holds beside it, the columns under ``"frame"``.
        """
        columns = Columns.from_json(attachments[FRAME])
        if forest.label_policy is not _ESTIMATORS[columns.task].label_policy:
            raise ValueError(f"a {type(forest).__name__} cannot {columns.task}")
        n_features = getattr(forest, "n_features_in_", columns.width)
        if n_features != columns.width:
            raise ValueError(
                f"its columns are encoded as {columns.width} numbers, but the forest has "
                f"{n_features} features"
            )
        return cls(forest, columns)

    @classmethod
    def from_rows(cls, rows: Any, target: str, **parameters: Any) -> Self:
        """Return a model whose columns are decided by these rows, which are then learned.

        Parameters
        ----------
        rows : frame
            The first rows, the target among their columns.
        target : str
            The column to predict.
        **parameters
            Of the forest that differ from ``for_tables``, which the command line uses, too.
        """
        from boundary_forest.frames.inference import choose

        table = as_table(rows)
        columns = choose(table, ColumnOptions(target=target))
        forest = _ESTIMATORS[columns.task].for_tables(**parameters)
        return cls(forest, columns).partial_fit(table)

    def __repr__(self) -> str:
        columns = self.columns
        n = len(columns.features)
        task = f"{columns.task} {columns.target!r} from {n} column{'' if n == 1 else 's'}"
        return f"<FrameModel to {task}, {self.examples_seen:,} rows learned, {self.forest!r}>"

    @property
    def attachments(self) -> dict[str, Any]:
        """What a file or a durable folder must hold beside the forest, as JSON values."""
        return {FRAME: self.columns.to_json()}

    def partial_fit(self, rows: Any) -> Self:
        """Continue learning; rows without a target are skipped.

        Parameters
        ----------
        rows : frame
            The target among its columns.

        Returns
        -------
        self : FrameModel
        """
        X, labels = self._examples(rows)
        if labels.known.any():
            self.forest.partial_fit(X[labels.known], labels.y[labels.known])
        return self

    def predict_then_learn(self, rows: Any) -> NDArray[Any]:
        """Return the answer to each row from just before it is learned, and learn it.

        Parameters
        ----------
        rows : frame
            The target among its columns. Rows without a target are answered and not learned.

        Returns
        -------
        answers : ndarray of shape (n_rows,)
        """
        X, labels = self._examples(rows)
        if len(X) == 0:
            return self.predict(rows)
        starts = np.flatnonzero(np.diff(labels.known, prepend=not labels.known[0]))
        answers = []
        for begin, end in pairwise([*starts.tolist(), len(X)]):
            run = slice(begin, end)
            if labels.known[begin]:
                answers.append(self.forest.predict_then_learn(X[run], labels.y[run]))
            else:
                answers.append(self.forest.predict(X[run]))
        return np.concatenate(answers)

    def predict(self, rows: Any) -> NDArray[Any]:
        """Return the answer to each row.

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
        """Return each class's share of the votes, in the order of ``classes_``; classes only.

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
        """Return the answer to one row, and the path that each tree takes to it.

        Parameters
        ----------
        rows : frame
            Of one row.

        Returns
        -------
        explanation : Explanation
        """
        explanation: Explanation = self.forest.explain(self._positions(as_table(rows)))
        features = self.columns.features
        explanation = explanation.in_columns(
            [f.name for f in features],
            np.repeat(np.arange(len(features)), [f.width for f in features]),
            self.columns.decoded,
        )
        if explanation.importances:  # of the features that columns are encoded as
            by_column = most_important(self.feature_importances_)
            explanation = replace(explanation, importances=by_column)
        return explanation

    @property
    def feature_importances_(self) -> dict[str, float]:
        """The importance of each column, as shares that sum to 1."""
        return self.columns.summed(self.forest.feature_importances_.tolist())

    @property
    def classes_(self) -> NDArray[Any]:
        """The classes seen so far, sorted; classification only."""
        return np.asarray(self.forest.classes_)

    @property
    def examples_seen(self) -> int:
        """How many rows were learned."""
        return int(self.forest.examples_seen)

    def stats(self) -> dict[str, Any]:
        """Return what the forest has learned, and what it cost."""
        return dict(self.forest.stats())

    def fingerprint(self) -> str:
        """Return the hash of the forest; the columns do not enter."""
        return str(self.forest.fingerprint())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the forest and its columns to one file.

        Parameters
        ----------
        path : str or path-like
            The file.
        """
        self.forest.save(path, attachments=self.attachments)

    def _examples(self, rows: Any) -> tuple[NDArray[Any], Any]:
        table = as_table(rows)
        labels = self.columns.labels(table)
        _refuse(labels.problems)
        return self._positions(table), labels

    def _positions(self, table: Any) -> NDArray[Any]:
        there = set(table.column_names)
        absent = [f.name for f in self.columns.features if f.name not in there]
        if absent and self.columns.missing != "mean":
            raise no_column(absent[0], table.column_names)
        positions = self.columns.positions(table)
        _refuse(positions.problems)
        return positions.X


def empty_forest(task: str, **parameters: Any) -> Any:
    """Return a forest for the task that has learned nothing."""
    return _ESTIMATORS[task](**parameters)


def _refuse(problems: dict[int, Problem]) -> None:
    for row in sorted(problems)[:1]:
        raise ValueError(f"row {row}: {problems[row]}")
