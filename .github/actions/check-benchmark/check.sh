#!/usr/bin/env bash
# check.sh DATA BASE: prints what a comment says of DATA, compared with BASE where that is there. Exits with 1 if
# there are findings or the version is too low for what changed, with another code if something could not be read.
set -uo pipefail
data=$1 base=$2 code=0 most=300

block() { # block TITLE COMMAND...
    local title=$1 printed status=0
    shift
    printed=$("$@" 2>&1) || status=$?
    [ "$status" = 0 ] && echo "### $title: fine" || echo "### $title: findings"
    printf '\n````text\n%s\n````\n\n' "$(head -n "$most" <<<"$printed")"
    [ "$(wc -l <<<"$printed")" -le "$most" ] || echo "The first $most lines are shown."
    [ "$status" -le "$code" ] || code=$status
}

echo "## Benchmark check with $(fabula --version)"
echo
block "Rules" fabula validate "$data"
if [ -f "$data/release.json" ]; then
    block "Release" fabula release verify "$data" --quick
    if [ -f "$base/release.json" ] && cmp -s "$data/release.json" "$base/release.json"; then
        echo "The release is that of the base branch."
    elif [ -f "$base/release.json" ]; then
        block "What changed" fabula release diff "$base" "$data"
    else
        echo "The base branch has no release to compare with."
    fi
fi
exit "$code"
