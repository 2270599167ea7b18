"""The forest as an algorithm of ann-benchmarks: copy this folder there, see ``module.py``."""
