"""Which tests are for which Python."""

import sys

# about sys.monitoring, which came with 3.12
collect_ignore = ["test_tool_ids.py"] if sys.version_info < (3, 12) else []
