#!/usr/bin/env bash
# Gradescope runs this for every submission.
top=${{AUTOGRADER:-/autograder}}
chmod 700 "$top/source" "$top/results"   # without bubblewrap, students' code is another user's
cd "$top/source" || exit
"$top/venv/bin/python" -m classroom grade {name} "$top/submission" --single --out "$top/out"
cp "$top/out/gradescope/submission.json" "$top/results/results.json" ||
    echo '{{"score": 0, "output": "The autograder failed: tell your teacher."}}' \
        > "$top/results/results.json"
