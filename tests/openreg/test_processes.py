"""Loading, forking, spawning, threads and the end of the process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
START = "import minidynamo.openreg, torch\nD = 'openreg'\n"

FORK = """
import os
def child():
    pid = os.fork()
    if pid:
        return os.waitpid(pid, 0)[1]
    refused = []
    for use in (torch.openreg.init, lambda: torch.openreg.set_device(1), lambda: torch.randn(2, device=D),
                lambda: torch.openreg.manual_seed(1), lambda: torch.openreg.synchronize()):
        try:
            use()
        except RuntimeError as error:
            refused.append(str(error).startswith("Cannot re-initialize OpenReg in forked subprocess"))
    torch.manual_seed(1)
    assert torch.openreg._is_in_bad_fork() and not torch.openreg.is_initialized()
    assert torch.ones(2).sum().item() == 2
    os._exit(0 if refused == [True] * 5 else 1)
torch.ones(2, device=D, requires_grad=True).sum().backward()
assert child() == 0
"""
FORK_BEFORE_USE = """
import os
torch.manual_seed(4)
pid = os.fork()
assert torch.openreg.initial_seed() == 4
assert torch.randn(3, device=D).cpu().equal(torch.randn(3, generator=torch.Generator().manual_seed(4)))
if pid == 0:
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
"""
SPAWN = """
import multiprocessing
def numbers(queue):
    import minidynamo.openreg, torch
    torch.openreg.manual_seed(42)
    queue.put(torch.randn(2, device="openreg").tolist())
if __name__ == "__main__":
    torch.openreg.manual_seed(42)
    expected = torch.randn(2, device=D).tolist()
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=numbers, args=(queue,))
    process.start()
    assert queue.get(timeout=100) == expected
    process.join()
    assert process.exitcode == 0
"""
LOADER = """
from torch.utils.data import DataLoader, TensorDataset
torch.ones(1, device=D)
loader = DataLoader(TensorDataset(torch.arange(4)), batch_size=2, num_workers=2, pin_memory=True)
assert [x.to(D).tolist() for (x,) in loader] == [[0, 1], [2, 3]]
"""
THREADS = """
import threading
def work(index):
    torch.openreg.set_device(index)
    x = torch.ones(50, device=D, requires_grad=True)
    for _ in range(5):
        (x * 2).sum().backward()
    assert x.grad[0].item() == 10 and x.grad.device.index == index
threads = [threading.Thread(target=work, args=(i % 2,)) for i in range(6)]
for t in threads: t.start()
for t in threads: t.join()
"""
LIVE = """
import atexit, threading
kept = [torch.Stream(device=D) for _ in range(4)]
kept[0].__enter__()
kept.append(kept[1].record_event())
class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def backward(ctx, g):
        return g
def work():
    y = Double.apply(torch.ones(5, device=D, requires_grad=True))
    y.register_hook(lambda g: g)
    y.sum().backward()
work()
atexit.register(work)
threading.Thread(target=lambda: [work() for _ in range(20)]).start()
"""
BACKWARD = "torch.ones(2, device=D, requires_grad=True).sum().backward()\n"
RAISES = "x = torch.ones(2, device=D, requires_grad=True)\n(x + 1).sum().backward()\nraise SystemExit(5)\n"
PROGRAMS = {
    "backward": (BACKWARD, 0),
    "backward_both": (BACKWARD + BACKWARD.replace("D", "'openreg:1'"), 0),
    "fork": (FORK, 0),
    "fork_before_use": (FORK_BEFORE_USE, 0),
    "spawn": (SPAWN, 0),
    "loader": (LOADER, 0),
    "threads": (THREADS, 0),
    "live": (LIVE, 0),  # streams, an event, a thread that goes on, work at exit
    "exit_status": (RAISES, 5),
    "unused": ("", 0),
}


def run(tmp_path: Path, program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    file = tmp_path / "program.py"
    file.write_text(program)
    return subprocess.run(
        [sys.executable, str(file)],
        env=os.environ | {"PYTHONPATH": str(ROOT)} | environment,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_processes_end_as_they_should(tmp_path, name):
    program, status = PROGRAMS[name]
    done = run(tmp_path, START + program)
    assert done.returncode == status, done.stderr


@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("name", ["backward", "fork", "spawn", "threads", "live"])
def test_processes_end_as_they_should_thirty_times(tmp_path, name):
    program, status = PROGRAMS[name]
    for count in range(30):
        done = run(tmp_path, START + program, PYTHONFAULTHANDLER="1")
        assert done.returncode == status, f"run {count}: {done.stderr}"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "who"),
    [
        ("torch.utils.rename_privateuse1_backend('other')", "the backend 'other'"),
        (
            "library = torch.library.Library('aten', 'IMPL')\n"
            "library.impl('empty.memory_format', lambda *a, **k: None, 'PrivateUse1')",
            "a backend without a name",
        ),
    ],
)
def test_another_backend_has_the_key(tmp_path, before, who):
    program = f"""
