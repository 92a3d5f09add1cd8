"""try, except, finally, raise and with: nothing tells captured code from plain Python; much of it is one graph."""

import pytest

from tests.eager import check

# name -> (source, breaks): one graph and no break where 0
PROGRAMS = {
    "finally": ("try:\n  y = x + 1\n finally:\n  log.append('f')\n return y * 2", 0),
    "return in try": ("try:\n  return x + 1\n finally:\n  log.append('f')", 0),
    "raise and handle": ("try:\n  raise ValueError('a', 3)\n except ValueError as e:\n  log.append(e.args)\n return x + 1", 0),
    "raise a class": ("try:\n  raise KeyError\n except (IndexError, KeyError):\n  x = x * 2\n return x + 1", 0),
    "else": ("try:\n  y = x + 1\n except KeyError:\n  y = x\n else:\n  y = y * 2\n return y", 0),
    "outer handler": (
        "try:\n  try:\n   raise KeyError(1)\n  except ValueError:\n   x = x + 5\n except KeyError:\n  x = x * 2\n return x + 1",
        0,
    ),
    "reraise": ("try:\n  try:\n   raise KeyError(1)\n  except KeyError:\n   log.append(1)\n   raise\n except KeyError:\n  pass\n return x + 1", 0),
    "raise from": ("try:\n  raise KeyError(1) from None\n except KeyError:\n  pass\n return x + 1", 0),
    "str of exception": ("try:\n  raise ValueError('text')\n except ValueError as e:\n  log.append(str(e))\n return x + 1", 0),
    "from an inlined call": ("def g(v):\n  raise IndexError(v)\n try:\n  g(3)\n except IndexError as e:\n  return x + e.args[0]", 0),
    "handled in an inlined call": ("def g():\n  try:\n   raise IndexError\n  except IndexError:\n   return 4\n return x + g()", 0),
    "missing key": ("try:\n  n = {'a': 1}['b']\n except KeyError as e:\n  n = len(e.args)\n return x + n", 0),
    "bad index": ("try:\n  n = [1, 2][5]\n except IndexError as e:\n  log.append(str(e))\n return x + 1", 0),
    "bad number": ("try:\n  n = int('no')\n except ValueError as e:\n  log.append(str(e))\n return x + 1", 0),
    "division by zero": ("try:\n  n = 1 // 0\n except ZeroDivisionError as e:\n  log.append(str(e))\n return x + 1", 0),
    "exhausted": ("it = iter([1])\n try:\n  next(it)\n  next(it)\n except StopIteration:\n  pass\n return x + 1", 0),
    "operator fails": ("try:\n  x + torch.ones(7)\n except RuntimeError as e:\n  log.append(str(e))\n return x + 1", 0),
    "assertion": ("try:\n  assert x.dim() == 9, 'dims'\n except AssertionError as e:\n  log.append(e.args)\n return x + 1", 0),
    "in a loop": ("for i in range(4):\n  try:\n   if i % 2: raise KeyError(i)\n   x = x + i\n  except KeyError:\n   x = x * 2\n return x", 0),
    "continue in finally": ("for i in range(3):\n  try:\n   if i == 1: continue\n   x = x + i\n  finally:\n   log.append(i)\n return x", 0),
    "with": ("with Manager(log) as m:\n  y = x + 1\n return y * m.scale", 0),
    "with that raises": ("try:\n  with Manager(log):\n   raise KeyError('k')\n except KeyError:\n  pass\n return x + 1", 0),
    "with that swallows": ("with Swallow(log):\n  raise KeyError('k')\n return x + 1", 0),
    "two managers": ("with Manager(log), Swallow(log):\n  raise ValueError\n return x + 1", 0),
    "return in with": ("with Manager(log):\n  return x + 1", 0),
    "unhandled": ("y = x + 1\n raise ValueError('out')", 1),
    "unhandled in a call": ("def g():\n  raise ValueError('out')\n y = x + 1\n g()", 1),
    "unhandled assertion": ("y = x + 1\n assert y.dim() == 9, 'dims'", 1),
    "exception returned": ("x = x + 1\n try:\n  raise KeyError(1)\n except KeyError as e:\n  kept = e\n x = x + 1\n return type(kept).__name__, kept.__traceback__ is None", 0),
    "break in try": ("y = x + 1\n try:\n  print('in')\n  y = y * 2\n finally:\n  log.append('f')\n return y", 1),
    "break in except": ("y = x + 1\n try:\n  raise KeyError\n except KeyError:\n  print('in')\n return y * 2", 1),
    "break in with": ("y = x + 1\n with Manager(log):\n  print('in')\n  y = y * 2\n return y", 1),
    "tensor branch in try": ("y = x + 1\n try:\n  if y.sum() > 0: y = y * 3\n finally:\n  log.append('f')\n return y", 1),
    "plain call raises in try": ("y = x + 1\n try:\n  open('/no/such/file')\n except OSError:\n  y = y * 2\n return y", 1),
    "bare raise outside": ("y = x + 1\n raise", 1),
    "run-time error in try": ("try:\n  y = x[torch.tensor([9])]\n except IndexError:\n  y = x\n return y + 1", 0),
    "random in try": ("y = x + 1\n try:\n  y = torch.dropout(y, 0.5, True)\n finally:\n  log.append('f')\n return y", 0),
    "write in try": ("y = x + 1\n try:\n  x.add_(1)\n finally:\n  log.append('f')\n return y", 0),
    "nested finally order": ("try:\n  try:\n   raise KeyError\n  finally:\n   log.append(1)\n except KeyError:\n  log.append(2)\n finally:\n  log.append(3)\n return x + 1", 0),
    "exception group of tuples": ("E = (KeyError, IndexError)\n try:\n  raise IndexError\n except E:\n  x = x + 3\n return x + 1", 0),
    "user exception": ("try:\n  raise Mine(2)\n except Mine as e:\n  x = x + e.args[0]\n return x + 1", 0),
    "user exception with init": ("y = x + 1\n try:\n  raise Own(2)\n except Own as e:\n  y = y + e.n\n return y + 1", 0),
}  # fmt: skip
CLASSES = """
class Mine(ValueError): pass
class Own(ValueError):
    def __init__(self, n): self.n = n
class Manager:
    scale = 3
    def __init__(self, log): self.log = log
    def __enter__(self): self.log.append('in'); return self
    def __exit__(self, kind, error, trace):
        self.log.append(('out', kind.__name__ if kind else None, trace is None)); return False
class Swallow(Manager):
    def __exit__(self, kind, error, trace): self.log.append('swallowed'); return True
"""


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name):
    body, breaks = PROGRAMS[name]
    seen = check(f"{CLASSES}\ndef f(x, log):\n {body}\n", *["f(T(3), [])"] * 3, "f(T(4), ['old'])")
    assert min(len(seen.breaks), 1) == breaks, seen.breaks
