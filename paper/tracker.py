"""Tracking by detection: find the place in the next frame that looks most like the target.

A frame is searched around the last place. Every candidate is a small round patch with mean 0 and
variance 1, so that light does not matter; a judge scores the candidates. A judge that learns is
then given patches at and around the place that was found, each with its overlap. They are rotated
a little: a target that turns would otherwise draw the tracker after its strongest marks, off its
centre. The size of the box is that of the first frame.
"""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import uniform_filter  # type: ignore[import-untyped]

from boundary_forest import BoundaryForestRegressor
from paper.video import Box, Frame, overlap

PATCH = 12  # pixels of a patch's side, after it is made smaller
REACH, STRIDE = 16, 2  # of the search around the last place, in pixels
SOFT = 0.05  # a score that is lower than the best by this much counts e times less
WIDER, MAX_REACH = (
    4,
    48,
)  # wider for every frame since the target was seen; this must be real time too
N_TREES, K = 20, 50
# Without the corners: they show the background, which moves differently.
_GRID = ((np.mgrid[0:PATCH, 0:PATCH] + 0.5) / PATCH - 0.5).reshape(2, -1)
DOWN, ACROSS = _GRID[:, np.hypot(*_GRID) <= 0.5]  # a patch's samples, in sides from its centre
TURN = np.deg2rad(10)  # standard deviation of the angles of the patches that are learned
EPSILON = 0.05  # of the overlap
SHOWN = 40  # patches of a frame that are learned, each of near, about and far
FAMILIAR = 0.9  # the least correlation with an example: 0.97 in sight, 0.7 behind the post
SEEN = 0.75  # the least predicted overlap at which the target counts as in sight

Patches = NDArray[np.float32]


class Judge(Protocol):
    """Estimates how much a patch overlaps with the target."""

    seen: float  # the least score of a target in sight

    def learn(self, patches: Patches, overlaps: NDArray[np.float64]) -> None:
        """Learn patches of a frame and their overlaps; the first patch is the target itself."""

    def scores(self, patches: Patches) -> NDArray[np.float64]:
        """Return a score for each patch, at most 1."""

    def knows(self, patch: Patches) -> bool:
        """Return whether it has learned anything similar; if not, its score means nothing."""


class ForestJudge:
    """A boundary forest that estimates the overlap: a regression, so that there is a best place.

    With ``online=False`` it learns the first frame only.
    """

    seen = SEEN

    def __init__(self, *, online: bool = True, seed: int = 0) -> None:
        self.forest = BoundaryForestRegressor(
            n_estimators=N_TREES, max_children=K, epsilon=EPSILON, n_jobs=1, random_state=seed
        )
        self.online, self.has_learned = online, False

    def learn(self, patches: Patches, overlaps: NDArray[np.float64]) -> None:
        """Learn the patches; the trees store only what they do not know yet."""
        if self.online or not self.has_learned:
            self.forest.partial_fit(patches, overlaps)
            self.has_learned = True

    def scores(self, patches: Patches) -> NDArray[np.float64]:
        """Return the overlap that the forest predicts for each patch."""
        expected: NDArray[np.float64] = self.forest.predict(patches)
        return expected

    def knows(self, patch: Patches) -> bool:
        """Return whether the nearest example that the trees find correlates with the patch."""
        distance = self.forest.kneighbors(patch, 1)[0][0, 0]
        return bool(1 - distance**2 / (2 * patch.shape[1]) >= FAMILIAR)


class TemplateJudge:
    """Normalised cross-correlation with the first frame's target."""

    seen = -1.0  # any
    template: Patches | None = None

    def learn(self, patches: Patches, overlaps: NDArray[np.float64]) -> None:
        """Keep the first target as the template, and ignore all later ones."""
        if self.template is None:
            self.template = patches[0]

    def scores(self, patches: Patches) -> NDArray[np.float64]:
        """Return the correlation of each patch with the template."""
        assert self.template is not None
        return np.asarray(patches @ self.template / len(DOWN), dtype=np.float64)

    def knows(self, patch: Patches) -> bool:
        """Return True: a template cannot tell, and takes the best patch for the target."""
        return True


def patches_of(frame: Frame, x: Any, y: Any, side: float, angle: Any = 0.0) -> Patches:
    """Return the patches around each (x, y) as rows, rotated; the frame's edge is extended."""
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
    """Follows a target from the first frame on; only there its place is given."""

    def __init__(self, judge: Judge, first: Frame, box: Box) -> None:
        self.judge, self.box = judge, box
        self._rng = np.random.default_rng(0)
        self.lost = 0  # frames since it was seen last
        self._learn(first)

    def follow(self, frame: Frame) -> Box:
        """Return the target's place in the frame; the last place, if nothing looks like it."""
        at, reach = self.box, min(REACH + WIDER * self.lost, MAX_REACH)
        dx, dy, scores = self._looked(frame, 0, 0, np.arange(-reach, reach + 1, STRIDE))
        # Averaged with its neighbours: a peak, not a spike.
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
        """Return offsets from the last place, around one of them, and their scores."""
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
