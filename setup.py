"""Builds the extension modules. Metadata is in setup.cfg.

`minidynamo._C`: plain C11, always required.
`minidynamo._tensor_guards`, `minidynamo.openreg._C`: C++ against the torch that is importable while building; without
torch or without a C++ compiler a Python leaf serves instead of the first, and the simulated accelerator is absent.
`minidynamo doctor` says so.

    python setup.py build_ext --inplace    builds what changed, extensions side by side

Environment:
    MINIDYNAMO_BUILD_CXX=auto|off|required    the C++ modules: if possible (default), never, or fail without them
    MINIDYNAMO_SANITIZE=1                     address and undefined-behaviour sanitizers (`make test-asan`)
    MINIDYNAMO_WERROR=0                       warnings are no errors, for a compiler newer than this release
"""

from __future__ import annotations

import filecmp
import hashlib
import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from concurrent.futures import ThreadPoolExecutor
from glob import glob
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent
os.chdir(ROOT)

WARNINGS = ["-Wall", "-Wextra", *([] if os.environ.get("MINIDYNAMO_WERROR") == "0" else ["-Werror"])]
HIDDEN = ["-fvisibility=hidden", "-fno-plt"]
SANITIZE = os.environ.get("MINIDYNAMO_SANITIZE") == "1"
SANITIZER_COMPILE = ["-O1", "-g", "-fno-omit-frame-pointer", "-UNDEBUG"]
SANITIZER_BOTH = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


class Unavailable(Exception):
    """A C++ module cannot be built here; the message says why in a few words."""


def own_headers(sources: list[str]) -> list[str]:
    """The files that `sources` include, directly or not, by `#include "..."` relative to the includer."""
    seen: set[Path] = set()
    waiting = [Path(source) for source in sources]
    while waiting:
        file = waiting.pop()
        for name in INCLUDE.findall(file.read_text()):
            header = Path(os.path.normpath(file.parent / name))
            if header not in seen and header.exists():
                seen.add(header)
                waiting.append(header)
    return sorted(map(str, seen))


def python_headers() -> list[str]:
    """CPython's headers, internal ones included, as system headers: their warnings are not ours."""
    include = sysconfig.get_path("include")
    return ["-isystem", include, "-isystem", os.path.join(include, "internal")]


class CExtension(Extension):
    """An extension in C11 that must build."""

    def __init__(self, name: str, sources: list[str]) -> None:
        flags = ["-std=c11", *WARNINGS, *HIDDEN]
        link: list[str] = []
        if SANITIZE:
            flags += SANITIZER_COMPILE + SANITIZER_BOTH
            link += SANITIZER_BOTH
        super().__init__(
            name, sources, depends=own_headers(sources), extra_compile_args=flags, extra_link_args=link
        )

    def configure(self) -> None:
        """Called only when the extension is out of date."""
        self.extra_compile_args += python_headers()

    def identity(self) -> str:
        """What a build depends on beside files, Python and flags."""
        return ""


class TorchExtension(Extension):
    """An extension in C++ against torch's headers, good only beside the very torch that it was built for.

    Reading those headers is most of the time that a source takes, so `batch` sources are compiled as one. `what` and
    `without` complete the note for the user: what was not built, and what that means.
    """

    def __init__(
        self, name: str, sources: list[str], *, what: str, without: str, flags: list[str], batch: int = 1
    ) -> None:
        flags = [*WARNINGS, *HIDDEN, "-g0", *flags]
        link: list[str] = []
        if SANITIZE:
            flags += SANITIZER_COMPILE + SANITIZER_BOTH
            link += SANITIZER_BOTH
        super().__init__(
            name,
            sources,
            depends=own_headers(sources),
            extra_compile_args=flags,
            extra_link_args=link,
            include_dirs=["."],
            language="c++",
        )
        self.what, self.without = what, without
        self.batches = [sources[i : i + batch] for i in range(0, len(sources), batch)]

    def configure(self) -> None:
        """Called only when out of date, since importing torch takes seconds. Raises Unavailable."""
        if not cxx_works():
            raise Unavailable("no working C++ compiler")
        try:
            import torch
            from torch.utils.cpp_extension import include_paths, library_paths
        except ImportError as error:
            raise Unavailable(f"torch is not importable in the build environment ({error})") from error
        for path in include_paths():
            self.extra_compile_args += ["-isystem", path]
        self.extra_compile_args += [f"-std={cxx_standard()}", *python_headers()]
        self.define_macros += [
            ("MINIDYNAMO_TORCH_VERSION", f'"{torch.__version__}"'),
            ("_GLIBCXX_USE_CXX11_ABI", str(int(torch.compiled_with_cxx11_abi()))),
        ]
        self.library_dirs += library_paths()
        self.libraries += ["c10", "torch_cpu", "torch", "torch_python"]

    def identity(self) -> str:
        try:
            return importlib.metadata.version("torch")
        except importlib.metadata.PackageNotFoundError:
            return ""


