"""``python -m boundary_forest``: the command line."""

from boundary_forest.cli import main

if __name__ == "__main__":
    main()
