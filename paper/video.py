"""A generated video with a known target, for a tracker that sees nothing but the pixels.

A round textured target moves smoothly over a textured background that pans. It turns, grows and
shrinks; the light drifts; a similar round object comes near; a post passes in front of it once;
every frame has noise of its own. Any frame can be drawn again.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter, map_coordinates  # type: ignore[import-untyped]

HEIGHT, WIDTH = 240, 320
DIAMETER = 44.0  # of the target, in pixels, at scale 1
TEXTURE = 64  # pixels of a texture's side
POST = 36  # pixels wide
HIDDEN_AT, NEAREST_AT = 0.45, 0.7  # of the video: the post is in front, the other thing nearest
NOISE = 6.0  # standard deviation, of 255

Floats = NDArray[np.float64]
Frame = NDArray[np.uint8]


@dataclass(frozen=True)
class Box:
    """A square: its centre and its side, in pixels."""

    x: float
    y: float
    side: float


def overlap(a: Box, b: Box) -> float:
    """Return the intersection over union of two boxes."""

    def along(p: float, q: float) -> float:
        low, high = max(p - a.side / 2, q - b.side / 2), min(p + a.side / 2, q + b.side / 2)
        return max(0.0, high - low)

    common = along(a.x, b.x) * along(a.y, b.y)
    return common / (a.side**2 + b.side**2 - common)


class Video:
    """Frames by number, and the place of the target in each."""

    def __init__(self, n_frames: int, seed: int) -> None:
        self.n_frames, self.seed = n_frames, seed
        rng = np.random.default_rng([seed, 41])
        self._background = texture(rng, (HEIGHT + 80, WIDTH + 80), (2.5, 6.0, 20.0), 110, 32)
        self._target = texture(rng, (TEXTURE, TEXTURE), (5.0, 8.0), 140, 55)
        self._other = texture(rng, (TEXTURE, TEXTURE), (5.0, 8.0), 140, 55)
        self._post = texture(rng, (HEIGHT, POST), (1.5, 9.0), 70, 22)
        self._phases = rng.uniform(0, 2 * np.pi, 8)

    def box(self, t: int) -> Box:
        """Return the place of the target, hidden or not."""
        a = self._phases
        x = WIDTH / 2 + 95 * np.sin(2 * np.pi * t / 173 + a[0])
        y = HEIGHT / 2 + 58 * np.sin(2 * np.pi * t / 119 + a[1])
        scale = 1 + 0.1 * np.sin(2 * np.pi * t / 211 + a[2])
        return Box(float(x), float(y), float(DIAMETER * scale))

    def hidden(self, t: int) -> bool:
        """Return whether the post covers the target's centre."""
        return abs(self._post_at(t) - self.box(t).x) < POST / 2

    def frame(self, t: int) -> Frame:
        """Return the picture, 240 x 320 grey pixels."""
        rng = np.random.default_rng([self.seed, 42, t])
        a, box = self._phases, self.box(t)
        dx = 40 + 40 * np.sin(2 * np.pi * t / 307 + a[3])
        dy = 40 + 40 * np.sin(2 * np.pi * t / 401 + a[4])
        at_y, at_x = np.mgrid[0:HEIGHT, 0:WIDTH].astype(float)
        picture = map_coordinates(self._background, [at_y + dy, at_x + dx], order=1)
        far = 48 + 260 * abs(t / self.n_frames - NEAREST_AT)
        around = a[5] + 2 * np.pi * t / 150
        near_x, near_y = box.x + far * np.cos(around), box.y + far * np.sin(around)
        paint(picture, self._other, Box(near_x, near_y, DIAMETER), -2 * np.pi * t / 190)
        paint(picture, self._target, box, a[6] + 2 * np.pi * t / 240)
        left = round(self._post_at(t) - POST / 2)
        start, stop = max(left, 0), min(left + POST, WIDTH)
        if start < stop:
            picture[:, start:stop] = self._post[:, start - left : stop - left]
        light = 1 + 0.3 * np.sin(2 * np.pi * t / 137 + a[7])
        slope = 1 + 0.15 * np.sin(2 * np.pi * t / 223) * (at_x / WIDTH - 0.5)
        picture = picture * light * slope + rng.normal(0, NOISE, picture.shape)
        return np.asarray(np.clip(np.rint(picture), 0, 255), dtype=np.uint8)

    def _post_at(self, t: int) -> float:
        """Return the x of the post, which crosses the picture and covers the target once."""
        meeting = round(HIDDEN_AT * self.n_frames)
        return self.box(meeting).x + 9.0 * (t - meeting)


def texture(
    rng: np.random.Generator, shape: tuple[int, int], grains: tuple[float, ...], mean: int, sd: int
) -> Floats:
    """Return noise of several grain sizes, in grey levels."""
    layers = [gaussian_filter(rng.normal(size=shape), grain, mode="wrap") for grain in grains]
    total = sum((layer / layer.std() for layer in layers), np.zeros(shape))
    return np.asarray(mean + sd * (total - total.mean()) / total.std())


def paint(picture: Floats, skin: Floats, box: Box, angle: float) -> None:
    """Paint a round piece of the texture, rotated and with a soft edge, over the picture."""
    half = int(np.ceil(box.side / 2)) + 1
    top, left = max(int(box.y) - half, 0), max(int(box.x) - half, 0)
    part = picture[top : int(box.y) + half + 1, left : int(box.x) + half + 1]
    if int(box.y) + half < 0 or int(box.x) + half < 0 or not part.size:
        return
    at_y, at_x = np.mgrid[0 : part.shape[0], 0 : part.shape[1]].astype(float)
    v, u = at_y + top - box.y, at_x + left - box.x
    cos, sin = np.cos(angle), np.sin(angle)
    zoom, middle = TEXTURE / box.side, (TEXTURE - 1) / 2
    at = [middle + zoom * (cos * v - sin * u), middle + zoom * (sin * v + cos * u)]
    skinned = map_coordinates(skin, at, order=1, mode="nearest")
    cover = np.clip(box.side / 2 - np.hypot(u, v) + 0.5, 0, 1)
    part[:] = cover * skinned + (1 - cover) * part
