"""A recorded program behaves as under python: output, traceback, exit status, what it sees of
itself."""

import os
import signal
import zipfile
from pathlib import Path

import pexpect
import pytest

from beside import PYTHON, PYTRACE, assert_same, both, environment, run, write
from recording import read

# A program's view of itself. Only sys.orig_argv[0], the modules of pytrace and PYTRACE_RING may
# differ, and in development mode a codec with which 3.11 imports any extension module.
SELF = """
    import os, sys
    print(sys.argv, sys.orig_argv[1:], sys.path, sys.flags, sys.warnoptions)
    print(__name__, globals().get("__file__"), __builtins__, __package__, __spec__ and __spec__.name)
    print(sorted(globals()))
    mine = {"pytracer", "pytracer._hook", "pytracer.start", "encodings.ascii"}
    print(sorted(set(sys.modules) - mine))
    print(sorted(item for item in os.environ.items() if item[0] not in ("_", "PYTRACE_RING")))
    print(sys.getprofile(), sys.gettrace(), sys.getrecursionlimit(), sys.executable, os.getcwd())
    print(sys.stdin.isatty(), sys.stdin.encoding, sys.stdout.encoding, sys.stdout.line_buffering)
"""

SCRIPTS = {
    "nothing": "",
    "itself": SELF,
    "exit": "import sys; sys.exit()",
    "exit with status": "import sys; sys.exit(7)",
    "exit with large status": "import sys; sys.exit(1000)",
    "exit with negative status": "import sys; sys.exit(-1)",
    "exit with text": "import sys; sys.exit('goodbye')",
    "exit with object": "import sys; sys.exit(['a', 1])",
    "exit with None": "raise SystemExit(None)",
    "exit in finally": """
        try:
            1 / 0
        finally:
            raise SystemExit(3)
    """,
    "immediate exit": "import os; print('out', flush=True); os._exit(9)",
    "immediate exit with buffered output": "import os; print('lost'); os._exit(0)",
    "exit by C code in another thread": """
        import ctypes, threading
        def f(n): return n
        threading.Thread(target=ctypes.CDLL(None).exit, args=(5,)).start()
        while True:
            f(1)
    """,
    "exit by C code in a signal handler": """
        import ctypes, signal
        libc = ctypes.CDLL(None)
        libc.signal(signal.SIGALRM, ctypes.cast(libc.exit, ctypes.c_void_p))
        def f(n): return n
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        while True:
            f(1)
    """,
    "traceback": """
        def inner(value):
            return 1 / value

        def outer():
            inner(0)

        outer()
    """,
    "chained traceback": """
        class Refused(Exception):
            def __str__(self):
                return "refused: " + repr(self.args)

        def check(values):
            try:
                return [{}[value] for value in values]
            except KeyError as error:
                raise Refused(values) from error

        try:
            check("ab")
        except Refused:
            raise RuntimeError("context")
    """,
    "exception group": """
        def fail(n):
            raise ValueError(n)
        errors = []
        for n in range(3):
            try:
                fail(n)
            except ValueError as error:
                errors.append(error)
        raise ExceptionGroup("all", errors)
    """,
    "traceback in library code": "import json; json.loads('{')",
    "recursion": """
        def down(n):
            return down(n + 1)
        try:
            down(0)
        except RecursionError as error:
            print(error)
    """,
    "recursion depth": """
        import sys
        def down(n):
            try:
                return down(n + 1)
            except RecursionError:
                return n
        print(down(0))
    """,
    "excepthook": """
        import sys
        sys.excepthook = lambda *what: print("hook", what[0], what[1])
        raise KeyError("x")
    """,
    "atexit": """
        import atexit
        def last():
            print("last")
        atexit.register(last)
        class Failing:
            def __call__(self):
                1 / 0
            def __repr__(self):
                return "failing"
        atexit.register(Failing())
        print("first")
    """,
    "objects that end with the interpreter": """
        class Noisy:
            def __del__(self):
                print("deleted")
        noisy = Noisy()
    """,
    "threads": """
        import threading
        print(threading.active_count(), [t.name for t in threading.enumerate()])
        results = []
        def work(n):
            results.append(n * n)
        threads = [threading.Thread(target=work, args=(n,)) for n in range(5)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        print(sorted(results), threading.active_count())
    """,
    "exception in a thread": """
        import threading
        def work():
            raise ValueError("in a thread")
        thread = threading.Thread(target=work, name="worker")
        thread.start()
        thread.join()
    """,
    "exception in a thread that has no object": """
        import _thread, sys
        done = _thread.allocate_lock()
        done.acquire()
        def hook(unraisable):
            print(unraisable.object is work, (unraisable.err_msg or "")[:40])
            done.release()
        def work():
            1 / 0
        sys.unraisablehook = hook
        _thread.start_new_thread(work, ())
        done.acquire()
    """,
    "daemon thread": """
        import threading
        started = threading.Event()
        def work():
            while True:
                started.set()
        threading.Thread(target=work, daemon=True).start()
        started.wait()
        print("leaving")
    """,
    "threads that the system has": """
        import os
        print(len(os.listdir("/proc/self/task")))
    """,
    "descriptors": """
        import os
        print(sorted(os.listdir("/proc/self/fd")))
    """,
    "children": """
        import os
        try:
            os.wait()
        except ChildProcessError as error:
            print(error)
        pid = os.fork()
        if pid == 0:
            os._exit(5)
        print(os.waitstatus_to_exitcode(os.wait()[1]))
        try:
            os.waitpid(-1, 0)
        except ChildProcessError as error:
            print(error)
    """,
    "signals": """
        import signal
        print([(s.name, signal.getsignal(s)) for s in sorted(signal.valid_signals()) if hasattr(s, "name")])
        print(signal.pthread_sigmask(signal.SIG_BLOCK, []))
        print([line for line in open("/proc/self/status") if line.startswith("Sig")][2:])
        got = []
        signal.signal(signal.SIGUSR1, lambda *what: got.append(what[0]))
        signal.raise_signal(signal.SIGUSR1)
        print(got)
    """,
    "SIGCHLD": """
        import os, signal
        got = []
        signal.signal(signal.SIGCHLD, lambda *what: got.append(what[0]))
        os.waitpid(os.spawnvp(os.P_NOWAIT, "true", ["true"]), 0)
        print(len(got))
    """,
    "process group and session": """
        import os
        print(os.getpid() == os.getpgrp(), os.getsid(0) == os.getsid(os.getppid()), os.umask(0))
    """,
    "subprocesses": """
        import subprocess, sys
        code = "import sys; print(sys.argv, sorted(m for m in sys.modules if not m.startswith('pytracer')))"
        print(subprocess.run([sys.executable, "-c", code, "a"], capture_output=True, text=True))
        print(subprocess.run(["sh", "-c", "exit 3"]).returncode)
    """,
    "multiprocessing": """
        import multiprocessing
        def square(n):
            return n * n
        if __name__ == "__main__":
            for method in "fork", "spawn", "forkserver":
                with multiprocessing.get_context(method).Pool(2) as pool:
                    print(pool.map(square, range(5)))
    """,
    "execv": """
        import os, sys
        print("before", flush=True)
        os.execv(sys.executable, [sys.executable, "-c", "import sys; print(sys.argv, 'after')", "x"])
    """,
    "generators": """
        def count():
            try:
                while True:
                    yield (yield 1)
            finally:
                print("closed")
        g = count()
        print(next(g), g.send(5), next(g))
        try:
            g.throw(ValueError("thrown"))
        except ValueError as error:
            print(repr(error))
    """,
    "asyncio": """
        import asyncio
        async def child(n):
            await asyncio.sleep(0)
            return n
        async def main():
            print(await asyncio.gather(*(child(n) for n in range(3))))
            async with asyncio.timeout(0.01):
                await asyncio.sleep(10)
        asyncio.run(main())
    """,
    "tracing by the program": """
        import sys
        seen = []
        def profile(frame, event, arg):
            seen.append((event, getattr(arg, "__name__", None)))
        def other(frame, event, arg):
            seen.append(("other", event, getattr(arg, "__name__", None)))
        def f():
            return len([1])
        sys.setprofile(profile)
        f()
        sys.setprofile(other)
        f()
        sys.setprofile(None)
        list(map(sys.setprofile, [profile]))
        f()
        sys.setprofile(None)
        sorted([1, 2], key=lambda n: sys.setprofile(profile) or len([n]))
        sys.setprofile(None)
        sorted([1, 2], key=lambda n: sys.setprofile(profile) or sys.setprofile(other) or f())
        f()
        sys.setprofile(None)
        try:
            max([1, 2], key=lambda n: sys.setprofile(profile) or 1 // 0)
        except ZeroDivisionError:
            f()
        sys.setprofile(None)
        print(seen)
    """,
    "the module profile": """
        import profile
        def f():
            return len([1])
        recorded = profile.Profile()
        print(recorded.runcall(f))
        recorded.create_stats()
        print(sorted(name for file, line, name in recorded.stats if not name.startswith("<")))
    """,
    "warnings": """
        import warnings
        print("\\d")
        warnings.warn("careful")
    """,
    "closed streams": """
        import os
        os.close(2)
        os.close(0)
        print("still")
    """,
    "closed descriptors": """
        import os
        os.closerange(0, 256)
    """,
    "another file in place of standard error": """
        import os
        fd = os.open("log", os.O_CREAT | os.O_RDWR | os.O_TRUNC)
        os.dup2(fd, 2)
        os.write(2, b"mine")
    """,
    "syntax error": "def f(:\n    pass\n",
    "bad indentation": "def f():\nreturn 1\n",
    "null byte": "x = '\\0'\ny = 1 \0\n",
    "code after return outside": "return 5\n",
    "invalid escape": "print('\\\\d')\nx = '\\d'\n",
    "encoding": "# -*- coding: latin-1 -*-\nprint(ascii('é'))\n",
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_script(name: str, tmp_path: Path) -> None:
    write(tmp_path, "script.py", SCRIPTS[name])
    assert_same(tmp_path, "script.py", "one", "two words", "--option", "-q")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT, signal.SIGABRT])
