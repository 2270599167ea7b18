"""How figures become text: formats of numbers, and tables in Markdown."""

import re
from collections.abc import Callable
from typing import Any

Figures = dict[str, dict[str, Any]]

FORMATS: dict[str, Callable[[float], str]] = {
    "error": lambda x: f"{100 * x:.1f}",
    "score": lambda x: f"{x:.3f}",
    "ratio": lambda x: f"{x:.2f}",
    "times": lambda x: f"{x:.0f}",
    "number": lambda x: f"{x:,.0f}",
    "seconds": lambda x: f"{x:.2f}" if x < 1 else f"{x:.1f}",
    "tenths": lambda x: f"{x:.1f}",
}


def grid(headings: list[str], rows: list[list[str]]) -> str:
    """Return a table in Markdown."""
    lines = [f"| {' | '.join(headings)} |", f"|{'---|' * len(headings)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def with_best(shown: list[str], *, least: bool) -> list[str]:
    """Return the cells with the best numbers in bold."""
    numbers = [float(text.split()[0]) for text in shown]
    best = min(numbers) if least else max(numbers)
    bold = zip(shown, numbers, strict=True)
    return [
        re.sub(r"^\S+", r"**\g<0>**", text) if number == best else text for text, number in bold
    ]
