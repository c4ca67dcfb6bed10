"""What a sink raises leaves it with the target's name, and with all that it told."""

from __future__ import annotations

import pytest

from changes.model.errors import LostRace, TargetRefused, WaitsForName
from changes.model.model import TargetName
from offsets.fence import Straggler
from sparkwriter.iceberg.refusals import check_metastore, reasons

TARGET = TargetName("lake", "db", "u")


def test_whose_write_comes_first_is_still_told() -> None:
    """Who waits for a target in quarantine would wait for ever."""
    other = TARGET._replace(table="t")
    with pytest.raises(WaitsForName) as raised, reasons(TARGET):
        raise WaitsForName("waits until it has its name", other)
    assert raised.value.other == other
    assert str(raised.value) == "lake.db.u: waits until it has its name"


@pytest.mark.parametrize("kind", [LostRace, Straggler, TargetRefused])
def test_an_error_keeps_its_kind_and_has_the_name_once(kind: type[Exception]) -> None:
    """The kind says what to do about it."""
    for text in ("no", "lake.db.u: no"):
        with pytest.raises(kind) as raised, reasons(TARGET):
            raise kind(text)
        assert (type(raised.value), str(raised.value)) == (kind, "lake.db.u: no")


def test_what_a_metastore_never_takes_is_refused_with_the_way_out() -> None:
    """Its default refuses to drop a column that is not the last; other failures pass."""
    check_metastore(RuntimeError("Connection refused"))
    told = RuntimeError(
        "InvalidOperationException(message:The following columns have types incompatible with the"
        " existing columns in their respective positions :\nn)"
    )
    with pytest.raises(TargetRefused, match=r"set hive\.metastore\.disallow\.incompatible"):
        check_metastore(told)
