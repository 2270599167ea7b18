"""Whatever happens while a model is saved, the old file or the new one is there, whole."""

from __future__ import annotations

import errno
import multiprocessing
import os
import random
import resource
import signal
import stat
import threading
import time

import numpy as np
import pytest

from boundary_forest import BoundaryForestNeighbors, ModelFileError, load
from boundary_forest.files import reading, writing

KILLS = int(os.environ.get("BOUNDARY_FOREST_KILLS", "15"))


def forest_of(n, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, 50))
    return BoundaryForestNeighbors(n_estimators=2, random_state=seed).fit(X)


@pytest.fixture(scope="module")
def small():
    return forest_of(300)


@pytest.fixture(scope="module")
def large():
    return forest_of(4000, seed=1)


@pytest.fixture
def saved(small, tmp_path):
    """A folder with one saved model."""
    path = tmp_path / "model.bf"
    small.save(path)
    return path


def check_untouched(path, forest):
    assert os.listdir(path.parent) == [path.name]
    assert load(path).fingerprint() == forest.fingerprint()


def in_child(function):
    """Run in a process of its own, which may be limited or killed."""
    child = multiprocessing.get_context("fork").Process(target=function)
    child.start()
    return child


def test_a_disk_that_is_full_leaves_the_old_file(saved, small, large, monkeypatch):
    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(writing.os, "fsync", full)
    with pytest.raises(OSError, match=r"No space left.*model\.bf"):
        large.save(saved)
    monkeypatch.undo()
    check_untouched(saved, small)


@pytest.mark.parametrize("limit", [0, 100, 5_000, 300_000, 1_600_000])
def test_a_write_that_fails_leaves_the_old_file(saved, small, large, limit):
    def save():
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        try:
            large.save(saved)
        except OSError as error:
            os._exit(0 if error.errno == errno.EFBIG and "model.bf" in str(error) else 2)
        os._exit(1)

    child = in_child(save)
    child.join(60)
    assert child.exitcode == 0
    check_untouched(saved, small)


def test_an_interrupt_leaves_the_old_file(saved, small, large, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(writing.os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        large.save(saved)
    monkeypatch.undo()
    check_untouched(saved, small)


def test_a_folder_that_may_not_be_written_leaves_the_old_file(saved, small, large):
    def save():
        os.chmod(saved.parent, 0o555)
        if os.geteuid() == 0:
            os.setuid(65534)  # root may write everywhere
        try:
            large.save(saved)
        except PermissionError as error:
            os._exit(0 if "model.bf" in str(error) else 2)
        os._exit(1)

    child = in_child(save)
    child.join(60)
    os.chmod(saved.parent, 0o755)
    assert child.exitcode == 0
    check_untouched(saved, small)


def test_what_is_no_file_is_not_replaced(small, tmp_path):
    with pytest.raises(IsADirectoryError, match="directory"):
        small.save(tmp_path)
    with pytest.raises(OSError, match="regular"):
        small.save("/dev/null")
    with pytest.raises(FileNotFoundError, match=r"nowhere/model\.bf"):
        small.save(tmp_path / "nowhere" / "model.bf")
    assert os.listdir(tmp_path) == []


def test_permissions_of_an_existing_file_are_kept_and_a_link_stays_one(small, large, tmp_path):
    path, link = tmp_path / "model.bf", tmp_path / "link"
    umask = os.umask(0o027)
    try:
        small.save(path)
    finally:
        os.umask(umask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    path.chmod(0o604)
    link.symlink_to(path)
    large.save(link)
    assert link.is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o604
    assert load(path).fingerprint() == large.fingerprint()


def test_a_process_killed_while_saving_leaves_a_whole_file(saved, small, large):
    either = {small.fingerprint(), large.fingerprint()}
    rng = random.Random(0)

    begun = multiprocessing.get_context("fork").Semaphore(0)

    def save_for_ever():
        large.save(saved)
        begun.release()
        while True:
            small.save(saved)
            large.save(saved)

    seen, n_kills = set(), 0
    # Both files are seen sooner or later; on a busy machine it takes more kills.
    while n_kills < KILLS or (seen != either and n_kills < 20 * KILLS):
        n_kills += 1
        child = in_child(save_for_ever)
        assert begun.acquire(timeout=60)
        time.sleep(0.05 * rng.random())
        os.kill(child.pid, signal.SIGKILL)
        child.join(60)
        assert child.exitcode == -signal.SIGKILL
        seen.add(load(saved).fingerprint())
        assert seen <= either
    assert seen == either


def test_a_file_that_is_saved_again_while_it_is_opened_is_read_whole(
    small, large, tmp_path, monkeypatch
):
    """A reader opens it by name twice: itself, and by the library that reads the header."""
    path = tmp_path / "model.bf"
    for first, second in ((small, large), (small, forest_of(300, seed=2))):
        first.save(path)

        def replaced(name, *, second=second, **how):
            monkeypatch.undo()
            second.save(name)
            return reading.safe_open(name, **how)

        monkeypatch.setattr(reading, "safe_open", replaced)
        assert load(path).fingerprint() == second.fingerprint()


def test_a_file_that_is_replaced_again_and_again_is_given_up(small, tmp_path, monkeypatch):
    small.save(tmp_path / "model.bf")
    monkeypatch.setattr(reading, "MOST_TRIES", 3)
    monkeypatch.setattr(os.path, "samestat", lambda one, other: False)
    with pytest.raises(ModelFileError, match="replaced repeatedly"):
        load(tmp_path / "model.bf")


def test_a_file_is_replaced_where_no_thread_can_start(large, saved, monkeypatch):
    """As when a process ends, and saves in an exit handler."""

    def start(thread):
        raise RuntimeError("can't create new thread at interpreter shutdown")

    open_before = len(os.listdir("/proc/self/fd"))
    with monkeypatch.context() as fault:
        fault.setattr(threading.Thread, "start", start)
        large.save(saved)
    assert len(os.listdir("/proc/self/fd")) == open_before
    assert load(saved).fingerprint() == large.fingerprint()
