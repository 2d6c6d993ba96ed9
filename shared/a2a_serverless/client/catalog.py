"""Finds agents in an AI Catalog: by words, skills and tags, in nested catalogs too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import urljoin, urlsplit

from pydantic import ValidationError

from a2a_serverless.client.calls import HttpError
from a2a_serverless.client.discovery import address_of, fetch, origin_of
from a2a_serverless.domain.errors import InvalidAgentResponse
from a2a_serverless.domain.publications import CATALOG_MEDIA_TYPE
from a2a_serverless.http_client.transport import Unreachable, is_local
from a2a_serverless.protocol.ai_catalog import CARD_MEDIA_TYPE, Catalog, CatalogEntry, has_tags

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from a2a_serverless.domain.model import Json
    from a2a_serverless.http_client.transport import Transport

CATALOG_PATH: Final = "/.well-known/ai-catalog.json"
MAX_DEPTH: Final = 4  # as the specification recommends
MAX_DOCUMENTS: Final = 20


def read_catalog(
    url: str,
    transport: Transport,
    headers: Mapping[str, str] | None = None,
    on_skipped: Callable[[str], None] = lambda _: None,
) -> list[CatalogEntry]:
    """Lists the A2A agents of the catalog at ``url`` (a deployment's base URL, or the URL of a catalog).

    Nested catalogs are read as well, each once, 20 documents at most and four levels deep; of other hosts by https
    only, and none of this machine. ``on_skipped`` gets the URL of each that was not read for that or cannot be.
    Credentials are sent to the host of ``url`` only. Raises Unreachable, HttpError, InvalidAgentResponse, and, for
    credentials without https, CredentialsKept.
    """
    headers = headers or {}
    address = address_of(url, CATALOG_PATH, headers)
    reading = _Reading(address, transport, headers, on_skipped)
    return list(reading.entries(address, _parse(address, fetch(address, transport, headers)), 1))


class _Reading:
    """One reading of a catalog and of those that it contains."""

    def __init__(
        self, address: str, transport: Transport, headers: Mapping[str, str], on_skipped: Callable[[str], None]
    ) -> None:
        self._origin, self._transport, self._headers = origin_of(address), transport, headers
        self._on_skipped = on_skipped
        self._left = MAX_DOCUMENTS - 1
        self._seen = {address}

    def entries(self, address: str, catalog: Catalog, depth: int) -> Iterator[CatalogEntry]:
        for entry in catalog.entries:
            if entry.media_type == CARD_MEDIA_TYPE:
                yield entry.model_copy(update={"url": entry.url and urljoin(address, entry.url)})
            elif entry.media_type == CATALOG_MEDIA_TYPE:
                yield from self._nested(address, entry, depth + 1)

    def _nested(self, address: str, entry: CatalogEntry, depth: int) -> Iterator[CatalogEntry]:
        try:
            inner = urljoin(address, entry.url or "")
            if entry.url is not None and inner in self._seen:
                return
            self._seen.add(inner)
            catalog = _parse(inner, self._document(entry, inner, depth))
        except (Unreachable, HttpError, InvalidAgentResponse, ValueError):  # ValueError: the URL is none
            self._on_skipped(entry.url or entry.identifier)
            return
        yield from self.entries(inner, catalog, depth)

    def _document(self, entry: CatalogEntry, address: str, depth: int) -> Json:
        if depth > MAX_DEPTH or self._left == 0:
            raise InvalidAgentResponse(f"{address} is too deep or one too many.")
        self._left -= 1
        if entry.url is None:
            return entry.data  # type: ignore[return-value] # read by the same parser
        if origin_of(address) == self._origin:
            return fetch(address, self._transport, self._headers)
        if urlsplit(address).scheme != "https" or is_local(address):
            raise InvalidAgentResponse(f"{address} is of another host, and not https or of this machine.")
        return fetch(address, self._transport, {})


def _parse(address: str, document: Json) -> Catalog:
    try:
        return Catalog.model_validate(document)
    except ValidationError as error:
        first = error.errors(include_input=False)[0]
        where = ".".join(map(str, first["loc"])) or "the document"
        raise InvalidAgentResponse(f"{address} is not an AI Catalog: {where}: {first['msg']}.") from None


def search(entries: Iterable[CatalogEntry], words: Sequence[str] = (), tags: Sequence[str] = ()) -> list[CatalogEntry]:
    """The entries with all of these tags (or ids of skills) and all of these words in name, description or tags."""
    return [one for one in entries if has_tags(one.tags, tags) and _has_words(one, words)]


def _has_words(entry: CatalogEntry, words: Sequence[str]) -> bool:
    text = " ".join((entry.display_name, entry.description or "", *entry.tags)).casefold()
    return all(word.casefold() in text for word in words)
