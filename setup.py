"""Builds the three C modules, and lays out the packages.

`pytracer._hook` is the part that runs inside the traced program: plain C API, nothing else.
`pytracer._core` (cffi) gives the dumper the same ring, and the summaries. `pytracer.sqlite_trace`
is no Python module but an extension of SQLite, which the reader loads into its connection.
"""

import copy
import os
import platform
import sys
import sysconfig
import time
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent
PTH = "pytrace.pth"
MANUAL = "build/pytrace.1"
# the folders of csrc/ that an extension is made of; core_build.py has those of _core
HOOK = ("ring", "record")
QUERY = ("format", "query")
# Each folder with an __init__.py is a package; those beside pytracer/ become packages in it.
PACKAGES = {
    ".".join(["pytracer"] * (top != "pytracer") + [*folder.parts]): str(folder)
    for top in ("pytracer", "dumper", "reader")
    for folder in (path.parent.relative_to(ROOT) for path in (ROOT / top).rglob("__init__.py"))
}
FLAGS = ["-std=gnu11", "-O3", "-fvisibility=hidden", "-Wall", "-Wextra"]
if os.environ.get("PYTRACE_WERROR"):  # set by `make lint`
    FLAGS.append("-Werror")
if os.environ.get("PYTRACE_STATS"):  # set by `make STATS=1`
    FLAGS.append("-DPYTRACE_STATS")

if sys.platform != "linux" or platform.python_implementation() != "CPython":
    sys.exit("pytrace records CPython programs on Linux, and nothing else")
if sysconfig.get_config_var("Py_GIL_DISABLED"):
    sys.exit("pytrace does not support free-threaded builds of Python; use one with the GIL")


class BuildExtensions(build_ext):
    """Gives each extension a folder of its own for what is compiled.

    Two of them compile the same files, at the same time: one would link what the other is writing.
    """

    def build_extension(self, ext: Extension) -> None:
        own = copy.copy(self)
        own.build_temp = os.path.join(self.build_temp, ext.name.rpartition(".")[2])
        super(BuildExtensions, own).build_extension(ext)


def sources(folders: tuple[str, ...]) -> list[str]:
    """All that an extension compiles, as paths from the project's root."""
    return sorted(
        str(path.relative_to(ROOT)) for folder in folders for path in ROOT.glob(f"csrc/{folder}/*.c")
    )


HEADERS = sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("csrc/*/*.h"))


class BuildPython(build_py):
    """Adds the line that starts recording, and makes the manual page.

    The `.pth` file stands at the top of site-packages, where Python reads it at start-up. It does
    nothing unless the environment says that this process is to be recorded.
    """

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            # modules are imported from the tree; the rest of the wheel is made from this folder
            top = Path(self.get_finalized_command("install").install_lib)
        else:
            top = Path(self.build_lib)
        top.mkdir(parents=True, exist_ok=True)
        self.copy_file(str(ROOT / "pytracer" / PTH), str(top / PTH), preserve_mode=False)
        self.mkpath(str(Path(MANUAL).parent))
        Path(MANUAL).write_text(self._manual())

    def _manual(self) -> str:
        """pytrace(1), of the tables of options in the tree, where reader/ is not yet below
        pytracer/. The Python that builds may have an older version installed: the tree comes
        first."""
        sys.path.insert(0, str(ROOT))
        import pytracer

        pytracer.__path__.append(str(ROOT))
        from pytracer.manual import page

        built = time.gmtime(int(os.environ.get("SOURCE_DATE_EPOCH", time.time())))
        return page(self.distribution.get_version(), time.strftime("%Y-%m-%d", built))

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        outputs = list(super().get_outputs(include_bytecode))
        return outputs if self.editable_mode else [*outputs, os.path.join(self.build_lib, PTH)]


setup(
    cmdclass={"build_py": BuildPython, "build_ext": BuildExtensions},
    packages=sorted(PACKAGES),
    package_dir=PACKAGES,
    package_data={"pytracer": ["py.typed", "_hook.pyi"], "pytracer.dumper": ["schema.sql"]},
    include_package_data=False,
    py_modules=["pytrace"],
    data_files=[("share/man/man1", [MANUAL])],
    ext_modules=[
        Extension(
            "pytracer._hook",
            sources=sources(HOOK),
            depends=HEADERS,
            include_dirs=["csrc"],
            extra_compile_args=FLAGS,
            extra_link_args=["-Wl,-z,noseparate-code"],  # fewer mappings: each costs a fork some µs
        ),
        Extension(
            "pytracer.sqlite_trace",
            sources=sources(QUERY),
            depends=HEADERS,
            include_dirs=["csrc"],
            extra_compile_args=[*FLAGS, "-pthread"],
            extra_link_args=["-pthread"],
            libraries=["dl"],
        ),
    ],
    cffi_modules=["csrc/core_build.py:ffi"],
    options={"build_ext": {"parallel": os.cpu_count()}},
)
