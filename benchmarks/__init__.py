"""What recording costs, measured side by side: `python -m benchmarks --help`."""
