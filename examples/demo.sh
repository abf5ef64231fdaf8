#!/usr/bin/env bash
# `make demo`: records docutils turning menu.rst into HTML, and looks at what it did. Argument: the
# folder with the commands pytrace and python.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=$1
out=build/demo
traces=$out/traces.sqlite
rm -rf "$out"
mkdir -p "$out"
bold='' plain=''
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ] && [ "${TERM:-dumb}" != dumb ]; then
    bold=$'\033[1m' plain=$'\033[0m'
fi

# Shows a command as one would type it, and runs it.
run() {
    printf '\n%s$ %s%s\n' "$bold" "$*" "$plain" | sed "s,$bin/,,g"
    "$@"
}

echo "docutils turns examples/menu.rst into HTML. pytrace records every call of it, but those of Python's own library;"
echo "of objects also what is in them."
run "$bin/pytrace" --no-stdlib --attributes 8 -o "$traces" -m docutils examples/menu.rst "$out/menu.html"
run "$bin/pytrace" info "$traces"

printf '\n%s$ %s%s\n' "$bold" "pytrace print $traces --format json | python examples/highlights.py" "$plain"
"$bin/pytrace" print "$traces" --format json | "$bin/python" examples/highlights.py

printf '\n%s$ %s%s  (and indented less)\n' "$bold" "pytrace print $traces | grep -B 8 -A 8 '!!.*FileNotFoundError'" "$plain"
"$bin/pytrace" print "$traces" | grep -B 8 -A 8 '!!.*FileNotFoundError' | sed -E 's/ {24}//' | cut -c 1-150

filter="kind == 'exception' and value == '%No such file%'"
printf '\n%s$ %s%s  (and indented less)\n' "$bold" "pytrace print $traces --filter \"$filter\"" "$plain"
"$bin/pytrace" print "$traces" --filter "$filter" | sed -E 's/ {24}//' | cut -c 1-150

query="SELECT module, func, calls, own, total FROM hot WHERE func <> '<module>' LIMIT 5"
printf '\n%s$ %s%s  (times in ns)\n' "$bold" "pytrace sql $traces \"$query\"" "$plain"
"$bin/pytrace" sql "$traces" "$query"

echo
echo "A small shop sells cake, this time with each line and each variable:"
shop=$out/shop.sqlite
run "$bin/pytrace" --lines -o "$shop" examples/shop.py
run "$bin/pytrace" analyse "$shop" --limit 3

cat << END

All that docutils did, on a screen:
  $bin/pytrace read $traces
The shop, line by line, forwards and backwards:
  $bin/pytrace replay $shop
A program of your own:
  $bin/pytrace your_script.py
  $bin/pytrace
END
if [ -t 0 ] && [ -t 1 ] && [ "${TERM:-dumb}" != dumb ]; then
    if read -rp $'\nEnter shows docutils now (h: keys, q: back). '; then
        "$bin/pytrace" read "$traces"
    else
        echo # Ctrl-D: not now
    fi
    if read -rp $'\nEnter walks through the shop (s: a step, S: a step back, h: keys, q: back). '; then
        exec "$bin/pytrace" replay "$shop"
    fi
    echo
fi
