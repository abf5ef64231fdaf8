"""Tests of CPython that see their recording, and why; docs/limits.md has it in words. Read by cpython.py.

A row: the versions of Python, a pattern for a test's name, the reason.
"""

V311, V312, V313, V314, V315 = ((3, minor) for minor in range(11, 16))

UNINSTRUMENTED = (
    "beside any tool that asks for exceptions, CPython crashes at one in a function that could not be "
    "instrumented (it begins with an unknown opcode, or there was no memory)"
)

ATTACHED = "CPython takes only code for stateless to which nothing is attached (co_extra), as pytrace does"

# Not run at all, bare or recorded: what would end all tests of a process. Versions, a pattern, the reason.
LEFT_OUT: list[tuple[set[tuple[int, int]], str, str]] = [
    ({V315}, "test_invalid_bytecode", UNINSTRUMENTED),
]

KNOWN: list[tuple[set[tuple[int, int]], str, str]] = [
    (
        {V313, V314, V315},
        "test.test_pdb.*",
        "opcode events of sys.settrace are lost beside any tool of sys.monitoring (cpython#157900)",
    ),
    (
        {V311, V312, V313, V314, V315},
        "test.test_dis.*specialize*",
        "dis(adaptive=True) shows the instructions that run: instrumented from 3.12, unspecialized on 3.11",
    ),
    (
        {V311, V312, V313, V314, V315},
        "test.test_dis.*test_loop_quicken",
        "dis(adaptive=True) shows the instructions that run: instrumented from 3.12, unspecialized on 3.11",
    ),
    (
        {V311, V312, V313, V314, V315},
        "test.test_dis.*test_super_instructions",
        "dis(adaptive=True) shows the instructions that run: instrumented from 3.12, unspecialized on 3.11",
    ),
    ({V314, V315}, "test.test_code.CodeTest.test_stateless", ATTACHED),
    ({V314, V315}, "test.test_interpreters.*.test_stateless_func_returns_arg", ATTACHED),
    ({V315}, "test.test_exceptions.*.test_exec_set_nomemory_hang", UNINSTRUMENTED),
    ({V315}, "test.test_exceptions.*.test_memory_error_in_PyErr_PrintEx", UNINSTRUMENTED),
    ({V315}, "test.test_repl.*.test_no_memory", UNINSTRUMENTED),
    ({V315}, "test.test_atexit.*.test_atexit_with_low_memory", UNINSTRUMENTED),
    (
        {V315},
        "test.test_faulthandler.*.test_dump_ext_modules",
        "faulthandler names pytracer._hook among the extension modules",
    ),
    (
        {V314, V315},
        "test.test_sys.TestSysJIT.test_jit_is_active",
        "CPython's JIT does not follow a call that somebody listens to",
    ),
    (
        {V311},
        "test.test_frame.*test_sneaky_frame_object",
        "a profile function makes a frame object of each call, at its beginning",
    ),
    (
        {V311},
        "test.test_profile.ProfileTest.*",
        "profile sees the return of the sys.setprofile that started it",
    ),
]
