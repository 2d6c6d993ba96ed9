from __future__ import annotations

import ipaddress
import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_serverless.domain.outbound import (
    MAX_URL,
    EgressPolicy,
    NameUnresolved,
    UrlNotAllowed,
    WebhookTarget,
    check_addresses,
    check_url,
    is_loopback,
    is_public,
)

CASES: list[dict[str, Any]] = json.loads((Path(__file__).parents[1] / "data" / "webhook_urls.json").read_text())
# What only an attempt can show: the answer, the environment, a second lookup, addresses that do not answer.
SEEN_AT_AN_ATTEMPT = {case["id"] for case in CASES if case["class"] in {"response", "env"}} | {"dns-01", "dns-23"}
POLICY = EgressPolicy()


def is_admitted(url: str, addresses: list[str]) -> bool:
    try:
        check_addresses(addresses, check_url(url, POLICY))
    except (UrlNotAllowed, NameUnresolved):
        return False
    return True


@pytest.mark.requirement(117)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_a_hostile_url_is_refused_at_registration_and_a_good_one_is_not(case: dict[str, Any]) -> None:
    expected = case["expect"] == "allow" or case["id"] in SEEN_AT_AN_ATTEMPT
    assert is_admitted(case["url"], case.get("dns") or []) is expected, case["why"]


@pytest.mark.parametrize(
    "url",
    [
        "gopher://hooks.example.com/",
        "data:text/plain,x",
        "wss://hooks.example.com/",
        "https+unix://hooks.example.com/",
        "http\N{LATIN SMALL LETTER LONG S}://hooks.example.com/",
        "https:/hooks.example.com/",
        "https:////hooks.example.com/",
        "https://\\hooks.example.com/",
        "https://2130706433/",
        "https://0x7f.1/",
        "https://127.1/",
        "https://0x7f000001./",
        "https://00000177.0.0.01/",
        "https://127.0.0.1.0x1/",
        "https://1.1.1.1.1/",
        "https://hooks.example.0x7f/",
        "https://hooks.example.123/",
        "https://[::ffff:8.8.8.8]/",
        "https://[fe80::1%lo]/",
        "https://[v1.fe80::a]/",
        "https://[2606:4700::1111]/",
        "https://[::1/",
        "https://::1]/",
        "https://hooks.example.com[::1]/",
        "https://@hooks.example.com/",
        "https://user@hooks.example.com/",
        "https://user%40evil@hooks.example.com/",
        "https://hooks.example.com#",
        "https://hooks.example.com/#fragment",
        "https://hooks.example.com/\u2028",
        "https://hooks.example.com/\N{LATIN SMALL LETTER U WITH DIAERESIS}",
        "https://hooks.example.com/a b",
        "https://hooks.example.com/a\\b",
        "https://hooks.example.com/%",
        "https://hooks.example.com/%zz",
        "https://hooks.example.com/a\n",
        "https://hooks.example.com/\x00",
        "https://hooks.example.com\u200b/",
        "https://hooks\u00ad.example.com/",
        "https://hooks\u2024example\uff0ecom/",
        "https://hooks.example.com\uff0f127.0.0.1/",
        "https://hooks.example.com\uff1a443/",
        "https://b\N{LATIN SMALL LETTER U WITH DIAERESIS}cher.example.com/",
        "https://\u212aube.example.com/",
        "https://hooks.example.com%2e/",
        "https://hooks..example.com/",
        "https://hooks.example.com../",
        "https://hooks.example.com./",
        "https://hooks.example.com.:443/",
        "https://./",
        "https://com/",
        "https://com./",
        "https://hooks-.example.com/",
        "https://" + "a" * 64 + ".example.com/",
        "https://*.example.com/",
        "https://hooks.example.com,127.0.0.1/",
        "https://hooks.example.com;127.0.0.1/",
        "https://{hooks}.example.com/",
        "https://app.localhost/",
        "https://LOCALHOST/",
        "https://printer.local/",
        "https://router.home.arpa/",
        "https://hooks.example/",
        "https://hooks.invalid/",
        "https://x.alt/",
        "https://host.docker.internal/",
        "https://metadata.google.internal./",
        "https://api.default.svc.cluster.local/",
        "https://xn--.example.com/",
        "https://xn--a.example.com/",
        "https://xn--localhost-.example.com/",
        "https://xn--127-0-0-1-.com/",
        "https://xn--99999999999.example.com/",
        "https://hooks.example.com:65536/",
        "https://hooks.example.com:-1/",
        "https://hooks.example.com: 443/",
        "https://hooks.example.com:0443/",
        "https://hooks.example.com:0x1bb/",
        "https://hooks.example.com:\uff14\uff14\uff13/",
        "https://hooks.example.com:443.0/",
        "https://hooks.example.com:80/",
        "https://hooks.example.com:443443/",
        "https://hooks.example.com/" + "a" * MAX_URL,
    ],
)
def test_no_other_spelling_of_a_forbidden_url_is_taken(url: str) -> None:
    with pytest.raises(UrlNotAllowed):
        check_url(url, POLICY)


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("https://Hooks.Example.COM", WebhookTarget("https", "hooks.example.com", 443, "/")),
        ("https://hooks.example.com:8443/a", WebhookTarget("https", "hooks.example.com", 8443, "/a")),
        ("https://hooks.example.com?x=/?@:", WebhookTarget("https", "hooks.example.com", 443, "/?x=/?@:")),
        ("https://a-b.example.com/~u/%2F?", WebhookTarget("https", "a-b.example.com", 443, "/~u/%2F?")),
        ("https://XN--FIQS8S.xn--fiqs8s/", WebhookTarget("https", "xn--fiqs8s.xn--fiqs8s", 443, "/")),
        ("https://xn--strae-oqa.de/", WebhookTarget("https", "xn--strae-oqa.de", 443, "/")),
        ("https://r3---sn-x.example.com/", WebhookTarget("https", "r3---sn-x.example.com", 443, "/")),
    ],
)
def test_a_target_is_the_url_taken_apart_with_its_host_in_lower_case(url: str, target: WebhookTarget) -> None:
    assert check_url(url, POLICY) == target


