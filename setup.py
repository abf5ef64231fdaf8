"""Builds the two C extensions and the protobuf module, and lays out the packages.

`pytracer._hook` is the part that runs inside the traced program: plain C API, nothing else.
`pytracer._core` (cffi) gives the dumper and the reader the same ring, records and segments.
"""

import os
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent
PTH = "pytrace.pth"


class BuildPython(build_py):
    """Adds what is made from sources: the protobuf module, and the line that starts recording.

    The `.pth` file stands at the top of site-packages. It does nothing unless the environment
    says that this process is to be recorded.
    """

    def run(self) -> None:
        super().run()
        package = ROOT / "pytracer" if self.editable_mode else Path(self.build_lib) / "pytracer"
        self._protobuf(package)
        if self.editable_mode:
            # the wheel that pip installs is made from this folder
            top = Path(self.get_finalized_command("install").install_lib)
        else:
            top = Path(self.build_lib)
        top.mkdir(parents=True, exist_ok=True)
        self.copy_file(str(ROOT / "pytracer" / PTH), str(top / PTH), preserve_mode=False)

    def _protobuf(self, package: Path) -> None:
        from grpc_tools import protoc

        package.mkdir(parents=True, exist_ok=True)
        status = protoc.main(
            ["protoc", f"-I{ROOT / 'proto'}", f"--python_out={package}", str(ROOT / "proto" / "trace.proto")]
        )
        if status:
            sys.exit(f"protoc failed with status {status}")

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        made = [] if self.editable_mode else [os.path.join(self.build_lib, PTH)]
        return super().get_outputs(include_bytecode) + made


STRICT = ["-std=gnu11", "-O2", "-fvisibility=hidden", "-Wall", "-Wextra"]
if os.environ.get("PYTRACE_WERROR"):
    STRICT.append("-Werror")

setup(
    cmdclass={"build_py": BuildPython},
    package_dir={"pytracer": "pytracer", "pytracer.dumper": "dumper", "pytracer.reader": "reader"},
    packages=["pytracer", "pytracer.dumper", "pytracer.reader"],
    package_data={"pytracer.dumper": ["schema.sql"], "pytracer": ["py.typed"]},
    py_modules=["pytrace"],
    ext_modules=[
        Extension(
            "pytracer._hook",
            sources=[f"csrc/{name}.c" for name in ("module", "hook", "codes", "values", "ring", "session")],
            depends=[str(path) for path in Path("csrc").glob("*.h")],
            extra_compile_args=STRICT,
        )
    ],
    cffi_modules=["csrc/core_build.py:ffi"],
)
