"""Write the figures of the pages from docs/figures, where each benchmark has one JSON file.

``python -m docs.write_figures build/bench/learned-....json`` takes the figures of a run of ``make
bench`` into docs/figures, and writes all pages again; without arguments it only writes. ``--check``
fails if a page differs from the JSON files, and is what a test runs.

In a page, ``<!--fig FORMAT FILE/TABLE/ROW/COLUMN-->2.6<!--/-->`` is a number, or ``FORMAT
paper/ITEM/WHAT`` for a row of an item of docs/paper, and ``... over ...`` is a ratio of two.
``<!--run FILE-->...<!--/-->`` is the run's date, processor and commit. ``<!--table FILE/NAME-->``
up to ``<!--/table-->`` is a whole table; ``TABLES`` below has its columns.
"""

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.recall_plot import RECALLS, time_at
from docs import speed_figures
from docs.figure_text import FORMATS, Figures, grid, with_best

ROOT = Path(__file__).parents[1]
FIGURES = ROOT / "docs" / "figures"
PAPER = ROOT / "docs" / "paper"

OURS, NEVER, ARF, RIVER = "for_streams()", "never forgetting", "River ARF(10)", "through River"
NOISE = "20 % flipped"


def extract_learned(section: dict[str, Any]) -> dict[str, Figures]:
    """Return scores, their standard deviations, and seconds."""
    parts = {name: part["rows"] for name, part in section["parts"].items()}
    return {
        key: {name: {who: row[field] for who, row in rows.items()} for name, rows in parts.items()}
        for key, field in (("score", "mean"), ("sd", "sd"), ("seconds", "median_s"))
    }


def extract_streams(section: dict[str, Any]) -> dict[str, Figures]:
    """Return accuracies, errors and rows per second."""

    def of(key: str, value: Callable[[dict[str, float]], float]) -> Figures:
        return {
            name: {who: value(row) for who, row in part["rows"].items()}
            for name, part in section[key].items()
        }

    return {
        "accuracy": of("drifting", lambda row: 1 - row["loss"]),
        "rate": of("drifting", lambda row: row["rows_s"]),
        "error": of("regression", lambda row: row["loss"]),
        "shuffled": of("shuffled", lambda row: 1 - row["loss"]),
        "bounded": of("bounded", lambda row: 1 - row["loss"]),
        "bounded rate": of("bounded", lambda row: row["rows_s"]),
    }


def extract_retrieval(section: dict[str, Any]) -> dict[str, Figures]:
    """Return build times, bytes, and microseconds at some recalls."""
    tables: dict[str, Figures] = {}
    for part in section["parts"]:
        tables[part["data"]] = {
            row["title"]: {
                "build s": row["build_s"],
                "bytes": row["bytes"],
                **{f"us at {recall:.2f}": time_at(row["curve"], recall) for recall in RECALLS},
            }
            for row in part["indexes"]
            if row["installed"]
        }
    return tables


EXTRACT = {
    "learned": extract_learned,
    "streams": extract_streams,
    "retrieval": extract_retrieval,
    **speed_figures.EXTRACT,
}


def take(path: Path) -> None:
    """Copy the figures of a run into docs/figures."""
    document = json.loads(path.read_text())
    if document["settings"]["smoke"]:
        raise SystemExit(f"{path} is a smoke run: run make bench without --smoke")
    names = [name for name in document["sections"] if name in EXTRACT]
    if not names:
        raise SystemExit(f"{path} has no section of {', '.join(EXTRACT)}")
    for name in names:
        run = {
            "command": f"make bench SECTIONS={name}",
            "date": document["date"],
            "processor": document["machine"]["cpu"],
            "commit": document["commit"],
        }
        figures = {"run": run, **EXTRACT[name](document["sections"][name])}
        (FIGURES / f"{name}.json").write_text(json.dumps(figures, indent=1) + "\n")


def load(name: str) -> dict[str, Any]:
    """Return the figures of a benchmark."""
    figures: dict[str, Any] = json.loads((FIGURES / f"{name}.json").read_text())
    for key, table in figures.items():  # of points, which are named by their values
        if isinstance(table, list):
            figures[key] = {str(point["value"]): point for point in table}
    return figures


def value(path: str) -> float:
    """Return the number at FILE/TABLE/ROW/COLUMN; the row "mean", "least" or "most" is over all."""
    if path.startswith("paper/"):
        _, item, what = path.split("/", 2)
        results = json.loads((PAPER / f"{item}.json").read_text())["rows"]
        return next(float(result["ours"]) for result in results if result["what"] == what)
    name, table, row, column = path.split("/")
    rows = load(name)[table]
    if row in rows:
        return float(rows[row][column])
    return {"mean": mean, "least": min, "most": max}[row]([r[column] for r in rows.values()])


