"""The figures of docs/speed.md: what is taken from a run of each section, and the tables.

Sections of ``make bench`` become files of docs/figures with the same names; a table is made of the
figures of one or two of them.
"""

from typing import Any

from docs.figure_text import FORMATS, Figures, grid

ROUNDED = 2  # leading digits of an N from which another search is slower


def extract_mnist(section: dict[str, Any]) -> dict[str, Figures]:
    """Return ratios of times on one thread, forest / other, and errors."""
    rows = {row["peer"]: row for row in section["rows"] if row["installed"] and row["threads"] == 1}
    ours, floats = rows["forest"], rows["forest_f32"]
    return {
        "ratio": {
            "faiss": {
                "forest": ours["total_s"] / rows["faiss"]["predict_s"],
                "forest_f32": floats["total_s"] / rows["faiss"]["predict_s"],
            },
            "hnswlib": {"forest": ours["fit_s"] / rows["hnswlib"]["fit_s"]},
        },
        "error": {"mnist": {peer: row["error"] for peer, row in rows.items()}},
    }


def extract_tables(section: dict[str, Any]) -> dict[str, Figures]:
    """Return the ratios of fit and predict, forest / other, and errors."""
    parts = {
        name: [row for row in part["rows"] if row["installed"] and row["threads"] == 1]
        for name, part in section["parts"].items()
    }
    return {
        "ratio": {n: {r["peer"]: r["ratio"]["forest"] for r in rows} for n, rows in parts.items()},
        "error": {n: {r["peer"]: r["error"] for r in rows} for n, rows in parts.items()},
    }


def extract_crossover(section: dict[str, Any]) -> dict[str, Figures]:
    """Return the N from which the forest is faster, None if there is none, and the last ratio."""
    crossings: Figures = {}
    last: Figures = {}
    for name, part in section["parts"].items():
        alone = [crossing for crossing in part["crossings"] if crossing["threads"] == 1]
        crossings[name] = {crossing["peer"]: crossing["n"] for crossing in alone}
        rows = part["points"][-1]["rows"]
        last[name] = {
            row["peer"]: row["ratio"]["forest"]
            for row in rows
            if row["installed"] and row["threads"] == 1
        }
    return {"crossing": crossings, "last ratio": last}


def extract_hypercube(section: dict[str, Any]) -> dict[str, Figures]:
    """Return comparisons and microseconds at the least, the middle and the largest N."""
    points = section["points"]
    return {
        "growth": {
            f"{point['n']:,}": {
                key: point["grown"][key] for key in ("comparisons", "us_alone", "us_in_batch")
            }
            for point in (points[0], points[len(points) // 2], points[-1])
        }
    }


def extract_prequential(section: dict[str, Any]) -> dict[str, Figures]:
    """Return predict_then_learn / (predict and partial_fit), by data set and batch size."""
    return {
        "ratio": {
            name: {str(row["batch"]): row["ratio"] for row in part["rows"] if row["threads"] == 1}
            for name, part in section["batches"].items()
        }
    }


EXTRACT = {
    "mnist": extract_mnist,
    "tables": extract_tables,
    "crossover": extract_crossover,
    "hypercube": extract_hypercube,
    "prequential": extract_prequential,
}


def errors(ours: float, theirs: float) -> str:
    """Return two errors in per cent."""
    return f"{FORMATS['error'](ours)} %, {FORMATS['error'](theirs)} %"


def on_mnist(mnist: dict[str, Any]) -> str:
    """Compare the times on MNIST with those of other searches."""
    ratio, error = mnist["ratio"], mnist["error"]["mnist"]
    lines = (
        ("FAISS IndexFlatL2, search alone; forest on uint8", "faiss", "forest"),
        ("the same; forest on float32", "faiss", "forest_f32"),
        (
            "hnswlib's build alone (M = 16, ef_construction = 200); forest's fit",
            "hnswlib",
            "forest",
        ),
    )
    return grid(
        ["on MNIST, compared with", "ratio", "errors of the forest, of the other"],
        [
            [title, FORMATS["ratio"](ratio[peer][own]), errors(error[own], error[peer])]
            for title, peer, own in lines
        ],
    )


def on_tables(tables: dict[str, Any]) -> str:
    """Compare the times on tables with those of a random forest and k-NN."""
    lines = (
        ("letter, RandomForestClassifier(50)", "letter", "random_forest"),
        ("pendigits, the same", "pendigits", "random_forest"),
        ("dna, the same", "dna", "random_forest"),
        (
            "covtype, 100,000 rows learned and 20,000 predicted, the same",
            "covtype",
            "random_forest",
        ),
        ("covtype, brute-force k-NN of scikit-learn", "covtype", "knn_brute"),
    )
    return grid(
        ["table, compared with", "ratio", "errors of the forest, of the other"],
        [
            [
                title,
                FORMATS["ratio"](tables["ratio"][name][peer]),
                errors(tables["error"][name]["forest"], tables["error"][name][peer]),
            ]
            for title, name, peer in lines
        ],
    )


def crossings(crossover: dict[str, Any]) -> str:
    """Show from which N the forest is faster than each exhaustive search."""

    def cell(name: str, peer: str) -> str:
        n = crossover["crossing"][name][peer]
        if n is None:
            ratio = FORMATS["tenths"](crossover["last ratio"][name][peer])
            return f"beyond 100,000, where the ratio is {ratio}"
        return f"N = {round(n, ROUNDED - len(str(round(n)))):,.0f}"

    titles = {"mnist": "MNIST, 784 bytes", "covtype": "covtype, 54 features"}
    return grid(
        ["data", "faster than brute-force k-NN from", "faster than FAISS IndexFlatL2 from"],
        [[title, cell(n, "knn_brute"), cell(n, "faiss")] for n, title in titles.items()],
    )


def growth(hypercube: dict[str, Any]) -> str:
    """Show comparisons and times as N grows."""
    rows = [
        [
            n,
            FORMATS["tenths"](row["comparisons"]),
            FORMATS["times"](row["us_alone"]),
            FORMATS["tenths"](row["us_in_batch"]),
        ]
        for n, row in hypercube["growth"].items()
    ]
    alone, batch = "us per single query", "us per query in batches of 10,000"
    return grid(["N", "comparisons per tree and query", alone, batch], rows)


# By name: the file of figures, and the function that writes the table from it.
TABLES = {
    "mnist/times": ("mnist", on_mnist),
    "tables/times": ("tables", on_tables),
    "crossover/crossings": ("crossover", crossings),
    "hypercube/growth": ("hypercube", growth),
}
