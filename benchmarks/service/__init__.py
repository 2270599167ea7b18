"""The service under load: ``python -m benchmarks.service load|bulk|endurance``."""
