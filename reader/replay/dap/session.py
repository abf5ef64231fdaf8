"""A session of a client: one method a request, named after it.

A handler returns the response's body; what happens after the response (events, a walk through the
recording) it leaves in `_then`. A walk ends in one `stopped` event, wherever that is: the end of a
recording is a place to stop at, from which one can go back.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from itertools import islice
from types import SimpleNamespace
from typing import Any

from ...database import DEFAULT_PATH, Database, DatabaseError
from ...printing import chosen
from ..expressions import ExpressionError, parse
from ..history import History
from ..moment import Moment
from ..places import line_predicate
from ..state import Item, outcome
from ..when import WhenError, event_id
from ..when import parse as parse_when
from .files import Files
from .protocol import Channel, Fields, Interrupted, RequestError
from .stops import FILTERS, Stops
from .view import Shown, View

_CAPABILITIES = (
    "supportsConfigurationDoneRequest", "supportsStepBack", "supportsConditionalBreakpoints",
    "supportsHitConditionalBreakpoints", "supportsLogPoints", "supportsFunctionBreakpoints",
    "supportsEvaluateForHovers", "supportsDataBreakpoints", "supportsGotoTargetsRequest",
    "supportsExceptionInfoRequest", "supportsDelayedStackTraceLoading", "supportsTerminateRequest",
    "supportsBreakpointLocationsRequest", "supportsLoadedSourcesRequest", "supportsRestartRequest",
    "supportsRestartFrame", "supportsCancelRequest", "supportsCompletionsRequest",
)  # fmt: skip
_ENDS, _BEGINS = "the recording ends here", "the recording begins here"
_BEFORE_LAUNCH = ("initialize", "launch", "attach", "disconnect", "terminate", "cancel")
_LINES = ("line", "endLine")  # fields of requests and responses
_TARGETS = 50  # moments that a line is offered with, before and behind the present one


class Session:
    """options: `database`, `run` and `at` of the command line."""

    def __init__(self, channel: Channel, options: SimpleNamespace) -> None:
        self._channel, self._options = channel, options
        self._database: Database | None = None
        self._then: list[Callable[[], None]] = []
        self._handled = 0  # seq of the request that is being answered
        self._walks = False
        self._seen = 0  # waiting messages that do not interrupt it
        self._initialized = self._ended = False
        self._first = 1  # the number of the first line, for the client
        self._stops_at_entry = True
        self._targets: dict[int, Moment] = {}
        self._by_thread: dict[int, Moment | None] = {}

    def close(self) -> None:
        if self._database is not None:
            self._database.close()

    # ---- requests and responses ----

    def serve(self) -> None:
        """Answers requests until the client leaves. Raises OSError."""
        while not self._ended and (received := self._channel.receive()):
            problem = received.problem or _mistake(received.body)
            if problem:  # there is no number to respond to
                self._log(f"pytrace cannot read a message: {problem}", "stderr")
            elif received.body["type"] == "request":
                self._answer(received.body)

    def _answer(self, request: dict[str, Any]) -> None:
        command, seq, arguments = request["command"], request["seq"], request.get("arguments")
        self._handled, self._seen, self._then = seq, 0, []
        problem, body = "", None
        try:
            if arguments is not None and not isinstance(arguments, dict):
                raise RequestError(f"{command}: arguments has to be an object")
            self._watch()
            body = self._handler(command)(Fields(self._shifted(arguments or {}, 1 - self._first), command))
        except (RequestError, DatabaseError) as error:
            problem = str(error)
        except Interrupted:
            problem = "cancelled"
        self._respond(seq, command, problem, body)
        if not problem:
            for then in self._then:
                then()

    def _shifted(self, value: Any, by: int) -> Any:
        """The same with other numbers of lines: a client may count them from 0."""
        if not by or not isinstance(value, (dict, list)):
            return value
        if isinstance(value, list):
            return [self._shifted(each, by) for each in value]
        return {
            name: each + by if name in _LINES and isinstance(each, int) else self._shifted(each, by)
            for name, each in value.items()
        }

    def _handler(self, command: str) -> Callable[[Fields], dict[str, Any] | None]:
        handler = getattr(self, f"{command}_request", None) if command.isidentifier() else None
        if handler is None:
            raise RequestError(f"pytrace does not know the request {command[:100]}")
        if not self._initialized and command not in ("initialize", "disconnect"):
            raise RequestError("the first request is initialize")
        if self._database is None and command not in _BEFORE_LAUNCH:
            raise RequestError("no recording is open: launch comes first")
        found: Callable[[Fields], dict[str, Any] | None] = handler
        return found

    def _respond(self, seq: int, command: str, problem: str, body: dict[str, Any] | None) -> None:
        message: dict[str, Any] = {"type": "response", "request_seq": seq, "command": command}
        message["success"] = not problem
        if problem:
            message["message"] = problem
            shown = problem.replace("{", "(").replace("}", ")")  # braces are variables of the format
            body = {"error": {"id": 1, "format": shown}}
        if body:
            message["body"] = self._shifted(body, self._first - 1)
        self._channel.send(message)

    def _event(self, name: str, body: dict[str, Any] | None = None) -> None:
        self._channel.send({"type": "event", "event": name} | ({"body": body} if body else {}))

    def _watch(self) -> None:
        """Called every few ms while a query runs. Raises Interrupted."""
        if self._channel.count() == self._seen:
            return
        waiting = self._channel.waiting()
        ends = ("disconnect", "terminate", "pause") if self._walks else ("disconnect", "terminate")
        for each in waiting:
            if each is None:
                if self._channel.is_left():
                    raise Interrupted
            elif each.body.get("command") in ends or self._is_cancel(each.body):
                raise Interrupted
        self._seen = len(waiting)

    def _is_cancel(self, request: dict[str, Any]) -> bool:
        """Whether it cancels the request that is being answered."""
        arguments = request.get("arguments")
        return (
            request.get("command") == "cancel"
            and isinstance(arguments, dict)
            and arguments.get("requestId") == self._handled
        )

    # ---- the life of a session ----

    def initialize_request(self, arguments: Fields) -> dict[str, Any]:
        if self._initialized:
            raise RequestError("initialize comes once")
        if arguments.text("pathFormat", "path") != "path":
            raise RequestError("pytrace knows the pathFormat path alone")
        self._first = int(arguments.flag("linesStartAt1", True))
        self._initialized = True
        told: dict[str, Any] = dict.fromkeys(_CAPABILITIES, True)
        told["exceptionBreakpointFilters"] = FILTERS
        return told

    def launch_request(self, arguments: Fields) -> None:
        """Opens the recording: `database`, `run` and `at` are those of the command line, if they
        are missing; `stopOnEntry` (true): stop there, before anything is looked for."""
        if self._database is not None:
            raise RequestError("a recording is open already")
        path = arguments.text("database", self._options.database or DEFAULT_PATH)
        number = arguments.number("run", self._options.run or 0)
        self._stops_at_entry = arguments.flag("stopOnEntry", True)
        at = (
            str(arguments.number("at"))
            if arguments.is_number("at")
            else arguments.text("at", self._options.at)
        )
        database = Database(path, self._watch)
        try:
            runs = chosen(database, number)
            if not runs:
                raise RequestError(f"{path} holds no recording yet. Record one with: pytrace script.py")
            self._run = runs[0]
            self._history = History(database, self._run.id)
            self._files = Files(database, self._run)
            self._view = View(self._history, self._files, self._run.started)
            self._stops = Stops(self._history, self._files, self._view, self._log)
            self._now = self._entry = self._begin(at)
        except BaseException:
            database.close()
            raise
        self._database = database
        self._then.append(lambda: self._event("initialized"))

    attach_request = launch_request

    def _begin(self, at: str) -> Moment:
        """Where the session begins. Raises RequestError, DatabaseError."""
        first = self._history.first()
        if first is None:
            raise RequestError(f"nothing was recorded in run {self._run.id}")
        if not at:
            return first
        id = event_id(at)
        try:
            found = (
                self._history.at_time(parse_when(at, first.time, self._run))
                if id is None
                else self._history.at(id)
            )
        except WhenError as error:
            raise RequestError(f"at: {error}") from None
        if found is None:
            raise RequestError(f"at: there is no event {at} in run {self._run.id}")
        return found

    def configurationDone_request(self, arguments: Fields) -> None:
        if self._stops_at_entry:
            self._then.append(lambda: self._stop(self._now, "entry"))
        else:
            self._walk(lambda: self._resume(False))

    def restart_request(self, arguments: Fields) -> None:
        """Back to where the session began: all else is as it was."""
        self._then.append(lambda: self._stop(self._entry, "entry"))

    def disconnect_request(self, arguments: Fields) -> None:
        self._ended = True

    def terminate_request(self, arguments: Fields) -> None:
        self._then.append(lambda: self._event("terminated"))

    def cancel_request(self, arguments: Fields) -> None:
        """What it cancels has been cancelled, or answered."""

    # ---- where the session stands ----

    def threads_request(self, arguments: Fields) -> dict[str, Any]:
        streams = self._history.streams()
        processes = {pid for _, pid, _, _ in streams}
        return {
            "threads": [
                {
                    "id": stream + 1,
                    "name": f"{name or tid} ({pid})" if len(processes) > 1 else name or str(tid),
                }
                for stream, pid, tid, name in streams
            ]
        }

    def _where(self, arguments: Fields) -> Moment:
        """Where the thread of a request is. Raises RequestError."""
        stream = arguments.number("threadId") - 1
        if stream == self._now.stream:
            return self._now
        if stream not in self._by_thread:
            self._by_thread[stream] = self._history.in_thread(stream, self._now.time)
        found = self._by_thread[stream]
        if found is None:
            raise RequestError(f"there is no thread {stream + 1}, or nothing of it was recorded")
        return found

    def _stop(self, moment: Moment, reason: str, description: str = "", **more: Any) -> None:
        """The session stops at a moment."""
        self._now = moment
        self._by_thread.clear()
        self._targets.clear()
        self._view.forget()
        if not description:
            with suppress(Interrupted, DatabaseError):  # the stop itself is told in any case
                description = told(self._history, moment)
        body = {"reason": reason, "threadId": moment.stream + 1, "allThreadsStopped": True, **more}
        self._event("stopped", body | ({"description": description} if description else {}))

    def _log(self, text: str, category: str = "console") -> None:
        self._event("output", {"category": category, "output": f"{text}\n"})

    # ---- ways from there ----

    def _walk(self, way: Callable[[], None]) -> None:
        """After the response, goes some way, which ends with a stop."""

        def walk() -> None:
            self._walks, self._seen = True, 0
            try:
                way()
            except Interrupted:
                if not self._is_leaving():
                    self._stop(self._now, "pause", "paused")
            except (DatabaseError, RequestError) as error:
                self._log(f"pytrace: {error}", "stderr")
                self._stop(self._now, "pause", "this cannot be looked for; the console says why")
            finally:
                self._walks = False

        self._then.append(walk)

    def _is_leaving(self) -> bool:
        commands = [each.body.get("command") if each else "disconnect" for each in self._channel.waiting()]
        return "disconnect" in commands or "terminate" in commands

    def _resume(self, backwards: bool) -> None:
        found = self._stops.resume(self._now, backwards)
        if found is not None:
            self._stop(found.moment, found.reason, found.description, **found.more)
        else:
            self._end(backwards)

    def _end(self, backwards: bool) -> None:
        end = self._history.first(backwards=not backwards) or self._now
        self._stop(end, "entry" if backwards else "pause", _BEGINS if backwards else _ENDS)

    def _step(
        self, arguments: Fields, way: Callable[[Moment], Moment | None], backwards: bool = False
    ) -> None:
        where = self._where(arguments)

        def walk() -> None:
            found = way(where)
            before = self._stops.between(where, found, backwards) if found is not None else None
            if before is not None:
                self._stop(before.moment, before.reason, before.description, **before.more)
            elif found is not None:
                self._stop(found, "step")
            elif backwards:
                self._stop(where, "entry", f"{_BEGINS}, of this thread")
            else:
                self._stop(where, "pause", f"{_ENDS}, of this thread")

        self._walk(walk)

    def next_request(self, arguments: Fields) -> None:
        self._step(arguments, self._history.next)

    def stepIn_request(self, arguments: Fields) -> None:
        self._step(arguments, self._history.step)

    def stepOut_request(self, arguments: Fields) -> None:
        self._step(arguments, self._history.finish)

    def stepBack_request(self, arguments: Fields) -> None:
        self._step(arguments, lambda where: self._history.next(where, backwards=True), backwards=True)

    def continue_request(self, arguments: Fields) -> dict[str, Any]:
        self._where(arguments)
        self._walk(lambda: self._resume(False))
        return {"allThreadsContinued": True}

    def reverseContinue_request(self, arguments: Fields) -> None:
        self._where(arguments)
        self._walk(lambda: self._resume(True))

    def pause_request(self, arguments: Fields) -> None:
        where = self._where(arguments)
        self._then.append(lambda: self._stop(where, "pause", "paused"))

    def restartFrame_request(self, arguments: Fields) -> None:
        """To where the frame's function was entered."""
        begin = self._view.shown(arguments.number("frameId")).entered
        self._walk(lambda: self._stop(self._history.at_time(begin.time, begin.stream) or begin, "goto"))

    def gotoTargets_request(self, arguments: Fields) -> dict[str, Any]:
        """The times that a line ran, those that come next first."""
        file, line = self._files.recorded(arguments.part("source")), arguments.number("line")
        match, targets = line_predicate(file or "", line), []
        for backwards in (False, True) if file is not None else ():
            for found in islice(self._history.hits(self._now, match, backwards), _TARGETS):
                number = len(self._targets) + 1
                self._targets[number] = found
                since = (found.time - self._now.time) / 1e9
                targets.append({"id": number, "label": f"{since:+.6f} s, {found.func}", "line": line})
        return {"targets": targets}

    def goto_request(self, arguments: Fields) -> None:
        self._where(arguments)
        number = arguments.number("targetId")
        if number not in self._targets:
            raise RequestError(f"there is no target {number} at this stop")
        found = self._targets[number]
        self._then.append(lambda: self._stop(found, "goto"))

    # ---- what is there ----

    def stackTrace_request(self, arguments: Fields) -> dict[str, Any]:
        start, count = arguments.number("startFrame", 0), arguments.number("levels", 0)
        return self._view.stack(self._where(arguments), max(start, 0), max(count, 0))

    def scopes_request(self, arguments: Fields) -> dict[str, Any]:
        return {"scopes": self._view.scopes(self._view.shown(arguments.number("frameId")))}

    def variables_request(self, arguments: Fields) -> dict[str, Any]:
        start, count = arguments.number("start", 0), arguments.number("count", 0)
        number, wanted = arguments.number("variablesReference"), arguments.text("filter", "")
        return {"variables": self._view.page(number, wanted, max(start, 0), max(count, 0))}

    def evaluate_request(self, arguments: Fields) -> dict[str, Any]:
        """The value of an expression, of what was recorded: nothing is run."""
        expression = arguments.text("expression")
        shown = self._shown(arguments)
        try:
            result = parse(expression).value(self._view.named(shown))
        except ExpressionError as error:
            raise RequestError(error.message) from None
        if not result.known:
            raise RequestError(result.reason or result.text)
        item = result.item or Item("", result.text, result.type)
        path = expression.strip() if result.item else "."
        return self._view.value(item, shown, path, "result")

    def completions_request(self, arguments: Fields) -> dict[str, Any]:
        """The variables whose names begin like the last word before the cursor."""
        text, column = arguments.text("text"), arguments.number("column")
        found = re.search(r"\w*$", text[: max(column - 1, 0)])
        word = found[0] if found else ""
        names = [each for each in self._view.named(self._shown(arguments)) if each.startswith(word)]
        return {"targets": [{"label": name, "type": "variable", "length": len(word)} for name in names]}

    def _shown(self, arguments: Fields) -> Shown:
        """The frame of a request, or the present one."""
        if "frameId" in arguments:
            return self._view.shown(arguments.number("frameId"))
        return self._view.top(self._now)

    def exceptionInfo_request(self, arguments: Fields) -> dict[str, Any]:
        where = self._where(arguments)
        item = self._view.outcome(self._view.top(where))
        if item is None or where.kind not in ("raise", "exception"):
            raise RequestError("there is no exception at this moment")
        return {
            "exceptionId": item.type or "exception",
            "description": item.value,
            "breakMode": "always" if where.kind == "raise" or where.depth else "unhandled",
            "details": {
                "message": item.value,
                "typeName": item.type.rpartition(".")[2],
                "fullTypeName": item.type,
            },
        }

    def source_request(self, arguments: Fields) -> dict[str, Any]:
        if "source" in arguments:
            source = arguments.part("source")
        else:
            source = Fields({"sourceReference": arguments.number("sourceReference")}, "source")
        return {"content": self._files.content(source), "mimeType": "text/x-python"}

    def loadedSources_request(self, arguments: Fields) -> dict[str, Any]:
        return {"sources": self._files.loaded()}

    # ---- breakpoints ----

    def setBreakpoints_request(self, arguments: Fields) -> dict[str, Any]:
        return {
            "breakpoints": self._stops.set_lines(arguments.part("source"), arguments.parts("breakpoints"))
        }

    def setFunctionBreakpoints_request(self, arguments: Fields) -> dict[str, Any]:
        return {"breakpoints": self._stops.set_functions(arguments.parts("breakpoints"))}

    def setExceptionBreakpoints_request(self, arguments: Fields) -> dict[str, Any]:
        options = [each.text("filterId") for each in arguments.parts("filterOptions")]
        return {"breakpoints": self._stops.set_exceptions(arguments.texts("filters") + options)}

    def setDataBreakpoints_request(self, arguments: Fields) -> dict[str, Any]:
        return {"breakpoints": self._stops.set_data(arguments.parts("breakpoints"))}

    def dataBreakpointInfo_request(self, arguments: Fields) -> dict[str, Any]:
        """Which variable it is: one of a frame, or the one that a part belongs to."""
        name = arguments.text("name")
        if "variablesReference" in arguments and arguments.number("variablesReference"):
            group = self._view.group(arguments.number("variablesReference"))
            shown, path = group.shown, group.path or name
        else:
            shown, path = self._shown(arguments), name
        return self._stops.data_info(shown, re.split(r"[.\[]", path)[0])

    def breakpointLocations_request(self, arguments: Fields) -> dict[str, Any]:
        file, line = self._files.recorded(arguments.part("source")), arguments.number("line")
        last = arguments.number("endLine", line)
        lines = self._files.ran(file, line, last) if file is not None else []
        return {"breakpoints": [{"line": each} for each in lines]}


def _mistake(message: dict[str, Any]) -> str:
    """Why a message cannot be answered; "": it can, or it need not."""
    if message.get("type") in ("response", "event"):
        return ""
    if message.get("type") != "request":
        return "its type has to be request"
    seq = message.get("seq")
    if not isinstance(seq, int) or isinstance(seq, bool) or seq < 1:
        return "a request has a number: seq"
    return "" if isinstance(message.get("command"), str) else "a request has a command"


def told(history: History, moment: Moment) -> str:
    """What a moment is, if it is more than a line."""
    item = outcome(history.database, moment)
    words = {
        "return": "returns",
        "yield": "yields",
        "exception": "leaves with",
        "raise": "raises",
        "log": "logs",
    }
    if item is None or moment.kind not in words:
        return f"calls {moment.func}" if moment.kind == "call" else ""
    return f"{moment.func} {words[moment.kind]} {item.value[:200]}"
