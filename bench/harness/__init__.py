"""The benchmark harness: a server of its own, paired runs, and what they cost both sides.

Standard library only, so that `make bench` needs nothing but Python 3.11, PostgreSQL and cargo. Workloads and
rivals use the words defined here and never the other way round.
"""
