# SPDX-License-Identifier: Apache-2.0
"""Memory that a client shares with a daemon of this machine: large requests are written into it and
the arrays of large replies are read in place, so that neither crosses the socket. The header
server/transport/shared/shared.h of the daemon says how a region is registered."""

from __future__ import annotations

import collections
import ctypes
import fcntl
import mmap
import os
import select
import socket
import struct
import threading
import time
import weakref
from collections.abc import Sequence

from .errors import Error, Unavailable, error_of
from .reply import code_of

PAGE = mmap.PAGESIZE
SUFFIX = ".shm"
MAGIC = b"VXDSHM1\0"
HELLO = struct.Struct("8sQ256s")
ANSWER = struct.Struct("II16s240s")
ANSWER_TIMEOUT_S = 1.0
RETRY_S = 2.0
# Where nobody has asked for shared memory: two calls fit, since the last one's arrays are often
# still in use; one large call alone is not worth a region.
AUTOMATIC_RETRY_S = 60.0
AUTOMATIC_CALLS = 2
AUTOMATIC_LEAST_S = 4.0  # calls of less time make none: a daemon that hangs may take a second
AUTOMATIC_LEAST_BYTES = 256 << 10
AUTOMATIC_REGION_BYTES = (8 << 20, 256 << 20)
LEAST_BYTES = 65536  # what is smaller goes through the socket
ALIGN = 16  # of any array's elements
# In front of a reply, so that a tag and a length can be written there.
PREFIX_BYTES = 16


