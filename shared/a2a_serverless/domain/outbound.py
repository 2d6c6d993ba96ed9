"""Requests to the URLs of clients: which URLs and addresses are allowed.

One strict grammar decides, and nothing is normalized: a URL that RFC 3986 and WHATWG parsers could read differently
does not match it. Only names are accepted, so no notation of an IP address can pass. The address lists are written out
because ``ipaddress.is_global`` differs between Python 3.11, 3.12 and 3.13, and treats multicast, SRv6 and some cloud
metadata addresses as global. Nothing here looks names up.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, replace
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_URL: Final = 2048
MAX_LINK: Final = 8192  # for URLs that are fetched: signed links contain a session token
MAX_NAME: Final = 253
PORTS: Final = frozenset({443, 8443})
MAX_PORT: Final = 65535
CALLBACKS: Final = "callbacks"  # path below a base URL for callbacks of called agents
_DEFAULT_PORT: Final = {"https": 443, "http": 80}

# RFC 3986 with an authority of name and port only; a port has no sign and no leading zero; no fragment.
_DATA: Final = r"[\w.~!$&'()*+,;=:@/-]|%[0-9a-f]{2}"
_URL: Final = re.compile(
    r"(?P<scheme>[a-z]+)://(?P<host>[a-z0-9.-]+|\[[0-9a-f:.]+\])(?::(?P<port>[1-9][0-9]{0,4})?)?"
    rf"(?P<path>/(?:{_DATA})*)?(?P<query>\?(?:{_DATA}|\?)*)?",
    re.ASCII | re.IGNORECASE,
)
_LABEL: Final = re.compile(r"(?!-)[a-z0-9-]{1,63}(?<!-)")
_TOP_LABEL: Final = re.compile(r"[a-z]{2,63}|xn--[a-z0-9-]{1,59}")
# Top labels that are not public: RFC 6761, 6762, 7686, 8375, 9476, ICANN's .internal, and common internal ones.
# fmt: off
_PRIVATE_TOP_LABELS: Final = frozenset((
    "alt", "arpa", "cluster", "consul", "corp", "dhcp", "docker", "domain", "example", "gateway", "home", "host", "i2p",
    "internal", "intranet", "invalid", "kube", "lan", "local", "localdomain", "localhost", "mail", "modem", "onion",
    "private", "router", "svc", "test", "workgroup", "wpad",
))

# IANA's special-purpose registry (also entries that it calls reachable), and everything from multicast up.
_REFUSED_V4: Final = tuple(map(IPv4Network, (
    "0.0.0.0/8",         # this network
    "10.0.0.0/8",        # private
    "100.64.0.0/10",     # carrier-grade NAT, Alibaba's metadata
    "127.0.0.0/8",       # loopback, the Lambda runtime API
    "168.63.129.16/32",  # Azure's WireServer, in a public range
    "169.254.0.0/16",    # link-local, cloud metadata
    "172.16.0.0/12",     # private
    "192.0.0.0/24",      # IETF protocol assignments, Oracle's metadata
    "192.0.2.0/24",      # documentation
    "192.31.196.0/24",   # AS112
    "192.52.193.0/24",   # multicast tunnels (AMT)
    "192.88.99.0/24",    # 6to4 relays
    "192.168.0.0/16",    # private
    "192.175.48.0/24",   # AS112
    "198.18.0.0/15",     # benchmarking
    "198.51.100.0/24",   # documentation
    "203.0.113.0/24",    # documentation
    "224.0.0.0/3",       # multicast, class E, broadcast
)))
# Only 2000::/3 is global unicast, which leaves out ::/8 (mapped, compatible, NAT64), ULA, link-local, SRv6, multicast.
_GLOBAL_V6: Final = IPv6Network("2000::/3")
_REFUSED_V6: Final = tuple(map(IPv6Network, (
    "2001::/23",          # IETF assignments: Teredo, ORCHID, benchmarking
    "2001:db8::/32",      # documentation
    "2002::/16",          # 6to4
    "2620:4f:8000::/48",  # AS112
    "3ffe::/16",          # the former 6bone
    "3fff::/20",          # documentation
)))
# fmt: on
_OWN_NETWORKS: Final = (IPv4Network("127.0.0.0/8"), IPv6Network("::1/128"))


class UrlNotAllowed(Exception):
    """The URL, or an address of its name, violates the policy. The text may be shown to the client."""


class NameUnresolved(Exception):
    """The name has no address now, but may get an address later. This is not a refusal."""


@dataclass(frozen=True, slots=True)
class EgressPolicy:
    """A deployment's own rules besides the fixed ones; all entries in lower case.

    ``allowed_domains`` limits hosts to these names and their subdomains (empty: any). ``trusted_domains`` need no
    ownership challenge, but every other rule applies. ``local_allow`` is for local runs: ``host:port`` or ``host:*``
    entries, also IP addresses, that may use http, any port and loopback. ``own`` are base URLs of this deployment: on
    their hosts callback addresses (``CALLBACKS``) are allowed, whatever the allowed domains, and nothing else. Local
    hosts are compared with their port.
    """

    allowed_domains: tuple[str, ...] = ()
    trusted_domains: tuple[str, ...] = ()
    local_allow: tuple[str, ...] = ()
    own: tuple[str, ...] = ()

    def allows(self, host: str) -> bool:
        return not self.allowed_domains or _is_under(host, self.allowed_domains)

    def trusts(self, host: str) -> bool:
        return _is_under(host, self.trusted_domains)

    def is_local(self, host: str, port: int) -> bool:
        return f"{host}:{port}" in self.local_allow or f"{host}:*" in self.local_allow

    def is_own_host(self, target: WebhookTarget) -> bool:
        """Whether the URL is on this deployment's host."""
        return any(_same_host(target, base) for base in self.own)

    def is_callback(self, url: str) -> bool:
        """Whether the URL is a callback address of this deployment."""
        return any(re.fullmatch(rf"{re.escape(base)}/{CALLBACKS}/[\w-]+", url, re.ASCII) for base in self.own)


