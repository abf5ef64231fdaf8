"""Switches on what pytrace is compared with, inside the measured process.

What they record is thrown away: what they do after the program's end is not measured.
"""

import sys
from importlib import import_module
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_loader
from typing import Any

CALL_EVENTS = ("PY_START", "PY_RETURN")
# what pytrace registers
ALL_EVENTS = (*CALL_EVENTS, "PY_RESUME", "PY_YIELD", "PY_THROW", "PY_UNWIND", "RAISE")
LINE_EVENTS = ("PY_START", "PY_RETURN", "LINE")
C_EVENTS = (*CALL_EVENTS, "CALL", "C_RETURN", "C_RAISE")

_running: list[Any] = []  # keeps them alive


def start_nothing(library: str, kind: str) -> None:
    """Every call goes through callbacks that do nothing: `library`, built from noop.c.

    `kind`: `fastcall` or `vectorcall` for the events of calls, `all` for vectorcall with every
    event that pytrace registers, `lines` with LINE, PY_START and PY_RETURN, `calls` with CALL,
    C_RETURN, C_RAISE and these two; on Python 3.11 always PyEval_SetProfile.
    """
    loader = ExtensionFileLoader("_noop", library)
    spec = spec_from_loader("_noop", loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    if sys.version_info < (3, 12):
        module.profile(True)
        return
    monitoring = sys.monitoring
    tool = monitoring.PROFILER_ID
    monitoring.use_tool_id(tool, "nothing")
    callback = module.fastcall if kind == "fastcall" else module.vectorcall
    events = 0
    for name in {"all": ALL_EVENTS, "lines": LINE_EVENTS, "calls": C_EVENTS}.get(kind, CALL_EVENTS):
        event = getattr(monitoring.events, name)
        monitoring.register_callback(tool, event, callback)
        events |= event
    monitoring.set_events(tool, events)


def start(tracer: str, library: str, scratch: str) -> None:
    """Begins tracing this process with `tracer`, a name and perhaps a colon and a variant.

    `library`: see start_nothing. `scratch`: a folder for whatever the tracer writes.
    """
    name, _, variant = tracer.partition(":")
    if name == "noop":
        start_nothing(library, variant)
    elif name == "trace0":
        _running.append(import_module("trace0").Tracer(f"{scratch}/trace0.pb").__enter__())
    elif name == "viztracer":
        values = variant == "values"
        viztracer = import_module("viztracer").VizTracer(
            log_func_args=values, log_func_retval=values, verbose=0
        )
        viztracer.start()
        _running.append(viztracer)
    elif name == "pyttd":  # as `pyttd record`, but without the forks that it makes for checkpoints
        import_module("pyttd").start_recording(f"{scratch}/pyttd.db", checkpoint_interval=0)
    elif name == "cProfile":
        profile = import_module("cProfile").Profile()
        profile.enable()
        _running.append(profile)
    else:
        raise ValueError(f"no such tracer: {tracer}")