def round_up(n_bytes: int) -> int:
    return -(-n_bytes // PAGE) * PAGE


def make_file(n_bytes: int) -> int:
    fd = os.memfd_create("voxeld", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        os.ftruncate(fd, n_bytes)
        os.posix_fallocate(fd, 0, n_bytes)
        seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
    except BaseException:
        os.close(fd)
        raise
    return fd


class Slot:
    """A call's place: its request, then room for its reply."""

    def __init__(self, region: Region, offset: int, n_bytes: int, n_reply_bytes: int) -> None:
        self.region = region
        self.offset = offset
        self.n_bytes = n_bytes
        self.n_reply_bytes = n_reply_bytes

    @property
    def end(self) -> int:
        return self.offset + self.n_bytes + self.n_reply_bytes

    @property
    def reply_offset(self) -> int:
        return self.offset + self.n_bytes + PREFIX_BYTES

    def write(self, parts: Sequence[bytes | memoryview]) -> int:
        """Writes the parts one after another, the first large one where the engine can use it in
        place. Returns where they begin."""
        before = 0
        for part in parts:
            if len(part) >= LEAST_BYTES:
                break
            before += len(part)
        begin = at = self.offset + -before % ALIGN
        for part in parts:
            n = len(part)
            self.region.memory[at : at + n] = part
            at += n
        return begin

    def reply(self, prefix: bytes, n_bytes: int) -> memoryview:
        """Returns the reply's body behind a prefix. The place is free again when the last view of
        it is gone."""
        first = self.reply_offset - len(prefix)
        self.region.memory[first : self.reply_offset] = prefix
        held = (ctypes.c_char * (len(prefix) + n_bytes)).from_buffer(self.region.memory, first)
        weakref.finalize(held, self.give)
        return memoryview(held).cast("B")

    def give(self) -> None:
        """Gives the place back. It takes no mutex: the garbage collector may call it on a thread
        that holds that of the region."""
        self.region.given.append(self)


class Region:
    """A memfd that is registered on a connection of its own."""

    def __init__(self, url: str, token: str, n_bytes: int) -> None:
        n_bytes = round_up(n_bytes)
        self.mutex = threading.Lock()
        self.slots: list[Slot] = []  # by offset; guarded by the mutex
        self.given: collections.deque[Slot] = collections.deque()  # of these, the free ones
        self.n_bytes = n_bytes
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            self.socket.settimeout(ANSWER_TIMEOUT_S)
            self.socket.connect(url.removeprefix("ipc://") + SUFFIX)
            fd = make_file(n_bytes)
            try:
                self.memory = mmap.mmap(fd, n_bytes)
                hello = HELLO.pack(MAGIC, n_bytes, token.encode()[:255])
                socket.send_fds(self.socket, [hello], [fd])
            finally:
                os.close(fd)
            answer = self.socket.recv(ANSWER.size)
            if len(answer) != ANSWER.size:
                raise Unavailable("the daemon does not answer where memory is shared")
            code, _, self.id, message = ANSWER.unpack(answer)
            if code != 0:
                raise error_of(code_of(code), message.split(b"\0")[0].decode(), "shared_bytes")
        except BaseException:
            self.socket.close()
            raise

    def stands(self) -> bool:
        """Whether the daemon still has it: it says nothing after its answer but its end."""
        poll = select.poll()  # select() takes no descriptor above 1023
        poll.register(self.socket, select.POLLIN)
        return not poll.poll(0)

    def close(self) -> None:
        self.socket.close()

    def _take_back(self) -> None:
        while self.given:
            self.slots.remove(self.given.popleft())

    def n_slots(self) -> int:
        with self.mutex:
            self._take_back()
            return len(self.slots)

    def take(self, n_bytes: int, n_reply_bytes: int) -> Slot | None:
        n_bytes, n_reply_bytes = round_up(n_bytes + ALIGN), round_up(n_reply_bytes + PREFIX_BYTES)
        with self.mutex:
            self._take_back()
            at = 0
            index = 0
            for slot in self.slots:
                if slot.offset - at >= n_bytes + n_reply_bytes:
                    break
                at = slot.end
                index += 1
            if self.n_bytes - at < n_bytes + n_reply_bytes:
                return None
            slot = Slot(self, at, n_bytes, n_reply_bytes)
            self.slots.insert(index, slot)
            return slot


class Shared:
    """When a client's calls use shared memory, and how much of it."""

    def __init__(self, url: str, token: str, n_bytes: int | None) -> None:
        self.url = url
        self.token = token
        self.is_on = url.startswith("ipc://") and n_bytes != 0
        if n_bytes is None and os.environ.get("VOXELD_TRANSPORT"):
            self.is_on = False
        self.is_automatic = n_bytes is None
        self.n_bytes = n_bytes or 0  # of the region, the last one where there is none
        self.is_opening = False  # a thread registers a region, without the mutex
        self.n_large = 0  # calls that would have used it
        self.mutex = threading.Lock()
        self.region: Region | None = None
        self.retry_at = 0.0
        self.reply_bytes: dict[str, int] = {}  # the largest so far, by method

    def take(self, method: str, n_bytes: int, timeout_s: float) -> Slot | None:
        """Returns a place for a call of so much time; None where it goes without."""
        n_reply_bytes = self.reply_bytes.get(method, 0)
        least = AUTOMATIC_LEAST_BYTES if self.is_automatic else LEAST_BYTES
        if not self.is_on or max(n_bytes, n_reply_bytes) < least:
            return None
        # At most half, so that one reply that did not fit keeps no later call from the rest.
        room = max(n_reply_bytes + n_reply_bytes // 4, LEAST_BYTES)
        with self.mutex:
            self.n_large += 1
            if self.is_automatic and self.n_large < AUTOMATIC_CALLS:
                return None
            self._close_dead()
            n_region = self._choose_region(n_bytes + room)
            opens = self._is_due(n_region, timeout_s)
            self.is_opening = self.is_opening or opens
        if opens:
            self._open(n_region)
        with self.mutex:
            if self.region is None:
                return None
            return self.region.take(n_bytes, min(room, self.n_bytes // 2))

    def _close_dead(self) -> None:
        """Closes a region that the daemon does not have any more. The mutex is held."""
        if self.region is not None and not self.region.stands():
            self.region.close()
            self.region = None
            self.retry_at = 0.0  # whatever was refused, another daemon may grant it

    def _choose_region(self, n_call_bytes: int) -> int:
        """How large the region is to be: no smaller than it was."""
        if not self.is_automatic:
            return self.n_bytes
        n_region, most = AUTOMATIC_REGION_BYTES
        while n_region < most and n_region // 2 < n_call_bytes:
            n_region *= 2
        return max(n_region, self.n_bytes)

    def _is_due(self, n_region: int, timeout_s: float) -> bool:
        """Whether a region of so many bytes is to be registered now. The mutex is held."""
        if self.is_automatic and timeout_s < AUTOMATIC_LEAST_S:
            return False
        if self.region is not None and n_region <= self.n_bytes:
            return False
        return not self.is_opening and time.monotonic() >= self.retry_at

    def _open(self, n_region: int) -> None:
        """Registers a region, which takes the place of a smaller one once the daemon has granted
        it. Other calls go on meanwhile, with the region that there is or without."""
        region: Region | None = None
        wait_s = 0.0
        try:
            region = Region(self.url, self.token, n_region)
        except (FileNotFoundError, ConnectionRefusedError):  # nobody listens, which costs no time
            wait_s = RETRY_S
        except (Error, OSError):
            wait_s = self._wait_s()
        finally:
            with self.mutex:
                self.is_opening = False
                if region is not None:
                    if self.region is not None:
                        self.region.close()  # slots in use keep their memory
                    self.region = region
                    self.n_bytes = n_region
                else:
                    self.retry_at = time.monotonic() + wait_s
                    if self.is_automatic and self.region is None:
                        self.n_bytes = 0  # the next try asks for no more than its call needs

    def _wait_s(self) -> float:
        return AUTOMATIC_RETRY_S if self.is_automatic else RETRY_S

    def note_reply(self, method: str, n_bytes: int) -> None:
        if self.is_on:
            with self.mutex:
                self.reply_bytes[method] = max(self.reply_bytes.get(method, 0), n_bytes)

    def drop(self, region: Region | None = None, *, waits: bool = False) -> None:
        """Gives the region up: the next call makes another one, after a while where it waits."""
        with self.mutex:
            if self.region is not None and region in (None, self.region):
                self.region.close()
                self.region = None
                self.retry_at = time.monotonic() + self._wait_s() if waits else 0.0