def test_killed(number: int, tmp_path: Path) -> None:
    script = write(
        tmp_path, "script.py", f"import os; print(1, flush=True); os.kill(os.getpid(), {number})\nf()"
    )
    assert assert_same(tmp_path, script).status in (-number, 1)


def test_keyboard_interrupt(tmp_path: Path) -> None:
    script = write(tmp_path, "script.py", "def work():\n    raise KeyboardInterrupt\nwork()\n")
    assert assert_same(tmp_path, script).status == -signal.SIGINT


@pytest.mark.parametrize("arguments", [["-m", "tool", "a"], ["-mtool", "-m"], ["-m", "package", "-q"]])
def test_module(arguments: list[str], tmp_path: Path) -> None:
    for name in ("tool.py", "package/__init__.py", "package/__main__.py"):
        write(tmp_path, name, SELF)
    assert_same(tmp_path, *arguments)


@pytest.mark.parametrize(
    "module", ["nowhere", "package", "package.nowhere", "os.path", "json.tool", "__main__", ""]
)
def test_module_that_does_not_run(module: str, tmp_path: Path) -> None:
    write(tmp_path, "package/__init__.py", "")
    assert_same(tmp_path, "-m", module, "--help")


@pytest.mark.parametrize(
    "arguments", [["-c", SELF.replace("\n    ", "\n"), "a", "-c"], ["-cprint(1)"], ["-c", "1 +"]]
)
def test_code(arguments: list[str], tmp_path: Path) -> None:
    assert_same(tmp_path, *arguments)


