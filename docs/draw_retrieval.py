"""Draw the picture of docs/guides/retrieval.md from a run of ``make bench SECTIONS=retrieval``.

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
    tables, *_ = write(section, HERE / "images" / "recall")
    print(tables.read_text(encoding="utf-8"), end="")
    tables.unlink()  # the page has what is worth telling of it
