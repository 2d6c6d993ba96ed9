"""Public documents: what the rotator writes and the api serves."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.contract.backends import Store


def test_a_document_that_was_never_published_is_none(store: Store) -> None:
    assert store.publications.get_document("jwks") is None


def test_a_document_is_served_as_it_was_published_last(store: Store) -> None:
    store.publications.publish("jwks", {"keys": []})
    store.publications.publish("jwks", {"keys": [{"kid": "é", "n": 1.0, "empty": "", "none": None}]})
    assert store.publications.get_document("jwks") == {"keys": [{"kid": "é", "n": 1.0, "empty": "", "none": None}]}


def test_documents_are_told_apart_by_name(store: Store) -> None:
    names = ["card/writer", "card%2Fwriter", "card", "CARD", ""]
    for name in names:
        store.publications.publish(name, name)
    assert [store.publications.get_document(name) for name in names] == names


def test_a_published_document_outlives_every_task(store: Store) -> None:
    store.publications.publish("base-url", "https://api.example.com")
    store.now.ms *= 10
    assert store.publications.get_document("base-url") == "https://api.example.com"
