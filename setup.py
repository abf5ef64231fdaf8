"""Builds the three C modules and the protobuf module, and lays out the packages.

`pytracer._hook` is the part that runs inside the traced program: plain C API, nothing else.
`pytracer._core` (cffi) gives the dumper the same ring, and the summaries. `pytracer.sqlite_trace`
is no Python module but an extension of SQLite, which the reader loads into its connection.
"""

import os
import platform
import sys
import sysconfig
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent
PTH = "pytrace.pth"
HOOK = ("module", "hook", "lanes", "task", "monitoring", "profile", "codes", "values", "ring", "session")
QUERY = (
    "sqlite_trace", "sqlite_calls", "sqlite_hot", "sqlite_store", "calls", "hot", "scan", "predicate",
    "predicate_parse", "trail", "like", "definitions", "summary", "arguments", "zstd", "event", "segment",
    "text", "number",
)  # fmt: skip
FLAGS = ["-std=gnu11", "-O3", "-fvisibility=hidden", "-Wall", "-Wextra"]
if os.environ.get("PYTRACE_WERROR"):  # set by `make lint`
    FLAGS.append("-Werror")

if sys.platform != "linux" or platform.python_implementation() != "CPython":
    sys.exit("pytrace records CPython programs on Linux, and nothing else")
if sysconfig.get_config_var("Py_GIL_DISABLED"):
    sys.exit("pytrace does not support free-threaded builds of Python; use one with the GIL")


class BuildPython(build_py):
    """Adds what is made from sources: the protobuf module, and the line that starts recording.

    The `.pth` file stands at the top of site-packages, where Python reads it at start-up. It does
    nothing unless the environment says that this process is to be recorded.
    """

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            # modules are imported from the tree; the rest of the wheel is made from this folder
            package = ROOT / "pytracer"
            top = Path(self.get_finalized_command("install").install_lib)
        else:
            package = Path(self.build_lib) / "pytracer"
            top = Path(self.build_lib)
        self._protobuf(package)
        top.mkdir(parents=True, exist_ok=True)
        self.copy_file(str(ROOT / "pytracer" / PTH), str(top / PTH), preserve_mode=False)

    def _protobuf(self, package: Path) -> None:
        from grpc_tools import protoc

        proto = ROOT / "proto"
        package.mkdir(parents=True, exist_ok=True)
        status = protoc.main(["protoc", f"-I{proto}", f"--python_out={package}", str(proto / "trace.proto")])
        if status:
            sys.exit(f"protoc failed with status {status}")

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        made = ["pytracer/trace_pb2.py", PTH]
        return [
            *super().get_outputs(include_bytecode),
            *([] if self.editable_mode else [os.path.join(self.build_lib, name) for name in made]),
        ]


setup(
    cmdclass={"build_py": BuildPython},
    packages=["pytracer", "pytracer.dumper", "pytracer.reader", "pytracer.reader.screen"],
    package_dir={
        "pytracer": "pytracer",
        "pytracer.dumper": "dumper",
        "pytracer.reader": "reader",
        "pytracer.reader.screen": "reader/screen",
    },
    package_data={"pytracer": ["py.typed", "_hook.pyi"], "pytracer.dumper": ["schema.sql"]},
    include_package_data=False,
    py_modules=["pytrace"],
    ext_modules=[
        Extension(
            "pytracer._hook",
            sources=[f"csrc/{name}.c" for name in HOOK],
            depends=sorted(f"csrc/{header.name}" for header in (ROOT / "csrc").glob("*.h")),
            extra_compile_args=FLAGS,
            extra_link_args=["-Wl,-z,noseparate-code"],  # fewer mappings: each costs a fork some µs
        ),
        Extension(
            "pytracer.sqlite_trace",
            sources=[f"csrc/{name}.c" for name in QUERY],
            depends=sorted(f"csrc/{header.name}" for header in (ROOT / "csrc").glob("*.h")),
            extra_compile_args=[*FLAGS, "-pthread"],
            extra_link_args=["-pthread"],
            libraries=["dl"],
        ),
    ],
    cffi_modules=["csrc/core_build.py:ffi"],
)
