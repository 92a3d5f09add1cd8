"""Import statements inside functions."""

from __future__ import annotations

import sys
import textwrap
import types

import pytest

from tests.eager import check, programs

PROGRAMS = programs(
    r"""
# what is imported already:
#   f(T(2))
#   f(T(2))
def f(x):
    import math
    import torch.nn.functional as F
    from torch.nn import functional
    from math import sqrt, pi as p
    import os.path
    from collections import OrderedDict
    return F.relu(x) * sqrt(4) + p, math.floor(2.5), functional is F, os, os.path

# in an inlined function:
#   f(T(2))
def g(x):
    import torch.nn.functional as F
    return F.relu(x)
def f(x):
    return g(x) + 1

# a global with the name of the import function:
#   f(T(2))
def __import__(*args):
    print("never used")
def f(x):
    y = x + 1
    import math
    return y * math.floor(2.5)

# what does not exist:
#   f(T(2))
def f(x):
    y = x + 1
    import no_module_of_this_name
    return y

# a name that does not exist:
#   f(T(2))
def f(x):
    y = x + 1
    try:
        from math import no_such_name
    except ImportError as e:
        return y, str(e)

# a relative import without a package:
#   f(T(2))
def f(x):
    y = x + 1
    try:
        from . import anything
    except ImportError as e:
        return y, str(e)

# an import function of the program's own:
#   f(T(2))
import builtins
def mine(*args):
    print("import", args[0])
    return original(*args)
original = builtins.__import__
def f(x):
    y = x + 1
    names = dict(vars(builtins), __import__=mine)
    exec("import math", {"__builtins__": names})
    return y
"""
)


@pytest.mark.parametrize("program", PROGRAMS)
def test_imports_behave_as_in_plain_python(program):
    program.check()


@pytest.fixture
def fake(monkeypatch):
    module = types.ModuleType("made_for_a_test")
    module.k = 2
    monkeypatch.setitem(sys.modules, "made_for_a_test", module)
    return module


def test_a_module_that_changes_is_seen(fake):
    seen = check(
        """
        import sys
        other = type(sys)("made_for_a_test")
        other.k = 7
        old = sys.modules["made_for_a_test"]
        def f(x):
            import made_for_a_test
            from made_for_a_test import k
            return x * made_for_a_test.k + k
        """,
        "f(T(2))",
        "setattr(old, 'k', 3)",
        "f(T(2))",
        "sys.modules.update(made_for_a_test=other)",
        "f(T(2))",
        "sys.modules.update(made_for_a_test=old) or setattr(old, 'k', 2)",
        "f(T(2))",
    )
    assert seen.graphs == 3 and not seen.breaks


@pytest.fixture
def package(tmp_path, monkeypatch):
    files = {
        "__init__.py": "value = 3",
        "late.py": "print('late is imported')\nvalue = 4",
        "sub/__init__.py": "K = 5",
        "sub/leaf.py": """
            def f(x):
                from . import K
                from .. import value
                from ..sub import leaf
                import package_for_a_test.sub as z
                return x * value + K + z.K, leaf
            def g(x):
                y = x + 1
                from package_for_a_test import late
                return y + late.value
            """,
    }
    for name, text in files.items():
        path = tmp_path / "package_for_a_test" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
    monkeypatch.syspath_prepend(tmp_path)
    yield
    for name in [name for name in sys.modules if name.startswith("package_for_a_test")]:
        del sys.modules[name]


def test_relative_imports(package):
    seen = check(
        """
        from package_for_a_test.sub import leaf
        import package_for_a_test
        def f(x):
            return leaf.f(x)
        """,
        "f(T(2))",
        "setattr(package_for_a_test, 'value', 8)",
        "f(T(2))",
        "setattr(package_for_a_test, 'value', 3)",
    )
    assert seen.graphs == 2 and not seen.breaks


def test_a_submodule_that_is_not_imported_yet_breaks_the_graph(package):
    from package_for_a_test.sub import leaf

    import minidynamo
    from tests.eager import T, watching

    with watching() as seen:
        result = minidynamo.optimize("eager")(leaf.g)(T(2))
    assert result.tolist() == [6.0, 7.0]
    assert seen.reasons == ["MD246"]
    assert "package_for_a_test.late" in sys.modules
