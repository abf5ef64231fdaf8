"""The loop that moves the records of the ring into the database.

The steps of a pass, and the state that a crash between two of them leaves:

    take the kernel's events, if they are recorded
                        before: the kernel has them
    look at the processes, then at the chunks, then at the definitions
                        a process that has ended published its last record before the look at the
                        chunks; the definitions, seen last, contain all that the events refer to
    summarize and compress, BEGIN, INSERT, COMMIT
                        before COMMIT: the chunks are in the ring, nothing is in the database
    release the chunks that are final
                        before: they are in both, and the next dumper leaves the rows as they are
    evict               only what is not in the ring any more, so that nothing comes back
    read and store some source files
                        before: the next dumper sees which files of the stored code have none
    say that a process is saved
                        before: the next dumper finds it ended, with nothing left in the ring

A pass with many chunks does the middle steps in batches, so that the first chunks are free early.
"""

import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import apsw

from . import ring as abi
from .processes import Process, Processes, process_exists
from .ring import Chunk, Key, Ring
from .segments import Segments
from .sources import Sources
from .store import EVICT_AT_ONCE, Kept, Refused, Step, Store, Totals, no_step

if TYPE_CHECKING:
    from .definitions import CodeRow, DefinitionRows
    from .kernel import Kernel

if sys.version_info >= (3, 14):
    from compression.zstd import CompressionParameter, ZstdCompressor
else:
    from backports.zstd import CompressionParameter, ZstdCompressor

# zstd's level, by the share of the ring that is in use. Still lower levels win nothing, because
# they write so much more; docs/dumper.md has the measurements.
LEVELS = ((0.5, 1), (1.0, -1))
# bytes. For so little data zstd's own choice is 6, which is slower for records, and mostly larger.
MIN_MATCH = 7
BATCHES = 16  # of a full ring
# passes for a full ring: chunks share a transaction, and are still in the caches
PASSES = 32
WAIT_LEAST = 0.002  # s
WAIT_MOST = 0.04  # s; less if the ring is small:
FILL_RATE = 300e6  # bytes/s that programs write at most; a quarter of the ring may fill meanwhile
WAIT_GROWTH = 1.1  # at most, from one pass to the next
LIVE_SECONDS = 0.1  # between two commits of unfinished chunks
LIVE_SHARE = 0.1  # of the time, at most, goes into them
RETRY_SECONDS = 0.5  # while the database cannot be written to
SOURCE_SECONDS = 0.002  # a pass reads sources; one at least, all of them if a process has ended
GIVE_UP_SECONDS = 60.0  # then it gives up, if all processes have ended
START_SECONDS = 60.0  # for the first process


def compressor(level: int) -> ZstdCompressor:
    """A compressor for bodies of chunks."""
    return ZstdCompressor(
        options={CompressionParameter.compression_level: level, CompressionParameter.min_match: MIN_MATCH}
    )


def name_native(codes: "list[CodeRow]") -> None:
    """Puts their names into the rows of native functions."""
    objects: dict[tuple[str, str], list[int]] = {}  # indexes of rows
    for index, code in enumerate(codes):
        if code.object is not None and code.address is not None:
            objects.setdefault((code.object, code.build_id or ""), []).append(index)
    if not objects:
        return
    from .symbols import function_names

    for (path, build_id), rows in objects.items():
        names = function_names(path, bytes.fromhex(build_id), [codes[row].address or 0 for row in rows])
        for row in rows:
            codes[row] = codes[row]._replace(func=names.get(codes[row].address or 0, codes[row].func))