def mean(numbers: list[float]) -> float:
    """Return the mean."""
    return sum(numbers) / len(numbers)


def number(form: str, expression: str) -> str:
    """Return a number, or a ratio of two, as text."""
    top, over, bottom = expression.partition(" over ")
    if over and "/each/" in top:  # the least or the most ratio of all rows
        which, top = top.split(" ", 1)
        rows = load(top.split("/")[0])[top.split("/")[1]]
        ratios = [
            value(top.replace("/each/", f"/{row}/")) / value(bottom.replace("/each/", f"/{row}/"))
            for row in rows
        ]
        return FORMATS[form]({"least": min, "most": max}[which](ratios))
    return FORMATS[form](value(top) / value(bottom) if over else value(top))


def described(name: str) -> str:
    """Return when, on what and from which commit the figures are."""
    run = load(name)["run"]
    text = f"`{run['command']}`, {run['date'][:10]}, {run['processor']}, commit {run['commit']}"
    return f"{text}; {run['note']}" if "note" in run else text


LEARNED = {
    "for_tables()": "`for_tables()`",
    "weights='auto'": '`weights="auto"`',
    "paper's forest": "paper's forest",
    "RandomForest(100)": "Random&shy;Forest(100)",
    "HistGradientBoosting": "Hist&shy;Gradient&shy;Boosting",
    "5-NN, scaled": "5-NN",
}
LEARNED_ROWS = {
    "letter": "letter",
    "dna": "dna",
    "pendigits": "pendigits",
    f"letter, {NOISE}": "letter, 20 % of the labels drawn at random",
    f"pendigits, {NOISE}": "pendigits, likewise",
    "covtype": "covtype",
    "california": "california, R2",
    "abalone": "abalone, R2",
}


def learned_scores() -> str:
    """Errors in per cent, or R2, of all learners; the paper's forest is given scaled california."""
    figures = load("learned")
    rows = []
    for part, title in LEARNED_ROWS.items():
        form = FORMATS["score" if title.endswith("R2") else "error"]
        cells = []
        for who in LEARNED:
            if who == "paper's forest" and part == "california":
                who = "paper's, scaled"
            sd = form(figures["sd"][part][who])
            cells.append(form(figures["score"][part][who]) + (f" ({sd})" if float(sd) else ""))
        rows.append([title, *with_best(cells, least=not title.endswith("R2"))])
    return grid(["", *LEARNED.values()], rows)


def learned_seconds() -> str:
    """Seconds to fit and predict."""
    who = {
        "for_tables()": "`for_tables()`",
        "weights='auto'": '`for_tables(weights="auto")`',
        "50 trees, 0.5": "50 trees, 0.5",
        "paper's forest": "paper's forest",
        "RandomForest(100)": "RandomForest(100)",
    }
    parts = ("letter", "dna", "pendigits", "california", "abalone", "covtype")
    seconds = load("learned")["seconds"]
    rows = [
        [
            "covtype, 100,000 rows" if part == "covtype" else part,
            *(FORMATS["seconds"](seconds[part][w]) for w in who),
        ]
        for part in parts
    ]
    return grid(["", *who.values()], rows)


def stream_accuracies() -> str:
    """Accuracy on each stream, and their mean."""
    table = load("streams")["accuracy"]
    who = (OURS, NEVER, ARF)
    rows = [[name, *(table[name][w] for w in who)] for name in table]
    rows.append(["mean", *(mean([table[name][w] for name in table]) for w in who)])
    shown = [
        [
            "covtype, 100,000 rows" if row[0] == "covtype" else row[0],
            *with_best([FORMATS["score"](x) for x in row[1:]], least=False),
        ]
        for row in rows
    ]
    return grid(["", "`for_streams()`", "never forgetting", "ARF(10)"], shown)


def stream_errors() -> str:
    """Mean absolute errors on FriedmanDrift."""
    titles = {
        "lea": "local, expanding, abrupt (`lea`)",
        "gra": "global, recurring, abrupt (`gra`)",
        "gsg": "global, gradual (`gsg`)",
    }
    table = load("streams")["error"]
    rows = []
    for name, title in titles.items():
        row = table[next(key for key in table if name in key)]
        cells = [FORMATS["ratio"](row[who]) for who in (OURS, NEVER, ARF)]
        rows.append([title, *with_best(cells, least=True)])
    return grid(["", "`for_streams()`", "never forgetting", "ARF(10)"], rows)


