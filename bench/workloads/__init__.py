"""The rows of the benchmark table, one file per workload.

A workload is a module with `outcomes(context)`, which yields an `Outcome` for each comparison or check.
"""
