"""The form of record keys: what equal keys have in common, byte by byte."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from changes.formats.engine.layout import Refused
from changes.formats.wire.record_keys import key_form

SCHEMA = b'{"schema":{"type":"struct","fields":[{"type":"int32","field":"id"}]},"payload":%s}'


@pytest.mark.parametrize(
    ("key", "columns"),
    [
        (b'{"id":1}', (("id", "integer"),)),
        (b' { "a" : "x:,}" , "b\\"c": -4 } ', (("a", "text"), ('b"c', "integer"))),
        (b'{"a":true}', (("a", "boolean"),)),
        (SCHEMA % b'{"id":17}', (("id", "integer"),)),
        (b'\0\0\0\0\7{"id":17}', (("id", "integer"),)),
    ],
)  # fmt: skip
def test_a_key_has_columns_and_fits_its_own_form(key: bytes, columns: object) -> None:
    form = key_form(key)
    assert form.columns == columns
    assert form.typed == (b"schema" in key or key[:1] == b"\0")
    assert form.fits([key, key])


def test_other_values_fit_and_other_spellings_do_not() -> None:
    """A space, another order, another kind of value, another schema: other bytes for equal keys."""
    form = key_form(b'{"id":1,"n":"a"}')
    assert form.fits([b'{"id":-77,"n":""}', b'{"id":0,"n":"\\"}\\n"}'])
    others = [
        b'{"id": 1,"n":"a"}', b'{"n":"a","id":1}', b'{"id":"1","n":"a"}', b'{"id":1,"n":"a"} ',
        b'{"id":1.0,"n":"a"}', b'{"id":1}', b'{"id":1,"n":null}', b"",
    ]  # fmt: skip
    for other in others:
        assert not form.fits([b'{"id":1,"n":"a"}', other]), other
    one, two = key_form(SCHEMA % b'{"id":1}'), key_form(SCHEMA.replace(b"32", b"64") % b'{"id":1}')
    assert one.text != two.text
    assert one.text.startswith("id integer (")


@pytest.mark.parametrize(
    "key",
    [b"1", b"", b"[]", b"{}", b'{"a":1.5}', b'{"a":1e3}', b'{"a":{"b":1}}', b'{"a":null}',
     b'{"a":1', b"Struct{id=1}", b'{"a":1,}', b"\0\0\0\0\1\2", b'{"schema":null,"payload":null}'],
)  # fmt: skip
def test_what_is_no_key_of_columns_is_refused(key: bytes) -> None:
    with pytest.raises(Refused, match="record key"):
        key_form(key)


@pytest.mark.parametrize("value", [b'{"scale":1,"value":"Dw=="}', b"[1]", b"1.5"])
def test_a_value_of_many_spellings_is_refused_by_its_column(value: bytes) -> None:
    """Oracle's NUMBER is a structure: 100 may be 1E+2, in other bytes, so in another partition."""
    for begin in (b"", b"\0id 7"):
        with pytest.raises(Refused, match=r"record key's .?id.? is .*decimal\.handling\.mode"):
            key_form(begin + b'{"no":1,"id":%s}' % value)


@pytest.mark.parametrize(
    "value", [rb'"\u0061"', rb'"caf\u00e9"', rb'"a\/b"', rb'"\u000a"', b"05", b"-0", b"-01"]
)
def test_a_value_that_may_be_spelled_otherwise_is_refused(value: bytes) -> None:
    """Another writer of the same key has other bytes, and so another partition."""
    with pytest.raises(Refused, match="record key"):
        key_form(b'{"id":%s}' % value)
    for plain in (b'"a"', b"5"):
        assert not key_form(b'{"id":%s}' % plain).fits([b'{"id":%s}' % value])


_PLAIN = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="".join(map(chr, range(32))))
)


@given(st.dictionaries(_PLAIN, st.one_of(st.integers(), _PLAIN, st.booleans()), min_size=1))
def test_any_key_of_columns_is_read_as_json_reads_it(columns: dict[str, object]) -> None:
    """Whatever is in names and texts."""
    key = json.dumps(columns, ensure_ascii=False).encode()
    form = key_form(key)
    assert [name for name, _ in form.columns] == list(columns)
    assert form.fits([key])


@given(st.binary(max_size=40))
def test_random_bytes_never_fit_by_chance(key: bytes) -> None:
    """What is no JSON of the columns fits no form."""
    form = key_form(b'{"id":1}')
    if form.fits([key]):
        assert set(json.loads(key)) == {"id"}
