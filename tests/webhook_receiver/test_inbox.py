import asyncio
import re
import threading
from pathlib import Path

import pytest

from a2a_webhook_receiver.exchange import WebhookRequest
from a2a_webhook_receiver.http_inbox import stream_entries
from a2a_webhook_receiver.inbox import PER_REASON, REFUSED_BYTES, REQUEST_BYTES, WATCHERS, Answer, Inbox, TaskLine
from vectors.cases import NOW


def fill(inbox: Inbox, count: int, outcome: str = "accepted") -> None:
    for number in range(count):
        inbox.add(NOW, "refused" if outcome == "refused" else "accepted", {"at": number})


def test_entries_come_back_in_order_after_a_number() -> None:
    inbox = Inbox(first=100)
    fill(inbox, 3)
    assert [entry.number for entry in inbox.after(0)] == [100, 101, 102]
    assert [entry.number for entry in inbox.after(101)] == [102]
    assert inbox.after(102) == ()


def test_the_oldest_entries_are_forgotten() -> None:
    inbox = Inbox(first=1, ring=3)
    fill(inbox, 5)
    assert [entry.number for entry in inbox.after(0)] == [3, 4, 5]


def test_a_flood_of_refusals_pushes_nothing_good_out() -> None:
    inbox = Inbox(first=1, ring=3, per_reason=3)
    fill(inbox, 2)
    fill(inbox, 1000, "refused")
    assert [entry.outcome for entry in inbox.after(0)] == ["accepted", "accepted", "refused", "refused", "refused"]


def refuse(inbox: Inbox, code: str, request: WebhookRequest | None = None) -> None:
    inbox.add(NOW, "refused", {"refusal": {"code": code}}, request)


def test_a_flood_of_one_reason_pushes_no_other_refusal_out_and_is_counted() -> None:
    inbox = Inbox(first=1)
    refuse(inbox, "wrong-token")
    for _ in range(1000):
        refuse(inbox, "no-signature")
    assert [entry.reason for entry in inbox.after(0)] == ["wrong-token"] + ["no-signature"] * PER_REASON
    assert inbox.refused() == {"wrong-token": 1, "no-signature": 1000}
    assert inbox.outcomes() == {"refused": 1001}


def test_requests_are_kept_up_to_a_number_of_bytes_refused_ones_apart() -> None:
    inbox, request = Inbox(first=1), WebhookRequest((), bytes(1024 * 1024))
    for number in range(64):
        inbox.add(NOW, "accepted", {})
        inbox.add(NOW, "accepted", {}, request)
        refuse(inbox, f"reason-{number % 5}", request)
    kept = [entry for entry in inbox.after(0) if entry.request]
    assert sum(entry.outcome == "accepted" for entry in kept) == REQUEST_BYTES // request.size
    assert sum(entry.outcome == "refused" for entry in kept) == REFUSED_BYTES // request.size
    assert kept[-1].number == 64 * 3


def test_an_answer_is_noted_at_the_entry_of_its_own_request() -> None:
    inbox, first, second = Inbox(first=1), WebhookRequest((), b""), WebhookRequest((), b"")
    inbox.add(NOW, "accepted", {}, first)
    refuse(inbox, "expired", second)
    inbox.note_answer(second, Answer(401, 3))
    inbox.note_answer(WebhookRequest((), b""), Answer(500, 1))
    assert [entry.answer for entry in inbox.after(0)] == [None, Answer(401, 3)]
    assert inbox.after(1)[0].as_json()["answer"] == {"status": 401, "ms": 3}


def test_the_inbox_merges_the_lines_of_a_task_in_any_order() -> None:
    inbox = Inbox(first=1)
    inbox.note_task(TaskLine("t", 5, "completed", "document"))
    inbox.note_task(TaskLine("t", 1, "submitted", None, "Write."))
    assert inbox.tasks() == (TaskLine("t", 5, "completed", "document", "Write."),)


