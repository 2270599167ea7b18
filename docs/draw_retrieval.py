"""Draw the picture of docs/retrieval.md from what ``make bench SECTIONS=retrieval`` has written.

Run it as ``.venv/bin/python -m docs.draw_retrieval build/bench/retrieval-....json``. The tables go
to standard output.
"""

import json
import sys
from pathlib import Path

from benchmarks.recall_plot import write

HERE = Path(__file__).parent

if __name__ == "__main__":
    section = json.loads(Path(sys.argv[1]).read_text())["sections"]["retrieval"]
    tables, *_ = write(section, HERE / "retrieval" / "recall")
    print(tables.read_text(encoding="utf-8"), end="")
    tables.unlink()  # the page has what is worth telling of it
