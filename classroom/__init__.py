"""The classroom: handouts, bug hunts and grading, all made from nlts.py."""
