"""Errors as clients see them: one JSON shape that names what was wrong and where."""

from __future__ import annotations

import json
from typing import Any


class ServiceError(Exception):
    """A request that is refused.

    Parameters
    ----------
    status : int
        The HTTP status.
    code : str
        A short name that does not change between releases.
    message : str
        What was wrong, what is allowed, what to do.
    where : str or None, default=None
        The part of the request, such as ``rows[3].age`` or ``ids[0]``.
    headers : dict of str or None, default=None
        Further headers of the response.
    """

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        where: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.where = where
        self.headers = headers or {}

    def body(self) -> bytes:
        """Return the response's JSON."""
        found: dict[str, Any] = {"code": self.code, "message": self.message}
        if self.where is not None:
            found["where"] = self.where
        return json.dumps({"error": found}).encode()


def unprocessable(message: str, where: str | None = None) -> ServiceError:
    """Return the error of a request that can be read, but not used."""
    return ServiceError(422, "unprocessable", message, where)


def unavailable(message: str) -> ServiceError:
    """Return the error of a service that cannot answer now."""
    return ServiceError(503, "unavailable", message, headers={"retry-after": "1"})


def too_many(message: str) -> ServiceError:
    """Return the error of a full queue."""
    return ServiceError(429, "queue_full", message, headers={"retry-after": "1"})