def test_a_task_is_where_its_greatest_event_says() -> None:
    inbox = Inbox(first=1)
    for number, state in ((1, "working"), (4, "completed"), (2, "working"), (3, None)):
        inbox.note_task(TaskLine("t", number, state))
    assert inbox.tasks() == (TaskLine("t", 4, "completed"),)


def test_an_event_without_state_leaves_the_state() -> None:
    inbox = Inbox(first=1)
    inbox.note_task(TaskLine("t", 1, "working"))
    inbox.note_task(TaskLine("t", 2, None))
    assert inbox.tasks() == (TaskLine("t", 2, "working"),)


def test_the_task_last_heard_of_is_first_and_old_ones_are_forgotten() -> None:
    inbox = Inbox(first=1)
    for number in range(150):
        inbox.note_task(TaskLine(f"t-{number}", 1, "working"))
    assert len(inbox.tasks()) == 100
    assert inbox.tasks()[0].task_id == "t-149"


def test_a_stream_begins_after_a_number_and_goes_on_as_entries_come() -> None:
    inbox = Inbox(first=1)
    fill(inbox, 2)

    async def watch() -> list[str]:
        stream = stream_entries(inbox, 1, 10)
        seen = [await anext(stream), await anext(stream)]
        thread = threading.Thread(target=fill, args=(inbox, 1))
        thread.start()
        seen.append(await anext(stream))
        thread.join()
        await stream.aclose()  # type: ignore[attr-defined]
        return seen

    retry, second, third = asyncio.run(watch())
    assert retry == "retry: 2000\n\n"
    assert second.startswith("id: 2\ndata: {")
    assert third.startswith("id: 3\ndata: {")
    assert third.endswith("}\n\n")


def test_a_silent_stream_says_that_it_is_alive() -> None:
    async def watch() -> list[str]:
        stream = stream_entries(Inbox(first=1), 0, 0.0)
        return [await anext(stream), await anext(stream), await anext(stream)]

    assert asyncio.run(watch())[1:] == [": alive\n\n", ": alive\n\n"]


def test_one_watcher_too_many_is_asked_to_come_back_later() -> None:
    inbox = Inbox(first=1)

    async def crowd() -> list[str]:
        streams = [stream_entries(inbox, 0, 10) for _ in range(WATCHERS)]
        for stream in streams:
            await anext(stream)
        refused = [message async for message in stream_entries(inbox, 0, 10)]
        await streams[0].aclose()  # type: ignore[attr-defined]
        welcome = await anext(stream_entries(inbox, 0, 10))
        return [*refused, welcome]

    assert asyncio.run(crowd()) == ["retry: 30000\n\n", "retry: 2000\n\n"]


def test_a_line_break_in_content_does_not_end_an_event() -> None:
    inbox = Inbox(first=1)
    inbox.add(NOW, "accepted", {"text": "one\n\ndata: two\r\n"})

    async def first() -> str:
        stream = stream_entries(inbox, 0, 10)
        await anext(stream)
        return await anext(stream)

    assert asyncio.run(first()).count("\n") == 3


@pytest.mark.parametrize("count", [0, 1])
def test_a_watch_that_ends_is_not_notified_any_more(count: int) -> None:
    inbox = Inbox(first=1)

    async def watch() -> None:
        stream = stream_entries(inbox, 0, 10)
        await anext(stream)
        await stream.aclose()  # type: ignore[attr-defined]

    asyncio.run(watch())
    fill(inbox, count)
    assert len(inbox.after(0)) == count


PAGES = Path(__file__).parents[2] / "shared/a2a_serverless/http/pages"
PACKAGE = Path(__file__).parents[2] / "webhook_receiver/a2a_webhook_receiver"


def test_the_inbox_has_the_colours_and_the_markdown_of_the_console() -> None:
    shared = r"^:root \{.*?^\}|^(?:\.markdown|\.wide|table|th|\.badge)\b[^\n]*"
    console, inbox = ((folder / name).read_text() for folder, name in ((PAGES, "console.css"), (PACKAGE, "page.css")))
    rules = re.findall(shared, console, re.MULTILINE | re.DOTALL)
    assert len(rules) > 15
    assert [rule for rule in rules if rule not in inbox] == []
