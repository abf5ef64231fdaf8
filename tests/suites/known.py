"""Tests of CPython that see their recording, and why; docs/limits.md has it in words. Read by
cpython.py.

A row: the versions of Python, a pattern for a test's name, the reason.
"""

V311, V312, V313, V314, V315 = ((3, minor) for minor in range(11, 16))

UNINSTRUMENTED = (
    "beside any tool that asks for exceptions, CPython crashes at one in a function that could not be "
    "instrumented (it begins with an unknown opcode, or there was no memory)"
)

ATTACHED = "CPython takes only code for stateless to which nothing is attached (co_extra), as pytrace does"

# Exactly the tests that end so beside a tool whose callbacks do nothing. Their output is the same
# then, too.
OPCODES = "opcode events of sys.settrace are lost beside any tool of sys.monitoring (cpython#157900)"
PDB_313 = """
    test_convenience_variables test_list_commands test_next_until_return_at_return_event
    test_pdb_alias_command test_pdb_ambiguous_statements test_pdb_basic_commands
    test_pdb_breakpoint_commands test_pdb_breakpoint_with_filename test_pdb_closure
    test_pdb_continue_in_bottomframe test_pdb_display_command test_pdb_displayhook test_pdb_empty_line
    test_pdb_f_trace_lines test_pdb_function_break test_pdb_interact_command test_pdb_invalid_arg
    test_pdb_issue_20766 test_pdb_issue_43318 test_pdb_issue_gh_101517 test_pdb_issue_gh_101673
    test_pdb_issue_gh_103225 test_pdb_issue_gh_108976 test_pdb_issue_gh_65052 test_pdb_issue_gh_80731
    test_pdb_issue_gh_91742 test_pdb_issue_gh_94215 test_pdb_multiline_statement
    test_pdb_next_command_for_asyncgen test_pdb_next_command_for_coroutine
    test_pdb_next_command_for_generator test_pdb_next_command_in_generator_for_loop
    test_pdb_next_command_subiterator test_pdb_pp_repr_exc test_pdb_return_command_for_coroutine
    test_pdb_return_command_for_generator test_pdb_return_to_different_file
    test_pdb_show_attribute_and_item test_pdb_skip_modules test_pdb_skip_modules_with_callback
    test_pdb_until_command_for_coroutine test_pdb_until_command_for_generator test_pdb_whatis_command
    test_pdb_where_command test_post_mortem
"""
PDB_314 = """
    PdbTestInline.test_set_trace_with_skip test_pdb_asynctask test_pdb_break_anywhere
    test_pdb_breakpoint_ignore_and_condition test_pdb_breakpoint_on_annotated_function_def
    test_pdb_breakpoint_on_disabled_line test_pdb_breakpoint_with_throw test_pdb_commands
    test_pdb_commands_with_set_trace test_pdb_frame_refleak test_pdb_issue_gh_136057
    test_pdb_restart_command test_pdb_until_skip_comprehension test_pdb_with_inline_breakpoint
"""
PDB_315 = "test_pdb_commands_last_breakpoint"

# Not run at all, bare or recorded: what would end all tests of a process. Versions, a pattern, the
# reason.
LEFT_OUT: list[tuple[set[tuple[int, int]], str, str]] = [
    ({V315}, "test_invalid_bytecode", UNINSTRUMENTED),
]

KNOWN: list[tuple[set[tuple[int, int]], str, str]] = [
    *(({V313, V314, V315}, f"test.test_pdb.{name}", OPCODES) for name in PDB_313.split()),
    *(({V314, V315}, f"test.test_pdb.{name}", OPCODES) for name in PDB_314.split()),
    *(({V315}, f"test.test_pdb.{name}", OPCODES) for name in PDB_315.split()),
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
]
