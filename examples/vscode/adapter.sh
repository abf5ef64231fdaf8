#!/bin/sh
# The debug adapter of this extension. PYTRACE: a pytrace that is not on VS Code's PATH.
exec "${PYTRACE:-pytrace}" replay --dap
