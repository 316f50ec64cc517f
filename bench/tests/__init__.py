"""Tests of the harness: `python3 -m unittest discover -s bench -t bench` runs them in a second, without a server."""
