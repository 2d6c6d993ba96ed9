import pytest

from a2a_serverless.domain.errors import ExtensionRequired, VersionNotSupported
from a2a_serverless.protocol.versions import (
    ProtocolVersion,
    activated_extensions,
    asked_version,
    check_version,
    requested_extensions,
)


@pytest.mark.requirement(61, 64, 106)
@pytest.mark.parametrize(
    ("header", "query", "version"),
    [
        (None, None, "0.3"),
        ("", "", "0.3"),
        ("  ", None, "0.3"),
        ("1.0", None, "1.0"),
        (" 1.0 ", "0.3", "1.0"),
        (None, "1.0", "1.0"),
        ("1.0.1", None, "1.0"),
        ("0.3.0", None, "0.3"),
        ("99.0", None, "99.0"),
        ("1", None, "1"),
        ("1.0, 0.3", None, "1.0, 0.3"),
    ],
)
def test_the_header_goes_before_the_parameter_and_a_patch_does_not_matter(
    header: str | None, query: str | None, version: str
) -> None:
    assert asked_version(header, query) == version


@pytest.mark.parametrize(("written_in", "version"), [("1.0", "1.0"), ("0.3", "0.3"), ("0.3", "1.0")])
def test_a_supported_version_is_served(written_in: ProtocolVersion, version: str) -> None:
    check_version(written_in, version)


@pytest.mark.requirement(63)
@pytest.mark.parametrize("written_in", ["1.0", "0.3"])
@pytest.mark.parametrize("version", ["99.0", "1.1", "0.2", "1", "latest", "1.0, 0.3", "v1.0", "１.0"])
def test_an_unknown_version_is_refused_with_those_that_are_known(written_in: ProtocolVersion, version: str) -> None:
    with pytest.raises(VersionNotSupported, match=r"Supported are 1\.0 and 0\.3"):
        check_version(written_in, version)


@pytest.mark.requirement(64)
def test_a_1_0_method_without_a_version_is_told_which_header_it_lacks() -> None:
    with pytest.raises(VersionNotSupported, match=r"A2A-Version: 1\.0"):
        check_version("1.0", asked_version(None))


@pytest.mark.requirement(106)
@pytest.mark.parametrize(
    ("headers", "names"),
    [
        ((None, None), ()),
        (("",), ()),
        (("urn:a, urn:b,,urn:a",), ("urn:a", "urn:b")),
        (("urn:a", "urn:b"), ("urn:a", "urn:b")),
        ((None, "urn:b"), ("urn:b",)),
    ],
)
def test_extensions_are_read_from_both_headers_each_once(
    headers: tuple[str | None, ...], names: tuple[str, ...]
) -> None:
    sent = dict(zip(("a2a-extensions", "x-a2a-extensions"), headers, strict=False))
    assert requested_extensions({name: value for name, value in sent.items() if value is not None}) == names


def test_a_flood_of_extensions_is_cut_off() -> None:
    assert len(requested_extensions({"a2a-extensions": ",".join(map(str, range(1000)))})) == 32


@pytest.mark.requirement(78)
def test_extensions_that_client_and_agent_know_are_activated() -> None:
    assert activated_extensions(("urn:b", "urn:x", "urn:a"), {"urn:a": False, "urn:b": False}) == (
        "urn:b",
        "urn:a",
    )


@pytest.mark.requirement(46)
def test_a_missing_required_extension_is_named() -> None:
    with pytest.raises(ExtensionRequired, match="urn:must"):
        activated_extensions(("urn:a",), {"urn:a": False, "urn:must": True})
    assert activated_extensions(("urn:must",), {"urn:must": True}) == ("urn:must",)
