"""Benchmarks: this library beside what a user would pick instead, in one run, by turns.

``python -m benchmarks`` runs every section and ``python -m benchmarks mnist tables`` those named;
each is a file of ``sections/``. Times differ from machine to machine, so what counts is ratios of
times taken in the same run. A section also checks answers, and only a wrong one makes it fail.
"""
