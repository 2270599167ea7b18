"""Watch a service learn: digits are predicted as they come, and their labels come late.

Run it as ``make demo-serve``, or ``python examples/serve/demo.py --open``. Ctrl-C ends it.
"""

import argparse
import itertools
import json
import subprocess
import sys
import time
import webbrowser
from collections import deque

import numpy as np
from sklearn.datasets import load_digits

from boundary_forest import Client

LATE = 200  # rows that wait for their labels


def stream(client: Client, rows_per_s: float, rows: int | None) -> None:
    """Predict digits, and send each label some time later; every pass has its own slant of light.

    Parameters
    ----------
    client : Client
        Of the service.
    rows_per_s : float
        How fast.
    rows : int or None
        How many; None: without end.
    """
    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    light = np.tile(np.linspace(-1, 1, 8), 8)  # from the left or from the right
    waiting: deque[tuple[str, int]] = deque()
    run = f"{time.time():.0f}"  # ids are used once, also if the folder is an old one
    begin = time.monotonic()
    for n in itertools.islice(itertools.count(), rows):
        i = n % len(X)
        if i == 0:
            order, slant = rng.permutation(len(X)), 4 * rng.uniform(-1, 1) * (n > 0)
        row = np.clip(X[order[i]] + slant * light, 0, None).round(1)
        id = f"{run}-{n}"
        client.predict(row[np.newaxis], ids=[id])
        waiting.append((id, int(y[order[i]])))
        late = LATE if n < len(X) else LATE + rng.integers(-100, 100)
        while len(waiting) > late:
            one, label = waiting.popleft()
            client.label([one], [label])
        if n < 20:  # the first labels come at once: there is nothing to predict from yet
            client.label([waiting[-1][0]], [waiting.pop()[1]])
        time.sleep(max(0.0, begin + n / rows_per_s - time.monotonic()))


def main() -> None:
    """Start a service, stream to it, and stop it."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("folder", nargs="?", default="build/demo-serve/digits")
    options.add_argument("--port", type=int, default=8000, help="0 is any free one")
    options.add_argument("--open", action="store_true", help="open the page in a browser")
    options.add_argument("--rows", type=int, help="how many; without end by default")
    options.add_argument("--rows-per-s", type=float, default=40.0)
    chosen = options.parse_args()
    command = [sys.executable, "-m", "boundary_forest", "serve", chosen.folder]
    service = subprocess.Popen(
        [*command, "--port", str(chosen.port)], stderr=subprocess.PIPE, text=True
    )
    line = service.stderr.readline() if service.stderr else ""
    try:
        address = json.loads(line)["address"]
    except ValueError:
        sys.exit(f"the service did not start: {line}{service.communicate()[1]}")
    print(f"Open {address}/ and watch it learn. Ctrl-C ends it.", flush=True)
    if chosen.open:
        webbrowser.open(f"{address}/")
    try:
        with Client(address) as client:
            stream(client, chosen.rows_per_s, chosen.rows)
    except KeyboardInterrupt:
        print("ending")
    finally:
        service.terminate()
        service.communicate(timeout=60)


if __name__ == "__main__":
    main()
