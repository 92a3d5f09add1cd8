"""The benchmark harness: what minidynamo costs and gains, against eager, torch.compile and a stored run.

`python -m benchmarks` and `minidynamo bench` are the same program. One concept per file:

    workloads   what is measured: a table that `suites/*.py` fill
    sampling    how time is taken: ABBA pairs, log-ratios, bootstrap intervals, an A/A control
    measures    which figures are taken of a workload
    runner      the plan of a run
    results     what a run leaves: JSON under a schema
    comparing   two runs: what has become worse
    tables      rich and Markdown
    plots       SVG and PNG
"""
