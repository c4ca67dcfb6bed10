"""The keeper of a registry's schemas: a real server, real files, a real thread."""

from __future__ import annotations

import queue
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from actors.contract import messages as msg
from actors.contract.addresses import Address
from changes.formats.wire.schemas import Schema, SchemaFolder, SchemaId
from sources.registry.keeper import SchemaKeeper, SchemaStore, says_the_same
from sources.registry.section import RegistrySection
from tests.sources.registry.server import RegistryServer, running

FETCHER, OTHER = Address("shop", "fetcher"), Address("other", "fetcher")
SEVEN, EIGHT = SchemaId("id", "7"), SchemaId("id", "8")


@pytest.fixture
def server() -> Iterator[RegistryServer]:
    with running() as registry:
        yield registry


class Told:
    """A keeper, and what it tells."""

    def __init__(self, url: str | list[str], folder: Path, **keys: object) -> None:
        self.section = RegistrySection.model_validate({"url": url, "timeout_s": 5.0, **keys})
        self.said: queue.SimpleQueue[tuple[Address, object]] = queue.SimpleQueue()
        self.folder = folder
        self.keeper = SchemaKeeper(
            "main", lambda: self.section, folder, lambda *said: self.said.put(said)
        )
        self.keeper.start()

    def next(self) -> object:
        return self.said.get(timeout=20)[1]


@pytest.fixture
def told(server: RegistryServer, tmp_path: Path) -> Iterator[Told]:
    made = Told(server.url, tmp_path / "main")
    yield made
    made.keeper.close()


def again(server: RegistryServer, told: Told, **keys: object) -> Told:
    """After a restart."""
    told.keeper.close()
    return Told(server.url, told.folder, **keys)


def test_a_schema_is_fetched_and_kept(server: RegistryServer, told: Told) -> None:
    """And told once it is on the disk, to each who wants it."""
    server.avro(7, "id")
    assert told.keeper.want(FETCHER, (SEVEN,)) == ()
    assert told.next() == msg.SchemasKept((SEVEN,))
    assert SchemaFolder(told.folder).get(SEVEN) == Schema("AVRO", server.ids["7"]["schema"])
    assert told.keeper.want(OTHER, (SEVEN,)) == (SEVEN,)


def test_a_kept_one_needs_no_registry(server: RegistryServer, told: Told) -> None:
    """A restart with the registry away goes on from the folder."""
    server.avro(7, "id")
    told.keeper.want(FETCHER, (SEVEN,))
    told.next()
    server.stop()
    late = again(server, told)
    assert late.keeper.want(FETCHER, (SEVEN, EIGHT)) == (SEVEN,)
    state = late.next()
    assert isinstance(state, msg.RegistryState)
    assert state.away is not None
    late.keeper.close()


def test_a_folder_that_was_removed_begins_again(server: RegistryServer, told: Told) -> None:
    """The way out after a registry's loss, while the daemon runs: the first meanings are gone."""
    server.avro(7, "id")
    told.keeper.want(FETCHER, (SEVEN,))
    told.next()
    shutil.rmtree(told.folder)
    server.avro(7, "name")
    assert told.keeper.want(FETCHER, (SEVEN,)) == ()
    assert told.next() == msg.SchemasKept((SEVEN,))
    assert SchemaFolder(told.folder).get(SEVEN) == Schema("AVRO", server.ids["7"]["schema"])


def test_a_registry_at_another_address_is_asked_before_a_kept_schema_is_used(
    server: RegistryServer, told: Told
) -> None:
    """It may be another one, with the same numbers: a test's, a new cluster's."""
    for number in (7, 8):
        server.avro(number, "id")
    told.keeper.want(FETCHER, (SEVEN, EIGHT))
    assert {told.next(), told.next()} == {msg.SchemasKept((each,)) for each in (SEVEN, EIGHT)}
    told.keeper.close()
    with running() as second:
        second.avro(7, "name")
        second.avro(8, "id")
        late = Told(second.url, told.folder)
        assert late.keeper.want(FETCHER, (SEVEN, EIGHT)) == ()
        said = {type(each): each for each in (late.next(), late.next())}
        assert said[msg.SchemasKept] == msg.SchemasKept((EIGHT,))
        assert said[msg.SchemaRefused].identity == SEVEN  # type: ignore[attr-defined]
        late.keeper.close()
        later = Told(second.url, told.folder)  # it is remembered
        assert later.keeper.want(FETCHER, (SEVEN, EIGHT)) == (EIGHT,)
        later.keeper.close()


