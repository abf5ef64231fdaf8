"""The machine is checked before anything is built: its mirror of Debian, and the tools it has."""

import os
import shutil
import subprocess
from hashlib import sha256
from pathlib import Path

import pexpect
import pytest

ROOT = Path(__file__).parents[2]

OTHERS = "deb [trusted=yes] file:{folder}/others stable main\n"
ONE_LINE = "deb [trusted=yes] file:{folder}/mirror bookworm main\n"
DEB822 = "Types: deb\nURIs: file:{folder}/mirror\nSuites: bookworm\nComponents: main\nTrusted: yes\n"


def repository(folder: Path, suite: str, origin: str, label: str) -> None:
    """One of a single package."""
    data = b"Package: nothing\nVersion: 1\nArchitecture: amd64\nFilename: nothing.deb\nSize: 0\n\n"
    packages = folder / "dists" / suite / "main" / "binary-amd64" / "Packages"
    packages.parent.mkdir(parents=True)
    packages.write_bytes(data)
    (folder / "dists" / suite / "Release").write_text(
        f"Origin: {origin}\nLabel: {label}\nSuite: {suite}\nCodename: {suite}\nComponents: main\n"
        f"Date: Sat, 06 Jun 2026 08:00:00 UTC\nArchitectures: amd64\nSHA256:\n"
        f" {sha256(data).hexdigest()} {len(data)} main/binary-amd64/Packages\n"
    )


