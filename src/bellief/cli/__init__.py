"""The command line: a thin layer over the Python API. Whatever is slow to import is imported inside the commands."""

from bellief.cli.entry import main

__all__ = ["main"]