OWN = EgressPolicy(
    own=("https://agents.example.com", "https://abc.execute-api.eu-central-1.amazonaws.com/live"),
    trusted_domains=("example.com",),
)


@pytest.mark.parametrize(
    "url",
    [
        "https://agents.example.com/",
        "https://AGENTS.example.com:8443/a2a",
        "https://agents.example.com/callbacks/",
        "https://agents.example.com/callbacks/a/b",
        "https://agents.example.com/callbacks/../echo",
        "https://agents.example.com/callbacks/a?b",
        "https://agents.example.com/echo/callbacks/a",
        "https://agents.example.com:8443/callbacks/a",
        "https://abc.execute-api.eu-central-1.amazonaws.com/live/echo",
        "https://abc.execute-api.eu-central-1.amazonaws.com/callbacks/a",
    ],
)
def test_the_deployment_s_own_host_is_no_webhook(url: str) -> None:
    with pytest.raises(UrlNotAllowed, match="the host is this deployment's own"):
        check_url(url, OWN)


@pytest.mark.parametrize(
    "url",
    [
        "https://hooks.example.com/",
        "https://x.agents.example.com/callbacks/a",
        "https://def.execute-api.eu-central-1.amazonaws.com/live/echo",
    ],
)
def test_other_hosts_are_webhooks_of_strangers(url: str) -> None:
    assert not check_url(url, OWN).own


@pytest.mark.parametrize(
    "url",
    [
        "https://agents.example.com/callbacks/0b0f-4C_x",
        "https://abc.execute-api.eu-central-1.amazonaws.com/live/callbacks/a",
    ],
)
def test_the_address_of_a_call_is_the_deployment_s_own_whatever_domains_are_allowed(url: str) -> None:
    assert check_url(url, OWN).own
    assert check_url(url, replace(OWN, allowed_domains=("hooks.example.net",))).own


