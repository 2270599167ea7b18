"""``python -m paper``: the command, or what to run where something that it needs is missing."""

import importlib
import sys


def main() -> None:
    """Run the command that ``sys.argv`` names."""
    try:
        importlib.import_module("paper._cover_tree")
        from paper.command import app
    except ImportError as error:
        print(f"paper: {error}; make paper builds and installs what is needed", file=sys.stderr)
        sys.exit(2)
    app(prog_name="python -m paper")


if __name__ == "__main__":
    main()