def mirror(folder: Path, **sources: str) -> str:
    """The output of .ci/mirror on a machine with these files of sources."""
    for part in ("parts", "lists", "cache"):
        (folder / part).mkdir()
    for name, text in sources.items():
        (folder / "parts" / name.replace("_", ".")).write_text(text.format(folder=folder))
    (folder / "apt.conf").write_text(f"""
        Dir::Etc::sourcelist "/dev/null"; Dir::Etc::sourceparts "{folder}/parts";
        Dir::State::lists "{folder}/lists"; Dir::Cache "{folder}/cache";
        APT::Architecture "amd64"; APT::Architectures "amd64"; APT::Sandbox::User "";
    """)
    kept = os.environ | {"APT_CONFIG": str(folder / "apt.conf")}
    subprocess.run(["apt-get", "update", "-qq"], env=kept, check=True)
    done = subprocess.run([ROOT / ".ci" / "mirror"], env=kept, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.mark.skipif(not shutil.which("apt-get"), reason="apt's sources are looked at")
class TestMirror:
    @pytest.mark.parametrize("sources", [{"debian_list": ONE_LINE}, {"debian_sources": DEB822}])
    def test_it_is_what_the_sources_name(self, tmp_path: Path, sources: dict[str, str]) -> None:
        repository(tmp_path / "others", "stable", "Others", "Debian")
        repository(tmp_path / "mirror", "bookworm", "Debian", "Debian")
        found = mirror(tmp_path, a_list=OTHERS, **sources)
        assert found.rstrip("/") == f"file:{tmp_path}/mirror"

    def test_there_is_none_on_another_distribution(self, tmp_path: Path) -> None:
        repository(tmp_path / "others", "stable", "Others", "Debian")
        assert mirror(tmp_path, a_list=OTHERS) == ""


def test_no_address_of_a_mirror_is_in_the_project() -> None:
    for path in [ROOT / "Makefile", *(ROOT / ".ci").iterdir(), *(ROOT / "examples").rglob("*.*")]:
        assert "://" not in path.read_text(), path


# ---- tools ---------------------------------------------------------------------------------------

DEBIAN, FEDORA, ARCH = "ID=debian", 'ID=rocky\nID_LIKE="rhel centos fedora"', "ID=arch"
TOOLS = ("bash", "env", "sh", "dirname", "cut", "xargs", "grep", "sort", "echo", "printf", "cat")
ALL = "libc6-dev libsqlite3-dev python3 python3-dev python3-venv"


class Bare:
    """A machine with a few tools, an /etc/os-release, and a user."""

    def __init__(self, folder: Path, release: str, user: int = 1000) -> None:
        self.bin = folder / "bin"
        self.bin.mkdir()
        for tool in TOOLS:
            found = shutil.which(tool, path="/usr/bin:/bin")
            assert found
            (self.bin / tool).symlink_to(found)
        self.script("id", f"echo {user}")
        (folder / "release").write_text(release)
        self.environment = {
            "PATH": str(self.bin), "OS_RELEASE": str(folder / "release"), "PYENV_ROOT": "/none",
        }  # fmt: skip

    def script(self, name: str, text: str) -> None:
        (self.bin / name).write_text(f"#!/bin/sh\n{text}\n")
        (self.bin / name).chmod(0o755)

    def compiler(self, *headers: str) -> None:
        """One that finds these headers alone."""
        folder = self.bin.parent / "include"
        folder.mkdir(exist_ok=True)
        for header in headers:
            (folder / header).touch()
        self.script("cc", f'PATH="{os.environ["PATH"]}" exec cc -nostdinc -isystem {folder} "$@"')

    def python(self, version: str, *lacks: str) -> None:
        """One that says it lacks this when it is looked at."""
        (self.bin / f"python{version}").unlink(missing_ok=True)
        usable = f"echo /bin/python{version}" if not lacks else "exit 1"
        told = "; ".join(f"echo {what}" for what in lacks) or ":"
        self.script(f"python{version}", f'case "$*" in *sys.executable*) {usable};; *) {told};; esac')

    def needs(self, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        command = [str(self.bin / "bash"), str(ROOT / ".ci" / "needs"), *arguments]
        return subprocess.run(
            command, env=self.environment | more, capture_output=True, text=True, stdin=subprocess.DEVNULL
        )


def commands(done: subprocess.CompletedProcess[str]) -> list[str]:
    """The lines to copy."""
    return [line.strip() for line in done.stderr.splitlines() if line.startswith("    ")]


def test_nothing_is_said_where_nothing_is_missing(tmp_path: Path) -> None:
    bare = Bare(tmp_path, DEBIAN)
    bare.compiler("stdlib.h", "sqlite3ext.h")
    bare.python("3")
    done = bare.needs()
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_all_that_is_missing_is_named_at_once(tmp_path: Path) -> None:
    bare = Bare(tmp_path, DEBIAN)
    bare.compiler()
    bare.python("3", "headers", "venv")
    done = bare.needs(CC="none")
    assert done.returncode == 1
    assert "a C compiler (none)" in done.stderr
    done = bare.needs()
    assert done.returncode == 1
    assert commands(done) == [
        'sudo sh -c "apt-get update && apt-get install libc6-dev libsqlite3-dev python3-dev python3-venv"'
    ]
    for named in ("stdlib.h", "sqlite3ext.h", "Python.h", "ensurepip"):
        assert done.stderr.count(named) == 1


@pytest.mark.parametrize(
    ("release", "line"),
    [
        (DEBIAN, f"apt-get update && apt-get install {ALL}"),
        ("ID=linuxmint\nID_LIKE=ubuntu", f"apt-get update && apt-get install {ALL}"),
        (FEDORA, "dnf install glibc-devel python3 python3-devel python3-libs sqlite-devel"),
        (ARCH, "pacman -S --needed glibc python sqlite"),
        ('ID="opensuse-leap"\nID_LIKE="suse opensuse"',
         "zypper install glibc-devel python3 python3-devel sqlite3-devel"),
        ("ID=alpine", "apk add musl-dev python3 python3-dev sqlite-dev"),
    ],
)  # fmt: skip
def test_each_distribution_has_its_own_line(tmp_path: Path, release: str, line: str) -> None:
    bare = Bare(tmp_path, release, user=0)
    bare.compiler()
    done = bare.needs()
    assert done.returncode == 1
    assert commands(done) == [line]


def test_an_unknown_distribution_is_told_what_is_missing(tmp_path: Path) -> None:
    done = Bare(tmp_path, "ID=nobody").needs()
    assert (done.returncode, commands(done)) == (1, [])
    assert "a C compiler (cc)" in done.stderr


def test_a_chosen_python_has_packages_of_its_own(tmp_path: Path) -> None:
    bare = Bare(tmp_path, DEBIAN, user=0)
    bare.compiler("stdlib.h", "sqlite3ext.h")
    bare.python("3")
    bare.python("3.13", "headers", "venv")
    assert commands(bare.needs("python3.13")) == [
        "apt-get update && apt-get install python3.13-dev python3.13-venv"
    ]


class TestInstalling:
    @pytest.fixture(name="bare")
    def bare_fixture(self, tmp_path: Path) -> Bare:
        """Root on a Debian without SQLite's headers, whose apt-get installs what it is told to."""
        bare = Bare(tmp_path, DEBIAN, user=0)
        bare.compiler("stdlib.h")
        bare.python("3")
        note = f'echo "$@" >> {tmp_path}/apt; '
        bare.script("apt-get", f'{note} [ "$1" = update ] || : > {tmp_path}/include/sqlite3ext.h')
        return bare

    def test_never_without_asking(self, bare: Bare) -> None:
        assert bare.needs().returncode == 1
        assert not (bare.bin.parent / "apt").exists()

    def test_ci_is_not_asked(self, bare: Bare) -> None:
        assert bare.needs(CI="true").returncode == 0
        assert (bare.bin.parent / "apt").read_text() == "update\ninstall libsqlite3-dev -y\n"

    @pytest.mark.parametrize(("answer", "status"), [("y", 0), ("n", 1), ("", 1)])
    def test_somebody_at_a_terminal_is_asked(self, bare: Bare, answer: str, status: int) -> None:
        command = [str(ROOT / ".ci" / "needs")]
        child = pexpect.spawn(str(bare.bin / "bash"), command, env=bare.environment, encoding="utf-8")
        child.expect_exact("apt-get update && apt-get install libsqlite3-dev")
        child.expect_exact("[y/N]")
        child.sendline(answer)
        child.expect(pexpect.EOF)
        child.close()
        assert child.exitstatus == status
        assert (bare.bin.parent / "apt").exists() == (status == 0)
