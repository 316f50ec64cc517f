"""What `on_event` is called with: dicts whose `type` says which event it is.

Events are told on the thread that called `howdah.load`, in order. What a slow callback has not taken yet is
added up: `read`, `skipped` and `stored` may stand for many, but their sums are exact. An exception that the callback
raises stops the load cleanly and comes out of `howdah.load`.
"""

from __future__ import annotations

from typing import Any, Literal, Optional, TypedDict, Union

from howdah.documents import Plan


class Planned(TypedDict):
    """The plan stands; loading begins."""

    type: Literal["planned"]
    plan: Plan


class Read(TypedDict):
    """Stored bytes of a file were read: compressed where the file is."""

    type: Literal["read"]
    file_no: int
    """Index into the plan's files."""
    bytes: int
    """How many more."""


class Skipped(TypedDict):
    """Stored bytes of a file are not read: an earlier run of the same job has stored what is in them."""

    type: Literal["skipped"]
    file_no: int
    """Index into the plan's files."""
    bytes: int
    """How many more."""


class Stored(TypedDict):
    """A chunk is in the table."""

    type: Literal["stored"]
    file_no: int
    """Index into the plan's files."""
    rows: int
    """How many more."""
    bytes: int
    """Plain (decompressed) bytes."""
    before: bool
    """An earlier or simultaneous run of the same job had stored it."""


class Lost(TypedDict):
    """Rows of a file that were stored went with their transaction, and are not there any more."""

    type: Literal["lost"]
    file_no: int
    """Index into the plan's files."""
    rows: int
    """How many: all of the file so far."""


class FileDone(TypedDict):
    """A file is in the table."""

    type: Literal["file_done"]
    file_no: int
    """Index into the plan's files."""


class Sessions(TypedDict):
    """What the sessions are doing, sampled from `pg_stat_activity`."""

    type: Literal["sessions"]
    open: int
    """Sessions that copy."""
    waits: list[list[Any]]
    """Pairs of a wait event (`Type:Event`, or `CPU` when running) and the number of sessions seen in it."""
    sent_bytes: int
    """Plain bytes of chunks that they have sent and that are not in yet."""


class Paused(TypedDict):
    """No chunk is begun for this reason; with None, chunks are begun again."""

    type: Literal["paused"]
    reason: Optional[str]


class Phase(TypedDict):
    """The load is at this ("building 3 indexes"), whatever was read and stored; with None, rows are copied again."""

    type: Literal["phase"]
    what: Optional[str]


class Retry(TypedDict):
    """Something transient failed and will be tried again."""

    type: Literal["retry"]
    reason: str
    delay: int
    """After this many milliseconds."""


class Notice(TypedDict):
    """A sentence for the user."""

    type: Literal["notice"]
    message: str


class Warned(TypedDict):
    """Something that the user should know before relying on the load, though it goes on; also in `Summary.warnings`."""

    type: Literal["warning"]
    message: str


class Done(TypedDict):
    """The end, good or bad."""

    type: Literal["done"]
    summary: dict[str, Any]
    """As `Summary.to_dict` returns it."""


Event = Union[Planned, Read, Skipped, Stored, Lost, FileDone, Sessions, Paused, Phase, Retry, Notice, Warned, Done]
"""One thing that happened. Later releases may add types: pass over those you do not know."""
