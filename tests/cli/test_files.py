import base64
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_serverless.protocol.v1 import Artifact, Part, Task, TaskState, TaskStatus
from a2a_serverless_tools.cli.files import save
from a2a_serverless_tools.cli.formatting import artifact_text, result_text, size_words

PNG = Part(raw=base64.b64encode(b"\x89PNG").decode(), media_type="image/png", filename="boat.png")


def task(*artifacts: Artifact) -> Task:
    return Task(id="t", context_id="c", status=TaskStatus(state=TaskState.COMPLETED, timestamp=0), artifacts=artifacts)


def saved(folder: Path, *artifacts: Artifact) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in save(artifacts, folder)}


def test_the_chunks_of_a_text_are_one_file(tmp_path: Path) -> None:
    chunks = (Part(text="# One\n"), Part(text="Two\n"))
    assert saved(tmp_path, Artifact(artifact_id="a", parts=chunks, name="document.md")) == {
        "document.md": b"# One\nTwo\n"
    }


def test_a_picture_keeps_its_bytes_and_its_name(tmp_path: Path) -> None:
    assert saved(tmp_path, Artifact(artifact_id="a", parts=(PNG,), name="picture")) == {"boat.png": b"\x89PNG"}


def test_data_is_saved_as_json(tmp_path: Path) -> None:
    outline = Part(data={"title": "风帆"})
    assert json.loads(saved(tmp_path, Artifact(artifact_id="a", parts=(outline,), name="outline"))["outline.json"]) == {
        "title": "风帆"
    }
    assert (
        json.loads(saved(tmp_path, Artifact(artifact_id="a", parts=(outline, outline), name="two.json"))["two.json"])
        == [outline.value] * 2
    )


def test_files_of_a_name_are_replaced(tmp_path: Path) -> None:
    for text in ("old", "new"):
        save([Artifact(artifact_id="a", parts=(Part(text=text),), name="x.md")], tmp_path, "demo.")
    assert (tmp_path / "demo.x.md").read_text() == "new"


@given(
    name=st.text(),
    other=st.sampled_from(["../../etc/passwd", "/etc/passwd", "..", ".bashrc", "a/b\\c", "\x00", "x" * 999]),
)
def test_an_artifact_of_any_name_is_saved_in_its_folder(
    tmp_path_factory: pytest.TempPathFactory, name: str, other: str
) -> None:
    folder = tmp_path_factory.mktemp("out")
    for each in (name, other):
        (path,) = save([Artifact(artifact_id="id", parts=(Part(text="x"),), name=each)], folder)
        assert path.parent == folder
        assert path.is_file()
        assert not path.name.startswith(".")


def test_the_text_of_a_result_describes_pictures_and_links() -> None:
    link = Part(url="https://a.example/x.pdf", media_type="application/pdf")
    both = task(
        Artifact(artifact_id="a", parts=(PNG,)),
        Artifact(artifact_id="b", parts=(link,)),
        Artifact(artifact_id="c", parts=(Part(data=1),)),
    )
    assert result_text(both) == "[boat.png, image/png, 4 bytes: save it with --out]\n\nhttps://a.example/x.pdf\n\n1"


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ((Part(text="x" * 1234),), "1,234 characters"),
        ((PNG, Part(url="u")), "4 bytes, a file by link"),
        ((Part(text="x"), Part(data=1)), "1 character, 1 data part"),
        ((Part(text=""),), "empty"),
    ],
)
def test_the_size_of_an_artifact_is_told_by_what_is_in_it(parts: tuple[Part, ...], words: str) -> None:
    assert size_words(Artifact(artifact_id="a", parts=parts)) == words
    assert isinstance(artifact_text(Artifact(artifact_id="a", parts=parts)), str)