def test_indented_code(tmp_path: Path) -> None:
    assert_same(tmp_path, "-c", "\n    print(1)\n    print(2)")


def test_standard_input(tmp_path: Path) -> None:
    assert_same(tmp_path, "-", "a", stdin=b"import sys; print(sys.argv, __name__)\n")
    write(tmp_path, "script.py", "import sys; print(sys.stdin.read())")
    assert_same(tmp_path, "script.py", stdin=b"some\ninput")


def test_folder(tmp_path: Path) -> None:
    write(tmp_path, "app/__main__.py", "import helper" + SELF.replace("\n    ", "\n"))
    write(tmp_path, "app/helper.py", "")
    assert_same(tmp_path, "app", "a")
    assert_same(tmp_path, "app/", "a")


def test_zip_file(tmp_path: Path) -> None:
    source = "import helper" + SELF.replace("\n    ", "\n")
    with zipfile.ZipFile(tmp_path / "app.zip", "w") as archive:
        archive.writestr("__main__.py", source)
        archive.writestr("helper.py", "")
    assert_same(tmp_path, "app.zip", "a")
    (tmp_path / "app").write_bytes(b"#!/usr/bin/env python3\n" + (tmp_path / "app.zip").read_bytes())
    assert_same(tmp_path, "app", "a")


