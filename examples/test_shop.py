"""The shop, without AWS and without a model: each test is a deployment in memory."""

from my_agents.shop import SCRIPT, make_shop

from a2a_serverless.testing import AgentTestHarness


def test_the_shop_asks_before_it_orders() -> None:
    harness = AgentTestHarness(make_shop(SCRIPT))
    asked = harness.send("a coat")
    assert (asked.state, "a coat" in asked.said) == ("input-required", True)
    done = harness.send("yes", task_id=asked.task.id)
    assert "ordered" in done.task.artifacts[-1].text()
