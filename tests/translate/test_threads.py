"""Threads that call one optimized function at once get the results of plain Python."""

from __future__ import annotations

import threading

import torch

import minidynamo
from tests.eager import T

scale = 3


def part(x: torch.Tensor, n: int) -> torch.Tensor:
    return x * n + scale


def program(x: torch.Tensor, n: int) -> torch.Tensor:
    y = part(x, n)
    if y.sum() > 0:
        y = y - 1
    len(repr(n))
    return y * 2


def test_shapes_and_grad_modes_of_threads_do_not_mix():
    optimized = minidynamo.optimize("eager")(program)
    errors: list[BaseException] = []
    start = threading.Barrier(6)

    def work(number: int) -> None:
        try:
            start.wait()
            for turn in range(60):
                x = T(2 + (number + turn) % 2).requires_grad_(number % 2 == 0)
                with torch.set_grad_enabled((number + turn) % 3 == 0):
                    got, wanted = optimized(x, 2), program(x, 2)
                assert torch.equal(got, wanted) and got.requires_grad == wanted.requires_grad
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


def test_a_thread_without_an_optimized_call_is_left_alone():
    seen: list[torch.Tensor] = []

    @minidynamo.optimize("eager")
    def f(x: torch.Tensor) -> torch.Tensor:
        thread = threading.Thread(target=lambda: seen.append(program(x, 2)))
        thread.start()
        thread.join()
        return x + 1

    f(T(2))
    assert torch.equal(seen[0], program(T(2), 2))
    assert minidynamo.cache_entries(program) == []
