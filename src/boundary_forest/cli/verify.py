"""``boundary-forest verify``: check a model file from end to end, positions included."""

from pathlib import Path
from typing import Annotated

import typer

from boundary_forest import ModelFileError
from boundary_forest.cli.terminal import console_on, warn
from boundary_forest.files.loading import verify as verify_file


def verify(path: Annotated[Path, typer.Argument(help="A model file.", metavar="FILE")]) -> None:
    """Check a model file; exit code 0: intact, 1: damaged, 2: missing."""
    try:
        verify_file(path)
    except ModelFileError as error:
        warn(error)
        raise typer.Exit(1) from None
    except OSError as error:
        warn(error)
        raise typer.Exit(2) from None
    console_on().print(f"{path}: intact", markup=False, soft_wrap=True)
