"""Bearer tokens: who may read, and who may write."""

from __future__ import annotations

import hashlib
import hmac
from pathlib import Path

from boundary_forest.service.errors import ServiceError

READ, WRITE = "read", "write"
SHORTEST = 16  # characters


class Tokens:
    """The tokens of a file, whose lines are ``read TOKEN`` or ``write TOKEN``.

    A write token may read, too. Empty lines and lines that begin with ``#`` are ignored.

    Parameters
    ----------
    path : Path or None
        The file; None: anyone may read and write.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._digests: tuple[tuple[str, bytes], ...] = ()
        self.reload()

    def reload(self) -> None:
        """Read the file again; ValueError or OSError if that fails, and the old ones hold."""
        if self._path is None:
            return
        found = []
        for number, line in enumerate(self._path.read_text().splitlines(), 1):
            words = line.split()
            if not words or words[0].startswith("#"):
                continue
            if len(words) != 2 or words[0] not in (READ, WRITE) or len(words[1]) < SHORTEST:
                raise ValueError(
                    f"{self._path}: line {number} must be 'read TOKEN' or 'write TOKEN' with a "
                    f"token of at least {SHORTEST} characters"
                )
            found.append((words[0], _digest(words[1])))
        if not found:
            raise ValueError(f"{self._path} contains no token")
        self._digests = tuple(found)

    @property
    def are_required(self) -> bool:
        """Whether there are tokens."""
        return self._path is not None

    def has_digest(self, digest: bytes) -> bool:
        """Return whether a token with this digest is valid now."""
        return sum(hmac.compare_digest(known, digest) for _, known in self._digests) > 0

    @staticmethod
    def digest(token: str) -> bytes:
        """Return what a token can be recognised by."""
        return _digest(token.strip())

    def check(self, authorization: str | None, scope: str) -> None:
        """Raise ServiceError unless the header has a token for this scope.

        Parameters
        ----------
        authorization : str or None
            The request's ``Authorization`` header.
        scope : str
            READ or WRITE.
        """
        if self._path is None:
            return
        kind, _, token = (authorization or "").partition(" ")
        given = _digest(token.strip())
        # All are compared, whichever matches: the time must not tell.
        scopes = [s for s, digest in self._digests if hmac.compare_digest(digest, given)]
        if kind.lower() != "bearer" or not scopes:
            raise ServiceError(
                401,
                "unauthorized",
                "a token is required: send the header 'Authorization: Bearer TOKEN'",
                headers={"www-authenticate": "Bearer"},
            )
        if scope == WRITE and WRITE not in scopes:
            raise ServiceError(403, "forbidden", "this token may read only: use a write token")


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
