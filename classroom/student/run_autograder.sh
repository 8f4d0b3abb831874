#!/usr/bin/env bash
# Gradescope runs this for every submission.
cd /autograder/source
/autograder/venv/bin/python -m classroom grade {name} /autograder/submission --out /autograder/out
cp /autograder/out/gradescope/submission.json /autograder/results/results.json