def test_compiled_file(tmp_path: Path) -> None:
    script = write(tmp_path, "script.py", SELF)
    run([*PYTHON, "-c", f"import py_compile; py_compile.compile({script!r}, 'script.pyc')"], tmp_path)
    assert_same(tmp_path, "script.pyc", "a")


def test_symbolic_link(tmp_path: Path) -> None:
    write(tmp_path, "real/script.py", "import helper" + SELF.replace("\n    ", "\n"))
    write(tmp_path, "real/helper.py", "")
    (tmp_path / "link.py").symlink_to("real/script.py")
    assert_same(tmp_path, "link.py")


def test_names_that_are_not_unicode(tmp_path: Path) -> None:
    script = os.fsdecode(b"odd\xff.py")
    write(tmp_path, script, "import sys; print(ascii(sys.argv)); 1 / 0")
    assert assert_same(tmp_path, script, os.fsdecode(b"\xfe\xff"), "\n").status == 1


def test_long_command(tmp_path: Path) -> None:
    script = write(tmp_path, "script.py", "import sys; print(len(sys.argv))")
    assert assert_same(tmp_path, script, *["\u20ac" * 1000] * 100).stdout == b"101\n"


def test_named_pipe_in_place_of_a_script(tmp_path: Path) -> None:
    for command in (PYTHON, [*PYTRACE, "-q"]):
        done = run(["bash", "-c", f"{' '.join(command)} <(echo 'print(5)')"], tmp_path)
        assert done == (0, b"5\n", b"")


@pytest.mark.parametrize(
    "options",
    [
        ["-X", "dev"],
        ["-Xdev", "-W", "error"],
        ["-I"],
        ["-OO", "-s"],
        ["-P"],
        ["-bWignore"],
        ["-X", "utf8", "-u"],
    ],
)
def test_options_of_python(options: list[str], tmp_path: Path) -> None:
    script = write(tmp_path, "script.py", SELF.replace("import os, sys", "import os, sys\n    assert True"))
    plain = run([*PYTHON, *options, script, "a"], tmp_path)
    assert run([*PYTHON, *options, *PYTRACE, "-q", script, "a"], tmp_path) == plain
    assert run([*PYTHON, *options, "-m", "pytracer", "-q", script, "a"], tmp_path) == plain


def test_variables_of_python(tmp_path: Path) -> None:
    script = write(tmp_path, "script.py", SELF)
    for variables in (
        {"PYTHONPATH": "lib:/nowhere"},
        {"PYTHONOPTIMIZE": "2"},
        {"PYTHONUNBUFFERED": "1"},
        {"LC_ALL": "C"},
    ):
        assert_same(tmp_path, script, **variables)


def test_modules_of_the_current_folder_do_not_get_into_the_launcher(tmp_path: Path) -> None:
    # modules that runpy does not import: those, `python -m` itself would take from this folder
    for name in ("tomllib", "difflib", "errno", "zipimport"):
        write(tmp_path, f"{name}.py", "print('imported', __name__)")
    write(tmp_path, "pyproject.toml", "[tool.pytrace]\nquiet = true\n")
    write(tmp_path, "script.py", "print('script')")
    assert run([*PYTHON, "-m", "pytracer", "script.py"], tmp_path) == (0, b"script\n", b"")


def test_without_standard_streams(tmp_path: Path) -> None:
    source = "import os, sys; print(sys.stdin, sys.stderr, os.listdir('/proc/self/fd'))"
    script = write(tmp_path, "script.py", source)
    for closed in ("<&-", "2>&-", "<&- 2>&-", "<&- >&- 2>&-"):
        plain, recorded = (
            run(["sh", "-c", f"exec {command} {closed}"], tmp_path)
            for command in (f"{PYTHON[0]} {script}", f"{PYTRACE[0]} -q {script}")
        )
        assert recorded == plain
        assert run(["sh", "-c", f"{PYTRACE[0]} nowhere.py {closed}"], tmp_path).status == 2


def test_same_process(tmp_path: Path) -> None:
    script = write(tmp_path, "script.py", "import os; print(os.getpid())")
    done = run(["sh", "-c", f"echo $$; exec {PYTRACE[0]} -q {script}"], tmp_path)
    before, after = done.stdout.split()
    assert before == after