def cxx_command() -> list[str]:
    """The C++ compiler that the build uses: CXX, else the one that Python was built with."""
    return (os.environ.get("CXX") or sysconfig.get_config_var("CXX") or "c++").split()


def cxx_accepts(flag: str) -> bool:
    """True when the C++ compiler turns a small program into an object with `flag`."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "probe.cpp")
        source.write_text("#include <vector>\nint size() { return (int)std::vector<int>{1}.size(); }\n")
        command = [*cxx_command(), flag, "-c", str(source), "-o", str(source.with_suffix(".o"))]
        try:
            return subprocess.run(command, capture_output=True, check=False).returncode == 0
        except OSError:
            return False


def cxx_works() -> bool:
    return cxx_accepts("-std=c++17")


def cxx_standard() -> str:
    """Newer torch headers ask for C++20; older ones are content with it."""
    return "c++20" if cxx_accepts("-std=c++20") else "c++17"


class BuildExt(build_ext):
    """Builds extensions beside each other, and one only if its files, flags, Python or torch changed."""

    def finalize_options(self) -> None:
        super().finalize_options()
        if self.parallel is None:
            self.parallel = os.cpu_count()
        # distutils' own test compares times only; build_extension has its own, by content.
        self.rebuild_all, self.force = bool(self.force), True

    def run(self) -> None:
        self.notes: list[str] = []
        mode = os.environ.get("MINIDYNAMO_BUILD_CXX") or "auto"
        if mode not in ("auto", "off", "required"):
            raise SystemExit(f"MINIDYNAMO_BUILD_CXX={mode!r}: use auto, off or required")
        self.required = mode == "required"
        if mode == "auto" and importlib.util.find_spec("torch") is None:
            for ext in self.extensions:
                self.note(ext, "torch is not importable in the build environment")
            mode = "off"
        if mode == "off":
            self.extensions = [ext for ext in self.extensions if not isinstance(ext, TorchExtension)]
        super().run()
        for note in self.notes:
            print(f"minidynamo: {note}", file=sys.stderr)

    def note(self, ext: Extension, reason: str) -> None:
        """Keep for the end that `ext` was not built, where that is allowed."""
        if isinstance(ext, TorchExtension):
            self.notes.append(f"{ext.what} not built: {reason}; {ext.without}")

    def build_extension(self, ext: Extension) -> None:
        target = Path(self.get_ext_fullpath(ext.name))
        stamp = Path(self.build_temp, f"{ext.name}{sysconfig.get_config_var('EXT_SUFFIX')}.stamp")
        wanted = self.fingerprint(ext)
        if not self.rebuild_all and target.exists() and stamp.exists() and stamp.read_text() == wanted:
            return
        stamp.unlink(missing_ok=True)
        try:
            ext.configure()
            if isinstance(ext, TorchExtension):
                self.build_in_batches(ext)
            else:
                super().build_extension(ext)
        except Exception as error:
            target.unlink(missing_ok=True)
            if self.required or not isinstance(ext, TorchExtension):
                raise
            self.note(
                ext, str(error).splitlines()[0] if isinstance(error, Unavailable) else "it did not compile"
            )
            return
        stamp.parent.mkdir(parents=True, exist_ok=True)
        stamp.write_text(wanted)

    def build_in_batches(self, ext: TorchExtension) -> None:
        """Compiles the batches that are out of date, side by side, and links."""
        folder = Path(self.build_temp, ext.name + sysconfig.get_config_var("EXT_SUFFIX"))
        folder.mkdir(parents=True, exist_ok=True)

        def compile_batch(number: int) -> str:
            sources = ext.batches[number]
            unit = folder / f"batch_{number}.cpp"
            unit.write_text("".join(f'#include "{source}"\n' for source in sources))
            target, stamp = unit.with_suffix(".o"), unit.with_suffix(".stamp")
            wanted = self.fingerprint(ext, [*sources, *own_headers(sources)])
            if self.rebuild_all or not target.exists() or not stamp.exists() or stamp.read_text() != wanted:
                stamp.unlink(missing_ok=True)
                (made,) = self.compiler.compile(
                    [str(unit)],
                    macros=ext.define_macros,
                    include_dirs=ext.include_dirs,
                    extra_postargs=ext.extra_compile_args,
                )
                if Path(made) != target:
                    os.replace(made, target)
                stamp.write_text(wanted)
            return str(target)

        with ThreadPoolExecutor(self.parallel or 1) as pool:
            objects = list(pool.map(compile_batch, range(len(ext.batches))))
        self.compiler.link_shared_object(
            objects,
            self.get_ext_fullpath(ext.name),
            libraries=self.get_libraries(ext),
            library_dirs=ext.library_dirs,
            extra_postargs=ext.extra_link_args,
            target_lang="c++",
        )

    def fingerprint(self, ext: Extension, files: list[str] | None = None) -> str:
        """A digest of everything that the built module, or the object made from `files`, depends on."""
        digest = hashlib.sha256(
            repr(
                (
                    sys.version,
                    ext.identity(),
                    ext.extra_compile_args,
                    ext.extra_link_args,
                    [
                        os.environ.get(name)
                        for name in ("CC", "CXX", "CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS")
                    ],
                )
            ).encode()
        )
        for name in [*(files or [*ext.sources, *ext.depends]), "setup.py"]:
            digest.update(Path(name).read_bytes())
        return digest.hexdigest()

    def copy_extensions_to_source(self) -> None:
        """Puts what is new beside the Python files, atomically: a running program keeps what it mapped."""
        for ext in self.extensions:
            built, beside = self.path(ext, inplace=False), self.path(ext, inplace=True)
            if not built.exists():
                beside.unlink(missing_ok=True)
            elif not beside.exists() or not filecmp.cmp(built, beside, shallow=False):
                fresh = beside.with_name(f".{beside.name}.{os.getpid()}")
                shutil.copy2(built, fresh)
                os.replace(fresh, beside)

    def path(self, ext: Extension, *, inplace: bool) -> Path:
        """Where `ext` is built, or (inplace) where it lies beside the Python files."""
        self.inplace, before = inplace, self.inplace
        try:
            return Path(self.get_ext_fullpath(ext.name))
        finally:
            self.inplace = before


EXTENSIONS: list[Extension] = [CExtension("minidynamo._C", sorted(glob("native/*.c")))]
if os.path.exists("native/tensor_guards.cpp"):
    EXTENSIONS.append(
        TorchExtension(
            "minidynamo._tensor_guards",
            ["native/tensor_guards.cpp"],
            what="C++ tensor guards",
            without="the slower Python leaf serves",
            flags=[],
        )
    )
if os.path.exists("native/openreg"):
    EXTENSIONS.append(
        TorchExtension(
            "minidynamo.openreg._C",
            sorted(glob("native/openreg/*.cpp")),
            what="the simulated accelerator",
            without="minidynamo.openreg cannot be imported",
            flags=["-O1", "-ffp-contract=off"],
            batch=11,
        )
    )

setup(ext_modules=EXTENSIONS, cmdclass={"build_ext": BuildExt})