@dataclass(frozen=True, slots=True)
class WebhookTarget:
    """A URL that passed the checks. ``host`` is in lower case; ``local``: the local allow list permits it.

    ``own``: it is a callback address of this deployment.
    """

    scheme: str
    host: str
    port: int
    path_and_query: str
    local: bool = False
    own: bool = False

    @property
    def origin(self) -> tuple[str, str, int]:
        """Scheme, host and port; requests with the same origin may share a connection."""
        return self.scheme, self.host, self.port

    @property
    def authority(self) -> str:
        """The value of the Host header."""
        return self.host if self.port == _DEFAULT_PORT[self.scheme] else f"{self.host}:{self.port}"


@lru_cache(maxsize=1024)  # a webhook gets several events in a row
def check_url(url: str, policy: EgressPolicy, longest: int = MAX_URL) -> WebhookTarget:
    """Parses and checks ``url``, of at most ``longest`` characters; raises UrlNotAllowed."""
    match = _URL.fullmatch(url) if len(url) <= longest else None
    if match is None:
        raise UrlNotAllowed(
            f"not a plain URL of at most {longest} characters: https, a name, a path and a query in ASCII; "
            "no user-info, no fragment, nothing that needs repair"
        )
    scheme, host = match["scheme"].lower(), match["host"].lower()
    port = int(match["port"] or _DEFAULT_PORT.get(scheme, 0))
    local = scheme in _DEFAULT_PORT and port <= MAX_PORT and policy.is_local(host, port)
    own = policy.is_callback(url)
    if not local:
        _check_public(scheme, host, port, policy if not own else replace(policy, allowed_domains=()))
    target = WebhookTarget(scheme, host, port, (match["path"] or "/") + (match["query"] or ""), local, own)
    if policy.is_own_host(target) and not own:
        raise UrlNotAllowed("the host is this deployment's own")
    return target


