"""What a browser may ask the emulator for: a stored file by its link, and nothing that changes anything."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlsplit

import boto3
import pytest
from botocore.config import Config

from a2a_serverless.adapters.s3 import S3BlobStore
from a2a_serverless_tools.stack.guarded_emulator import guarded, without_metric_math
from tests.functions.template import resources
from tests.webhook_receiver.asgi import Answer, Call, call

PORT: Final = 4566
HERE: Final = ("Host", f"127.0.0.1:{PORT}")
IN_TAB: Final = (("Sec-Fetch-Mode", "navigate"), ("Sec-Fetch-Dest", "document"))
OPENED: Final = "files/task/1.png?" + "&".join(
    f"X-Amz-{name}=x" for name in ("Algorithm", "Credential", "Date", "Expires", "SignedHeaders", "Signature")
)


async def emulator(scope: Any, receive: Any, send: Any) -> None:
    """Answers everything."""
    del scope, receive
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/html")]})
    await send({"type": "http.response.body", "body": b"<script>alert(1)</script>"})


def ask(verb: str, path: str, *headers: tuple[str, str]) -> Answer:
    path, _, query = path.partition("?")
    return call(guarded(emulator, PORT), Call(verb, f"/{path}", (HERE, *headers), query=query))


@pytest.mark.parametrize("site", ["same-site", "cross-site", "none"])
def test_a_file_is_opened_by_its_link_and_its_scripts_do_not_run(site: str) -> None:
    answer = ask("GET", OPENED, ("Sec-Fetch-Site", site), *IN_TAB)
    assert answer.status == 200
    assert answer.headers["content-security-policy"].startswith("sandbox; default-src 'none'")
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_the_links_of_the_library_open_files() -> None:
    client = boto3.client(
        "s3",
        region_name="us-east-1",
        endpoint_url=f"http://127.0.0.1:{PORT}",
        aws_access_key_id="test",
        aws_secret_access_key="test",
        aws_session_token="test",
        config=Config(signature_version="s3v4", s3={"addressing_style": "path"}),
    )
    url = urlsplit(S3BlobStore(lambda: client, "bucket").presign_get("tenant/owner/task/digest", 60, "a b.png"))
    path = f"{url.path.lstrip('/')}?{url.query}"
    assert ask("GET", path, ("Sec-Fetch-Site", "same-site"), *IN_TAB).status == 200


@pytest.mark.parametrize("site", ["none", "same-origin", "same-site", "cross-site"])
@pytest.mark.parametrize(
    ("verb", "path"),
    [
        ("GET", "?Action=DeleteStack&StackName=a2a-serverless&Version=2010-05-15"),
        ("GET", "_ministack/health"),
        ("POST", "_ministack/reset"),
        ("GET", "files"),
        ("GET", "files/task/1.png"),
        ("GET", f"{OPENED}&Action=DeleteStack"),
        ("GET", f"{OPENED}&uploads"),
        ("PUT", OPENED),
        ("POST", OPENED),
        ("DELETE", OPENED),
    ],
)
def test_a_browser_may_ask_for_nothing_else(verb: str, path: str, site: str) -> None:
    assert ask(verb, path, ("Sec-Fetch-Site", site), *IN_TAB).status == 403


@pytest.mark.parametrize(
    "headers",
    [
        (("Sec-Fetch-Site", "same-site"), ("Sec-Fetch-Mode", "no-cors"), ("Sec-Fetch-Dest", "image")),
        (("Sec-Fetch-Site", "same-site"), ("Sec-Fetch-Mode", "navigate"), ("Sec-Fetch-Dest", "iframe")),
        (("Sec-Fetch-Site", "same-origin"), ("Sec-Fetch-Mode", "cors"), ("Sec-Fetch-Dest", "empty")),
        (("Sec-Fetch-Mode", "cors"),),
        (("Origin", "http://127.0.0.1:8000"), ("Sec-Fetch-Site", "same-site"), *IN_TAB),
    ],
)
def test_a_page_reads_and_shows_no_file(headers: tuple[tuple[str, str], ...]) -> None:
    assert ask("GET", OPENED, *headers).status == 403


def test_a_program_may_do_anything_and_its_answers_are_unchanged() -> None:
    answer = ask("POST", "?Action=DeleteStack")
    assert (answer.status, "content-security-policy" in answer.headers) == (200, False)


@pytest.mark.parametrize("name", ["FunctionErrorsAlarm", "ThrottlesAlarm"])
def test_an_alarm_on_several_metrics_is_made_on_the_first_because_the_emulator_cannot_add(name: str) -> None:
    made: list[tuple[str, Any]] = []
    properties = resources("AWS::CloudWatch::Alarm")[name]
    without_metric_math(lambda *about: made.append(about))(name, properties)
    ((_, alarm),) = made
    assert "Metrics" not in alarm
    assert alarm["Dimensions"][0]["Value"] == {"Ref": "ApiFunction"}
    assert (alarm["Statistic"], alarm["Period"], alarm["Namespace"]) == ("Sum", 300, "AWS/Lambda")
    assert properties["Metrics"], "the template is unchanged"


def test_an_alarm_on_one_metric_stays_as_it_is() -> None:
    made: list[tuple[str, Any]] = []
    properties = resources("AWS::CloudWatch::Alarm")["OldestDueTaskAlarm"]
    without_metric_math(lambda *about: made.append(about))("name", properties)
    assert made == [("name", properties)]
