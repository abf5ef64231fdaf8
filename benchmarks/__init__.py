"""The costs of recording, measured side by side: `python -m benchmarks --help`."""