class Pump:
    """Moves events and definitions from a ring into a database, until all processes have ended."""

    def __init__(
        self,
        ring: Ring,
        store: Store | None,
        open_store: Callable[[], Store],
        program: int,
        so_far: Callable[[Totals, bool], str],
        sources: Sources,
        step: Step = no_step,
        kernel: "Kernel | None" = None,
    ) -> None:
        """store: None if it could not be opened yet. open_store opens it then, and if the file has
        been taken away; it may raise Refused. program: pid of the process that the recording was
        started for. so_far: makes the line that a process prints if it ends before others; its
        argument says whether others go on. kernel: its events are recorded, too."""
        self.ring = ring
        self._kernel = kernel
        self.store = store
        self.processes = Processes(ring)
        self.notes: list[str] = []  # problems, for the summary
        self._open_store = open_store
        self._program = program
        self._so_far = so_far
        self._sources = sources
        self._step = step
        self._wait_most = max(WAIT_LEAST, min(WAIT_MOST, ring.size / 4 / FILL_RATE))
        self._batch_bytes = ring.size // BATCHES
        self._pass_bytes = ring.size / PASSES
        self._segments = Segments()
        self._known_from: Store | None = None  # whose code objects the segments know
        self._compressors = {level: compressor(level) for _, level in LEVELS}
        self._new: list[Process] = []  # not in the database yet
        self._unsaid: list[Process] = []  # saved, but not told yet
        self._left: list[Process] = []  # leaving, saved, but not told yet
        self._stored: dict[Key, int] = {}  # bytes of unfinished chunks that are in the database
        self._decoded: dict[Key, int] = {}  # bytes of unfinished chunks of definitions
        self._nonsense: set[Key] = set()  # chunks refused, because their records cannot be read
        self._bad = 0  # chunks whose headers make no sense; they stay in the ring
        self._losses = (0, 0, 0)
        self._kept: Kept | None = None  # from a file that was taken away
        self._ended: set[int] = set()  # processes that had ended before this look
        self._live_next = 0.0
        self._clock_known = False

    # ---- the loop -----------------------------------------------------------------------------

    def run(self, before_first_wait: Callable[[], None]) -> bool:
        """Returns when there is nothing to wait for any more; False: the database cannot be written
        to, and the rest is still in the ring. The processes that ended last have not been told yet:
        `say_saved` does that. before_first_wait is not called if all is over at once."""
        wait, first = WAIT_LEAST, True
        retry_at = failing_since = 0.0
        started = time.monotonic()
        while True:
            now = time.monotonic()
            taken = 0
            # asked before the pass: during it the program might register and end
            stillborn = now - started > START_SECONDS or not self._program_lives()
            if now >= retry_at:
                try:
                    taken = self._pass(now)
                    self.ring.pass_ended()
                    if failing_since:
                        self.ring.say_trouble("")
                    failing_since = 0.0
                except (apsw.Error, Refused) as error:
                    why = self._say_trouble(error)
                    self._note(f"the database could not be written to for a while ({why})")
                    failing_since = failing_since or now
                    retry_at = time.monotonic() + RETRY_SECONDS

            if self.processes.over():
                if not self.processes.expected():
                    return True
            elif failing_since and now - failing_since > GIVE_UP_SECONDS and self.processes.all_ended():
                return False
            elif not self.processes.count and stillborn:
                return True
            self._say_so_far()
            wait *= min(WAIT_GROWTH, self._pass_bytes / taken) if taken else WAIT_GROWTH
            wait = max(WAIT_LEAST, min(wait, self._wait_most))
            if first:
                before_first_wait()
                first = False
            self.processes.wait(wait)

    def _say_so_far(self) -> None:
        """Tells processes that they are saved while others go on or may begin. The program prints
        the summary so far."""
        told = [*self._unsaid, *self._left]
        if self.store is not None and any(process.pid == self._program for process in told):
            try:
                self.ring.say_so_far(self._so_far(self.store.totals(), self.processes.others_go_on()))
            except apsw.Error:
                return  # it waits: the next pass tells it
        self.say_saved()

    def say_saved(self) -> None:
        """Tells processes that their last records are committed."""
        for process in self._unsaid:
            self.ring.process_saved(process.number)
        self._unsaid.clear()
        for process in self._left:
            self.ring.process_left(process.number)
        self._left.clear()

    def finish(self, store: Store) -> Totals:
        """Ends the run, of which all is saved. Raises apsw.Error if that cannot be written for
        long."""
        until = time.monotonic() + GIVE_UP_SECONDS
        self._stop_kernel()
        while True:
            try:
                self._finish_kernel(store)
                return store.finish(self.ring.now_ns())
            except apsw.Error as error:
                self._say_trouble(error)
                if time.monotonic() > until:
                    raise
                time.sleep(RETRY_SECONDS)

    def _say_trouble(self, error: apsw.Error | Refused) -> str:
        """Says in the ring why nothing can be saved, and returns it."""
        if isinstance(error, Refused):
            why = error.reason
        else:
            why = str(error) if self.store is None else self.store.why(error)
        self.ring.say_trouble(f"the database cannot be written to, {why}")
        return why

    def _program_lives(self) -> bool:
        """False: the program has ended without having registered."""
        return self.processes.count > 0 or process_exists(self._program)

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    # ---- a pass -------------------------------------------------------------------------------

    def _pass(self, now: float) -> int:
        """Returns how many bytes of the ring came free. Raises apsw.Error or Refused: chunks that
        are not committed stay in the ring."""
        self._drain_kernel()
        new, ended = self.processes.look(now)
        self._new += new
        self._ended = {process.number for process in ended}
        for process in ended:
            process.ended_ns()

        chunks, self._bad = self.ring.look()
        if self._kernel is not None:
            self._kernel.make(self.ring, chunks)
        final: list[Chunk] = []
        live: list[Chunk] = []
        for chunk in chunks:
            if not chunk.used:
                if self._is_final(chunk):
                    self.ring.release(chunk)
            elif chunk.kind == abi.EVENTS:
                (final if self._is_final(chunk) else live).append(chunk)
        live_due = now >= self._live_next or bool(self.processes.leaving)
        if self._kernel is not None:
            for chunk in self._kernel.bodies(live_due, self.processes.numbers()):
                (final if chunk.sealed else live).append(chunk)
        if not (final or live_due or ended or self._new or self._sources.wanted):
            return 0
        grown = [chunk for chunk in live if chunk.used != self._stored.get(chunk.key)] if live_due else []

        store = self._current_store()
        fullness = sum(chunk.room for chunk in chunks) / self.ring.size
        compressor = self._compressors[next(level for limit, level in LEVELS if fullness <= limit)]
        self._take_definitions(store)
        self._take_events(store, final, compressor)
        live_since = time.monotonic()
        self._take_events(store, grown, compressor)
        if grown:
            spent = time.monotonic() - live_since
            self._live_next = now + max(LIVE_SECONDS, spent / LIVE_SHARE)
        self._take_sources(store, all=bool(ended or self.processes.leaving))
        if ended:
            with store.transaction():
                for process in ended:
                    lost = self.ring.process_lost(process.number)
                    status, at = process.exit_status(), process.ended_ns()
                    store.end_process(process.number, at, status, lost, process.replaced())
            self.processes.done(ended)
            self._unsaid += ended
        self._left = [process for process in self.processes.leaving if process not in ended]
        return sum(chunk.room for chunk in final)

    def _is_final(self, chunk: Chunk) -> bool:
        """True: nothing more will be written to this chunk."""
        if chunk.place < 0:
            return chunk.sealed  # its process may have ended long before
        return chunk.sealed or chunk.process in self._ended or chunk.process in self.processes.saved

    def _take_definitions(self, store: Store) -> None:
        """Stores the definitions since the last time, new processes and losses."""
        rows: DefinitionRows | None = None
        decoded: list[Chunk] = []
        final = []
        for chunk in self.ring.look(abi.DEFINITIONS)[0]:
            if not chunk.used:
                continue
            if self._is_final(chunk):
                final.append(chunk)
            start = self._decoded.get(chunk.key, 0)
            if chunk.used > start:
                rows = self._decode(chunk, start, rows)
                decoded.append(chunk)
        if rows:
            name_native(rows.codes)
            self._segments.know((code.number, code.mine) for code in rows.codes)
            self._sources.want((code.file, code.language, code.mine) for code in rows.codes)
        if self._kernel is not None:
            self._define_kernel(store)
        losses = self._all_losses()
        scale = 0 if self._clock_known else self.ring.clock_scale()
        if rows or self._new or scale or losses != self._losses:
            now = self.ring.now_ns()
            with store.transaction():
                store.put_processes((p.number, p.pid, p.parent, p.registered_ns) for p in self._new)
                if scale:
                    store.put_clock_scale(scale)
                store.put_losses(*losses)
                if rows:
                    store.put_commands(rows.processes, now)
                    store.put_threads(rows.threads)
                    store.put_types(rows.types)
                    store.put_codes(rows.codes)
        self._new.clear()
        self._losses = losses
        self._clock_known = self._clock_known or bool(scale)
        for chunk in decoded:
            if chunk.key not in self._nonsense:
                self.ring.know(chunk, self._decoded.get(chunk.key, 0))
            self._decoded[chunk.key] = chunk.used
        for chunk in final:
            self.ring.release(chunk)
            self._decoded.pop(chunk.key, None)

    def _take_sources(self, store: Store, all: bool) -> None:
        """Stores the source of some files that are waiting, or of all."""
        until = time.monotonic() + SOURCE_SECONDS
        wanted = self._sources.wanted
        while wanted:
            source = self._sources.read(wanted[0])
            if source is not None:
                store.check_log()
                store.put_source(source)
                store.evict()
            wanted.popleft()  # it is committed
            if all:
                self.ring.pass_ended()
            elif time.monotonic() > until:
                return

    def _all_losses(self) -> tuple[int, int, int]:
        """Records dropped, chunks refused, and processes turned away."""
        lost = self.processes.lost() + (self._kernel.lost() if self._kernel is not None else 0)
        return lost, self._bad + len(self._nonsense), self.ring.turned_away()

    def _decode(self, chunk: Chunk, start: int, rows: "DefinitionRows | None") -> "DefinitionRows":
        from .definitions import DecodeError, DefinitionRows, decode

        rows = rows or DefinitionRows([], [], [], [])
        try:
            decode(bytes(chunk.data(start)), rows)
        except DecodeError:
            self._nonsense.add(chunk.key)
        return rows

    def _take_events(self, store: Store, chunks: list[Chunk], compressor: ZstdCompressor) -> None:
        """Stores chunks of events, and releases those that are final."""
        chunks.sort(key=lambda chunk: chunk.key)  # so that a stream's segments have rising ids
        for batch in self._batches(chunks):
            segments = []
            refused = {chunk.key for chunk in batch if self._is_final(chunk)}
            for chunk in batch:
                segment = self._segments.row(chunk, self._is_final(chunk), compressor, store)
                if segment is not None:
                    segments.append(segment)
                    refused.discard(chunk.key)
            store.check_log()
            with store.transaction():
                store.put_segments(segments)
                # in a full ring a thread's definition finds no room: it comes later or never
                store.put_nameless_threads(
                    (chunk.stream, chunk.process, chunk.tid) for chunk in batch if chunk.sequence == 0
                )
                if refused:
                    self._nonsense |= refused
                    store.put_losses(*self._all_losses())
            for chunk in batch:
                if chunk.place < 0 and self._kernel is not None:
                    self._kernel.stored(chunk)
                elif self._is_final(chunk):
                    self.ring.release(chunk)
                    self._step("after release")
                    self._stored.pop(chunk.key, None)
                    self._segments.forget(chunk.key)
                else:
                    self._stored[chunk.key] = chunk.used
            self.ring.pass_ended()
            store.evict()

    def _batches(self, chunks: list[Chunk]) -> Iterator[list[Chunk]]:
        """Batches are bounded by bytes, as a transaction costs as much as dozens of small chunks.
        Their number of chunks is bounded by the number that `evict` removes at once."""
        batch: list[Chunk] = []
        size = 0
        for chunk in chunks:
            if batch and (size + chunk.used > self._batch_bytes or len(batch) == EVICT_AT_ONCE):
                yield batch
                batch, size = [], 0
            batch.append(chunk)
            size += chunk.used
        if batch:
            yield batch

    # ---- the kernel ---------------------------------------------------------------------------

    def _drain_kernel(self) -> None:
        if self._kernel is None:
            return
        try:
            self._kernel.drain()
        except OSError as error:
            self._note(f"kernel events are missing from some time on ({error.strerror})")

    def _define_kernel(self, store: Store) -> None:
        """Stores the definitions that kernel events refer to."""
        kernel = self._kernel
        assert kernel is not None
        if not kernel.learn():
            return
        processes, now = kernel.new_processes, self.ring.now_ns()
        with store.transaction():
            store.put_processes((each.number, each.pid, each.parent, now) for each in processes)
            named = [each for each in processes if each.command]
            store.put_commands(((each.number, each.pid, each.parent, each.command) for each in named), now)
            store.put_types(kernel.types)
            store.put_codes(kernel.new_codes)
            store.put_threads(kernel.new_threads)
        kernel.defined()

    def _stop_kernel(self) -> None:
        if self._kernel is None:
            return
        try:
            self._kernel.stop(self.ring.look(abi.EVENTS)[0])
        except OSError as error:
            self._note(f"the last kernel events are missing ({error.strerror})")

    def _finish_kernel(self, store: Store) -> None:
        """Stores the rest of the kernel's events, and removes its instance."""
        kernel = self._kernel
        if kernel is None:
            return
        bodies = kernel.bodies(False, self.processes.numbers())
        self._define_kernel(store)
        self._take_events(store, bodies, self._compressors[LEVELS[0][1]])
        with store.transaction():
            for number in kernel.made_up():
                store.end_process(number, self.ring.now_ns(), None, 0, False)
            store.put_losses(*self._all_losses())
        kernel.close()
        self._kernel = None

    # ---- the database -------------------------------------------------------------------------

    def _current_store(self) -> Store:
        """The open database. If its file has been taken away, it is a new one at the same path,
        with the definitions that are not in the ring any more."""
        if self.store is not None and self.store.moved():
            self._kept = self.store.leave(self.ring.now_ns())
            self.store = None
        if self.store is None:
            store = self._open_store()
            if self._kept is not None:
                try:
                    store.take_over(self._kept)
                except apsw.Error:
                    store.close()
                    raise
                self._kept = None
                self._stored.clear()
                self._note("the file was taken away while recording, and a new one begun")
            self.store = store
        if self._known_from is not self.store:  # of another dumper, or of the file before
            self._segments.know((number, True) for number in self.store.own_codes())
            self._sources.want(self.store.files_without_source())
            self._known_from = self.store
        return self.store
