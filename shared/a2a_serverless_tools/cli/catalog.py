"""Finds agents in an AI Catalog: by words, skills and tags, in nested catalogs too.

Unreadable entries and documents are skipped with a reason and hide nothing else. Signatures are not verified: a key set
that a catalog or a card names (``jku``) does not prove its author.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from urllib.parse import urljoin, urlsplit

from pydantic import ValidationError

from a2a_serverless.client.discovery import address_of, fetch
from a2a_serverless.client.errors import HttpError
from a2a_serverless.domain.errors import InvalidAgentResponse
from a2a_serverless.domain.origins import origin_of
from a2a_serverless.domain.publications import CATALOG_MEDIA_TYPE
from a2a_serverless.http_client.transport import Unreachable, is_local
from a2a_serverless.protocol.ai_catalog import (
    CARD_MEDIA_TYPE,
    CatalogEntry,
    has_tags,
    tags_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from a2a_serverless.domain.model import Json
    from a2a_serverless.http_client.transport import Transport

_VERSION: Final = re.compile(r"1\.[0-9]{1,9}(\.[0-9]{1,9})?", re.ASCII)  # the minor version does not matter
CATALOG_PATH: Final = "/.well-known/ai-catalog.json"
MAX_DEPTH: Final = 4  # as the specification recommends
MAX_DOCUMENTS: Final = 20
MAX_ENTRIES: Final = 1000
MAX_CARDS: Final = 50
UNREAD: Final = (Unreachable, HttpError, InvalidAgentResponse, ValueError)  # ValueError: the URL is none


class CatalogReader:
    """Reads the catalog at ``url`` (a deployment's base URL, or the URL of a catalog), once.

    Documents of other hosts are read by https only, and none of this machine. ``on_skipped`` gets the URL or the
    identifier of each skipped part, and the reason.
    """

    def __init__(
        self,
        url: str,
        transport: Transport,
        on_skipped: Callable[[str, str], None] = lambda *_: None,
    ) -> None:
        self._transport, self._on_skipped = transport, on_skipped
        self._address = address_of(url, CATALOG_PATH)
        self._origin = origin_of(self._address)
        self._catalogs, self._cards = MAX_DOCUMENTS - 1, MAX_CARDS
        self._addresses = {self._address}

    def read(self) -> list[CatalogEntry]:
        """The entries of A2A agents, in the order of the lists, with whole URLs.

        Nested catalogs are read as well, each once, 20 documents at most and four levels deep. Raises Unreachable,
        HttpError, and InvalidAgentResponse if the document is no catalog.
        """
        document = fetch(self._address, self._transport)
        return list(self._agents(self._address, document, 1))

    def search(
        self, entries: Sequence[CatalogEntry], words: Sequence[str] = (), tags: Sequence[str] = ()
    ) -> list[CatalogEntry]:
        """The entries with all of these tags (or ids of skills) and all of these words in name, description or tags.

        Members that an entry lacks are read from its card and added to the result; 50 cards at most.
        """
        candidates = (self._with_card(entry) for entry in entries if not entry.tags or has_tags(entry.tags, tags))
        return [entry for entry in candidates if has_tags(entry.tags, tags) and _has_words(entry, words)]

    def _agents(self, address: str, document: Json, depth: int) -> Iterator[CatalogEntry]:
        try:
            entries = _read_entries(document)
        except InvalidAgentResponse as error:
            raise InvalidAgentResponse(f"{address}: {error}") from None
        if len(entries) > MAX_ENTRIES:
            self._on_skipped(address, f"only the first {MAX_ENTRIES} entries are read")
        for number, raw in enumerate(entries[:MAX_ENTRIES], 1):
            try:
                entry = _read_entry(raw)
            except InvalidAgentResponse as error:
                self._on_skipped(f"{address}, entry {number}", str(error))
                continue
            yield from self._agent(address, entry, depth)

    def _agent(self, address: str, entry: CatalogEntry, depth: int) -> Iterator[CatalogEntry]:
        try:
            url = None if entry.url is None else urljoin(address, entry.url)
            if entry.type == CARD_MEDIA_TYPE:
                yield entry.model_copy(update={"url": url})
            elif entry.type == CATALOG_MEDIA_TYPE and (url is None or url not in self._addresses):
                nested = self._nested(entry, url, depth + 1)
                yield from self._agents(url or address, nested, depth + 1)
        except UNREAD as error:
            self._on_skipped(entry.url or entry.identifier, str(error))

    def _nested(self, entry: CatalogEntry, url: str | None, depth: int) -> Json:
        if depth > MAX_DEPTH:
            raise InvalidAgentResponse(f"It is more than {MAX_DEPTH} levels deep.")
        if self._catalogs == 0:
            raise InvalidAgentResponse(f"{MAX_DOCUMENTS} catalogs are read at most.")
        self._catalogs -= 1
        if url is None:
            return entry.data  # type: ignore[no-any-return] # as it was parsed
        self._addresses.add(url)
        return self._fetch(url)

    def _fetch(self, url: str) -> Json:
        if origin_of(url) != self._origin and (urlsplit(url).scheme != "https" or is_local(url)):
            raise InvalidAgentResponse("It is of another host, and not https or of this machine.")
        return fetch(url, self._transport)

    def _with_card(self, entry: CatalogEntry) -> CatalogEntry:
        """The entry, with the missing members from its card."""
        from a2a_serverless.protocol.peers import read_card

        if entry.display_name and entry.description:
            return entry
        try:
            card = read_card(self._card(entry))
        except UNREAD as error:
            self._on_skipped(entry.url or entry.identifier, str(error))
            return entry
        members = {"display_name": card.name, "description": card.description, "version": card.version}
        own = entry.model_dump(exclude_none=True, include={*members}, by_alias=False)
        tags = tuple(dict.fromkeys([*entry.tags, *tags_of(card.skills)]))
        return entry.model_copy(update=members | own | {"tags": tags})

    def _card(self, entry: CatalogEntry) -> Json:
        if entry.url is None:
            return entry.data  # type: ignore[no-any-return] # as it was parsed
        if self._cards == 0:
            raise InvalidAgentResponse(f"{MAX_CARDS} cards are read at most.")
        self._cards -= 1
        return self._fetch(entry.url)


def _has_words(entry: CatalogEntry, words: Sequence[str]) -> bool:
    text = " ".join((entry.name, entry.description or "", *entry.tags)).casefold()
    return all(word.casefold() in text for word in words)


def _read_entries(document: Json) -> list[Json]:
    """Returns the entries of a catalog, unread. Raises InvalidAgentResponse if it is no catalog of version 1."""
    if not isinstance(document, dict):
        raise InvalidAgentResponse("It is not an AI Catalog: it must be an object.")
    version, entries = document.get("specVersion"), document.get("entries")
    if not isinstance(version, str) or not _VERSION.fullmatch(version):
        raise InvalidAgentResponse("It is not an AI Catalog that can be read: specVersion must be 1.0 or another 1.x.")
    if not isinstance(entries, list):
        raise InvalidAgentResponse("It is not an AI Catalog: entries must be a list.")
    return entries


def _read_entry(entry: Json) -> CatalogEntry:
    """Returns an entry. Raises InvalidAgentResponse, whose text says how the entry is wrong."""
    try:
        return CatalogEntry.model_validate(entry)
    except ValidationError as error:
        first = error.errors(include_input=False)[0]
        where = ".".join(map(str, first["loc"])) or "the entry"
        raise InvalidAgentResponse(f"{where}: {first['msg']}.") from None
