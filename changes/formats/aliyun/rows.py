"""Reads the rows of Alibaba DTS's records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec
from msgspec import UNSET

from changes.formats.aliyun.record import Images, WholeRecord, read_record
from changes.formats.aliyun.values import declared_types, text_of
from changes.formats.engine.image_rows import ImageRows
from changes.formats.engine.images import RowImage, RowShape
from changes.formats.engine.layout import Refused
from settings.counted import counted

LETTERS = {"INSERT": "I", "UPDATE": "U", "DELETE": "D", "INIT": "I"}
"""What happened to a row, by the operation of its record."""

_KEYS = "pk_uk_info"
"""The tag that names a table's keys."""
_SHAPES_KEPT = 1_000

_tag = msgspec.json.Decoder(dict[str, list[str]])

Image = dict[str, str | None]


class AliyunRows(ImageRows):
    """The ``ImageRows`` of Alibaba DTS: a record at a time."""

    zone = "UTC"
    """TIMESTAMP comes as a point in time, so no zone is needed to read it."""
    own_types = False

    def __init__(self) -> None:
        self._shapes: dict[tuple[object, ...], RowShape] = {}
        """Of rows that have all fields, by these, the source, and the tag of the key."""

    def images(self, value: bytes) -> Iterator[RowImage]:
        record = read_record(value)
        op = LETTERS.get(record.operation)
        if op is None:
            raise Refused(f"an operation {record.operation}, which is no row's")
        self.moves_freely = record.source == "MySQL"
        about = (record.fields, record.source, record.tags.get(_KEYS))
        shape = self._shapes.get(about)
        types = declared_types(record.fields, record.source) if shape is None else shape.types
        if shape is None and len(dict(record.fields)) < len(record.fields):
            raise Refused("two fields of one name")
        before, after = _image(record, record.before, types), _image(record, record.after, types)
        now = before if op == "D" else after
        if now is None:
            image = "beforeImages" if op == "D" else "afterImages"
            raise Refused(f"a record of operation {record.operation} without {image}")
        was = (before or now) if op == "U" else None
        if shape is None or len(now) < len(record.fields):
            names = tuple(dict.fromkeys((*now, *(was or ()))))
            shape = RowShape(names, types, key_of(record))
            if len(now) == len(record.fields):
                if len(self._shapes) >= _SHAPES_KEPT:
                    self._shapes.clear()
                self._shapes[about] = shape
        yield RowImage(op, now, was, shape)


def key_of(record: WholeRecord) -> tuple[str, ...]:
    """The primary key's columns; other unique keys may be null, so none of them is taken."""
    text = record.tags.get(_KEYS)
    if not text:
        return ()
    try:
        return tuple(_tag.decode(text).get("PRIMARY", ()))
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise Refused(f"the tag pk_uk_info is not an object of lists: {error}") from error


def _image(
    record: WholeRecord, images: Images | str | None, types: Mapping[str, str]
) -> Image | None:
    if not images or isinstance(images, str):
        return None
    if len(images) != len(record.fields):
        raise Refused(f"{counted(len(images), 'value')} for {counted(len(record.fields), 'field')}")
    found: Image = {}
    for (name, _), value in zip(record.fields, images, strict=True):
        try:
            text = text_of(value, types.get(name))
        except Refused as refused:
            raise Refused(f"{name}: {refused}") from refused
        if text is not UNSET:
            found[name] = text
    return found
