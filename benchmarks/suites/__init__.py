"""The workloads, a file per kind."""
