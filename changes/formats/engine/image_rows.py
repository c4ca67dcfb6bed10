"""Rows of records that hold images of them: the same reading serves decoders and people."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable

from msgspec import Struct

from changes.formats.engine.images import RowImage
from changes.formats.engine.layout import Layout
from changes.formats.engine.rows import Pass, Rows


class ImageRows(Rows):
    """Rows of records that hold images: ``images`` reads a record, for decoders and people."""

    completes = True
    """Whether what an update lacks in a changelog is in its old row."""
    shows_key = True
    """Whether people see the key of an update that has no old row as its old row."""
    needs_columns = True
    """Whether a row without any column is an error; else only where no column is known."""

    @abstractmethod
    def images(self, value: bytes) -> Iterable[RowImage]:
        """Read a record's rows, slowly and exactly; raises Refused, BadMessage."""

    def add_one(self, into: Pass) -> None:
        for image in self.images(into.values[into.place]):
            if into.positions is not None and image.position is not None:
                into.positions[into.place] = image.position
            if image.op == "U" and image.was and self.completes:
                keys = image.shape.keys if into.layout.keys is None else into.layout.keys
                if not keys:
                    image = self.completed(image)
            shape = image.shape
            known = into.layout.columns or shape.names or shape.types
            into.learn(shape, bare=not image.now and (self.needs_columns or not known))
            into.layout = self.fitted(into.layout, image)
            into.add(image.op, *self.structs(into, image))

    def completed(self, image: RowImage) -> RowImage:
        """An update's row of a changelog, with what only its old one holds."""
        was = image.was or {}
        beside = {name: cell for name, cell in was.items() if name not in image.now}
        shape = image.shape.whole or image.shape
        return image._replace(now={**image.now, **beside}, was=None, shape=shape)

    def fitted(self, layout: Layout, image: RowImage) -> Layout:
        """The layout as this image's values need it."""
        return layout

    def structs(self, into: Pass, image: RowImage) -> tuple[Struct, Struct | None]:
        """The image as rows of the layout, which has its columns; raises Refused."""
        fields = into.layout.fields
        now = into.layout.row(**{fields[name]: cell for name, cell in image.now.items()})
        if image.was is None:
            return now, None
        was = {fields[name]: cell for name, cell in image.was.items() if name in fields}
        return now, into.layout.row(**was)
