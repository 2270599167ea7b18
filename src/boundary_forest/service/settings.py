"""What a service is started with: its folder, its task, its address and its limits."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from pathlib import Path

CLASSIFICATION, REGRESSION, RETRIEVAL = "classification", "regression", "retrieval"
TASKS = (CLASSIFICATION, REGRESSION, RETRIEVAL)


@dataclass(frozen=True)
class Limits:
    """What a client may take of the service.

    Parameters
    ----------
    body_bytes : int
        Size of a request's body.
    rows, columns : int
        Number of rows in a request, and of values in a row.
    connections : int
        Open connections; one more is closed with a 503.
    queue : int
        Requests that wait to be written; one more is a 429.
    head_seconds, body_seconds, write_seconds : float
        Time that a client has to send the head of a request, to send its body, and to accept more
        of a response.
    waiting : int
        Predicted rows that wait for their labels; the oldest expire.
    waiting_seconds : float
        How long they wait.
    keys, key_seconds : int, float
        Idempotency keys that are remembered, and for how long.
    learned_ids, expired_ids : int
        The latest ids that are remembered as learned (409) and as expired (410).
    snapshots : int
        Snapshots that are kept for download; the oldest are deleted.
    """

    body_bytes: int = 64 << 20
    rows: int = 100_000
    columns: int = 10_000
    connections: int = 1_000
    queue: int = 1_000
    head_seconds: float = 10.0
    body_seconds: float = 30.0
    write_seconds: float = 30.0
    waiting: int = 100_000
    waiting_seconds: float = 7 * 86_400.0
    keys: int = 100_000
    key_seconds: float = 86_400.0
    learned_ids: int = 1_000_000
    expired_ids: int = 100_000
    snapshots: int = 5


@dataclass(frozen=True)
class ServiceSettings:
    """What a service is started with.

    Parameters
    ----------
    folder : Path
        Its durable folder: one model, one process.
    task : str or None
        One of TASKS; None: that of the folder, or classification if it is new.
    load : Path or None
        A model file that a new folder starts with.
    host, port : str, int
        The address; port 0 is any free one.
    token_file : Path or None
        Tokens that clients must send; required unless ``host`` is a loopback address.
    allowed_hosts : tuple of str
        Names under which clients may reach the service besides its address.
    max_stored, seed, threads : int or None
        Parameters of a new forest; number of threads.
    log_requests : bool
        Whether every request is logged; else those that fail.
    limits : Limits
        What a client may take.
    """

    folder: Path
    task: str | None = None
    load: Path | None = None
    host: str = "127.0.0.1"
    port: int = 8000
    token_file: Path | None = None
    allowed_hosts: tuple[str, ...] = ()
    max_stored: int | None = None
    seed: int | None = None
    threads: int = 1
    log_requests: bool = False
    limits: Limits = field(default_factory=Limits)

    def check(self) -> None:
        """Raise ValueError if the service would be open to others without a token."""
        if self.token_file is None and not is_loopback(self.host):
            raise ValueError(
                f"--host {self.host} is reachable from other machines, which requires "
                "--token-file: create one, or use --host 127.0.0.1"
            )


def is_loopback(host: str) -> bool:
    """Return whether an address is reachable from this machine alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
