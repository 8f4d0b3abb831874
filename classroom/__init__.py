"""The classroom: handouts, bug hunts and sealed grading, all made from nlts.py."""
