"""Figures of a whole process: its start, the memory of an entry, what compiling and resetting leaves behind."""

from __future__ import annotations

import gc
import json
import os
import platform
import subprocess
import sys
import tracemalloc
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from .budget import Share
from .measures.subject import compiled_by_torch, forget, limits, optimized
from .sampling import Effort, paired
from .workloads import Case

ROOT = Path(__file__).resolve().parents[1]
# Programs, step by step: each step's time is taken in the process that has done those before it.
CHAINS = (
    {
        "python": "pass",
        "import torch": "import torch",
        "import minidynamo": "import minidynamo; minidynamo.optimize",
        "first compile": "minidynamo.optimize('eager')(lambda x: x + 1)(torch.ones(2))",
    },
    {
        "python": "pass",
        "import torch": "import torch",
        "import torch._dynamo": "import torch._dynamo",
        "torch.compile, first compile": "torch.compile(lambda x: x + 1, backend='eager')(torch.ones(2))",
    },
)
CLOCK = "; print(time.process_time())"
CLI = {
    "minidynamo --version": ("--version",),
    "minidynamo tables": ("tables",),
    "minidynamo explain": ("explain",),
}


def start(repeats: int, share: Share) -> dict[str, float]:
    """CPU seconds that each step adds to a fresh process (those of the command line: the whole process), the least of `repeats` (of
    one where the share of the time is short), taken in turn."""
    best: dict[str, float] = {}

    def note(name: str, seconds: float) -> None:
        best[name] = min(best.get(name, seconds), seconds)

    for chain in CHAINS:
        _steps(chain)  # writes what Python keeps of compiled modules, as the first run of any program does
    for _ in range(repeats):
        begin = share.clock()
        for chain in CHAINS:
            for name, seconds in _steps(chain).items():
                note(name, seconds)
        for name, words in CLI.items():
            before = os.times()
            finished(["-m", "minidynamo", *words])
            after = os.times()
            note(
                name,
                after.children_user + after.children_system - before.children_user - before.children_system,
            )
        if not share.fits(share.clock() - begin):
            break
    return best


def _steps(chain: dict[str, str]) -> dict[str, float]:
    times = [
        0.0,
        *map(
            float,
            finished(["-c", "import time\n" + "\n".join(step + CLOCK for step in chain.values())]).split(),
        ),
    ]
    return {name: after - before for name, before, after in zip(chain, times, times[1:], strict=False)}


def finished(words: list[str]) -> str:
    """What a fresh Python says. Raises CalledProcessError."""
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": ""}
    done = subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, check=True, cwd=ROOT, env=environment
    )
    return done.stdout


SIDES = {"minidynamo": optimized, "torch.compile": compiled_by_torch}
STATIC = {"dynamic": False}


def _define(index: int) -> Case:
    scope: dict[str, Any] = {}
    exec(f"def f(x, n):\n    return x + n + {index}\n", scope)
    return Case(scope["f"], peer_options=STATIC)


def resident() -> int:
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _frames(make: Any, count: int) -> Callable[[], list[Any]]:
    """Compiles so many functions, which are there already."""
    cases = [_define(i) for i in range(count)]

    def work() -> list[Any]:
        made = [make(case) for case in cases]
        for fn in made:
            fn(torch.ones(2), 1)
        return made

    return work


def _entries(make: Any, count: int) -> Callable[[], Any]:
    """Compiles one function for so many further numbers."""
    fn = make(_define(0))
    fn(torch.ones(2), -1)

    def work() -> Any:
        with limits(count + 2, make is compiled_by_torch):
            for n in range(count):
                fn(torch.ones(2), n)
        return fn

    return work


GROWTH = {"a frame": _frames, "a further entry": _entries}


def memory(side: str, count: int) -> dict[str, Any]:
    """Per compiled frame with one operator and per further entry: KiB allocated by Python (tracemalloc), KiB of the process (RSS),
    collectable objects; `parts`: which packages' lines allocated the frame's. In this process: call it in a fresh one."""
    make = SIDES[side]
    figures: dict[str, Any] = {}
    _frames(make, 5)()
    kept = []  # until the end: memory that is given back would be used again, and no growth be seen
    for name, prepare in GROWTH.items():
        work = prepare(make, count)
        gc.collect()
        size = resident()
        kept.append(work())
        gc.collect()
        figures[f"KiB of RSS {name}"] = (resident() - size) / 1024 / count
    for name, prepare in GROWTH.items():
        work = prepare(make, count)
        gc.collect()
        objects = len(gc.get_objects())
        tracemalloc.start()
        keep = work()
        gc.collect()
        figures[f"KiB {name}"] = tracemalloc.get_traced_memory()[0] / 1024 / count
        if name == "a frame":
            figures["parts"] = _parts()
        tracemalloc.stop()
        figures[f"objects {name}"] = (len(gc.get_objects()) - objects) / count
        kept.append(keep)
    return figures


def _parts() -> dict[str, float]:
    """The share of each package's lines in what is allocated now, largest first."""
    found: Counter[str] = Counter()
    for line in tracemalloc.take_snapshot().statistics("filename"):
        found[_package(line.traceback[0].filename)] += line.size
    whole = found.total() or 1
    return {name: round(size / whole, 3) for name, size in found.most_common(6)}


def _package(filename: str) -> str:
    parts = Path(filename).parts
    for root in ("minidynamo", "torch"):
        if root in parts:
            return "/".join(parts[len(parts) - parts[::-1].index(root) - 1 :][:2]).removesuffix(".py")
    return parts[-1]


def leak(side: str, rounds: int) -> dict[str, int]:
    """What stays of so many rounds of compile and reset, after as many before them: collectable objects, bytes of the process."""
    make = SIDES[side]

    def go() -> tuple[int, int]:
        for i in range(rounds):
            make(_define(i % 7))(torch.ones(2), 1)
            forget()
        gc.collect()
        return len(gc.get_objects()), resident()

    go()
    before, after = go(), go()
    return {"rounds": rounds, "objects": after[0] - before[0], "bytes": after[1] - before[1]}


def jit(effort: Effort, share: Share) -> dict[str, Any]:
    """A call of x + 1 over jax's. Raises ImportError without jax."""
    import jax

    theirs, x = jax.jit(lambda x: x + 1), jax.numpy.ones(4)
    case = Case(lambda x: x + 1, (torch.ones(4),))
    theirs(x).block_until_ready()
    ours = case.caller(optimized(case))
    ours()
    return asdict(paired(lambda: theirs(x), ours, effort, share))


def in_fresh_process(figure: str, side: str, count: int) -> Any:
    """`memory` or `leak` of a side, in a process of its own. Raises CalledProcessError."""
    return json.loads(finished(["-m", "benchmarks.process", figure, side, str(count)]))


def machine() -> dict[str, Any]:
    """Where and when a run was made: what its figures belong to."""
    return {
        "python": sys.version.split()[0],
        "torch": torch.__version__,
        "platform": sys.platform,
        "processor": os.uname().machine,
        "model": processor(),
        "kernel": platform.release(),
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
    }


def processor() -> str:
    """The name of the processor, as the kernel gives it."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()


def revision() -> str | None:
    """The git revision of the checkout, or None."""
    try:
        here = os.path.dirname(os.path.abspath(__file__))
        done = subprocess.run(
            ["git", "-C", here, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


if __name__ == "__main__":
    print(json.dumps({"memory": memory, "leak": leak}[sys.argv[1]](sys.argv[2], int(sys.argv[3]))))
