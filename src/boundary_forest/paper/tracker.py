"""Tracking by detection: where in the next frame is what looks most like the target?

A frame is looked at around the last place. Every candidate is a small round patch with mean 0 and
variance 1, so that light does not matter; a judge scores them. A judge that learns is then shown
patches at and around the place that was found, each with its overlap. They are turned a little:
what turns would otherwise draw the tracker after its strongest marks, and off its centre. The size
is that of the first frame.
"""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import uniform_filter  # type: ignore[import-untyped]

from boundary_forest import BoundaryForestRegressor
from boundary_forest.paper.video import Box, Frame, overlap

PATCH = 12  # pixels of a patch's side, after it is made smaller
REACH, STRIDE = 16, 2  # how far from the last place, and in what steps, in pixels
SOFT = 0.05  # a score so much below the best counts e times less
WIDER, MAX_REACH = 4, 48  # more for every frame since it was seen; this must be real time too
N_TREES, K = 20, 50
# Without the corners, in which the background lies that moves otherwise.
_GRID = ((np.mgrid[0:PATCH, 0:PATCH] + 0.5) / PATCH - 0.5).reshape(2, -1)
DOWN, ACROSS = _GRID[:, np.hypot(*_GRID) <= 0.5]  # a patch's samples, in sides from its centre
TURN = np.deg2rad(10)  # standard deviation of the angles at which patches are shown
EPSILON = 0.05  # of the overlap
SHOWN = 40  # patches of a frame that are learned: as many near, about and far
FAMILIAR = 0.9  # the least correlation with an example; in sight it is 0.97, behind the post 0.7
SEEN = 0.75  # the least overlap that is believed: the target is in sight, and is learned

Patches = NDArray[np.float32]


class Judge(Protocol):
    """Says how far a patch overlaps with the target."""

    seen: float  # the least score of a target; below, it is out of sight

    def learn(self, patches: Patches, overlaps: NDArray[np.float64]) -> None:
        """Patches of a frame and how far each overlaps; the first is the target itself."""

    def scores(self, patches: Patches) -> NDArray[np.float64]:
        """One a patch, at most 1."""

    def knows(self, patch: Patches) -> bool:
        """Whether it has learned anything like it; if not, its score says nothing."""


class ForestJudge:
    """A boundary forest that estimates the overlap: a regression, so that there is a best place.

    One that does not go on learning knows the first frame only.
    """

    seen = SEEN

    def __init__(self, *, goes_on: bool = True, seed: int = 0) -> None:
        self.forest = BoundaryForestRegressor(
            n_estimators=N_TREES, max_children=K, epsilon=EPSILON, n_jobs=1, random_state=seed
        )
        self.goes_on, self.begun = goes_on, False

    def learn(self, patches: Patches, overlaps: NDArray[np.float64]) -> None:
        """Only what the trees do not know yet is stored."""
        if self.goes_on or not self.begun:
            self.forest.partial_fit(patches, overlaps)
            self.begun = True

    def scores(self, patches: Patches) -> NDArray[np.float64]:
        """The overlap that the trees expect."""
        expected: NDArray[np.float64] = self.forest.predict(patches)
        return expected

    def knows(self, patch: Patches) -> bool:
        """By the correlation with the nearest example that the trees find."""
        distance = self.forest.kneighbors(patch, 1)[0][0, 0]
        return bool(1 - distance**2 / (2 * patch.shape[1]) >= FAMILIAR)


class TemplateJudge:
    """Normalised cross-correlation with the first frame's target."""

    seen = -1.0  # any
    template: Patches | None = None

    def learn(self, patches: Patches, overlaps: NDArray[np.float64]) -> None:
        """The first target that is shown, and nothing after it."""
        if self.template is None:
            self.template = patches[0]

    def scores(self, patches: Patches) -> NDArray[np.float64]:
        """The correlation."""
        assert self.template is not None
        return np.asarray(patches @ self.template / len(DOWN), dtype=np.float64)

    def knows(self, patch: Patches) -> bool:
        """It has no other way than to believe the best."""
        return True


