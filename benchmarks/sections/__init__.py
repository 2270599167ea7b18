"""The sections: each has ``measure``, which returns a dict for JSON, and ``report``."""
