"""The command line, ``boundary-forest``.

Each command is a file of this folder; :func:`main` puts them together. ``running.py`` is the shell
around a session that ``stream``, ``fit`` and ``predict`` share. The packages it needs are those of
the ``cli`` extra, so nothing here imports them before :func:`main` has looked for them.
"""

import sys


def main() -> None:
    """Run the command that ``sys.argv`` names."""
    try:
        import typer

        from boundary_forest.cli.demo import demo
        from boundary_forest.cli.fit import fit
        from boundary_forest.cli.info import info
        from boundary_forest.cli.paper import paper
        from boundary_forest.cli.predict import predict
        from boundary_forest.cli.stream import stream
        from boundary_forest.cli.verify import verify
    except ModuleNotFoundError as error:
        if error.name not in ("jinja2", "pyarrow", "rich", "typer"):
            raise
        print(
            f"boundary-forest: {error.name} is missing; pip install boundary-forest[cli]",
            file=sys.stderr,
        )
        sys.exit(2)

    app = typer.Typer(
        name="boundary-forest",
        help="Online nearest-neighbour learning with Boundary Forests.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    # Without a callback, an application of one command would not take the command's name.
    app.callback()(lambda: None)
    app.command()(stream)
    app.command()(fit)
    app.command()(predict)
    app.command()(demo)
    app.command()(info)
    app.command()(verify)
    app.add_typer(paper)
    app()
