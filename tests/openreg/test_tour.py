"""`python -m minidynamo.openreg`: the levels in their order, from a trace."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def run(program: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
    import os

    return subprocess.run(
        [sys.executable, *program],
        cwd=ROOT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_the_tour_shows_every_level_in_order():
    done = run(["-m", "minidynamo.openreg"], NO_COLOR="1")
    assert done.returncode == 0 and done.stderr == ""
    rows = [
        [cell.strip() for cell in line.split("│")[1:-1]] for line in done.stdout.splitlines() if "│" in line
    ]
    chain = [(row[0], row[2].split("(")[0]) for row in rows if len(row) == 4]
    expected = [
        ("1", "torch.openreg.manual_seed"),
        ("2", "manual_seed"),
        ("3", "_getDefaultGenerator"),
        ("4", "at::Context::defaultGenerator"),
        ("5", "getDefaultGenerator"),
        ("6", "getDefaultOpenRegGenerator"),
        ("6", "OpenRegGeneratorImpl::set_current_seed"),
    ]
    assert [row for row in chain if row in expected] == expected
    assert ("4", "at::Context::lazyInitDevice") in chain and ("5", "init") in chain
    assert "once more and on the CPU: equal" in done.stdout
    for row in rows:
        if len(row) == 4 and row[0] in ("2", "3", "5", "6"):
            file, _, line = row[3].rpartition(":")
            name = row[2].split("(")[0].split("::")[-1]
            source = (ROOT / file).read_text().splitlines()
            assert any(name in text for text in source[max(0, int(line) - 6) : int(line) + 1]), row


@pytest.mark.slow
def test_the_tour_without_a_device():
    done = run(["-m", "minidynamo.openreg"], OPENREG_DEVICE_COUNT="0")
    assert done.returncode == 1 and "there is no openreg device" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("count", ["1", "5", "99"])
def test_the_number_of_devices_is_a_setting(count):
    program = (
        "import minidynamo.openreg, torch; print(torch.openreg.device_count(), torch.openreg.is_available())"
    )
    assert run(["-c", program], OPENREG_DEVICE_COUNT=count).stdout == f"{min(int(count), 16)} True\n"