def test_on_one_machine_the_deployment_s_own_port_is_no_webhook_and_others_are() -> None:
    policy = EgressPolicy(local_allow=("127.0.0.1:*",), own=("http://127.0.0.1:8000",))
    assert check_url("http://127.0.0.1:9000/", policy).local
    assert check_url("http://127.0.0.1:8000/callbacks/a", policy).own
    with pytest.raises(UrlNotAllowed, match="this deployment's own"):
        check_url("http://127.0.0.1:8000/echo", policy)


@pytest.mark.parametrize(
    ("url", "authority"),
    [("https://hooks.example.com:443/", "hooks.example.com"), ("https://a.example.com:8443/", "a.example.com:8443")],
)
def test_the_host_header_names_the_port_only_when_it_is_not_the_default(url: str, authority: str) -> None:
    assert check_url(url, POLICY).authority == authority


def test_a_refusal_never_repeats_the_url_because_it_may_hold_a_secret() -> None:
    with pytest.raises(UrlNotAllowed) as refused:
        check_url("http://hooks.example.com/?key=hunter2", POLICY)
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    ("host", "admitted"),
    [("example.com", True), ("a.b.example.com", True), ("badexample.com", False), ("example.com.evil.net", False)],
)
def test_allowed_domains_limit_hosts_on_the_boundary_of_a_label(*, host: str, admitted: bool) -> None:
    policy = EgressPolicy(allowed_domains=("example.com",))
    if admitted:
        assert check_url(f"https://{host}/", policy).host == host
    else:
        with pytest.raises(UrlNotAllowed):
            check_url(f"https://{host}/", policy)


def test_a_trusted_domain_needs_no_challenge_but_passes_every_other_rule() -> None:
    policy = EgressPolicy(trusted_domains=("example.com", "corp"))
    assert policy.trusts("hooks.example.com")
    assert not policy.trusts("hooks.example.net")
    with pytest.raises(UrlNotAllowed):
        check_url("https://wiki.corp/", policy)
    with pytest.raises(UrlNotAllowed):
        check_addresses(["10.0.0.1"], check_url("https://hooks.example.com/", policy))


@pytest.mark.parametrize("url", ["http://127.0.0.1:8010/webhook", "http://[::1]:8020/", "https://localhost:9999/x"])
def test_the_local_allow_list_admits_http_and_literals_on_any_port(url: str) -> None:
    policy = EgressPolicy(local_allow=("127.0.0.1:8010", "[::1]:*", "localhost:*"))
    assert check_url(url, policy).local


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:8011/",
        "http://127.0.0.2:8010/",
        "http://127.1:8010/",
        "http://2130706433:8010/",
        "ftp://localhost:8010/",
        "http://localhost:65536/",
        "http://user@localhost:8010/",
        "http://hooks.example.com/",
    ],
)
def test_the_local_allow_list_admits_nothing_beside_its_entries(url: str) -> None:
    with pytest.raises(UrlNotAllowed):
        check_url(url, EgressPolicy(local_allow=("127.0.0.1:8010", "localhost:*")))


@pytest.mark.parametrize("address", ["169.254.169.254", "10.0.0.1", "93.184.215.14", "::ffff:127.0.0.1", "0.0.0.0"])  # noqa: S104
def test_a_local_target_must_be_on_loopback(address: str) -> None:
    target = check_url("http://localhost:8010/", EgressPolicy(local_allow=("localhost:*",)))
    assert check_addresses(["127.0.0.1", "::1"], target) == ("127.0.0.1", "::1")
    with pytest.raises(UrlNotAllowed):
        check_addresses(["127.0.0.1", address], target)


def test_addresses_keep_their_order_and_lose_their_doubles() -> None:
    target = check_url("https://hooks.example.com/", POLICY)
    assert check_addresses(["8.8.8.8", "1.1.1.1", "8.8.8.8"], target) == ("8.8.8.8", "1.1.1.1")


def test_a_name_without_addresses_is_unresolved_and_not_refused() -> None:
    with pytest.raises(NameUnresolved):
        check_addresses([], check_url("https://hooks.example.com/", POLICY))


