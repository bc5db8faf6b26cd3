"""Runs and recipes: a fit from a file to a folder of results."""
