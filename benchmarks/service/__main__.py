"""``python -m benchmarks.service load|bulk|endurance``: print figures as JSON."""

import argparse
import json

from benchmarks.service import bulk, endurance, load

PROGRAMS = {"load": load, "bulk": bulk, "endurance": endurance}


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.service")
    commands = parser.add_subparsers(dest="program", required=True)
    for name, program in PROGRAMS.items():
        doc = program.__doc__ or ""
        program.add_arguments(commands.add_parser(name, help=doc.splitlines()[0]))
    options = parser.parse_args()
    print(json.dumps(PROGRAMS[options.program].measure(options), indent=2))


main()