def stream_rates() -> str:
    """Rows per second, and how many times those of ARF."""
    rows = []
    for name, row in load("streams")["rate"].items():
        ours, arf, river = row[OURS], row[ARF], row[RIVER]
        cells = (f"{ours:,.0f}", f"{arf:,.0f}", f"{ours / arf:.0f}")
        rows.append([name, *cells, f"{river:,.0f}", f"{river / arf:.0f}"])
    headings = ["rows/s", "`for_streams()`", "ARF(10)", "ratio to ARF(10)", "through River"]
    return grid([*headings, "ratio to ARF(10)"], rows)


def stream_bounds() -> str:
    """Accuracy and rows per second under limits on stored examples."""
    figures = load("streams")
    bounds = list(next(iter(figures["bounded"].values())))
    rows = [
        [f"{name}{unit}", *(form(row[bound]) for bound in bounds)]
        for table, unit, form in (
            ("bounded", "", FORMATS["score"]),
            ("bounded rate", ", rows/s", FORMATS["number"]),
        )
        for name, row in figures[table].items()
    ]
    return grid(["`max_stored`", *(b.replace("no bound", "none") for b in bounds)], rows)


def stream_shuffled() -> str:
    """Accuracy on the last third of shuffled tables."""
    rows = [
        [name, *(FORMATS["score"](row[who]) for who in (OURS, NEVER))]
        for name, row in load("streams")["shuffled"].items()
    ]
    return grid(["", "`for_streams()`", "never forgetting"], rows)


def imbalance() -> str:
    """Accuracy, balanced accuracy and recall of the rarest class, by class_weight."""
    titles = {"none": "None", "roots": "square roots", "balanced": '`"balanced"`'}
    rows = [
        [name, *(", ".join(FORMATS["ratio"](score) for score in row[w].values()) for w in titles)]
        for name, row in load("imbalance")["scores"].items()
    ]
    return grid(["", *titles.values()], rows)


def of_speed(name: str) -> Callable[[], str]:
    """Return a function that writes a table of docs/speed.md."""
    file, written = speed_figures.TABLES[name]
    return lambda: written(load(file))


def indexes(data: str, title: str) -> Callable[[], str]:
    """Return a function that shows the indexes compared on a data set."""

    def table() -> str:
        times = [f"us at {recall:.2f}" for recall in RECALLS]
        rows = []
        for name, row in load("retrieval")[data].items():
            shown = ["-" if row[t] is None else f"{row[t]:.0f}" for t in times]
            rows.append([name, f"{row['build s']:.1f}", f"{row['bytes']:.0f}", *shown])
        return grid([title, "build s", "bytes per example", *times], rows)

    return table


TABLES: dict[str, Callable[[], str]] = {
    "learned/scores": learned_scores,
    "learned/seconds": learned_seconds,
    "streams/accuracies": stream_accuracies,
    "streams/errors": stream_errors,
    "streams/rates": stream_rates,
    "streams/bounds": stream_bounds,
    "streams/shuffled": stream_shuffled,
    "retrieval/mnist": indexes("mnist", "MNIST, bytes: 60,000 rows of 784"),
    "retrieval/glove100": indexes("glove100", "GloVe-100, normalised: 118,000 rows of 100"),
    "imbalance/scores": imbalance,
    **{name: of_speed(name) for name in speed_figures.TABLES},
}


def filled(text: str) -> str:
    """Return a page with the figures as the JSON files have them."""
    text = re.sub(
        r"(<!--fig (\w+) (.*?)-->).*?<!--/-->",
        lambda found: f"{found[1]}{number(found[2], found[3])}<!--/-->",
        text,
    )
    text = re.sub(
        r"(<!--run (\w+)-->).*?<!--/-->",
        lambda found: f"{found[1]}{described(found[2])}<!--/-->",
        text,
    )
    return re.sub(
        r"(<!--table (\S+)-->\n).*?(<!--/table-->)",
        lambda found: f"{found[1]}\n{TABLES[found[2]]()}\n\n{found[3]}",
        text,
        flags=re.S,
    )


def pages() -> list[Path]:
    """Return the pages that may have figures."""
    made = ROOT / "docs" / "generated"
    found = [page for page in (ROOT / "docs").rglob("*.md") if made not in page.parents]
    return [ROOT / "README.md", *sorted(found)]


def main(arguments: list[str]) -> int:
    """Take the runs that are named, then write the pages, or check them."""
    check = "--check" in arguments
    for path in arguments:
        if path != "--check":
            take(Path(path))
    differing = [page for page in pages() if filled(page.read_text()) != page.read_text()]
    for page in differing:
        print(f"{page.relative_to(ROOT)} {'differs' if check else 'written'}")
        if not check:
            page.write_text(filled(page.read_text()))
    return 1 if check and differing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
