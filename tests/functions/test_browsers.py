"""What a page in a browser meets besides the application: the bucket, and what API Gateway answers by itself."""

import re

from a2a_serverless.http.cors import EXPOSED_HEADERS
from tests.functions.evaluated import evaluated
from tests.functions.template import resources, template


def test_pages_that_may_call_agents_may_put_and_get_files() -> None:
    pages = {"CorsOrigins": "https://app.example.com,https://b.example.com:8443"}
    blobs = evaluated(**pages)["Blobs"]["Properties"]
    (rule,) = blobs["CorsConfiguration"]["CorsRules"]
    assert rule["AllowedOrigins"] == {"Fn::Split": [",", pages["CorsOrigins"]]}
    assert set(rule["AllowedMethods"]) == {"GET", "HEAD", "PUT"}
    assert rule["AllowedHeaders"] == ["content-type", "content-length", "if-none-match", "range", "x-amz-*"]
    assert "CorsConfiguration" not in evaluated()["Blobs"]["Properties"], "no page may by default"


def test_a_list_of_origins_has_no_spaces_because_nothing_would_take_them_off_for_the_bucket() -> None:
    pattern = template()["Parameters"]["CorsOrigins"]["AllowedPattern"]
    for fine in ("", "*", "https://a.example.com", "https://a.example.com,http://localhost:3000"):
        assert re.search(pattern, fine), fine
    for wrong in ("https://a.example.com, https://b.example.com", "https://a.example.com/", "a.example.com"):
        assert not re.search(pattern, wrong), wrong


def test_a_page_may_read_what_api_gateway_answers_by_itself() -> None:
    (api,) = resources("AWS::Serverless::Api").values()
    for kind in ("DEFAULT_4XX", "DEFAULT_5XX"):
        headers = api["GatewayResponses"][kind]["ResponseParameters"]["Headers"]
        assert headers["Access-Control-Allow-Origin"] == "'*'"
        assert "retry-after" in headers["Access-Control-Expose-Headers"]


def test_a_page_may_read_the_name_that_api_gateway_gives_to_a_challenge() -> None:
    assert {"www-authenticate", "x-amzn-remapped-www-authenticate"} <= set(EXPOSED_HEADERS.split(", "))
