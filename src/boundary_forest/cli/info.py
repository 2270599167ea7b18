"""``boundary-forest info``: show what a model file contains, without reading its examples."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.markup import escape
from rich.table import Table

from boundary_forest import ModelFileError
from boundary_forest.cli.terminal import console_on, warn
from boundary_forest.estimators.adaptive import most_important
from boundary_forest.estimators.lifetime_stats import Lifetime
from boundary_forest.files.loading import describe


def info(
    path: Annotated[Path, typer.Argument(help="A model file.", metavar="FILE")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Show the estimator, parameters, examples, trees and sizes of a model file."""
    try:
        described = describe(path)
        columns = _columns(described)
    except ModelFileError as error:
        warn(error)
        raise typer.Exit(1) from None
    except OSError as error:
        warn(error)
        raise typer.Exit(2) from None
    if as_json:
        print(json.dumps(described, indent=2))
        return
    console = console_on()
    console.print(_table({**_lines(described), **columns}, console.is_terminal))


def _columns(described: dict[str, Any]) -> dict[str, str]:
    """Return what columns mean to a model that takes raw rows."""
    if "frame" not in described:
        return {}
    try:
        from boundary_forest.frames.columns import Columns
        from boundary_forest.frames.description import describe as describe_columns

        lines = describe_columns(Columns.from_json(described["frame"]))
    except (KeyError, TypeError, ValueError) as error:
        raise ModelFileError(f"{described['file']}: frame: {error}") from error
    return {f"columns {i}" if i else "columns": line for i, line in enumerate(lines)}


def _table(lines: dict[str, str], on_terminal: bool) -> Table:
    table = Table(box=box.ROUNDED if on_terminal else None, show_header=False)
    table.add_column()
    table.add_column(overflow="fold")
    for what, value in lines.items():
        table.add_row(escape(what), escape(value))
    return table


def _lines(described: dict[str, Any]) -> dict[str, str]:
    lines = {
        "file": f"{described['file']}, {described['bytes']:,} bytes",
        "format version": str(described["format_version"]),
        "model": described["model"],
    }
    for name, value in {**described["parameters"], **described.get("in_use", {})}.items():
        lines[name] = _shown(value)
    if not described["fitted"]:
        return {**lines, "examples": "none: nothing has been learned yet"}
    lines |= {
        "seed": str(described["seed"]),
        "examples": f"{described['examples_seen']:,} seen, {described['examples_stored']:,} stored"
        + (", with ids" if described["ids"] else ""),
        "features": f"{described['features']:,}, stored as {described['dtype']}"
        + (", named" if described["feature_names"] else ""),
    }
    if described["classes"] is not None:
        lines["classes"] = f"{described['classes']:,}"
    elif described["label_length"]:
        lines["numbers per label"] = f"{described['label_length']:,}"
    lines["trees"] = f"{described['trees']:,}, {described['nodes']:,} nodes in all"
    if described["growing_trees"]:
        lines["trees"] += (
            f", including {described['growing_trees']:,} trees that do not predict yet"
        )
    lines |= _turnover(described.get("turnover"))
    if "feature_importances" in described:
        lines["most important features"] = _important(described)
    for name, array in described["arrays"].items():
        shape = " x ".join(f"{length:,}" for length in array["shape"])
        lines[f"array {name}"] = f"{array['dtype']}, {shape}: {array['bytes']:,} bytes"
    return lines


def _turnover(turnover: dict[str, Any] | None) -> dict[str, str]:
    """Return the trees by lifetime, how often they were replaced, and how votes are weighed."""
    if turnover is None:
        return {}
    groups = [Lifetime(**group) for group in turnover["lifetimes"]]
    return {
        "votes": turnover["votes"],
        **{f"trees, {group.name}": group.details for group in groups},
        "renewals": f"{turnover['renewals']:,}",
    }


def _important(described: dict[str, Any]) -> str:
    """Return the most important columns, or features, and their shares."""
    importances = described["feature_importances"]
    if "frame" in described:
        from boundary_forest.frames.columns import Columns

        importances = Columns.from_json(described["frame"]).summed(importances.values())
    return ", ".join(f"{name} {share:.2f}" for name, share in most_important(importances))


def _shown(value: Any) -> str:
    """Return a parameter in a few words."""
    if isinstance(value, dict) and value.keys() == {"callable"}:
        return f"{value['callable']}, a function that must be passed to load()"
    if isinstance(value, dict) and value.keys() == {"RandomState"}:
        return "a RandomState"
    return str(value)
