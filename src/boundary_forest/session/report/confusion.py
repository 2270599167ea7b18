"""The confusion matrix: what was true beside what was answered, for 2 classes or 50."""

from __future__ import annotations

from collections import Counter

from boundary_forest.session.report.markup import Html, element, figure, joined
from boundary_forest.session.wording import ABSENT, count, percent

OTHER = "other"  # the classes beyond the largest 50
WRITTEN = 16  # classes up to which each cell has its count written into it
LONGEST = 16  # characters of a class in the table's margin
MISTAKES = 10  # in the list of the most frequent; twice as many beside a large matrix


def confusion_matrix(confusion: dict[tuple[str, str], int]) -> Html:
    """The matrix, and the most frequent mistakes."""
    classes = _ordered({name for pair in confusion for name in pair})
    truly: Counter[str] = Counter()
    for (true, _), n in confusion.items():
        truly[true] += n
    density = "written" if len(classes) <= WRITTEN else "dense"
    upright = max(map(len, classes), default=0) <= (5 if density == "written" else 2)
    table = element(
        "table",
        element("caption", "Rows: what was true. Columns: what was answered.", class_="unseen"),
        _head(classes, upright),
        element("tbody", *[_row(c, classes, confusion, truly[c]) for c in classes]),
        class_=f"confusion {density}" + ("" if upright else " turned"),
        style=_measures(classes, max(confusion.values())),
    )
    key = element(
        "ul",
        element("li", element("i", class_="key fill right"), "right"),
        element("li", element("i", class_="key fill wrong"), "wrong"),
        element("li", "darker: a larger share of the row", class_="quiet"),
        class_="legend",
    )
    scroller = element(
        "div",
        table,
        class_="scroller",
        tabindex="0",
        role="region",
        aria_label="Confusion matrix",
    )
    title = f"{len(classes)} classes" if len(classes) != 1 else "One class"
    note = "A row for each true class, a column for each answer."
    matrix = figure(title, key, scroller, note=note, at="", class_="matrix")
    return joined(
        matrix, _mistakes(confusion, truly, MISTAKES if density == "written" else 2 * MISTAKES)
    )


def _measures(classes: list[str], most: int) -> str:
    """For page.css: how many classes there are, and the room for a name, a count and a cell."""
    longest = min(LONGEST, max(map(len, classes), default=0))
    cell = max(0.7, min(1.6, 32 / max(1, len(classes))))
    room = f"--label:{longest + 2}ch;--figure:{len(count(most)) + 1}ch"
    return f"--n:{len(classes)};{room};--cell:{cell:.2f}rem"


def _head(classes: list[str], upright: bool) -> Html:
    cells = [
        element("th", element("span", _short(c)), scope="col", title=None if upright else c)
        for c in classes
    ]
    corner = element("td", "true", class_="corner")
    return element("thead", element("tr", corner, *cells, element("th", "right", class_="recall")))


def _row(true: str, classes: list[str], confusion: dict[tuple[str, str], int], total: int) -> Html:
    cells = []
    for answer in classes:
        n = confusion.get((true, answer), 0)
        kind = "r" if answer == true else "w"
        # Mistakes are few beside what is right; the root makes them visible.
        share = n / total if total else 0
        strength = round(100 * (share if kind == "r" else min(1.0, 1.5 * share**0.5)))
        if n:
            cells.append(element("td", count(n), class_=kind, style=f"--s:{max(8, strength)}"))
        else:
            cells.append(element("td", class_="r" if kind == "r" else None))
    head = element("th", _short(true), scope="row", title=true if len(true) > LONGEST else None)
    right = percent(confusion.get((true, true), 0) / total) if total else ABSENT
    return element("tr", head, *cells, element("td", right, class_="recall"))


def _mistakes(confusion: dict[tuple[str, str], int], truly: Counter[str], n_most: int) -> Html:
    """The cells off the diagonal with most rows."""
    wrong = {pair: n for pair, n in confusion.items() if pair[0] != pair[1]}
    title = "Most frequent mistakes"
    if not wrong:
        return figure(title, element("p", "None.", class_="quiet"), class_="mistakes")
    most = sorted(wrong.items(), key=lambda item: (-item[1], item[0]))[:n_most]
    largest = most[0][1]
    rows = [
        element(
            "tr",
            element("td", _short(true, 24), " → ", element("b", _short(answer, 24))),
            element(
                "td",
                element("span", class_="bar", style=f"width:{100 * n / largest:.1f}%"),
                class_="bars",
            ),
            element("td", count(n), class_="number"),
            element("td", percent(n / truly[true]), class_="number quiet"),
        )
        for (true, answer), n in most
    ]
    head = element(
        "tr",
        *[element("th", t, scope="col") for t in ("true → answered", "", "rows")],
        element("th", "share", scope="col"),
    )
    table = element("table", element("thead", head), element("tbody", *rows), class_="list")
    return figure(title, table, class_="mistakes")


def _ordered(names: set[str]) -> list[str]:
    """Numbers by value, then words by the alphabet; what is left over last."""

    def place(name: str) -> tuple[bool, bool, float, str]:
        try:
            value = float(name)
        except ValueError:
            return name == OTHER, True, 0.0, name
        return False, value != value, value if value == value else 0.0, name

    return sorted(names, key=place)


def _short(name: str, longest: int = LONGEST) -> str:
    return name if len(name) <= longest else name[: longest - 1] + "…"
