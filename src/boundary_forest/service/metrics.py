"""Counters for Prometheus."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

OTHER = "other"
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
RECENT = 1024  # requests of a path, of which latencies are shown


@dataclass(frozen=True)
class Latency:
    """How long the latest requests of a path took, in seconds, and how many there were ever."""

    requests: int
    p50: float
    p99: float
    longest: float


class Metrics:
    """What ``/metrics`` shows, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "boundary_forest_requests",
            "Requests by path and status.",
            ["path", "status"],
            registry=self.registry,
        )
        self._seconds = Histogram(
            "boundary_forest_request_seconds",
            "Time to answer a request.",
            ["path"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        self._paths: dict[str, str] = {}
        self._latest: dict[str, deque[float]] = {}
        self._n: dict[str, int] = {}
        self._timers: dict[str, Any] = {}
        self._counters: dict[tuple[str, int], Any] = {}

    def know(self, path: str) -> None:
        """Count the requests of a path by its name; those of unknown paths are one."""
        self._paths[path] = path

    def count(self, path: str, status: int, seconds: float) -> str:
        """Count a request, and return the path that it was counted for."""
        known = self._paths.get(path, OTHER)
        pair = (known, status)
        if pair not in self._counters:
            self._counters[pair] = self._requests.labels(known, str(status))
        if known not in self._timers:
            self._timers[known] = self._seconds.labels(known)
            self._latest[known] = deque(maxlen=RECENT)
            self._n[known] = 0
        self._counters[pair].inc()
        self._timers[known].observe(seconds)
        self._latest[known].append(seconds)
        self._n[known] += 1
        return known

    def latencies(self) -> dict[str, Latency]:
        """Return how long the latest requests took, by path; from any thread."""
        found = {}
        for path, latest in list(self._latest.items()):
            taken = latest.copy()  # in one step, while others append
            if taken:
                p50, p99, longest = np.quantile(taken, (0.5, 0.99, 1.0)).tolist()
                found[path] = Latency(self._n[path], p50, p99, longest)
        return found

    def gauge(self, name: str, what: str, function: Any) -> None:
        """Show what a function returns at the time."""
        Gauge(f"boundary_forest_{name}", what, registry=self.registry).set_function(function)

    def text(self) -> bytes:
        """Return everything in Prometheus's text format."""
        return generate_latest(self.registry)
