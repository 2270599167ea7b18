"""Make one page of all results from the JSON files of the items."""

import os
from collections import Counter
from pathlib import Path
from typing import Any

from paper.context import read_json
from paper.item import BETTER, CHAPTERS, DIFFERS, REPRODUCED
from paper.registry import all_items
from paper.report import body, markdown_table, provenance

INTRODUCTION = """\
# The paper and this library compared

Every table, figure and claim of Mathy, Derbinsky, Bento, Rosenthal and Yedidia, *The Boundary
Forest Algorithm for Online Supervised and Unsupervised Learning*
([AAAI 2015](https://doi.org/10.1609/aaai.v29i1.9622)), run with this library. Each section is the
result of one command, `python -m paper run NAME`; `python -m paper page` writes this page from the
results in [{folder}]({folder}). A verdict is *reproduced*, *better*, *differs* or *not run: data
absent*, by the rule that is stated with it. An item differs if one of its rows does. The paper's
figures are plots without numbers, so only what its text and captions say about them can be compared
with ours.
"""
SLIPS = """\
## Slips of the paper

These are taken to be slips, and not reproduced: the query's argmin over d(w, x) means d(w, y); the
"power smaller than 2" of the query time without a limit means 0.5, as is stated later; the testing
times of BF and BF-4 on dna, letter, pendigits and protein (for BF-4 on protein except for rounding)
repeat the training times; the appendix's row of mnist is garbled; its cover tree's error of 90 % on
pendigits contradicts the 2.8 % of the main table; BF-4 is slower than BF on pendigits; OBF is worse
than BF on mnist and letter, although it is the one that loses nothing by being online.
"""


class NoResultsError(ValueError):
    """The folder has no results."""


def records_in(folder: Path) -> list[dict[str, Any]]:
    """Return the results in the folder, in the order of the items."""
    found = [read_json(folder / f"{name}.json") for name in all_items()]
    records = [record for record in found if record is not None]
    if not records:
        raise NoResultsError(
            f"{folder} has no results; run some with python -m paper run all --out {folder}"
        )
    return records


def page(folder: Path, to: Path) -> str:
    """Return the page's text; ``to`` is the page's path, to which links to plots are relative."""
    records = records_in(folder)
    link = Path(os.path.relpath(folder.resolve(), to.resolve().parent)).as_posix() + "/"
    parts = [INTRODUCTION.format(folder=link), _overview(records), SLIPS]
    for chapter in CHAPTERS:
        inside = [record for record in records if record["chapter"] == chapter]
        if inside:
            parts.append(f"## {chapter}\n")
        for record in inside:
            parts.append(
                f"### {record['title']}\n\n`{record['name']}`; in the paper: {record['where']}.\n\n"
                f"{body(record, link)}\n\n<small>{provenance(record)}</small>\n"
            )
    return "\n".join(parts)


def _overview(records: list[dict[str, Any]]) -> str:
    rows = [
        [
            f"`{r['name']}`",
            r["title"],
            r["where"],
            r["verdict"],
            _counts(r),
            r["scale"],
            f"{r['seconds']:.0f}",
        ]
        for r in records
    ]
    header = ["item", "what", "where", "verdict", "of its rows", "scale", "s"]
    return markdown_table(header, rows) + "\n"


def _counts(record: dict[str, Any]) -> str:
    """Count the rows' verdicts, since a single row that differs makes the item differ."""
    counts = Counter(row["verdict"] for row in record["rows"])
    return ", ".join(f"{counts[v]} {v}" for v in (REPRODUCED, BETTER, DIFFERS) if counts[v])
