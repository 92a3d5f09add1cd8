"""Counts graphs, breaks and recompilations of the programs in tests/real, under minidynamo and under torch.compile.

    python benchmarks/real_programs.py            measures, and shows where the committed table differs
    python benchmarks/real_programs.py --write    writes the table; --only NAME,... leaves the other rows as they are

torch.compile runs with a backend that runs graphs as they are and with static shapes, as minidynamo does.
"""

from __future__ import annotations

import argparse
import logging
import sys
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.real.measure import TABLE, captured, cases, peer, read_table, write_table


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="write the table")
    parser.add_argument("--only", default="", help="names of programs, separated by commas")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    known = read_table() if TABLE.exists() else {}
    only = set(filter(None, arguments.only.split(",")))
    rows, different = {}, 0
    for name, case in cases().items():
        for phase in case.phases:
            if only and name not in only:
                rows[name, phase] = known[name, phase]
                continue
            row = captured(case, phase).counts, peer(case, phase)
            rows[name, phase] = row
            different += row != known.get((name, phase))
            print(f"{name:20} {phase:14} {row[0]}  torch.compile: {row[1]}", flush=True)
    if arguments.write:
        write_table(rows)
    elif different:
        print(f"{different} rows differ from {TABLE.name}; --write writes it")
    return 0 if arguments.write else int(different > 0)


if __name__ == "__main__":
    sys.exit(main())
