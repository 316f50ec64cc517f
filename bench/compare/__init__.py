"""Rival tools, one file each. A rival says how it is installed and which command loads a file.

A library is driven by the same file: its `load()` runs in the virtual environment as `python -m compare.NAME`. No
rival is needed to build or test howdah; one that does not install is reported and left out.
"""
