"""The generated video and the trackers: what is known of them in advance."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from paper.items import tracking
from paper.tracker import DOWN, ForestJudge, TemplateJudge, Tracker, patches_of
from paper.video import HEIGHT, WIDTH, Box, Video, overlap, paint


@pytest.fixture(scope="module")
def video():
    return Video(100, seed=1)


def test_overlap_is_intersection_over_union():
    box = Box(10, 10, 4)
    assert overlap(box, box) == 1
    assert overlap(box, Box(14, 10, 4)) == 0
    assert overlap(box, Box(12, 10, 4)) == pytest.approx(8 / 24)
    assert overlap(box, Box(10, 10, 2)) == pytest.approx(4 / 16)
    assert overlap(box, Box(-50, 90, 4)) == 0


def test_a_frame_can_be_had_again(video):
    frame = video.frame(7)
    assert (frame.shape, frame.dtype) == ((HEIGHT, WIDTH), np.uint8)
    np.testing.assert_array_equal(Video(100, seed=1).frame(7), frame)
    assert not np.array_equal(Video(100, seed=2).frame(7), frame)


def test_the_target_moves_smoothly_and_stays_in_the_picture(video):
    boxes = [video.box(t) for t in range(100)]
    steps = [np.hypot(a.x - b.x, a.y - b.y) for a, b in pairwise(boxes)]
    assert 0 < max(steps) < 6
    for box in boxes:
        assert box.side / 2 <= box.x <= WIDTH - box.side / 2
        assert box.side / 2 <= box.y <= HEIGHT - box.side / 2


def test_the_target_is_where_the_box_says(video):
    """With another skin the picture differs in a disc of the box's size, and nowhere else."""
    other = Video(100, seed=1)
    other._target = 255 - other._target
    differs = video.frame(5) != other.frame(5)
    rows, columns = np.nonzero(differs)
    box = video.box(5)
    assert columns.min() == pytest.approx(box.x - box.side / 2, abs=2)
    assert columns.max() == pytest.approx(box.x + box.side / 2, abs=2)
    assert rows.min() == pytest.approx(box.y - box.side / 2, abs=2)
    assert differs.sum() == pytest.approx(np.pi * box.side**2 / 4, rel=0.1)


def test_the_target_is_hidden_for_a_short_time(video):
    hidden = [t for t in range(100) if video.hidden(t)]
    assert 45 in hidden
    assert len(hidden) < 12
    assert hidden == list(range(hidden[0], hidden[-1] + 1))


@pytest.mark.parametrize("box", [Box(-90, 50, 20), Box(50, 900, 20), Box(0, 0, 20)])
def test_what_is_outside_is_not_painted(box):
    picture = np.zeros((60, 60))
    paint(picture, np.ones((64, 64)), box, 0.3)
    inside = 0 <= box.x < 60 and 0 <= box.y < 60
    assert (picture.sum() > 0) == inside


def test_patches_do_not_depend_on_light(video):
    frame = video.frame(0) // 2
    rows = patches_of(frame, [100, 150], [100, 90], 40.0)
    assert rows.shape == (2, len(DOWN))
    np.testing.assert_allclose(rows.mean(axis=1), 0, atol=1e-5)
    np.testing.assert_allclose(rows.std(axis=1), 1, rtol=1e-4)
    np.testing.assert_allclose(patches_of(2 * frame, [100, 150], [100, 90], 40.0), rows, atol=1e-3)


def test_a_patch_turned_by_a_right_angle_has_the_same_values(video):
    rows = patches_of(video.frame(0), [101.0], [99.0], 36.0, np.array([0.0]))
    turned = patches_of(np.rot90(video.frame(0)), [99.0], [WIDTH - 1 - 101.0], 36.0, -np.pi / 2)
    assert np.corrcoef(rows[0], turned[0])[0, 1] > 0.95


def test_patches_at_the_edge_and_beyond_are_finite(video):
    rows = patches_of(video.frame(0), [0, WIDTH, -30], [0, HEIGHT, HEIGHT + 30], 40.0)
    assert np.isfinite(rows).all()


@pytest.mark.parametrize("judge", [TemplateJudge(), ForestJudge(), ForestJudge(online=False)])
def test_a_target_that_does_not_move_is_found_where_it_was(judge, video):
    frame, box = video.frame(0), video.box(0)
    tracker = Tracker(judge, frame, box)
    for _ in range(3):
        assert overlap(tracker.follow(frame), box) > 0.9


def test_the_forest_that_learns_follows_and_the_others_do_not():
    found = {who: tracking.tracked(80, 5, who, 0) for who in tracking.WHO}
    shares = {who: tracking.followed(of) for who, of in found.items()}
    assert shares[tracking.LEARNS] > 0.85, shares  # seen: 0.95
    assert shares[tracking.LEARNS] > max(shares[tracking.FIXED], shares[tracking.TEMPLATE]) + 0.2
    assert found[tracking.LEARNS]["nodes"] > found[tracking.FIXED]["nodes"] > 0


def test_out_of_sight_nothing_is_learned(video):
    judge = ForestJudge()
    tracker = Tracker(judge, video.frame(0), video.box(0))
    before = judge.forest.fingerprint()
    black = np.zeros((HEIGHT, WIDTH), dtype=np.uint8)
    assert tracker.follow(black) == video.box(0)
    assert tracker.lost == 1
    assert judge.forest.fingerprint() == before
