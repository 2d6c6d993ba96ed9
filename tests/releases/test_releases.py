"""What a release has left in tables, queues and secrets is read by today's code; what a later one leaves is refused."""

from __future__ import annotations

import json
import logging
from contextlib import contextmanager
from importlib.metadata import distribution
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from moto import mock_aws
from packaging.version import Version

from a2a_serverless.adapters.key_ring_secret import load_key_ring
from a2a_serverless.aws.batches import make_queue_handler
from a2a_serverless.domain.queue_messages import UnsupportedMessageVersion, WorkMessage, from_json
from a2a_serverless.services.relay import relay
from a2a_serverless.services.sweep import Sweeper, sweep
from a2a_serverless.store import keys
from a2a_serverless.store.items import UnknownVersion
from a2a_serverless.testing.simulated_deployment import Counter
from tests.contract.backends import NOW, client_at, dynamo
from tests.echo import agent_of
from tests.handlers.test_queues import Clock
from tests.releases.story import KEY, MESSAGES, READS, RING, deployed, record, recorded, write
from tests.world import World

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.contract.backends import Store

HERE = Path(__file__).parent
RELEASES = sorted((folder.name for folder in HERE.glob("*.*.*")), key=Version)
SHORT_LIVED = {"SENDS", "WEBHOOKS", "TRY"}  # counters and claims of minutes, or of a day
_names = (f"release-{number}" for number in count())


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with mock_aws(), client_at(None) as made:
        yield made


@pytest.fixture(scope="module", params=RELEASES)
def kept(client: Any, request: pytest.FixtureRequest) -> Iterator[Store]:
    """A table as a release left it."""
    with left_by(client, request.param) as store:
        yield store


@contextmanager
def left_by(client: Any, release: str) -> Iterator[Store]:
    """A table as a release left it."""
    with dynamo(client, name := next(_names), lambda _: None) as store:
        for item in left(release, "items"):
            client.put_item(TableName=name, Item=item)
        store.blobs.content.update({blob: text.encode() for blob, text in left(release, "blobs").items()})
        yield store


def left(release: str, what: str) -> Any:
    return json.loads((HERE / release / f"{what}.json").read_text())


def test_the_version_of_this_checkout_is_recorded() -> None:
    assert distribution("a2a-serverless").version in RELEASES, "`make release` records it"


def test_a_recording_is_made_once_and_never_changed(tmp_path: Path) -> None:
    folder = tmp_path / "9.9.9"
    assert [record(folder), record(folder)] == [True, False]
    assert {file.name: file.read_text() for file in folder.iterdir()} == recorded()
    (folder / "messages.json").write_text("[]\n")
    with pytest.raises(ValueError, match=r"^9\.9\.9 is recorded with other content: messages\.json$"):
        record(folder)
    assert (folder / "messages.json").read_text() == "[]\n"


@pytest.mark.parametrize("what", READS)
def test_an_item_that_a_release_has_written_is_read_as_what_it_said(kept: Store, what: str) -> None:
    read, expected = READS[what]
    assert read(kept) == expected


@pytest.mark.parametrize("release", RELEASES)
def test_messages_and_key_rings_of_a_release_are_read(release: str) -> None:
    assert tuple(from_json(message) for message in left(release, "messages")) == MESSAGES
    assert load_key_ring((HERE / release / "key_ring.json").read_text()) == RING


@pytest.mark.parametrize("release", RELEASES)
def test_a_recording_has_every_kind_of_item(release: str) -> None:
    named = {value.rstrip("#") for name, value in vars(keys).items() if name.isupper() and isinstance(value, str)}
    named -= {keys.NEWEST, keys.EXHAUSTED, "TASK", *SHORT_LIVED}
    kinds = {key.partition("#")[0] for item in left(release, "items") for key in (item["pk"]["S"], item["sk"]["S"])}
    assert [kind for kind in sorted(named) if kind not in kinds] == []


def test_today_s_code_writes_no_attribute_that_the_last_release_could_not_pass_over(client: Any) -> None:
    """Its forms are the last release's, plus fields that have defaults; or else VERSION is another."""
    with dynamo(client, name := next(_names), lambda _: None) as store:
        write(store)
        now = {(item["pk"]["S"], item["sk"]["S"]): item for item in client.scan(TableName=name)["Items"]}
    before = {(item["pk"]["S"], item["sk"]["S"]): item for item in left(RELEASES[-1], "items")}
    for place, item in before.items():
        assert item.items() <= now[place].items() or now[place].get("v") != item.get("v"), place


@pytest.mark.parametrize("release", RELEASES)
def test_a_deployment_keeps_its_data_and_addresses_and_takes_its_parameters(release: str) -> None:
    """CloudFormation replaces a resource with another name or key schema, and refuses a parameter that it lacks."""
    before, now = left(release, "template"), json.loads(json.dumps(deployed()))
    assert set(before["parameters"]) <= set(now["parameters"])
    assert before["resources"].items() <= now["resources"].items()


