#!/bin/sh
# The adapter as the client of client.js starts it: with this file as the only argument.
exec "$REPLAY_PYTRACE" replay "$REPLAY_DATABASE" --dap
