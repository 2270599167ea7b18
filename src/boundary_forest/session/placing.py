"""Where the forest of a session is: in this process, or on a Ray cluster."""

from __future__ import annotations

from typing import Any

from boundary_forest.session.problems import StreamError

LOCAL = "local"


def connect(address: str | None) -> None:
    """Connect to a cluster, so that a wrong address is found before any row is read.

    Parameters
    ----------
    address : str or None
        "local" starts Ray on this machine; otherwise it is that of a cluster. None: there is none.
    """
    if address is None:
        return
    try:
        import ray

        import boundary_forest.ray  # noqa: F401
    except ModuleNotFoundError as error:
        raise StreamError(
            f"a cluster requires Ray ({error}): pip install 'boundary-forest[ray]'"
        ) from error
    if ray.is_initialized():
        return
    where = {"include_dashboard": False} if address == LOCAL else {"address": address}
    try:
        ray.init(**where, log_to_driver=False, logging_level="ERROR")
    except (ConnectionError, ValueError) as error:
        raise StreamError(f"cannot connect to a Ray cluster at {address}: {error}") from error


def placed(forest: Any, address: str | None) -> Any:
    """Return the forest on the cluster that was connected to; as it is without one.

    Parameters
    ----------
    forest : estimator
        Of this process.
    address : str or None
        As for ``connect``.
    """
    if address is None:
        return forest
    from boundary_forest import ray as on_cluster

    kind: Any = getattr(on_cluster, type(forest).__name__)
    return kind.from_local(forest)