def check_addresses(addresses: Iterable[str], target: WebhookTarget) -> tuple[str, ...]:
    """The addresses to connect to, in order. Raises NameUnresolved without any, UrlNotAllowed if any is not public.

    One address that is not public refuses the name, because it is a sign of DNS rebinding. For a local target, all
    addresses must be loopback instead.
    """
    candidates = tuple(dict.fromkeys(addresses))
    if not candidates:
        raise NameUnresolved("the name has no address")
    if not all(map(is_loopback if target.local else is_public, candidates)):
        raise UrlNotAllowed("the name has an address that is not public")
    return candidates


@lru_cache(maxsize=1024)
def is_public(address: str) -> bool:
    """Whether the address is global unicast, not reserved, and embeds no other address. False if it does not parse."""
    ip = _parse(address)
    if isinstance(ip, IPv4Address):
        return not any(ip in network for network in _REFUSED_V4)
    if ip is None or ip not in _GLOBAL_V6 or _is_isatap(ip):
        return False
    return not any(ip in network for network in _REFUSED_V6)


def is_loopback(address: str) -> bool:
    """Whether the address is in 127.0.0.0/8 or is ::1. False for IPv4 addresses in IPv6 form."""
    ip = _parse(address)
    return ip is not None and any(ip in network for network in _OWN_NETWORKS)


def is_confidential(url: str) -> bool:
    """Whether nobody on the way can read a request to the URL: by https, or to this machine."""
    parts = urlsplit(url)
    return parts.scheme == "https" or parts.hostname == "localhost" or is_loopback(parts.hostname or "")


def _check_public(scheme: str, host: str, port: int, policy: EgressPolicy) -> None:
    if scheme != "https":
        raise UrlNotAllowed("only https is allowed")
    if port not in PORTS:
        raise UrlNotAllowed(f"only the ports {sorted(PORTS)} are allowed")
    if not _is_public_name(host):
        raise UrlNotAllowed(
            "the host is not a public domain name; IP addresses, private names and a dot at the end are not allowed"
        )
    if not policy.allows(host):
        raise UrlNotAllowed("the host is not under a domain that this deployment allows")


def _is_public_name(host: str) -> bool:
    labels = host.split(".")
    return (
        len(host) <= MAX_NAME
        and len(labels) > 1
        and all(map(_is_label, labels))
        and _TOP_LABEL.fullmatch(labels[-1]) is not None
        and labels[-1] not in _PRIVATE_TOP_LABELS
    )


def _is_label(label: str) -> bool:
    return _LABEL.fullmatch(label) is not None and (not label.startswith("xn--") or _is_a_label(label))


def _is_a_label(label: str) -> bool:
    """Whether it is a real A-label: Punycode of stable letters, marks and digits (RFC 5890, 5892), not only ASCII."""
    try:
        text = label[4:].encode().decode("punycode")
        same = text.encode("punycode").decode() == label[4:]
    except UnicodeError:
        return False
    stable = unicodedata.normalize("NFKC", text).lower() == text and not text.isascii()
    return same and stable and all(unicodedata.category(char)[0] in "LMN" or char in "-·" for char in text)


def _same_host(target: WebhookTarget, base: str) -> bool:
    own = urlsplit(base)
    same_name = target.host == (own.hostname or "")
    return same_name and (not target.local or target.port == (own.port or _DEFAULT_PORT.get(own.scheme, 0)))


def _is_under(host: str, domains: tuple[str, ...]) -> bool:
    return any(host == domain or host.endswith(f".{domain}") for domain in domains)


def _parse(address: str) -> IPv4Address | IPv6Address | None:
    try:
        return None if "%" in address else ip_address(address)  # a scope id is only valid on a local link
    except ValueError:
        return None


def _is_isatap(address: IPv6Address) -> bool:
    """Whether the interface id is ``[02]00:5efe:a.b.c.d``: a router may unwrap it to an IPv4 address (RFC 5214)."""
    return (int(address) >> 32) & 0xFDFFFFFF == 0x00005EFE  # noqa: PLR2004
