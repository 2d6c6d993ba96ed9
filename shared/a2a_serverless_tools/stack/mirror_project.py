"""Makes the agent of a new project a mirror: its module, and the remote agent's card in a file."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from a2a_serverless.mirrors import slug

MODULE = '''"""The agent at {url}, behind this deployment (docs/mirror.md)."""

from pathlib import Path

from a2a_serverless import mirror

{name} = mirror("{url}", id="{agent}", card=Path(__file__).with_name("{name}.json"))
'''


def make_mirror(
    folder: Path, url: str, document: Mapping[str, Any], write_card: Callable[[Path, Mapping[str, Any]], None]
) -> list[Path]:
    """Replace the agent of a new project by the mirror of the agent at ``url``, whose card is ``document``.

    Return the project's files. ``write_card`` writes the card into a file.
    """
    agent = slug(str(document.get("name", "")))
    name = re.sub(r"^(?=\d)", "agent_", agent.replace("-", "_"))
    package = next(path.parent for path in folder.glob("*/tailor.py"))
    (package / "tailor.py").unlink()
    (folder / "tests/test_tailor.py").unlink()
    (package / f"{name}.py").write_text(MODULE.format(url=url, name=name, agent=agent))
    write_card(package / f"{name}.json", document)
    for place, old, new in (
        ("pyproject.toml", "tailor:tailor", f"{name}:{name}"),
        ("README.md", 'send tailor "A coat, please."', f'send {agent} "Hello"'),
        ("README.md", "the agents: one async function each", "the mirror, and the card of its remote agent"),
    ):
        file = folder / place
        file.write_text(file.read_text().replace(old, new))
    return sorted(path for path in folder.rglob("*") if path.is_file())
