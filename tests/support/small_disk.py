"""A disk that is full when a test wants it to be: a small file system in memory if one may be
mounted, else a bound on the size of the dumper's files. Called by test_faults_*.py."""

import os
import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

LEFT = 200_000  # bytes that the database finds


class SmallDisk:
    """`folder` is on it."""

    def __init__(self, folder: Path, mounted: bool) -> None:
        self.folder = folder
        self.mounted = mounted
        self._dumper = 0

    def fill(self, dumper: int) -> None:
        """From now on there is hardly any room. dumper: pid of the only one that writes here."""
        self._dumper = dumper
        if self.mounted:
            status = os.statvfs(self.folder)
            # suppress: the disk may be full sooner
            with open(self.folder / "filling", "wb") as file, suppress(OSError):
                file.write(bytes(status.f_bavail * status.f_frsize - LEFT))
        else:
            size = max(path.stat().st_size for path in self.folder.iterdir()) + LEFT
            resource.prlimit(dumper, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    def room(self) -> bool:
        """False: it is full."""
        if self.mounted:
            return os.statvfs(self.folder).f_bavail > 0
        return False

    def empty(self) -> None:
        """There is room again."""
        if self.mounted:
            (self.folder / "filling").unlink()
        else:
            resource.prlimit(self._dumper, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)


@contextmanager
def small_disk(folder: Path) -> Iterator[SmallDisk]:
    """Mounted at `folder` while it is in use."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", folder]
    mounted = subprocess.run(mount, capture_output=True).returncode == 0
    try:
        yield SmallDisk(folder, mounted)
    finally:
        if mounted:
            subprocess.run(["umount", "--lazy", folder], check=True)