def patches_of(frame: Frame, x: Any, y: Any, side: float, angle: Any = 0.0) -> Patches:
    """Those around each (x, y) as rows, turned by the angle; the picture's edge is continued."""
    x, y = (np.asarray(values, dtype=np.float64).reshape(-1, 1) for values in (x, y))
    # Averages over the pixels between two samples, from which the patches are read.
    blur = round(side / PATCH) | 1
    around = int(side / 2) + blur + 1
    top, left = max(int(y.min()) - around, 0), max(int(x.min()) - around, 0)
    part = frame[top : int(y.max()) + around + 1, left : int(x.max()) + around + 1]
    region = uniform_filter(part.astype(np.float32), blur, mode="nearest")
    cos, sin = (np.reshape(of(angle), (-1, 1)) * side for of in (np.cos, np.sin))
    across = np.rint(x + cos * ACROSS - sin * DOWN).astype(int) - left
    down = np.rint(y + sin * ACROSS + cos * DOWN).astype(int) - top
    rows: Patches = region[down.clip(0, part.shape[0] - 1), across.clip(0, part.shape[1] - 1)]
    rows -= rows.mean(axis=1, keepdims=True)
    rows /= np.maximum(rows.std(axis=1, keepdims=True), 1.0)
    return rows


class Tracker:
    """Follows from the first frame on; only there it is told where the target is."""

    def __init__(self, judge: Judge, first: Frame, box: Box) -> None:
        self.judge, self.box = judge, box
        self._rng = np.random.default_rng(0)
        self.lost = 0  # frames since it was seen last
        self._learn(first)

    def follow(self, frame: Frame) -> Box:
        """Where the target is now; where it was, if nothing looks like it."""
        at, reach = self.box, min(REACH + WIDER * self.lost, MAX_REACH)
        dx, dy, scores = self._looked(frame, 0, 0, np.arange(-reach, reach + 1, STRIDE))
        # With what is beside it: a peak, not a spike.
        best = int(uniform_filter(scores, 3, mode="nearest").argmax())
        if scores.flat[best] < self.judge.seen:
            self.lost += 1
            return at
        dx, dy, scores = self._looked(frame, dx.flat[best], dy.flat[best], np.arange(-4, 5))
        weights = np.exp((scores - scores.max()) / SOFT)
        dx, dy = ((of * weights).sum() / weights.sum() for of in (dx, dy))
        x, y = np.clip(at.x + dx, 0, frame.shape[1]), np.clip(at.y + dy, 0, frame.shape[0])
        if not self.judge.knows(patches_of(frame, x, y, at.side)):
            self.lost += 1
            return at
        self.box, self.lost = Box(float(x), float(y), at.side), 0
        self._learn(frame)
        return self.box

    def _looked(self, frame: Frame, x: float, y: float, offsets: Any) -> tuple[Any, Any, Any]:
        """Steps from the last place, around one of them, and their scores."""
        dy, dx = np.meshgrid(y + offsets, x + offsets, indexing="ij")
        patches = patches_of(frame, self.box.x + dx, self.box.y + dy, self.box.side)
        return dx, dy, self.judge.scores(patches).reshape(dx.shape)

    def _learn(self, frame: Frame) -> None:
        at = self.box
        spread = np.repeat([0.08, 0.3, 1.0], SHOWN)  # of the places shown, in sides
        dx, dy = self._rng.normal(size=(2, len(spread))) * spread * at.side
        turned = self._rng.normal(size=len(spread)) * TURN
        dx[0] = dy[0] = turned[0] = 0
        boxes = [Box(at.x + i, at.y + j, at.side) for i, j in zip(dx, dy, strict=True)]
        overlaps = np.array([overlap(at, box) for box in boxes])
        self.judge.learn(patches_of(frame, at.x + dx, at.y + dy, at.side, turned), overlaps)
