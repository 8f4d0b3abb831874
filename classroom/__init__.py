"""The classroom: handouts, bug hunts and sealed grading, all made from nlts.py.

worker.py    the student's process: composes a module, runs scripts of calls, answers over a pipe
runner.py    starts and stops workers, with bubblewrap where it is installed
compare.py   compares results of a script with those of the reference
cases.py     the scripts of each function: its tests
"""
