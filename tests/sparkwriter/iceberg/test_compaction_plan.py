"""Which files are written anew: readers stay within the bounds, and a row is not moved for ever."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sparkwriter.iceberg.compaction_plan import FileSeen, Growth, choose
from sparkwriter.iceberg.section import CompactionSection

SETTINGS = CompactionSection.model_construct(
    max_deletes=8, max_deleted_keys=1000, small_files=4, file_bytes=1000, round_bytes=2000
)
BIG = FileSeen(900, 100)


def test_nothing_is_due() -> None:
    """Large files with few deletions, and few small files, stay as they are."""
    files = [BIG, replace_(BIG, deletes=3, keys=400, dead=30), FileSeen(10, 1), FileSeen(10, 1)]
    assert choose(files, SETTINGS).files == ()


def replace_(file: FileSeen, **more: int) -> FileSeen:
    return file._replace(**more)


def test_what_readers_suffer_from() -> None:
    """Half of a bound is enough, or a third of the rows deleted; those with most go first."""
    files = [
        BIG,
        replace_(BIG, deletes=4),
        replace_(BIG, keys=500),
        replace_(BIG, deletes=1, dead=31),
        replace_(BIG, deletes=7),
    ]
    settings = SETTINGS.model_copy(update={"round_bytes": 10_000})
    assert choose(files, settings) == ((4, 1, 3, 2), False)


def test_a_round_is_bounded_and_the_rest_is_told() -> None:
    """As many as fit are written anew, one at least; the next round is due."""
    files = [replace_(BIG, deletes=4)] * 5
    assert choose(files, SETTINGS) == ((0, 1), True)
    assert choose([replace_(BIG, bytes=10**9, deletes=4)], SETTINGS) == ((0,), False)


def test_small_files_are_put_together_but_not_into_a_large_one() -> None:
    """The one that is larger than all smaller ones together waits until those have grown."""
    small = [FileSeen(10, 1)] * 4
    assert choose([*small, FileSeen(300, 50)], SETTINGS).files == (0, 1, 2, 3)
    assert choose([*small, FileSeen(40, 50)], SETTINGS).files == (0, 1, 2, 3, 4)
    assert choose(small[:3], SETTINGS).files == ()


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 60)), max_size=300))
def test_no_file_ever_exceeds_the_bounds(writes: list[tuple[bool, int]]) -> None:
    """Each write adds a file of rows, and one of keys that all older files may have to apply."""
    settings = SETTINGS.model_copy(update={"round_bytes": 10**12})
    files: list[FileSeen] = []
    growth = Growth()
    for by_keys, rows in writes:
        if by_keys:
            files = [
                file._replace(deletes=file.deletes + 1, keys=file.keys + rows) for file in files
            ]
        files.append(FileSeen(rows * 10, rows))
        growth.add(1, int(by_keys), rows if by_keys else 0)
        assert all(file.deletes <= settings.max_deletes for file in files)
        assert all(file.keys < settings.max_deleted_keys + 60 for file in files)
        if not growth.is_due(settings):
            continue
        growth = Growth()
        chosen = set(choose(files, settings).files)
        whole = [files[at] for at in sorted(chosen)]
        files = [file for at, file in enumerate(files) if at not in chosen]
        if whole:
            files.append(FileSeen(sum(f.bytes for f in whole), sum(f.rows for f in whole)))


@given(st.integers(1, 400))
def test_a_row_is_written_anew_a_few_times(writes: int) -> None:
    """What is written in all grows like n log n, not like n squared."""
    settings = SETTINGS.model_copy(update={"file_bytes": 10**9, "round_bytes": 10**12})
    files: list[FileSeen] = []
    rewritten, growth = 0, Growth()
    for _ in range(writes):
        files.append(FileSeen(10, 1))
        growth.add(1, 0, 0)
        if not growth.is_due(settings):
            continue
        growth = Growth()
        chosen = set(choose(files, settings).files)
        whole = [files[at] for at in chosen]
        rewritten += sum(file.bytes for file in whole)
        files = [file for at, file in enumerate(files) if at not in chosen]
        if whole:
            files.append(FileSeen(sum(f.bytes for f in whole), 1))
    assert rewritten <= writes * 10 * (2 + writes.bit_length())
    assert len(files) <= settings.small_files * (2 + writes.bit_length())
