"""The benchmark harness: what minidynamo costs and gains, against eager, torch.compile and a stored run.

`python -m benchmarks` and `minidynamo bench` are the same program. One concept per file:

    workloads   what is measured: a table that `suites/*.py` fill
    sampling    how time is taken: ABBA pairs, log-ratios, bootstrap intervals, an A/A control
    budget      how long a run takes: shares of its time
    measures/   which figures are taken of a workload: counting, timing, guarding, recompiling, accuracy
    process     figures of whole processes: memory, leaks, start
    neutrality  plain Python after the hook
    runner      the plan of a run
    results     what a run leaves: JSON, whose form is `schema`
    comparing   two runs: what has become worse
    goals       the project's goals, each worked out from a run
    tables      rich, Markdown and lines for a pipe
    plots       SVG and PNG
    page        docs/performance.md
"""
