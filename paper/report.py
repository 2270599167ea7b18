"""Results as Markdown: an item's own file, and its section in the page of all items."""

from typing import Any

from paper.item import MEASURED


def shown(value: Any, unit: str = "") -> str:
    """Format a number with at most four digits and its unit; None is a dash."""
    if value is None:
        return "–"
    if isinstance(value, str):
        return value
    whole = isinstance(value, int) or abs(value) >= 10_000
    text = f"{value:,.0f}" if whole else f"{value:.4g}"
    return f"{text} {unit}" if unit else text


def markdown_table(header: tuple[str, ...] | list[str], rows: list[list[Any]]) -> str:
    """Format a table; columns with numbers are aligned to the right."""
    right = [any(isinstance(row[i], int | float) for row in rows) for i in range(len(header))]
    lines = ["| " + " | ".join(header) + " |"]
    lines.append("|" + "|".join("---:" if r else "---" for r in right) + "|")
    lines += [
        "| " + " | ".join(shown(value).replace("|", "\\|") for value in row) + " |" for row in rows
    ]
    return "\n".join(lines)


def body(record: dict[str, Any], folder: str = "") -> str:
    """Format rows, remark, tables and plots; ``folder`` is prepended to the plots' file names."""
    rows = record["rows"]
    parts = []
    if any(row["paper"] is not None or row["ours"] is not None for row in rows):
        parts.append(_claims(rows))
    parts.append(f"**{record['verdict']}**. Rule: {record['rule']}")
    if record["remark"]:
        parts.append(record["remark"])
    for stem in record["plots"]:
        parts.append(f"![{record['title']}]({folder}{stem}.svg)")
    for table in record["tables"]:
        parts.append(f"{table['title']}:\n\n{markdown_table(table['header'], table['rows'])}")
    return "\n\n".join(parts)


def _claims(rows: list[dict[str, Any]]) -> str:
    with_rule = any(row["rule"] for row in rows)
    header = ["what", "paper", "ours", "verdict", *(["rule"] if with_rule else [])]
    cells = []
    for row in rows:
        numbers = [shown(row[which], row["unit"]) for which in ("paper", "ours")]
        verdict = "" if row["verdict"] == MEASURED else row["verdict"]
        cells.append([row["what"], *numbers, verdict, *([row["rule"]] if with_rule else [])])
    return markdown_table(header, cells)


def provenance(record: dict[str, Any]) -> str:
    """Format scale, seed, time and machine in one line."""
    machine = record["machine"]
    threads = "1 thread" if record["n_jobs"] == 1 else f"n_jobs = {record['n_jobs']}"
    return (
        f"Scale {record['scale']}, seed {record['seed']}, {threads}, "
        f"{record['seconds']:.0f} s on {machine['cpu']} ({machine['cpus']} cores, "
        f"{machine['instruction_set']}), boundary-forest "
        f"{machine['versions']['boundary-forest']}, {record['finished'][:10]}."
    )


def item_markdown(record: dict[str, Any]) -> str:
    """Return the text of the item's own file."""
    return (
        f"# {record['title']}\n\nIn the paper: {record['where']}. "
        f"Run by `python -m paper run {record['name']} --scale {record['scale']}`.\n\n"
        f"{body(record)}\n\n{provenance(record)}\n"
    )