def test_status_of_a_closed_pipe(tmp_path: Path) -> None:
    script = write(tmp_path, "script.py", "for i in range(100000): print('x' * 100)")
    for command in (PYTHON, [*PYTRACE, "-q"]):
        done = run(
            ["bash", "-c", f"{' '.join(command)} {script} | head -1; echo ${{PIPESTATUS[0]}}"], tmp_path
        )
        assert done.stdout.split()[-1] == b"1"
        assert b"BrokenPipeError" in done.stderr


def test_ctrl_c(tmp_path: Path) -> None:
    """The terminal's Ctrl-C reaches the program, and the dumper still saves what was recorded."""
    script = write(
        tmp_path,
        "script.py",
        """
        import signal
        def work():
            print("ready", flush=True)
            signal.pause()
        try:
            work()
        except KeyboardInterrupt:
            print("interrupted", flush=True)
            raise SystemExit(4)
        """,
    )
    child = pexpect.spawn(PYTRACE[0], [script], cwd=str(tmp_path), env=environment(), encoding="utf-8")
    child.expect_exact("ready")
    child.sendintr()
    child.expect_exact("interrupted")
    child.expect_exact("events of 1 process in traces.sqlite")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 4
    work = [event for event in read(tmp_path / "traces.sqlite") if event["func"] == "work"]
    assert [event["kind"] for event in work] == ["call", "raise", "exception"]


def test_ctrl_c_without_a_handler(tmp_path: Path) -> None:
    script = write(tmp_path, "script.py", "import signal\nprint('ready', flush=True)\nsignal.pause()\n")
    child = pexpect.spawn(PYTRACE[0], [script], cwd=str(tmp_path), env=environment(), encoding="utf-8")
    child.expect_exact("ready")
    child.sendintr()
    child.expect_exact("KeyboardInterrupt")
    child.expect_exact("events of 1 process in traces.sqlite")
    child.expect(pexpect.EOF)
    child.close()
    assert child.signalstatus == signal.SIGINT


def test_interactive(tmp_path: Path) -> None:
    """python -i: the prompt comes up behind the script, and its names are there."""
    write(tmp_path, "script.py", "answer = 42\n")
    command = [*PYTHON, "-i", *PYTRACE, "-q", "script.py"]
    child = pexpect.spawn(
        command[0], command[1:], cwd=str(tmp_path), env=environment(TERM="dumb"), encoding="utf-8", echo=False
    )
    child.expect_exact(">>> ")
    child.sendline("answer + 1")
    child.expect_exact("43")
    child.expect_exact(">>> ")
    child.sendline("raise SystemExit(5)")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 5


def test_exit_in_a_signal_handler(tmp_path: Path) -> None:
    write(
        tmp_path,
        "script.py",
        """
        import os, signal, sys
        signal.signal(signal.SIGTERM, lambda *what: sys.exit(6))
        os.kill(os.getpid(), signal.SIGTERM)
        signal.pause()
        """,
    )
    assert assert_same(tmp_path, "script.py").status == 6


def test_only_the_modules_of_pytrace_are_more(tmp_path: Path) -> None:
    plain, recorded = both(tmp_path, "-c", "import sys; print(*sys.modules)")
    assert set(recorded.stdout.split()) - set(plain.stdout.split()) == {
        b"pytracer",
        b"pytracer._hook",
        b"pytracer.start",
    }


def test_environment_without_children(tmp_path: Path) -> None:
    code = "import os; print(os.environ.get('PYTRACE_RING'), os.system('test -z \"$PYTRACE_RING\"'))"
    assert run([*PYTRACE, "-q", "--no-children", "-c", code], tmp_path).stdout == b"None 0\n"


def test_standard_error_of_its_own(tmp_path: Path) -> None:
    """The summary does not go into a file that the program put in the place of standard error."""
    script = write(tmp_path, "script.py", SCRIPTS["another file in place of standard error"])
    assert run([*PYTRACE, script], tmp_path) == (0, b"", b"")
    assert (tmp_path / "log").read_bytes() == b"mine"


def test_gives_up_privileges(tmp_path: Path) -> None:
    """If the test's user has any."""
    user = 65534 if os.getuid() == 0 else os.getuid()
    assert_same(tmp_path, "-c", f"import os; os.setuid({user}); print(os.getuid())")
