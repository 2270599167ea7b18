"""Benchmarks: this library beside its alternatives, measured in turn in the same process.

``python -m benchmarks`` runs every section and ``python -m benchmarks mnist tables`` those named;
each is a file of ``sections/``. Times differ from machine to machine, so compare ratios of times
taken in the same run. A section also checks answers, and only a wrong answer makes it fail.
"""
