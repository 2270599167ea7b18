"""Who has logged in to the page: an EventSource of a browser cannot send a token, but a cookie."""

from __future__ import annotations

import hashlib
import secrets
import time
from http.cookies import CookieError, SimpleCookie
from pathlib import Path

from boundary_forest.service.tokens import READ, Tokens

SECONDS = 12 * 3600.0  # that a login lasts
MOST = 1000  # logins; the oldest ends for one more


class Sessions:
    """Logins of this process, by random ids. Cookies may read, and open the page's paths alone.

    Parameters
    ----------
    tokens : Tokens
        Those that one logs in with; a session ends when its token is taken away.
    folder : Path
        Of the model: services on one host share its cookies, so each names its own.
    """

    def __init__(self, tokens: Tokens, folder: Path) -> None:
        self._tokens = tokens
        self._name = "boundary_forest_" + hashlib.sha256(bytes(folder.resolve())).hexdigest()[:8]
        self._ends: dict[bytes, tuple[float, bytes]] = {}  # when, and the digest of the token

    @property
    def are_required(self) -> bool:
        """Whether one must log in."""
        return self._tokens.are_required

    def begin(self, token: str, *, over_tls: bool) -> str:
        """Return the ``Set-Cookie`` of a new session; ServiceError if the token is not valid."""
        self._tokens.check(f"Bearer {token}", READ)
        now = time.monotonic()
        for key in [key for key, (end, _) in self._ends.items() if end < now]:
            del self._ends[key]
        while len(self._ends) >= MOST:
            del self._ends[next(iter(self._ends))]
        id = secrets.token_urlsafe(32)
        self._ends[_key(id)] = (now + SECONDS, self._tokens.digest(token))
        return self._cookie(id, SECONDS, over_tls)

    def end(self, cookies: str | None) -> str:
        """End the session of a request; return a ``Set-Cookie`` that removes its cookie."""
        self._ends.pop(_key(self._id(cookies)), None)
        return self._cookie("", 0, over_tls=False)

    def is_valid(self, cookies: str | None) -> bool:
        """Return whether a ``Cookie`` header has a session that lasts."""
        end, digest = self._ends.get(_key(self._id(cookies)), (0.0, b""))
        return time.monotonic() < end and self._tokens.has_digest(digest)

    def check(self, authorization: str | None, cookies: str | None) -> None:
        """Raise ServiceError unless a request may read, by a session or by a token."""
        if not self.is_valid(cookies):
            self._tokens.check(authorization, READ)

    def _id(self, cookies: str | None) -> str:
        try:
            found = SimpleCookie(cookies or "").get(self._name)
        except CookieError:
            return ""
        return "" if found is None else found.value

    def _cookie(self, id: str, seconds: float, over_tls: bool) -> str:
        secure = "; Secure" if over_tls else ""
        about = f"Path=/; Max-Age={seconds:.0f}; HttpOnly; SameSite=Strict{secure}"
        return f"{self._name}={id}; {about}"


def _key(id: str) -> bytes:
    return hashlib.sha256(id.encode("utf-8", "replace")).digest()