import torch
{before}
try:
    import minidynamo.openreg
except RuntimeError as error:
    assert "a process has one PrivateUse1 device, and {who} is it" in str(error), error
else:
    raise AssertionError("it was registered")
assert torch.ones(2).sum().item() == 2
"""
    done = run(tmp_path, program)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_a_library_that_is_missing_or_of_another_torch(tmp_path):
    program = """
import pathlib, sys, torch
import minidynamo
package = pathlib.Path(sys.argv[0]).parent / "minidynamo" / "openreg"
package.mkdir(parents=True)
for file in pathlib.Path(minidynamo.__file__).parent.joinpath("openreg").glob("*.py"):
    package.joinpath(file.name).write_text(file.read_text())
minidynamo.__path__.insert(0, str(package.parent))
def attempt():
    for name in [n for n in sys.modules if n.startswith("minidynamo.openreg")]:
        del sys.modules[name]
    try:
        import minidynamo.openreg
    except ImportError as error:
        return str(error)
print(attempt())
import importlib.machinery
library = package / f"_C{importlib.machinery.EXTENSION_SUFFIXES[0]}"
library.write_bytes(b"\\x7fELF minidynamo.openreg for torch 1.0\\x00")
import importlib; importlib.invalidate_caches()
print(attempt())
assert torch._C._get_privateuse1_backend_name() == "privateuseone"
"""
    done = run(tmp_path, program)
    missing, other = done.stdout.splitlines()
    assert missing == (
        "minidynamo.openreg is not built for this Python: run `make openreg` (it needs torch and a C++ compiler)"
    )
    assert other.startswith("minidynamo.openreg was built for torch 1.0, and this is ")
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_importing_is_quick_and_quiet(tmp_path):
    program = """
import sys, torch
import minidynamo.openreg
assert "torch._dynamo" not in sys.modules and "sympy" not in sys.modules
assert not torch.openreg.is_initialized()
"""
    done = run(tmp_path, program)
    assert done.returncode == 0 and done.stdout == done.stderr == ""


GUARDED = """
import ctypes
assert torch.openreg._C._is_protected()
x = torch.arange(4.0, device=D)
assert (x * 2 + torch.ones(4, device=D)).tolist() == [1, 3, 5, 7]
x.resize_(2000)
torch.ones(2, device=D, requires_grad=True).sum().backward()
"""


@pytest.mark.slow
def test_protected_memory_faults_on_a_stray_access(tmp_path):
    fine = run(tmp_path, START + GUARDED, OPENREG_PROTECT="1")
    assert fine.returncode == 0, fine.stderr
    stray = run(tmp_path, START + GUARDED + "ctypes.string_at(x.data_ptr(), 4)\n", OPENREG_PROTECT="1")
    assert stray.returncode == -11


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "file", ["test_seeds.py", "test_training.py", "test_devices.py", "test_operators.py"]
)
def test_the_other_tests_under_protection(file):
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-m", "not nightly", f"tests/openreg/{file}"],
        cwd=ROOT,
        env={k: v for k, v in os.environ.items() if k != "OPENREG_TEST_REPORTS"} | {"OPENREG_PROTECT": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]
