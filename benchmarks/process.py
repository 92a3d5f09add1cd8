"""Figures of a whole process: its start, the memory of an entry, what compiling and resetting leaves behind."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import tracemalloc
from typing import Any

import torch

import minidynamo

START = {
    "import torch": "import torch",
    "import minidynamo": "import torch, minidynamo; minidynamo.optimize",
    "first compile": "import torch, minidynamo; minidynamo.optimize('eager')(lambda x: x + 1)(torch.ones(2))",
    "import torch._dynamo": "import torch, torch._dynamo",
    "torch.compile, first compile": "import torch; torch.compile(lambda x: x + 1, backend='eager')(torch.ones(2))",
}
CLOCK = "import time; {}; print(time.process_time())"


def start(repeats: int) -> dict[str, float]:
    """CPU seconds of fresh processes, the least of `repeats`, taken in turn."""
    best: dict[str, float] = {}
    for _ in range(repeats):
        for name, source in START.items():
            done = subprocess.run(
                [sys.executable, "-c", CLOCK.format(source)], capture_output=True, text=True, check=True
            )
            best[name] = min(best.get(name, 1e9), float(done.stdout.split()[-1]))
    return best


def _define(index: int) -> Any:
    scope: dict[str, Any] = {}
    exec(f"def f(x, n):\n    return x + n + {index}\n", scope)
    return scope["f"]


def memory(count: int = 100) -> dict[str, float]:
    """KiB (tracemalloc) and collectable objects of a compiled frame with one operator, and of a further entry."""
    x = torch.ones(2)
    minidynamo.optimize("eager")(_define(-1))(x, 0)

    def spent(work: Any) -> tuple[float, float]:
        gc.collect()
        objects = len(gc.get_objects())
        tracemalloc.start()
        keep = work()
        gc.collect()
        size = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        left = len(gc.get_objects()) - objects
        del keep
        return size / 1024 / count, left / count

    def frames() -> list[Any]:
        made = [minidynamo.optimize("eager")(_define(i)) for i in range(count)]
        for fn in made:
            fn(x, 1)
        return made

    def entries() -> Any:
        fn = minidynamo.optimize("eager")(_define(0))
        with minidynamo.config.patch(cache_size_limit=count + 1):
            for n in range(count):
                fn(x, n)
        return fn

    frame, frame_objects = spent(frames)
    entry, entry_objects = spent(entries)
    minidynamo.reset()
    return {
        "KiB a frame": frame,
        "objects a frame": frame_objects,
        "KiB a further entry": entry,
        "objects a further entry": entry_objects,
    }


def leak(rounds: int) -> int:
    """Collectable objects more after so many rounds of compile and reset than after the same rounds before."""
    x = torch.ones(2)

    def go() -> int:
        for i in range(rounds):
            minidynamo.optimize("eager")(_define(i % 7))(x, 1)
            minidynamo.reset()
        gc.collect()
        return len(gc.get_objects())

    go()
    before = go()
    return go() - before


def machine() -> dict[str, Any]:
    """Where and when a run was made: what its figures belong to."""
    return {
        "python": sys.version.split()[0],
        "torch": torch.__version__,
        "platform": sys.platform,
        "processor": os.uname().machine,
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
    }


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
