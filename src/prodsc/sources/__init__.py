"""LOAD: readers for the usual files, and any input as checked rows that are read a few at a time."""
