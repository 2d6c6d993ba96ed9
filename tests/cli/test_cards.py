import json

from tests.cli.shell import Shell
from tests.client.deployment import BASE, Deployment, documents
from tests.echo import Asker, Writer


def test_agents_are_listed_one_on_each_line() -> None:
    done = Shell(Deployment(Writer().agent)).run("cards", "list")
    assert done.out == f"echo  echo  {BASE}/echo\n"


def test_agents_as_json_are_what_the_deployment_lists() -> None:
    (agent,) = json.loads(Shell(Deployment(Writer().agent)).run("cards", "list", "--json").out)
    assert agent["url"] == f"{BASE}/echo"


def test_a_card_says_what_the_agent_can_do_and_how_to_talk_to_it() -> None:
    done = Shell(Deployment(Asker().agent)).run("cards", "show", "echo")
    rows = dict(line.split(maxsplit=1) for line in done.out.splitlines())
    assert rows["Speaks"] == "JSONRPC 1.0, HTTP+JSON 1.0, JSONRPC 0.3, HTTP+JSON 0.3"
    assert rows["Can"] == "stream, notify webhooks"
    assert rows["URL"] == f"{BASE}/echo"


def test_a_card_as_json_is_what_was_served_with_its_signatures() -> None:
    card = json.loads(Shell(Deployment(Writer().agent)).run("cards", "show", "echo", "--json").out)
    assert card["signatures"]


def test_cards_search_finds_agents_by_skill_tag_and_word() -> None:
    shell = Shell(Deployment(Writer().agent))
    for search in (("--tag", "S"), ("echo",), ()):
        done = shell.run("cards", "search", *search)
        assert done.out == f"echo  s  {BASE}/echo/.well-known/agent-card.json\n"
    (agent,) = json.loads(shell.run("cards", "search", "echo", "--json").out)
    assert (agent["type"], agent["displayName"]) == ("application/a2a-agent-card+json", "echo")
    nothing = shell.run("cards", "search", "nobody")
    assert nothing.code == 0
    assert "None of 1 agents fits" in nothing.err


def test_cards_search_names_what_was_not_read_and_why() -> None:
    gone = {"identifier": "urn:x:gone", "type": "application/ai-catalog+json", "url": "/gone.json"}
    entries = [gone, *({"identifier": f"urn:x:{number}"} for number in range(20))]
    served = {"https://agents.example.com/c.json": {"specVersion": "1.0", "entries": entries}}
    shell = Shell(Deployment(Writer().agent), transport=documents(served))
    done = shell.run("cards", "search", "--url", *served)
    told = [line for line in done.err.splitlines() if line.startswith("Not read: ")]
    assert done.code == 0
    assert told[0].startswith("Not read: /gone.json: ")
    assert told[1] == "Not read: https://agents.example.com/c.json, entry 2: type: Field required."
    assert told[10:] == ["Not read: 11 more."]
