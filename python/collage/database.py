"""The tuning database: what was measured, kept between compilations. ``collage db`` shows the same."""

from __future__ import annotations

import os
import re
import warnings
from typing import TypedDict, cast

from collage import _arguments, _core
from collage.errors import InputError, MissingFileError
from collage.toolchain import load_plugins

__all__ = ["CompilationRow", "DatabaseStats", "ImportCounts", "TuningDatabase"]


class DatabaseStats(TypedDict):
    """Counts of records: all, those of failures, by toolchain, by kind of key; and the size of the store in bytes."""

    place: str
    records: int
    failures: int
    bytes: int
    by_toolchain: dict[str, int]
    by_kind: dict[str, int]


class CompilationRow(TypedDict):
    """A past compilation; ``compiled_at`` is a UTC time, ``optimality_loss_seconds`` None where not all mixes were timed.

    ``apparent_loss_seconds`` is the winner's time minus that of each partitioning without a search.
    """

    model: str
    machine: str
    threads: int
    versions: str
    winner: str
    p50_seconds: float
    additive_error_seconds: float
    apparent_loss_seconds: dict[str, float]
    optimality_loss_seconds: float | None
    compiled_at: str


class ImportCounts(TypedDict):
    """Records that were read, those taken because they are new or newer, and those dropped, by reason."""

    read: int
    taken: int
    dropped: dict[str, int]


class TuningDatabase:
    """A tuning database. Each call opens it anew, so that it may be used from several threads and beside compilations.

    Methods that only read change no file, not even a damaged one.

    Args:
        place: a file, or a ``postgresql://`` URL; None: $COLLAGE_DATABASE, else ~/.cache/collage/tuning.db.

    Example:
        >>> import collage, tempfile
        >>> from collage import relay
        >>> x = relay.var("x", shape=(2, 3))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     database = TuningDatabase(folder + "/tuning.db")
        ...     net = relay.Function([x], relay.nn.relu(x))
        ...     exe = collage.compile(net, threads=1, toolchains="native", database=database.place)
        ...     counts = database.stats()
        ...     database.export_records(folder + "/records.jsonl") == counts["records"], database.verify()
        ...     database.gc(failures=True, older_than="90d")
        (True, [])
        0
    """

    def __init__(self, place: str | os.PathLike[str] | None = None) -> None:
        self.place = os.fspath(place) if place is not None else _core.default_database()
        """The file or URL."""

    def _require(self) -> None:
        if not _core.is_postgres_url(self.place) and not os.path.exists(self.place):
            hint = "collage.compile, collage.tune and import_records create one"
            raise MissingFileError("there is no such database", self.place, hint)

    def _read(self) -> _core.TuningStore:
        self._require()
        return _core.TuningStore.for_reading(self.place)

    def _open(self) -> _core.TuningStore:
        """Opens it to be changed, and creates it if there is none."""
        store = _core.TuningStore(self.place)
        for notice in store.notices:
            warnings.warn(notice, stacklevel=3)
        return store

    def stats(self) -> DatabaseStats:
        """Returns counts of the records.

        Raises:
            MissingFileError: there is no such database; the other methods raise it, too.
            CorruptError: it is damaged; the next compilation keeps it under another name and begins a new one.
            ResourceError: it cannot be read.
        """
        return cast(DatabaseStats, self._read().stats())

    def compilations(self) -> list[CompilationRow]:
        """Returns the past compilations, with the times of their winners."""
        return cast("list[CompilationRow]", self._read().compilations())

    def verify(self) -> list[str]:
        """Checks the store and every record; returns what is wrong, nothing when all is well."""
        self._require()
        return cast("list[str]", _core.TuningStore.check(self.place)[1])

    def export_records(self, path: str | os.PathLike[str]) -> int:
        """Writes all records to a file, one line of JSON each, and returns how many.

        Raises:
            ResourceError: the file cannot be written.
        """
        return self._read().export_records(os.fspath(path))

    def import_records(self, path: str | os.PathLike[str]) -> ImportCounts:
        """Takes the records of an exported file that are new or newer; creates the database if there is none.

        Raises:
            MissingFileError: there is no such file.
            InputError: a line of it is no record; what came before that is kept.
        """
        source = _arguments.existing(path)
        return cast(ImportCounts, self._open().import_records(source))

    def merge(self, other: TuningDatabase | str | os.PathLike[str]) -> ImportCounts:
        """Takes the records of another database that are new or newer; creates this one if there is none."""
        source = (other if isinstance(other, TuningDatabase) else TuningDatabase(other))._read()
        return cast(ImportCounts, self._open().merge(source))

    def gc(
        self, *, other_versions: bool = False, older_than: float | str | None = None, failures: bool = False
    ) -> int:
        """Removes records that are no longer needed, and returns how many.

        Args:
            other_versions: this machine's records of versions of toolchains that are no longer installed.
            older_than: records that were measured longer ago, in seconds or as ``"90d"``.
            failures: records of failures, so that they are tried again.

        Raises:
            ValueError: nothing says what to remove.
        """
        if not other_versions and older_than is None and not failures:
            raise InputError("nothing says what to remove", "gc", "give other_versions, older_than or failures")
        if other_versions:
            load_plugins()
        seconds = _core.parse_duration(older_than) if isinstance(older_than, str) else older_than
        self._require()
        return self._open().gc(other_versions, seconds, failures)

    def __repr__(self) -> str:
        without_password = re.sub(r"(://[^:/@]*):[^@]*@", r"\1@", self.place)
        return f"TuningDatabase({without_password!r})"
