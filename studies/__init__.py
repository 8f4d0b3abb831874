"""Our own studies: each measures, tells and draws, as the commands of experiments.py do."""