def test_one_more_address_is_no_other_registry(server: RegistryServer, told: Told) -> None:
    server.avro(7, "id")
    told.keeper.want(FETCHER, (SEVEN,))
    told.next()
    told.keeper.close()
    more = Told(["http://127.0.0.1:9", server.url], told.folder)
    assert more.keeper.want(FETCHER, (SEVEN,)) == (SEVEN,)
    more.keeper.close()


def test_a_registry_that_comes_back_is_asked_again(server: RegistryServer, told: Told) -> None:
    server.avro(7, "id")
    server.stop()
    told.keeper.want(FETCHER, (SEVEN,))
    state = told.next()
    assert isinstance(state, msg.RegistryState)
    assert "127.0.0.1" in str(state.away)
    server.start()
    assert told.next() == msg.RegistryState("main", None)
    assert told.next() == msg.SchemasKept((SEVEN,))


def test_a_new_token_is_read_again(server: RegistryServer, told: Told) -> None:
    """A registry that refuses the login is away, by that name, until the login is another."""
    server.avro(7, "id")
    server.ill = lambda path: (401, {}, b"old") if server.logins[-1] != "Bearer new" else None
    told.keeper.want(FETCHER, (SEVEN,))
    state = told.next()
    assert isinstance(state, msg.RegistryState)
    assert "the login is refused" in str(state.away)
    told.section = told.section.model_copy(update={"bearer_token": "new"})
    assert told.next() == msg.RegistryState("main", None)
    assert told.next() == msg.SchemasKept((SEVEN,))


def test_what_stays_missing_is_given_up_and_may_come_later(
    server: RegistryServer, tmp_path: Path
) -> None:
    """Each message of it is a bad one then. Others are fetched meanwhile."""
    told = Told(server.url, tmp_path / "main", not_found_s=0)
    server.avro(8, "id")
    told.keeper.want(FETCHER, (SEVEN, EIGHT))
    said = {told.next(), told.next()}
    assert msg.SchemasKept((EIGHT,)) in said
    (missing,) = said - {msg.SchemasKept((EIGHT,))}
    assert isinstance(missing, msg.SchemaMissing)
    assert missing.identity == SEVEN
    assert missing.reason.startswith("registry main does not have it: schema id 7: Schema not")
    server.avro(7, "id")
    told.keeper.want(OTHER, (SEVEN,))
    assert told.next() == msg.SchemasKept((SEVEN,))
    told.keeper.close()


def test_a_second_meaning_is_refused_and_stays_so(server: RegistryServer, told: Told) -> None:
    """The registry was emptied: what is kept stays as it is, and is used no more."""
    server.avro(7, "id")
    told.keeper.want(FETCHER, (SEVEN,))
    told.next()
    kept = SchemaFolder(told.folder).get(SEVEN)
    server.avro(7, "id", "name")
    late = again(server, told)
    assert late.keeper.want(FETCHER, (SEVEN,)) == (SEVEN,)
    refused = late.next()
    assert isinstance(refused, msg.SchemaRefused)
    for part in ("registry main", "schema id 7 is another one than before", "id-7.json.second"):
        assert part in refused.reason
    assert SchemaFolder(told.folder).get(SEVEN) == kept
    late = again(server, late)
    assert late.keeper.want(FETCHER, (SEVEN,)) == ()
    assert isinstance(late.next(), msg.SchemaRefused)
    late.keeper.close()
    server.avro(7, "id")
    late = again(server, late)
    assert late.keeper.want(FETCHER, (SEVEN,)) == ()
    assert late.next() == msg.SchemasKept((SEVEN,))
    assert [file.name for file in told.folder.iterdir()] == ["id-7.json"]
    late.keeper.close()


