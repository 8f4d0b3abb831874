"""What the experiments run on, and our own studies. `python experiments.py` lists the commands."""