NOT_PUBLIC_V4 = [
    ("0.0.0.0", "0.255.255.255"),  # noqa: S104
    ("10.0.0.0", "10.255.255.255"),
    ("100.64.0.0", "100.127.255.255"),
    ("127.0.0.0", "127.255.255.255"),
    ("168.63.129.16", "168.63.129.16"),
    ("169.254.0.0", "169.254.255.255"),
    ("172.16.0.0", "172.31.255.255"),
    ("192.0.0.0", "192.0.0.255"),
    ("192.0.2.0", "192.0.2.255"),
    ("192.88.99.0", "192.88.99.255"),
    ("192.168.0.0", "192.168.255.255"),
    ("198.18.0.0", "198.19.255.255"),
    ("198.51.100.0", "198.51.100.255"),
    ("203.0.113.0", "203.0.113.255"),
    ("224.0.0.0", "255.255.255.255"),
]


@pytest.mark.parametrize(("first", "last"), NOT_PUBLIC_V4)
def test_a_reserved_range_is_refused_up_to_both_edges_and_no_further(first: str, last: str) -> None:
    below, above = int(ipaddress.IPv4Address(first)) - 1, int(ipaddress.IPv4Address(last)) + 1
    assert not is_public(first)
    assert not is_public(last)
    assert below < 0 or is_public(str(ipaddress.IPv4Address(below)))
    assert above >= 2**32 or is_public(str(ipaddress.IPv4Address(above)))


@pytest.mark.parametrize(
    "address",
    [
        "::",
        "::1",
        "::7f00:1",
        "::ffff:8.8.8.8",
        "::ffff:0:8.8.8.8",
        "64:ff9b::8.8.8.8",
        "64:ff9b:1::1",
        "100::1",
        "2001::1",
        "2001:2::1",
        "2001:20::1",
        "2001:1ff::1",
        "2001:db8::1",
        "2002:808:808::1",
        "2606:4700::5efe:a00:1",
        "2606:4700::200:5efe:a00:1",
        "2620:4f:8000::1",
        "3ffe::1",
        "3fff:fff::1",
        "4000::1",
        "5f00::1",
        "fc00::1",
        "fd00:ec2::254",
        "fe80::1",
        "fe80::1%eth0",
        "fec0::1",
        "ff02::1",
        "2606:4700::1111%1",
        "8.8.8.8 ",
        "8.8.8",
        "010.8.8.8",
        "0x8.8.8.8",
        "hooks.example.com",
        "",
    ],
)
def test_an_address_that_is_not_plain_global_unicast_is_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize(
    "address",
    ["8.8.8.8", "1.0.0.1", "2606:4700::1111", "2606:4700::5eff:a00:1", "2a00:1450::1", "2001:200::1", "3ffd::1"],
)
def test_a_global_unicast_address_is_public(address: str) -> None:
    assert is_public(address)


@given(st.ip_addresses())
def test_every_address_that_is_public_is_global_for_python(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    if is_public(str(address)):
        assert address.is_global
        assert not address.is_multicast
        assert not is_loopback(str(address))


URL_STARTS = st.sampled_from(["https://", "https://hooks.example.com", "https://hooks.example.com/", "https://a."])
URL_PIECES = st.one_of(
    st.sampled_from(
        ["https://", "example.com", "443", "8443", "%2e", "[::1]", "127.0.0.1", "0x7f", "xn--", "localhost"]
    ),
    st.sampled_from(list(".@:/\\?#-_;& \t\u3002\u200b")),
)


@given(URL_STARTS, st.lists(URL_PIECES, max_size=5).map("".join))
def test_a_url_that_passes_means_the_same_to_the_standard_parser(start: str, rest: str) -> None:
    url = start + rest
    try:
        target = check_url(url, POLICY)
    except UrlNotAllowed:
        return
    parts = urlsplit(url)
    assert (parts.scheme, (parts.hostname or "").rstrip("."), parts.port or 443) == target.origin
    assert parts.username is parts.password is None
    assert not parts.fragment
    assert target.port in {443, 8443}