def test_after_an_outage_all_are_compared(server: RegistryServer, told: Told) -> None:
    """It may be another registry that answers now."""
    server.avro(7, "id")
    server.avro(8, "id")
    told.keeper.want(FETCHER, (SEVEN,))
    told.next()
    server.stop()
    told.keeper.want(FETCHER, (EIGHT,))
    assert isinstance(told.next(), msg.RegistryState)
    server.avro(7, "other")
    server.start()
    assert told.next() == msg.RegistryState("main", None)
    rest = [told.next(), told.next()]
    assert msg.SchemasKept((EIGHT,)) in rest
    assert any(isinstance(each, msg.SchemaRefused) and each.identity == SEVEN for each in rest)


def test_a_schema_that_was_removed_from_the_registry_is_used_on(
    server: RegistryServer, told: Told
) -> None:
    """Its messages are as they were."""
    server.avro(7, "id")
    server.avro(8, "id")
    told.keeper.want(FETCHER, (SEVEN,))
    told.next()
    del server.ids["7"]
    late = again(server, told)
    assert late.keeper.want(FETCHER, (SEVEN, EIGHT)) == (SEVEN,)
    assert late.next() == msg.SchemasKept((EIGHT,))
    assert late.keeper.want(OTHER, (SEVEN,)) == (SEVEN,)
    late.keeper.close()


def test_slow_answers_come_side_by_side(server: RegistryServer, told: Told) -> None:
    """The gate is closed until four questions are there: one after another they never would be."""
    for number in range(4):
        server.avro(number, "id")
    server.gate.clear()
    told.keeper.want(FETCHER, [SchemaId("id", str(number)) for number in range(4)])
    for _ in range(4):
        server.arrived.get(timeout=20)
    server.gate.set()
    kept = {told.next() for _ in range(4)}
    assert kept == {msg.SchemasKept((SchemaId("id", str(n)),)) for n in range(4)}


def test_a_damaged_file_is_fetched_again(server: RegistryServer, told: Told) -> None:
    server.avro(7, "id")
    told.folder.mkdir()
    (told.folder / SEVEN.file_name).write_text('{"kind":"AVRO","te')
    assert told.keeper.want(FETCHER, (SEVEN,)) == ()
    assert told.next() == msg.SchemasKept((SEVEN,))


def test_a_disk_that_is_full_is_an_outage_by_name(server: RegistryServer, tmp_path: Path) -> None:
    """Nothing is decoded with what a restart would not find."""
    (tmp_path / "main").write_text("a file where the folder should be")
    told = Told(server.url, tmp_path / "main")
    server.avro(7, "id")
    told.keeper.want(FETCHER, (SEVEN,))
    state = told.next()
    assert isinstance(state, msg.RegistryState)
    assert "schema id 7 can't be stored" in str(state.away)
    told.keeper.close()


def test_whoever_ended_hears_nothing_more(server: RegistryServer, told: Told) -> None:
    server.avro(7, "id")
    server.gate.clear()
    told.keeper.want(FETCHER, (SEVEN,))
    told.keeper.forget(FETCHER)
    server.gate.set()
    told.keeper.want(OTHER, (SEVEN,))
    assert told.said.get(timeout=20) == (OTHER, msg.SchemasKept((SEVEN,)))


def test_spaces_are_no_second_meaning(tmp_path: Path) -> None:
    """Of Avro's and JSON's schemas, whose texts some registries write anew."""
    one, other = Schema("AVRO", '{"type": "long"}'), Schema("AVRO", '{"type":"long"}')
    assert says_the_same(one, other)
    assert not says_the_same(one, Schema("AVRO", '{"type":"int"}'))
    assert not says_the_same(Schema("PROTOBUF", "a b"), Schema("PROTOBUF", "a  b"))
    assert not says_the_same(Schema("AVRO", "1"), Schema("JSON", "1"))
    store = SchemaStore(tmp_path)
    assert store.keep(SEVEN, one) is None
    assert store.keep(SEVEN, other) is None
    assert SchemaFolder(tmp_path).get(SEVEN) == one
