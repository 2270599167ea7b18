"""The estimators: what labels mean, and the calls that learn and answer."""
