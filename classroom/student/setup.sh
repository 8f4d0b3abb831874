#!/usr/bin/env bash
# Gradescope runs this once, when the autograder is built. Choose an image with Python 3.11 or newer,
# such as Ubuntu 24.04.
set -eu
apt-get update
apt-get install -y bubblewrap python3 python3-venv
python3 -m venv /autograder/venv
/autograder/venv/bin/python -m pip install -r /autograder/source/requirements.txt