class TestALaterRelease:
    """What a later release has left: an item of a form that today's code does not know."""

    @pytest.fixture
    def later(self, client: Any) -> Iterator[tuple[Store, list[Any]]]:
        with dynamo(client, name := next(_names), lambda _: None) as store:
            write(store)
            scanned = client.scan(TableName=name)["Items"]
            for item in scanned:
                client.put_item(TableName=name, Item=item | {"v": {"N": str(int(item.get("v", {"N": "1"})["N"]) + 1)}})
            yield store, scanned

    @pytest.mark.parametrize("what", ["head", "log", "step", "config", "cursor", "receipt"])
    def test_data_of_a_later_release_is_refused_by_each_reader(self, later: tuple[Store, list[Any]], what: str) -> None:
        read, _ = READS[what]
        with pytest.raises(UnknownVersion):
            read(later[0])

    def test_a_message_for_such_a_task_goes_back_to_its_queue(self, later: tuple[Store, list[Any]]) -> None:
        handler = make_queue_handler(WorkMessage, lambda message, *_: later[0].log.read_log(message.key))  # type: ignore[arg-type]
        body = json.dumps({"v": 1, "kind": "work", "tenant": KEY.tenant, "owner": KEY.owner, "task": KEY.task})
        answer = handler({"Records": [{"messageId": "m", "body": body}]}, Clock())
        assert answer == {"batchItemFailures": [{"itemIdentifier": "m"}]}

    def test_a_list_leaves_out_attempts_of_a_later_release(self, later: tuple[Store, list[Any]]) -> None:
        read, _ = READS["attempt"]
        assert read(later[0]) == []

    def test_the_relay_leaves_it_to_the_later_release_whose_sweeper_finds_it(
        self, later: tuple[Store, list[Any]]
    ) -> None:
        assert relay(later[0].push, World([agent_of(None)]).queue, [KEY], NOW) == 0
        assert any("due_at" in item for item in later[1] if item["sk"]["S"].startswith("CURSOR#"))

    def test_the_sweeper_puts_off_such_items_by_their_keys_and_changes_nothing_else_of_them(
        self, client: Any, later: tuple[Store, list[Any]]
    ) -> None:
        store, scanned = later
        due = [item for item in scanned if "due_at" in item and item["due_shard"]["S"] != keys.EXHAUSTED]
        assert {item["sk"]["S"].partition("#")[0] for item in due} == {"HEAD", "CURSOR"}
        kinds = [("PART#of a later release", "HEAD"), (due[0]["pk"]["S"], "KIND#of a later release")]
        table = client.list_tables()["TableNames"][-1]
        for pk, sk in kinds:
            client.put_item(TableName=table, Item=due[0] | {"pk": {"S": pk}, "sk": {"S": sk}, "v": {"N": "2"}})
        before = {(item["pk"]["S"], item["sk"]["S"]): item for item in client.scan(TableName=table)["Items"]}
        world = World([agent_of(None)])
        world.now = store.now.ms = NOW + 100_000
        sweeper = Sweeper(store.log, store.push, world.queue, world.clock, Counter())
        assert [sweep(sweeper) for _ in range(3)] == [len(due) + len(kinds), 0, 0]
        after = {(item["pk"]["S"], item["sk"]["S"]): item for item in client.scan(TableName=table)["Items"]}
        put_off = {place for place in before if before[place] != after[place]}
        assert put_off == {(item["pk"]["S"], item["sk"]["S"]) for item in due} | set(kinds)
        for place in put_off:
            assert after[place]["due_at"] == {"S": keys.moment(world.now + 60_000)}
            assert after[place] | {"due_at": 0, "put_off": 0} == before[place] | {"due_at": 0, "put_off": 0}
        assert world.queue.waiting == []


def test_a_message_of_a_later_form_goes_back_to_its_queue_and_is_not_discarded(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    body = {"v": 2, "kind": "work", "task": {"of": "another form"}}
    with pytest.raises(UnsupportedMessageVersion):
        from_json(body)  # type: ignore[arg-type]
    handler = make_queue_handler(WorkMessage, lambda *_: pytest.fail("answered"))
    answer = handler({"Records": [{"messageId": "m", "body": json.dumps(body)}]}, Clock())
    assert answer == {"batchItemFailures": [{"itemIdentifier": "m"}]}
    (line,) = [one for one in caplog.records if "newer" in one.getMessage()]
    assert line.__dict__["message_id"] == "m"


def test_a_key_ring_of_a_later_form_is_refused_and_a_field_that_was_added_is_passed_over() -> None:
    body = json.loads((HERE / RELEASES[-1] / "key_ring.json").read_text())
    with pytest.raises(ValueError, match="form"):
        load_key_ring(json.dumps(body | {"v": 2}))
    body["current"]["added"] = body["previous"][0]["added"] = body["added"] = 1
    assert load_key_ring(json.dumps(body)) == RING


def test_a_task_that_only_a_later_release_can_read_does_not_keep_the_sweeper_from_the_others() -> None:
    world = World([agent_of(None)])
    first, second = world.send(push=False), world.send(push=False)
    while world.queue.pop():
        pass
    world.now += 600_000

    class OneIsNewer:
        def __getattr__(self, name: str) -> Any:
            return getattr(world.table, name)

        def read_head(self, key: Any) -> Any:
            if key.task == first.id:
                raise UnknownVersion("newer")
            return world.table.read_head(key)

    log: Any = OneIsNewer()
    assert sweep(Sweeper(log, log, world.queue, world.clock, Counter())) == 2
    enqueued = world.queue.pop()
    assert isinstance(enqueued, WorkMessage)
    assert enqueued.key.task == second.id
