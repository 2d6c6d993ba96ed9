"""Values of the model, for properties that must hold for all of them."""

import base64
import string
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

from a2a_serverless.domain.events import ArtifactEvent, StatusEvent
from a2a_serverless.domain.model import Json, JsonObject
from a2a_serverless.protocol.v1 import Artifact, Message, Part, Role, Task, TaskState, TaskStatus

SOME = settings(deadline=None, max_examples=40)

NAMES = st.text(string.ascii_letters + string.digits + "-_.:漢", min_size=1, max_size=20)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
MOMENTS = st.integers(1, 4_102_444_800_000)

JSON: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
OBJECTS: st.SearchStrategy[JsonObject] = st.dictionaries(TEXTS, JSON, max_size=3)
METADATA = st.none() | OBJECTS


def built(model: Any, **members: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Objects of a model. ``builds`` alone takes the members' names in JSON for further parameters."""
    return st.builds(lambda **values: model(**values), **members)  # noqa: PLW0108 - it hides the signature


_ABOUT = {"media_type": st.none() | NAMES, "filename": st.none() | NAMES, "metadata": METADATA}
_RAW = st.binary(max_size=20).map(lambda content: base64.b64encode(content).decode())
_URLS = NAMES.map("https://example.com/".__add__)

PARTS = (
    built(Part, text=TEXTS, **_ABOUT)
    | built(Part, raw=_RAW, **_ABOUT)
    | built(Part, url=_URLS, **_ABOUT)
    | built(Part, data=JSON, **_ABOUT)
)
_PARTS = st.lists(PARTS, min_size=1, max_size=3).map(tuple)
_URIS = st.lists(_URLS, max_size=2).map(tuple)

MESSAGES = built(
    Message,
    message_id=NAMES,
    role=st.sampled_from(Role),
    parts=_PARTS,
    context_id=st.none() | NAMES,
    task_id=st.none() | NAMES,
    metadata=METADATA,
    extensions=_URIS,
    reference_task_ids=st.lists(NAMES, max_size=2).map(tuple),
)
ARTIFACTS = built(
    Artifact,
    artifact_id=NAMES,
    parts=_PARTS,
    name=st.none() | NAMES,
    description=st.none() | NAMES,
    metadata=METADATA,
    extensions=_URIS,
)
STATUSES = built(TaskStatus, state=st.sampled_from(TaskState), timestamp=MOMENTS, message=st.none() | MESSAGES)
TASKS = built(
    Task,
    id=NAMES,
    context_id=NAMES,
    status=STATUSES,
    artifacts=st.lists(ARTIFACTS, max_size=2).map(tuple),
    history=st.lists(MESSAGES, max_size=2).map(tuple),
    metadata=METADATA,
)
STATUS_EVENTS = st.builds(
    StatusEvent,
    n=st.just(0),
    at=MOMENTS,
    append_id=st.just(""),
    state=st.sampled_from(TaskState),
    message=st.none() | MESSAGES,
)
ARTIFACT_EVENTS = st.builds(
    ArtifactEvent,
    n=st.just(0),
    at=st.just(0),
    append_id=st.just(""),
    artifact=ARTIFACTS,
    append=st.booleans(),
    last_chunk=st.booleans(),
)
EVENTS = STATUS_EVENTS | ARTIFACT_EVENTS
