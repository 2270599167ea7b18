"""How figures are written on the panel, in plain lines and in the report."""

from __future__ import annotations

import math

ABSENT = "-"  # ASCII, because some terminals support nothing else


def count(n: int) -> str:
    """Return an integer in groups of three digits."""
    return f"{n:,}"


def counted(n: int, noun: str) -> str:
    """Return a count with its noun: 1 row, 2 rows."""
    return f"{count(n)} {noun}" if n == 1 else f"{count(n)} {noun}s"


def percent(share: float | None) -> str:
    """Return a share in percent, to about three digits."""
    if share is None or not math.isfinite(share):
        return ABSENT
    value = 100 * share
    return f"{value:.2f} %" if abs(value) < 9.995 else f"{value:.1f} %"


def number(value: float | None, digits: int = 4) -> str:
    """Return a number to so many significant digits, with a power of ten only if it is large."""
    if value is None or not math.isfinite(value):
        return ABSENT
    if value == 0:
        return "0"
    value = float(f"{value:.{digits - 1}e}")
    if not 1e-4 <= abs(value) < 1e9:
        return f"{value:.{digits - 1}e}"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:,.{decimals}f}"


def score(value: float | None) -> str:
    """Return a score whose best is 1, such as R2, kappa or F1, as text."""
    return ABSENT if value is None or not math.isfinite(value) else f"{value:.3f}"


def rate(per_second: float) -> str:
    """Return rows per second to three digits, so that they do not jitter."""
    return number(per_second, 3)


def size(n_bytes: float) -> str:
    """Return bytes in the unit that leaves one to three digits before the point."""
    units = ["B", "kB", "MB", "GB", "TB"]
    value = float(n_bytes)
    while abs(value) >= 999.5 and len(units) > 1:
        value /= 1000
        del units[0]
    return f"{value:.0f} B" if units[0] == "B" else f"{number(value, 3)} {units[0]}"


def duration(seconds: float) -> str:
    """Return a time span in its two largest units."""
    if seconds < 59.95:
        return f"{seconds:.1f} s" if seconds < 9.95 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min"


def short(value: float) -> str:
    """Return a number for an axis: 500, 20k, 1.5M."""
    for unit, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= unit:
            return f"{value / unit:.6g}{letter}"
    return f"{value:.6g}"


def printable(text: str, *, lines: bool = False) -> str:
    r"""Return the text with visible escapes, as ``\x1b``, for what a terminal might obey.

    These are control characters, and those that reverse the direction of the text; halves of
    characters, which no terminal can show, too.

    Parameters
    ----------
    text : str
        The text, which may contain names from a user's data.
    lines : bool
        Whether it may have several lines.
    """
    if text.isascii() and text.isprintable():
        return text
    return text.translate(_VISIBLE_BUT_LINES if lines else _VISIBLE)


_DIRECTIONS = (*range(0x202A, 0x202F), *range(0x2066, 0x206A))
_CONTROLS = (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029, *_DIRECTIONS)
_VISIBLE = {
    code: f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
    for code in (*_CONTROLS, *range(0xD800, 0xE000))
}
_VISIBLE_BUT_LINES = {code: text for code, text in _VISIBLE.items() if code != ord("\n")}
