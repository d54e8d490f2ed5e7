"""Bytes from outside to checked rows and columns, whatever data set they belong to.

What belongs here: readers of lines, numbers, ids, times and archive members, each with
its bounds and its error message. Which file of a publisher means what is in `sources`.
"""
